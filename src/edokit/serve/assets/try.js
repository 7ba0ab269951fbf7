"use strict";
(() => {
  const by = (id) => document.getElementById(id);
  const EVERYONE = "people in general";
  let token = "";
  let about = null;
  let shown = null; // the views and texts of the last answer
  let asked = 0; // answers to earlier questions are dropped

  // Texts from people and from the server become text nodes: nothing here parses HTML.
  function element(name, options = {}, ...children) {
    const made = document.createElement(name);
    for (const [key, value] of Object.entries(options)) {
      if (key === "class") made.className = value;
      else made.setAttribute(key, value);
    }
    made.append(...children);
    return made;
  }

  function problem(message) {
    by("problem").hidden = !message;
    by("problem").textContent = message;
  }

  async function request(path, body) {
    const headers = {};
    if (token) headers.authorization = `Bearer ${token}`;
    if (body) headers["content-type"] = "application/json";
    let response;
    try {
      const method = body ? "POST" : "GET";
      const content = body ? JSON.stringify(body) : undefined;
      response = await fetch(path, { method, headers, body: content, cache: "no-store" });
    } catch {
      throw new Error("The server can't be reached. Is it still running?");
    }
    let answer = {};
    try {
      answer = await response.json();
    } catch {
      answer = {};
    }
    if (!response.ok) {
      const words = [answer.error || `status ${response.status}`, answer.hint].filter(Boolean);
      const failure = new Error(words.join("; "));
      failure.status = response.status;
      throw failure;
    }
    return answer;
  }

  // --- The server ---------------------------------------------------------------------------------

  async function open() {
    try {
      about = await request("about");
      const people = await request("people");
      by("gate").hidden = true;
      by("ask").hidden = false;
      introduce(people);
      command();
      by("texts").focus();
    } catch (failure) {
      if (failure.status === 401) {
        askForToken(token ? "This token is not the server's." : "");
      } else if (failure.status === 503) {
        by("about").textContent = "The members are being loaded …";
        setTimeout(open, 1000);
      } else {
        by("about").textContent = "";
        problem(failure.message);
      }
    }
  }

  function askForToken(message) {
    by("about").textContent = "";
    by("ask").hidden = true;
    by("gate").hidden = false;
    by("gate-problem").hidden = !message;
    by("gate-problem").textContent = message;
    token = "";
    by("token").value = "";
    by("token").focus();
  }

  function introduce(people) {
    const kinds = { nominal: "classes", ordinal: "points", "multi-label": "labels" };
    const listed = about.classes.join(", ");
    by("about").textContent = `${kinds[about.scale]}: ${listed} · version ${about.version}`;
    by("promise").hidden = !about.promise;
    const promise = about.promise || "";
    by("promise").textContent = promise.charAt(0).toUpperCase() + promise.slice(1);
    by("context-part").hidden = about.contexts !== true;
    by("sends").textContent = about.sends_to.length
      ? `Its members send them on to ${about.sends_to.join(", ")}. `
      : "";
    by("views").hidden = people.people === 0;
    const place = by("attributes");
    place.replaceChildren();
    for (const [attribute, levels] of Object.entries(people.attributes)) {
      const row = element("div", { class: "row" });
      for (const [level, count] of Object.entries(levels)) {
        const box = element("input", { type: "checkbox" });
        box.dataset.attribute = attribute;
        box.dataset.level = level;
        const amount = element("span", { class: "hint" }, `(${count})`);
        row.append(element("label", { class: "check" }, box, ` ${level} `, amount));
      }
      place.append(element("fieldset", {}, element("legend", {}, attribute), row));
    }
    by("joint-part").hidden = Object.keys(people.attributes).length < 2;
    const names = (people.annotators || []).map((name) => element("option", { value: name }));
    by("people").replaceChildren(...names);
  }

  // --- The question -------------------------------------------------------------------------------

  function texts() {
    const written = by("texts").value;
    if (by("whole").checked) return written.trim() ? [written] : [];
    return written.split(/\r?\n/).map((line) => line.trim()).filter(Boolean);
  }

  function body(panel) {
    const asking = { texts: texts() };
    if (about.contexts === true) asking.contexts = asking.texts.map(() => by("context").value);
    if (panel) asking.panel = panel;
    return asking;
  }

  // The panels that are chosen, after the anonymous answer.
  function views() {
    const chosen = [{ title: EVERYONE, panel: null }];
    const boxes = [...by("attributes").querySelectorAll("input:checked")];
    if (by("joint").checked && boxes.length) {
      const panel = {};
      for (const { dataset } of boxes) (panel[dataset.attribute] ||= []).push(dataset.level);
      const parts = Object.entries(panel).map(([name, levels]) => `${name} ${levels.join(" or ")}`);
      chosen.push({ title: parts.join(", "), panel });
    } else {
      for (const { dataset } of boxes) {
        const panel = { [dataset.attribute]: dataset.level };
        chosen.push({ title: `${dataset.attribute} ${dataset.level}`, panel });
      }
    }
    const names = by("names").value.split(",").map((name) => name.trim()).filter(Boolean);
    if (names.length) chosen.push({ title: names.join(", "), panel: [...new Set(names)] });
    return chosen;
  }

  function command() {
    if (!about) return;
    const asking = body(views().length > 1 ? views()[1].panel : null);
    if (!asking.texts.length) {
      asking.texts = ["How kind of you."];
      if (asking.contexts) asking.contexts = [by("context").value];
    }
    const quoted = JSON.stringify(asking).replaceAll("'", "'\\''");
    const header = token ? ' -H "authorization: Bearer $EDO_SERVE_TOKEN"' : "";
    const address = new URL("predict", document.baseURI).href;
    by("command").textContent =
      `curl ${address}${header} -H 'content-type: application/json' -d '${quoted}'`;
    by("command-part").hidden = false;
  }

  async function ask() {
    problem("");
    const asking = texts();
    if (!asking.length) {
      problem("Type or paste a text first.");
      by("texts").focus();
      return;
    }
    if (asking.length > about.max_texts) {
      problem(`${asking.length} texts are more than ${about.max_texts}; ask in parts.`);
      return;
    }
    const number = ++asked;
    const chosen = views();
    by("answer").disabled = true;
    by("status").textContent = "Asking …";
    const start = performance.now();
    try {
      const questions = chosen.map(({ panel }) => request("predict", body(panel)));
      const answers = await Promise.all(questions);
      if (number !== asked) return;
      const seconds = (performance.now() - start) / 1000;
      shown = { texts: asking, chosen, answers: answers.map(({ predictions }) => predictions) };
      orders();
      show();
      by("found").hidden = false;
      const amount = asking.length === 1 ? "1 text" : `${asking.length} texts`;
      by("status").textContent = `${amount} answered in ${seconds.toFixed(2)} s.`;
      by("found-title").focus({ preventScroll: true });
      by("found").scrollIntoView({ block: "nearest" });
    } catch (failure) {
      if (failure.status === 401) askForToken("The server no longer takes this token.");
      else problem(failure.message);
      by("status").textContent = "";
    } finally {
      by("answer").disabled = false;
    }
  }

  // --- The answers --------------------------------------------------------------------------------

  const percent = (share) => `${(100 * share).toFixed(1)} %`;

  function orders() {
    const first = shown.answers[0][0];
    const options = [["", "as written"]];
    if (first.expected != null) options.push(["expected", "expected point, high to low"]);
    if (first.familiarity != null) options.push(["familiarity", "familiarity, low to high"]);
    for (const name of about.classes) options.push([`p ${name}`, `${name}, high to low`]);
    const before = by("order").value;
    by("order").replaceChildren(
      ...options.map(([value, title]) => element("option", { value }, title)),
    );
    if (options.some(([value]) => value === before)) by("order").value = before;
    by("order-part").hidden = shown.texts.length < 2;
  }

  function sorted() {
    const positions = shown.texts.map((_, position) => position);
    const order = by("order").value;
    const answers = shown.answers[0];
    const keys = {
      expected: (answer) => -answer.expected,
      familiarity: (answer) => answer.familiarity,
    };
    let key = keys[order];
    if (order.startsWith("p ")) key = (answer) => -answer.probabilities[order.slice(2)];
    if (key) positions.sort((one, other) => key(answers[one]) - key(answers[other]));
    return positions;
  }

  function show() {
    const cards = sorted().map((position) =>
      card(shown.texts[position], shown.chosen, shown.answers.map((rows) => rows[position])));
    by("results").replaceChildren(...cards);
  }

  function card(text, chosen, answers) {
    const made = element("li", { class: "card" });
    made.append(element("h3", { dir: "auto", tabindex: "0" }, text), badges(answers[0]));
    const table = element("table");
    table.style.minWidth = `${5.5 + 7 * chosen.length}rem`;
    table.append(element("caption", {}, caption(chosen)));
    const head = element("tr", {}, element("td"));
    for (const { title } of chosen) head.append(element("th", { scope: "col" }, title));
    if (chosen.length > 1) table.append(element("thead", {}, head));
    const rows = element("tbody");
    const likeliest = [answers[0].label].flat();
    for (const name of about.classes) {
      const row = element("tr", {}, element("th", { scope: "row", title: name }, name));
      if (likeliest.includes(name)) row.className = "best";
      answers.forEach((answer, view) => row.append(share(answer.probabilities[name], view, answer, name)));
      rows.append(row);
    }
    if (chosen.length > 1 && answers[0].expected != null) {
      rows.append(summary("expected", answers, (answer) => answer.expected.toFixed(2)));
    } else if (chosen.length > 1) {
      rows.append(summary("label", answers, (answer) => labelOf(answer, "none")));
    }
    table.append(rows);
    made.append(element("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": "Distribution" }, table));
    return made;
  }

  function caption(chosen) {
    const kinds = {
      nominal: "Share of people who would choose each class",
      ordinal: "Share of people who would choose each point",
      "multi-label": "Share of people who would choose each label",
    };
    return chosen.length > 1 ? `${kinds[about.scale]}, in the eyes of` : kinds[about.scale];
  }

  function share(value, view, answer, name) {
    const bar = element("div", { class: "bar" });
    bar.style.width = `${100 * value}%`;
    const track = element("div", { class: "track", "aria-hidden": "true" }, bar);
    const number = element("span", { class: "number" }, percent(value));
    const cell = element("td", view ? { class: "view" } : {});
    if (answer.low && answer.high) {
      cell.title = `votes of such a panel: ${percent(answer.low[name])} to ${percent(answer.high[name])}`;
    }
    cell.append(element("div", { class: "cell" }, track, number));
    return cell;
  }

  function summary(title, answers, value) {
    const row = element("tr", { class: "sum" }, element("th", { scope: "row" }, title));
    for (const answer of answers) row.append(element("td", {}, element("strong", {}, value(answer))));
    return row;
  }

  function labelOf(answer, none) {
    if (answer.label == null) return "no label: the text can't be read";
    return [answer.label].flat().join(", ") || none;
  }

  function badges(answer) {
    const list = element("ul", { class: "badges" });
    const label = labelOf(answer, "none of the labels");
    list.append(element("li", {}, "most likely ", element("strong", {}, label)));
    if (answer.expected != null) {
      list.append(element("li", {}, "expected ", element("strong", {}, answer.expected.toFixed(2))));
    }
    if (answer.familiarity != null) {
      const badge = element("li", { title: "rank among texts that it had not learned from" });
      if (answer.unfamiliar) badge.className = "warn";
      badge.append(answer.unfamiliar ? "unfamiliar text, familiarity " : "familiarity ");
      badge.append(element("strong", {}, `${(100 * answer.familiarity).toFixed(0)} %`));
      list.append(badge);
    }
    if (answer.decision != null) {
      const people = answer.decision === "people";
      const badge = element("li", people ? { class: "warn" } : {}, "decision ");
      const decided = people ? "hand over to people" : [answer.decision].flat().join(", ");
      badge.append(element("strong", {}, decided));
      list.append(badge);
    }
    return list;
  }

  // --- Events -------------------------------------------------------------------------------------

  by("gate").addEventListener("submit", (event) => {
    event.preventDefault();
    token = by("token").value.trim();
    by("token").value = "";
    open();
  });
  by("ask").addEventListener("submit", (event) => {
    event.preventDefault();
    ask();
  });
  by("ask").addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      ask();
    }
  });
  by("ask").addEventListener("input", command);
  by("order").addEventListener("change", show);
  by("copy").addEventListener("click", async () => {
    const line = by("command").textContent;
    try {
      await navigator.clipboard.writeText(line);
      by("copied").textContent = "Copied.";
    } catch {
      const range = document.createRange();
      range.selectNodeContents(by("command"));
      getSelection().removeAllRanges();
      getSelection().addRange(range);
      by("copied").textContent = "Marked: copy it with Ctrl + C.";
    }
  });
  by("whole").addEventListener("change", () => {
    by("texts-hint").textContent = by("whole").checked ? "one text of any length" : "one per line";
  });
  open();
})();
