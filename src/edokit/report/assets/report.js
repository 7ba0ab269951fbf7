"use strict";
// Theme and charts. Everything from data is set as text.
const EDO = JSON.parse(document.getElementById("edo-data").textContent);

function isDark() {
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
}

// A copy of a chart with the colours of the theme.
function themed(value, dark) {
  if (Array.isArray(value)) return value.map((entry) => themed(entry, dark));
  if (value && typeof value === "object") {
    const copy = {};
    for (const key of Object.keys(value)) copy[key] = themed(value[key], dark);
    return copy;
  }
  return dark && typeof value === "string" && EDO.dark[value] ? EDO.dark[value] : value;
}

const charts = [...document.querySelectorAll("[data-chart]")];
const narrow = matchMedia("(max-width: 760px)").matches;

// Widths in print; charts are not resized by the print layout.
const PAPER = { whole: 660, grid: 320 };

const tip = document.body.appendChild(text("div", undefined, "tip"));
tip.hidden = true;
// The fields of a row, but those that begin with an underscore.
function described(row) {
  const shown = (value) => (typeof value === "number" ? String(+value.toPrecision(4)) : value);
  return Object.entries(row).filter(([name, value]) => !name.startsWith("_") && value !== null).map(([name, value]) => `${name}: ${shown(value)}`);
}
function showTip(handler, event, item, row) {
  tip.hidden = !row;
  if (!row) return;
  tip.textContent = described(row).join("\n");
  const { innerWidth: width, innerHeight: height } = window;
  tip.style.left = Math.max(4, Math.min(event.clientX + 14, width - tip.offsetWidth - 4)) + "px";
  tip.style.top = (event.clientY + tip.offsetHeight + 24 > height ? event.clientY - tip.offsetHeight - 10 : event.clientY + 14) + "px";
}

// Charts in closed sections are drawn when these are opened: they have no width before.
async function draw(dark, paper, within = document) {
  const shown = charts.filter((element) => within.contains(element) && !element.closest("details:not([open])"));
  const drawn = shown.map(async (element) => {
    const spec = themed({ ...EDO.figures[element.dataset.chart], config: EDO.config }, dark);
    if (paper) spec.width = element.closest(".grid") ? PAPER.grid : PAPER.whole;
    // Expressions are interpreted: the policy of the page allows no evaluation.
    const options = { mode: "vega-lite", renderer: "svg", ast: true, actions: false, defaultStyle: false, tooltip: showTip };
    element.view = (await vegaEmbed(element, spec, options)).view;
  });
  await Promise.all(drawn);
}

function text(tag, content, className) {
  const made = document.createElement(tag);
  if (content !== undefined) made.textContent = content;
  if (className) made.className = className;
  return made;
}

function addSaving() {
  for (const element of charts) {
    const name = element.getAttribute("aria-label");
    const save = Object.assign(text("button", "SVG ↓", "save"), { type: "button", title: "Save this chart as SVG" });
    save.setAttribute("aria-label", "Save as SVG: " + name);
    save.addEventListener("click", async () => {
      const image = new Blob([await element.view.toSVG()], { type: "image/svg+xml" });
      const link = Object.assign(document.createElement("a"), { href: URL.createObjectURL(image), download: `edo-${element.dataset.chart}.svg` });
      link.click();
      URL.revokeObjectURL(link.href);
    });
    const caption = element.parentElement.querySelector(":scope > figcaption");
    if (caption) caption.append(save);
    else element.before(save);
  }
}

const sections = [...document.querySelectorAll("section > details")];
if (narrow) sections.filter((section) => section.matches(".later")).forEach((section) => { section.open = false; });
draw(isDark());
addSaving();
// Not earlier: sections that are open from the start are toggled, too.
setTimeout(() => sections.forEach((section) => section.addEventListener("toggle", () => {
  if (section.open) draw(isDark(), false, section);
})));
addEventListener("hashchange", () => {
  const section = sections.find((entry) => "#" + entry.parentElement.id === location.hash);
  if (section) section.open = true;
});

document.getElementById("theme").addEventListener("click", () => {
  document.documentElement.dataset.theme = isDark() ? "light" : "dark";
  draw(isDark());
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => draw(isDark()));
addEventListener("beforeprint", () => {
  sections.forEach((section) => { section.open = true; });
  draw(false, true);
});
addEventListener("afterprint", () => draw(isDark()));
document.addEventListener("click", (event) => {
  const veil = event.target.closest(".veil");
  if (!veil) return;
  veil.setAttribute("aria-expanded", "true");
  veil.removeAttribute("aria-label");
});
