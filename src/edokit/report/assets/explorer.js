// The item explorer: a page of rows at a time, however many items there are.
(function () {
  const table = EDO.items;
  const root = document.getElementById("explorer");
  if (!table || !root) return;
  root.classList.add(table.kind);

  const count = table.items.length;
  const has = { annotations: Boolean(table.counts), texts: Boolean(table.texts) };
  const sets = table.kind === "multi-label", ordinal = table.kind === "ordinal";
  const measure = ordinal ? "SD" : "entropy";
  const help = EDO.terms, divided = ordinal ? help.sd : help.entropy;
  const columns = [
    { key: "text", name: has.texts ? "text" : "item", kind: "text" },
    has.annotations && { key: "counts", name: "annotations", kind: "split" },
    { key: "p", name: "ensemble", kind: "split" },
    has.annotations && ordinal && { key: "cumulative", name: "cumulative shares", kind: "split" },
    has.annotations && { key: "annotated", name: measure + " of annotations", kind: "num", help: divided },
    { key: "entropy", name: measure + " of ensemble", kind: "num", help: divided },
    { key: "spread", name: "member spread", kind: "num", help: help.spread },
    has.annotations && { key: "distance", name: `distance (${table.metric})`, kind: "num", help: `${help.distance} ${help[ordinal ? "w1" : "md"]}` },
  ].filter(Boolean);
  const sortable = [
    { key: "", name: "original order" },
    ...columns.filter((column) => column.kind === "num").map((column) => ({ key: column.key, name: column.name })),
    { key: "text", name: has.texts ? "text" : "item" },
    ...table.classes.map((name, c) => ({ key: "p" + c, name: "P(" + name + ")" })),
  ];
  const state = { filter: -1, words: "", label: -1, sort: has.annotations ? "distance" : "spread", down: true, page: 0, size: narrow ? 5 : 25 };

  const values = {};
  function column(key) {
    if (!values[key]) {
      values[key] = key === "text"
        ? (has.texts ? table.texts : table.items).map((entry) => entry.toLocaleLowerCase())
        : /^p\d+$/.test(key) ? table.p.map((row) => row[Number(key.slice(1))]) : table[key];
    }
    return values[key];
  }
  let haystack = null;
  function matching(words) {
    haystack = haystack || table.items.map((item, i) =>
      (item + "\n" + (has.texts ? table.texts[i] : "")).toLocaleLowerCase());
    const wanted = words.toLocaleLowerCase().split(/\s+/).filter(Boolean);
    return (i) => wanted.every((word) => haystack[i].includes(word));
  }
  // The labels above one half, or the likeliest class.
  const predicted = table.p.map((row) => sets
    ? row.flatMap((p, c) => (p > 0.5 ? [c] : []))
    : [row.indexOf(Math.max(...row))]);

  let order = [];
  function arrange() {
    const matches = state.words.trim() ? matching(state.words) : () => true;
    order = [];
    for (let i = 0; i < count; i += 1) {
      if (state.filter >= 0 && !(Math.floor(table.flags[i] / 2 ** state.filter) % 2)) continue;
      if (state.label >= 0 && !predicted[i].includes(state.label)) continue;
      if (matches(i)) order.push(i);
    }
    if (state.sort) {
      const by = column(state.sort);
      const turn = state.down ? -1 : 1;
      order.sort((a, b) => (by[a] < by[b] ? -turn : by[a] > by[b] ? turn : a - b));
    } else if (state.down) {
      order.reverse();
    }
    const pages = Math.max(1, Math.ceil(order.length / state.size));
    state.page = Math.min(state.page, pages - 1);
  }

  // Controls, head of the table, pager.
  const search = Object.assign(document.createElement("input"), { type: "search", placeholder: "Search items" });
  search.setAttribute("aria-label", "Search items");
  const noun = sets ? "label" : "class";
  const label = choice("Predicted " + noun, [["-1", "any " + noun], ...table.classes.map((name, c) => [String(c), name])]);
  const sort = choice("Sort by", sortable.map((entry) => [entry.key, entry.name]));
  const turn = text("button", "", "quiet");
  turn.type = "button";
  const bare = Object.assign(document.createElement("input"), { type: "checkbox", id: "bare" });
  const bareLabel = text("label", "");
  bareLabel.append(bare, "show all texts");
  const tools = text("div", undefined, "tools");
  tools.append(search, label, sort, turn);
  if (has.texts) tools.append(bareLabel);

  const chips = text("div", undefined, "chips");
  const meaning = text("p", "", "meaning");
  [{ name: "All", count }, ...table.filters].forEach((filter, index) => {
    const chip = text("button", filter.name);
    chip.type = "button";
    chip.append(text("span", filter.count.toLocaleString("en"), "n"));
    chip.addEventListener("click", () => { state.filter = index - 1; state.page = 0; show(); });
    chips.append(chip);
  });

  const legend = text("p", undefined, "legend classes");
  table.classes.forEach((name, c) => {
    const dot = text("span", undefined, "dot class");
    dot.style.background = colour(c);
    const entry = document.createElement("span");
    entry.append(dot, text("bdi", name));
    legend.append(entry);
  });
  if (ordinal && has.annotations) {
    for (const [name, which] of [["annotations", "q"], ["ensemble", "p"]]) {
      const entry = document.createElement("span");
      entry.append(text("span", undefined, "line " + which), name + " (cumulative)");
      legend.append(entry);
    }
  }

  const grid = document.createElement("table");
  const group = document.createElement("colgroup");
  const head = document.createElement("tr");
  for (const each of columns) {
    group.append(Object.assign(document.createElement("col"), { className: each.kind }));
    const cell = text("th", undefined, each.kind);
    cell.scope = "col";
    if (each.kind === "split") {
      cell.textContent = each.name;
    } else {
      const button = text("button", each.name);
      button.type = "button";
      if (each.help) button.title = each.help;
      button.addEventListener("click", () => {
        state.down = state.sort === each.key ? !state.down : each.kind === "num";
        state.sort = each.key;
        state.page = 0;
        show();
      });
      cell.append(button);
      cell.dataset.key = each.key;
    }
    head.append(cell);
  }
  const body = document.createElement("tbody");
  const thead = document.createElement("thead");
  thead.append(head);
  grid.append(group, thead, body);

  const back = Object.assign(text("button", "← back", "quiet"), { type: "button" });
  const next = Object.assign(text("button", "next →", "quiet"), { type: "button" });
  const where = text("span", "");
  where.setAttribute("aria-live", "polite");
  const size = choice("Rows on a page", [5, 25, 50, 100].map((rows) => [String(rows), rows + " rows"]));
  size.value = String(state.size);
  const pager = text("div", undefined, "pager tools");
  pager.append(back, where, size, next);
  root.append(tools, chips, meaning, legend, grid, pager);

  function choice(name, entries) {
    const made = document.createElement("select");
    made.setAttribute("aria-label", name);
    for (const [value, shown] of entries) {
      made.append(Object.assign(text("option", shown), { value }));
    }
    return made;
  }
  function colour(c) {
    const light = EDO.colours[c];
    return isDark() && EDO.dark[light] ? EDO.dark[light] : light;
  }

  let waiting = 0;
  search.addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(() => { state.words = search.value; state.page = 0; show(); }, 120);
  });
  label.addEventListener("change", () => { state.label = Number(label.value); state.page = 0; show(); });
  sort.addEventListener("change", () => { state.sort = sort.value; state.down = sort.value !== "" && sort.value !== "text"; state.page = 0; show(); });
  turn.addEventListener("click", () => { state.down = !state.down; state.page = 0; show(); });
  bare.addEventListener("change", () => document.body.classList.toggle("bare", bare.checked));
  size.addEventListener("change", () => { state.size = Number(size.value); state.page = 0; show(); });
  back.addEventListener("click", () => { state.page -= 1; show(); grid.scrollIntoView({ block: "start" }); });
  next.addEventListener("click", () => { state.page += 1; show(); grid.scrollIntoView({ block: "start" }); });
  document.getElementById("theme").addEventListener("click", () => {
    legend.querySelectorAll(".class").forEach((dot, c) => { dot.style.background = colour(c); });
    show();
  });

  function bar(shares, full, shown) {
    const cell = document.createDocumentFragment();
    const line = text("div", undefined, "bar");
    line.setAttribute("role", "img");
    line.setAttribute("aria-label", full);
    line.title = full;
    const total = shares.reduce((sum, share) => sum + share, 0) || 1;
    shares.forEach((share, c) => {
      if (share <= 0) return;
      // A line before a part that is not much wider than the line would hide it.
      const part = text("span", undefined, share > 0.04 * total ? "wide" : "");
      part.style.width = (100 * share) / total + "%";
      part.style.background = colour(c);
      line.append(part);
    });
    cell.append(line, text("small", shown));
    return cell;
  }
  // A set: a chip for each label, filled up to its share, those above one half framed.
  function chipsOf(shares, shown, full, answer) {
    const cell = text("div", undefined, "set");
    cell.setAttribute("role", "img");
    cell.setAttribute("aria-label", full);
    cell.title = full;
    if (answer && !shares.some((share) => share > 0.5)) cell.append(text("span", "no label", "chip chosen"));
    const order = shares.map((share, c) => c).sort((a, b) => shares[b] - shares[a] || a - b);
    for (const c of order) {
      if (shares[c] < 0.05) continue;
      const chip = text("span", undefined, shares[c] > 0.5 ? "chip chosen" : "chip");
      const tint = `color-mix(in srgb, ${colour(c)} 32%, transparent)`;
      chip.style.background = `linear-gradient(to right, ${tint} ${100 * shares[c]}%, transparent ${100 * shares[c]}%)`;
      chip.append(text("bdi", table.classes[c]), " " + shown(c));
      cell.append(chip);
    }
    if (!cell.children.length) cell.append(text("span", "no label", "chip"));
    return cell;
  }
  // A rating: the median and the mean.
  function middle(row) {
    const total = row.reduce((sum, share) => sum + share, 0) || 1;
    let sum = 0;
    const median = row.findIndex((share) => (sum += share) >= total / 2 - 1e-9);
    const mean = row.reduce((s, share, c) => s + share * table.positions[c], 0) / total;
    return `median\u00a0${table.classes[median]}, mean\u00a0${mean.toFixed(2).replace("-", "−")}`;
  }
  function drawn(tag, attributes) {
    const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const key of Object.keys(attributes)) made.setAttribute(key, attributes[key]);
    return made;
  }
  // Two cumulative distributions on the scale; the area between them is the distance W1.
  function cumulative(counts, p) {
    const width = 120, height = 30, [low, high] = [table.positions[0], table.positions[table.positions.length - 1]];
    const sums = [counts, p].map((row) => {
      const total = row.reduce((sum, share) => sum + share, 0) || 1;
      let sum = 0;
      return row.map((share) => (sum += share / total));
    });
    const x = table.positions.map((place) => 1 + ((width - 2) * (place - low)) / (high - low));
    const y = (share) => 1 + (height - 2) * (1 - share);
    const full = "cumulative shares of annotations and ensemble: " + table.classes.map((name, c) =>
      `at most ${name}: ${Math.round(100 * sums[0][c])} % and ${Math.round(100 * sums[1][c])} %`).join(", ");
    const chart = drawn("svg", { viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: "none", class: "cdf", role: "img", "aria-label": full });
    const title = drawn("title", {});
    title.textContent = full;
    chart.append(title);
    for (let c = 0; c + 1 < x.length; c += 1) {
      const [one, other] = [y(sums[0][c]), y(sums[1][c])];
      chart.append(drawn("rect", { class: "between", x: x[c], width: x[c + 1] - x[c], y: Math.min(one, other), height: Math.abs(one - other) }));
    }
    sums.forEach((shares, k) => {
      const steps = shares.map((share, c) => `V${y(share)}` + (c + 1 < x.length ? `H${x[c + 1]}` : "")).join("");
      chart.append(drawn("path", { class: "qp"[k], d: `M${x[0]},${y(0)}${steps}` }));
    });
    return chart;
  }
  function tidy(value) { return Number.isInteger(value) ? String(value) : value.toFixed(2); }

  function cellOf(each, i) {
    const cell = text("td", undefined, each.kind);
    if (each.kind === "num") {
      const value = table[each.key][i];
      cell.append(text("span", value === null ? "–" : value.toFixed(3)));
      cell.dataset.name = each.name;
    } else if (each.key === "counts") {
      const row = table.counts[i];
      const full = "annotations: " + row.map((n, c) => `${table.classes[c]} ${tidy(n)}`).join(", ");
      const n = table.annotators[i];
      if (sets) cell.append(chipsOf(row.map((chosen) => chosen / n), (c) => `${tidy(row[c])}/${n}`, `${full}, of ${n}`));
      else cell.append(bar(row, full, ordinal ? middle(row) : most(row)));
      cell.dataset.name = "annotations";
    } else if (each.key === "cumulative") {
      cell.append(cumulative(table.counts[i], table.p[i]));
      cell.dataset.name = "cumulative shares";
    } else if (each.key === "p") {
      const row = table.p[i];
      const full = "ensemble: " + row.map((p, c) => `${table.classes[c]} ${p.toFixed(3)}`).join(", ");
      const top = predicted[i][0];
      if (sets) cell.append(chipsOf(row, (c) => row[c].toFixed(2), full, true));
      else cell.append(bar(row, full, ordinal ? middle(row) : `${table.classes[top]}: ${row[top].toFixed(2)}`));
      cell.dataset.name = "ensemble";
    } else {
      if (has.texts) {
        const veil = text("button", undefined, "veil");
        veil.type = "button";
        veil.setAttribute("aria-expanded", "false");
        veil.setAttribute("aria-label", "Show the text of " + table.items[i]);
        const words = text("span", table.texts[i]);
        words.dir = "auto";
        veil.append(words);
        cell.append(veil);
      }
      const id = text("span", undefined, "id");
      id.append(text("bdi", table.items[i]));
      cell.append(id);
    }
    return cell;
  }
  function most(row) {
    const most = Math.max(...row);
    const tied = table.classes.filter((name, c) => row[c] === most);
    if (tied.length > 3) return `${tied.length} classes: ${tidy(most)} each`;
    if (tied.length > 1) return `${tied.join(", ")}: ${tidy(most)} each`;
    return `${tied[0]}: ${tidy(most)} of ${tidy(row.reduce((sum, n) => sum + n, 0))}`;
  }

  function show() {
    arrange();
    const rows = order.slice(state.page * state.size, (state.page + 1) * state.size).map((i) => {
      const row = document.createElement("tr");
      row.dataset.item = table.items[i];
      for (const each of columns) row.append(cellOf(each, i));
      return row;
    });
    if (!rows.length) {
      const empty = text("td", "No matching items.", "none");
      empty.colSpan = columns.length;
      const row = document.createElement("tr");
      row.append(empty);
      rows.push(row);
    }
    body.replaceChildren(...rows);
    const pages = Math.max(1, Math.ceil(order.length / state.size));
    const from = order.length ? state.page * state.size + 1 : 0;
    const to = Math.min(order.length, (state.page + 1) * state.size);
    where.textContent = `${from.toLocaleString("en")}–${to.toLocaleString("en")} of ${order.length.toLocaleString("en")}`;
    back.disabled = state.page === 0;
    next.disabled = state.page >= pages - 1;
    [...chips.children].forEach((chip, index) => chip.setAttribute("aria-pressed", String(index - 1 === state.filter)));
    meaning.textContent = state.filter >= 0 ? table.filters[state.filter].meaning : "";
    sort.value = state.sort;
    turn.textContent = state.down ? "largest first" : "smallest first";
    for (const cell of head.children) {
      if (!cell.dataset.key) continue;
      cell.setAttribute("aria-sort", cell.dataset.key === state.sort ? (state.down ? "descending" : "ascending") : "none");
    }
  }
  show();
})();
