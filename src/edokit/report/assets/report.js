"use strict";
// Theme, charts and the links between them. Everything from data is set as text.
const EDO = JSON.parse(document.getElementById("edo-data").textContent);

function isDark() {
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
}

// A copy of a figure with the colours of the theme.
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
const touch = matchMedia("(pointer: coarse)").matches;

// Widths in print; charts are not resized by the print layout.
const PAPER = { whole: 660, grid: 320 };

function draw(dark, paper) {
  for (const element of charts) {
    const figure = themed(EDO.figures[element.dataset.chart], dark);
    const linked = element.closest("[data-linked]") !== null;
    figure.layout.autosize = !paper;
    if (paper) figure.layout.width = element.closest(".grid") ? PAPER.grid : PAPER.whole;
    if (touch || !linked) {
      // Touch scrolls the page.
      figure.layout.dragmode = false;
      for (const key of Object.keys(figure.layout)) {
        if (/^[xy]axis\d*$/.test(key)) figure.layout[key].fixedrange = true;
      }
    } else {
      figure.layout.dragmode = "select";
    }
    for (const trace of figure.data) {
      // On a phone the numbers of a large matrix are too small to read.
      if (trace.type === "heatmap" && trace.texttemplate && element.clientWidth < 70 * trace.z[0].length) {
        trace.texttemplate = "";
      }
    }
    Plotly.react(element, figure.data, figure.layout, {
      responsive: true,
      displaylogo: false,
      displayModeBar: false,
    });
  }
}

function text(tag, content, className) {
  const made = document.createElement(tag);
  if (content !== undefined) made.textContent = content;
  if (className) made.className = className;
  return made;
}

function linkViews() {
  const views = charts.filter((element) => element.closest("[data-linked=pareto]"));
  let busy = false;
  const once = (action) => {
    if (busy) return;
    busy = true;
    try { action(); } finally { busy = false; }
  };
  for (const view of views) {
    const others = views.filter((other) => other !== view);
    view.on("plotly_hover", (event) => once(() => {
      const at = event.points.map((p) => ({ curveNumber: p.curveNumber, pointNumber: p.pointNumber }));
      for (const other of others) Plotly.Fx.hover(other, at.slice(0, 1));
    }));
    view.on("plotly_unhover", () => once(() => {
      for (const other of others) Plotly.Fx.unhover(other);
    }));
    view.on("plotly_click", (event) => {
      if (event.points.length) showTrial(event.points[0].customdata);
    });
    view.on("plotly_selected", (event) => once(() => {
      if (!event || !event.points) return;
      const picked = view.data.map(() => []);
      for (const p of event.points) picked[p.curveNumber].push(p.pointNumber);
      for (const other of others) Plotly.restyle(other, { selectedpoints: picked });
    }));
    view.on("plotly_deselect", () => once(() => {
      for (const other of views) Plotly.restyle(other, { selectedpoints: [null] });
    }));
  }
}

function showTrial(number) {
  const trial = EDO.trials[String(number)];
  const panel = document.getElementById("trial");
  if (!trial || !panel) return;
  const facts = text("dl", undefined, "facts");
  const metrics = Object.fromEntries(Object.entries(trial.metrics).map(([name, value]) => [name, value.toFixed(4)]));
  const shown = { ...metrics, ...trial.settings };
  for (const name of Object.keys(shown)) {
    const pair = document.createElement("div");
    pair.append(text("dt", name), text("dd", shown[name]));
    facts.append(pair);
  }
  const state = trial.chosen ? "chosen" : trial.front ? "on the front" : "dominated";
  panel.replaceChildren(text("h3", `Trial ${number}, ${state}`), facts);
  panel.hidden = false;
}

// A button beside each chart, since plotly's own toolbar covers the marks below it.
function addSaving() {
  for (const element of charts) {
    const name = element.getAttribute("aria-label");
    const save = Object.assign(text("button", "SVG ↓", "save"), { type: "button", title: "Save this chart as SVG" });
    save.setAttribute("aria-label", "Save as SVG: " + name);
    save.addEventListener("click", () =>
      Plotly.downloadImage(element, { format: "svg", filename: "edo-" + element.dataset.chart }));
    const caption = element.parentElement.querySelector(":scope > figcaption");
    if (caption) caption.append(save);
    else element.before(save);
  }
}

draw(isDark());
linkViews();
addSaving();

document.getElementById("theme").addEventListener("click", () => {
  document.documentElement.dataset.theme = isDark() ? "light" : "dark";
  draw(isDark());
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => draw(isDark()));
addEventListener("beforeprint", () => draw(false, true));
addEventListener("afterprint", () => draw(isDark()));
document.addEventListener("click", (event) => {
  const veil = event.target.closest(".veil");
  if (!veil) return;
  veil.setAttribute("aria-expanded", "true");
  veil.removeAttribute("aria-label");
});
