// The attention explorer's drawing side: one plain state (made by state.py) comes in, four views of it go out.
// The notebook's widget and the saved page both run this file.
//
// Tokens are other people's text. They reach the page only as text nodes and attribute values, never as markup.

const SVG = "http://www.w3.org/2000/svg";
const VIEWS = { heads: "Heads", matrix: "Matrix", model: "Model", neuron: "Neuron" };
const SHOWS = { heads: "each head", mean: "mean of heads", max: "maximum of heads", rollout: "rollout" };
const MEANINGS = {
  heads: "each row sums to one.",
  mean: "the mean of all heads, so each row sums to one.",
  max: "the largest weight of any head, so rows do not sum to one.",
  rollout:
    "the share of each input token in a row's state, if every layer is half attention and half residual connection; " +
    "each row sums to one.",
};
const FONT = "system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', sans-serif";
// So that heads differ in more than colour.
const DASHES = ["none", "7 3", "2 2", "9 3 2 3", "12 2", "4 4", "1 3", "7 2 1 2 1 2"];
// Lines of one strength are drawn as one path: thousands of elements would be too slow to hover over.
const LEVELS = [0.02, 0.06, 0.12, 0.25, 0.5, 0.75];
const KERNEL = "needs a running kernel: open it in a notebook with explore(model=…, text=…)";

// ---------------------------------------------------------------------------------------------- small helpers

function filled(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== null && value !== false && value !== undefined) {
      element.setAttribute(name, value === true ? "" : value);
    }
  }
  element.append(...children.filter((child) => child !== null));
  return element;
}

function html(tag, attributes = {}, ...children) {
  return filled(document.createElement(tag), attributes, children);
}

function svg(tag, attributes = {}, ...children) {
  return filled(document.createElementNS(SVG, tag), attributes, children);
}

function button(text, title, onClick) {
  const element = html("button", { type: "button", title }, text);
  element.addEventListener("click", onClick);
  return element;
}

function labelled(text, control) {
  return html("label", { class: "tt-field" }, html("span", {}, text), control);
}

function options(select, entries, chosen) {
  select.replaceChildren(
    ...entries.map(([value, text, disabled]) => html("option", { value, disabled: disabled ?? false }, text)),
  );
  select.value = String(chosen);
}

function bytesOf(base64) {
  const text = atob(base64);
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i += 1) bytes[i] = text.charCodeAt(i);
  return bytes;
}

// Weights as whole numbers. What a mask forbids is zero and has not travelled, so the rest is spread out again.
function weightsOf(base64, mask, heads = 1) {
  const numbers = new Uint16Array(bytesOf(base64).buffer);
  if (mask === null) return numbers;
  const full = new Uint16Array(heads * mask.length);
  let from = 0;
  for (let place = 0; place < full.length; place += 1) {
    if (mask[place % mask.length]) full[place] = numbers[from++];
  }
  return full;
}

const numbersOf = (base64) => (base64 ? new Float32Array(bytesOf(base64).buffer) : null);
const clamp = (value, low, high) => Math.max(low, Math.min(high, value));
const signed = (value, digits) => `${value < 0 ? "−" : "+"}${Math.abs(value).toFixed(digits)}`;
const plain = (value, digits) => `${value < 0 ? "−" : ""}${Math.abs(value).toFixed(digits)}`;

// A token as it can be seen: line breaks and other controls get a sign of their own.
function visible(token) {
  const shown = token.replace(/[\u0000-\u001f]/g, (c) => String.fromCharCode(0x2400 + c.charCodeAt(0)));
  return shown.trim() === "" ? "␣" : shown;
}

function letters(text) {
  const start = text.slice(0, 400); // enough for any label, and a token may be as long as a book
  return globalThis.Intl?.Segmenter ? Array.from(new Intl.Segmenter().segment(start), (s) => s.segment) : [...start];
}

// The token in quotes for a sentence; <bdi> keeps its direction to itself.
function quoted(token) {
  const parts = letters(visible(token));
  return html("bdi", { class: "tt-word" }, parts.length > 24 ? `${parts.slice(0, 24).join("")}…` : visible(token));
}

// A text cut to a width in pixels.
function fitted(app, text, width, size) {
  app.ruler.font = `${size}px ${FONT}`;
  const shown = visible(text);
  if (shown.length < 400 && app.ruler.measureText(shown).width <= width) return shown;
  const parts = letters(shown);
  let low = 0;
  let high = parts.length;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (app.ruler.measureText(`${parts.slice(0, middle).join("")}…`).width <= width) low = middle;
    else high = middle - 1;
  }
  return `${parts.slice(0, low).join("")}…`;
}

function widest(app, tokens, size, limit) {
  app.ruler.font = `${size}px ${FONT}`;
  const widths = tokens.map((token) => app.ruler.measureText(visible(token).slice(0, 400)).width);
  return Math.ceil(clamp(Math.max(...widths), 24, limit));
}

// A token as an SVG text, with its full text as a tooltip.
function tokenText(app, token, width, attributes) {
  const size = attributes["font-size"];
  return svg(
    "text",
    { class: "tt-token-text", ...attributes },
    fitted(app, token, width, size),
    svg("title", {}, token),
  );
}

// ------------------------------------------------------------------------------------------------- the state

function unpackedLayer(layer, mask) {
  return {
    ...layer,
    weights: weightsOf(layer.weights, mask, layer.heads),
    mean: weightsOf(layer.mean, mask),
    max: weightsOf(layer.max, mask),
    query: numbersOf(layer.query),
    key: numbersOf(layer.key),
  };
}

function unpackedGroup(group) {
  const mask = group.mask ? bytesOf(group.mask) : null;
  const overall = Object.entries(group.overall).map(([name, values]) => [name, weightsOf(values, mask)]);
  const layers = group.layers.map((layer) => unpackedLayer(layer, mask));
  return { ...group, mask, layers, overall: Object.fromEntries(overall) };
}

const groupOf = (app) => app.groups[app.choice.group];
const layerOf = (app) => groupOf(app).layers[app.choice.layer] ?? null; // null: all layers
const headCount = (app) => layerOf(app)?.heads ?? 0;
const isMasked = (group, query, key) => group.mask !== null && !group.mask[query * group.keys.length + key];
const colourOf = (app, head) => app.state.colours[head % app.state.colours.length];
const dashOf = (head) => DASHES[head % DASHES.length];
const sameHead = (a, b) => a[0] === b[0] && a[1] === b[1] && a[2] === b[2];

// The weights of one head: a window on the layer's numbers, not a copy.
function headValues(group, layer, head) {
  const size = group.queries.length * group.keys.length;
  return layer.weights.subarray(head * size, (head + 1) * size);
}

// What is to be drawn as one picture: the chosen head, or an aggregate.
function picture(app) {
  const { choice } = app;
  const layer = layerOf(app);
  if (layer === null) return { name: `${SHOWS[choice.show]} and layers`, values: groupOf(app).overall[choice.show] };
  if (choice.show !== "heads")
    return { name: `layer ${layer.number}, ${SHOWS[choice.show]}`, values: layer[choice.show] };
  return headPicture(app, layer, choice.head);
}

function headPicture(app, layer, head) {
  const name = `layer ${layer.number}, head ${head}`;
  const values = headValues(groupOf(app), layer, head);
  return { name, head, values, colour: colourOf(app, head), dash: dashOf(head) };
}

// What the heads view draws: every head that is not hidden, or the one aggregate.
function pictures(app) {
  const layer = layerOf(app);
  if (layer === null || app.choice.show !== "heads") return [picture(app)];
  const shown = [...Array(layer.heads).keys()].filter((head) => !app.choice.hidden.has(head));
  return shown.map((head) => headPicture(app, layer, head));
}

const weight = (app, value) => (value / 10 ** app.state.digits).toFixed(app.state.digits);

// The row's name: a decoder's row is named after what was read, and looks around for what comes next.
function rowName(app, query) {
  const group = groupOf(app);
  if (!group.writes) return [quoted(group.queries[query])];
  const next = group.queries[query + 1];
  return [quoted(group.queries[query]), ", writing ", next === undefined ? "what comes next" : quoted(next), ","];
}

// Choices that a new state, or another kind or layer, no longer allows are moved to the nearest that it does.
function settle(app) {
  const { choice } = app;
  choice.group = clamp(choice.group, 0, app.groups.length - 1);
  const group = groupOf(app);
  if (choice.layer !== "all") choice.layer = clamp(choice.layer, 0, group.layers.length - 1);
  if (choice.layer === "all" && !(choice.show in group.overall)) choice.show = "mean";
  if (choice.layer !== "all" && choice.show === "rollout") choice.show = "mean";
  if (choice.view === "neuron")
    Object.assign(choice, { show: "heads", layer: choice.layer === "all" ? 0 : choice.layer });
  choice.head = clamp(choice.head, 0, Math.max(0, headCount(app) - 1));
  choice.query = clamp(choice.query, 0, group.queries.length - 1);
  choice.key = clamp(choice.key, 0, group.keys.length - 1);
}

// --------------------------------------------------------------------------------------------- the tool bar

function toolBar(app) {
  const views = html("div", { class: "tt-group", role: "group", "aria-label": "View" });
  for (const [view, name] of Object.entries(VIEWS)) {
    const one = button(name, `the ${view} view`, () => choose(app, { view, held: null }));
    one.dataset.view = view;
    views.append(one);
  }
  const kind = html("select", { class: "tt-kind", "aria-label": "attention" });
  const layer = html("select", { class: "tt-layer" });
  const show = html("select", { class: "tt-show" });
  const gold = html("input", { type: "checkbox", class: "tt-gold-switch" });
  const goldField = labelled("gold", gold);
  kind.addEventListener("change", () => choose(app, { group: Number(kind.value), held: null }));
  layer.addEventListener("change", () => choose(app, layerChoice(app, layer.value)));
  show.addEventListener("change", () => choose(app, { show: show.value, held: null }));
  gold.addEventListener("change", () => choose(app, { gold: gold.checked }));
  const save = html("div", { class: "tt-group", role: "group", "aria-label": "Save the picture" });
  save.append(button("SVG", "save this picture as SVG", () => exportPicture(app, "svg")));
  save.append(button("PNG", "save this picture as PNG", () => exportPicture(app, "png")));
  const fields = [kind, labelled("layer", layer), labelled("show", show), goldField];
  const element = html("div", { class: "tt-bar" }, views, ...fields, save);
  const update = () => updateToolBar(app, { views, kind, layer, show, gold, goldField });
  return { element, update };
}

function layerChoice(app, value) {
  const show = value === "all" ? "mean" : app.choice.show === "rollout" ? "mean" : app.choice.show;
  return { layer: value === "all" ? "all" : Number(value), show, held: null };
}

function updateToolBar(app, { views, kind, layer, show, gold, goldField }) {
  const { choice } = app;
  const group = groupOf(app);
  for (const one of views.children) one.setAttribute("aria-pressed", String(one.dataset.view === choice.view));
  options(
    kind,
    app.groups.map((one, i) => [i, one.label]),
    choice.group,
  );
  const single = choice.view === "neuron";
  options(layer, [...group.layers.map((one, i) => [i, one.number]), ["all", "all", single]], choice.layer);
  const allowed = (name) => (choice.layer === "all" ? name in group.overall : name !== "rollout");
  options(
    show,
    Object.entries(SHOWS).map(([name, text]) => [name, text, !allowed(name) || (single && name !== "heads")]),
    choice.show,
  );
  layer.disabled = show.disabled = choice.view === "model";
  goldField.hidden = !app.state.gold || Object.keys(app.state.gold).length === 0;
  gold.checked = choice.gold;
}

// ------------------------------------------------------------------------------------------- heads, on and off

function headBar(app) {
  const element = html("div", { class: "tt-heads" });
  let built = "";
  const update = () => {
    const layer = layerOf(app);
    element.hidden = app.choice.view === "model" || layer === null || app.choice.show !== "heads";
    if (element.hidden) return;
    const wanted = [app.choice.group, layer.number, layer.heads].join();
    if (wanted !== built) element.replaceChildren(...headRows(app, layer));
    built = wanted;
    updateHeadBar(app, element, layer);
  };
  return { element, update };
}

function headRows(app, layer) {
  const heads = [...Array(layer.heads).keys()];
  const shown = html("div", { class: "tt-group", role: "group", "aria-label": "Heads to show" });
  shown.append(html("span", { class: "tt-legend" }, "show head"), ...heads.map((head) => headChip(app, head)));
  shown.append(button("all", "show all heads", () => choose(app, { hidden: new Set() })));
  if (!app.state.translation) return [shown];
  const off = html("div", { class: "tt-group", role: "group", "aria-label": "Heads to switch off" });
  off.append(html("span", { class: "tt-legend" }, "switch off"));
  for (const head of heads) {
    const one = button(String(head), `switch head ${head} of layer ${layer.number} off or on`, () =>
      toggleHead(app, head),
    );
    one.className = "tt-off";
    one.dataset.off = head;
    off.append(one);
  }
  return [shown, off];
}

// A click shows or hides a head, a double click (or Shift and Enter) shows it alone. Two clicks come before a double
// click and undo each other. Where only one head is drawn, a click chooses it.
function headChip(app, head) {
  const title = `head ${head}: click to show or hide, double-click or Shift+Enter to see it alone`;
  const chip = button(String(head), title, (event) => {
    if (event.shiftKey) alone(app, head);
    else if (app.choice.view === "heads") toggleShown(app, head);
    else choose(app, { head });
  });
  chip.addEventListener("dblclick", () => alone(app, head));
  chip.className = "tt-chip";
  chip.dataset.head = head;
  const line = {
    x1: 0,
    x2: 22,
    y1: 3,
    y2: 3,
    stroke: colourOf(app, head),
    "stroke-width": 4,
    "stroke-dasharray": dashOf(head),
  };
  chip.append(svg("svg", { width: 22, height: 6, "aria-hidden": "true" }, svg("line", line)));
  return chip;
}

function toggleShown(app, head) {
  const hidden = new Set(app.choice.hidden);
  if (!hidden.delete(head)) hidden.add(head);
  choose(app, { hidden, head });
}

function alone(app, head) {
  const others = [...Array(headCount(app)).keys()].filter((one) => one !== head);
  const already = others.every((one) => app.choice.hidden.has(one)) && !app.choice.hidden.has(head);
  choose(app, { head, hidden: already && others.length ? new Set() : new Set(others) });
}

function updateHeadBar(app, element, layer) {
  const { choice } = app;
  for (const chip of element.querySelectorAll(".tt-chip")) {
    const head = Number(chip.dataset.head);
    const on = choice.view === "heads" ? !choice.hidden.has(head) : choice.head === head;
    chip.setAttribute("aria-pressed", String(on));
    chip.classList.toggle("tt-silent", isSilent(app, groupOf(app).kind, layer.number, head));
  }
  for (const one of element.querySelectorAll(".tt-off")) {
    one.setAttribute("aria-pressed", String(isSilent(app, groupOf(app).kind, layer.number, Number(one.dataset.off))));
    one.disabled = !app.ask && !app.state.silencing;
    if (one.disabled) one.title = `Switching a head off ${KERNEL}`;
  }
}

const isSilent = (app, kind, layer, head) => app.wanted.silenced.some((one) => sameHead(one, [kind, layer, head]));

function toggleHead(app, head) {
  const place = [groupOf(app).kind, layerOf(app).number, head];
  const rest = app.wanted.silenced.filter((one) => !sameHead(one, place));
  const off = rest.length === app.wanted.silenced.length;
  // A saved page knows what each head does alone, and no more.
  const silenced = off ? [...(app.ask ? rest : []), place] : rest;
  request(app, { silenced });
}

// --------------------------------------------------------------------------------------------- the heads view

function headsView(app) {
  const group = groupOf(app);
  const shown = pictures(app);
  const size = 13;
  const step = 21;
  const label = Math.min(widest(app, [...group.queries, ...group.keys], size, 150) + 8, 158);
  const wide = clamp(app.width, 420, 860);
  const layout = { size, step, top: 30, label, left: 62 + label, right: wide - 62 - label, wide };
  const tall = layout.top + step * Math.max(group.queries.length, group.keys.length) + 6;
  const root = svg("svg", { width: wide, height: tall, viewBox: `0 0 ${wide} ${tall}`, class: "tt-picture" });
  root.append(svg("title", {}, pictureTitle(app)));
  const titles = { y: 16, "font-size": 12, class: "tt-axis" };
  root.append(svg("text", { ...titles, x: layout.left, "text-anchor": "end" }, "query"));
  root.append(svg("text", { ...titles, x: layout.right }, "key"));
  const overview = linePaths(shown, false);
  const everything = group.queries.flatMap((_, query) => group.keys.map((_, key) => [query, key]));
  fillPaths(overview, shown, layout, group.keys.length, everything);
  const gold = goldLines(app, layout, "tt-overview");
  const focus = linePaths(shown, true);
  const goldNow = svg("path", { class: "tt-gold-line tt-focus-only" });
  const tokens = { query: [], key: [] };
  for (const side of ["query", "key"]) tokens[side] = tokenColumn(app, side, layout);
  root.append(
    overview.element,
    gold,
    focus.element,
    goldNow,
    ...[...tokens.query, ...tokens.key].map((one) => one.element),
  );
  const view = { app, group, shown, layout, root, focus, goldNow, tokens, current: null };
  listenToTokens(view);
  if (app.choice.held) focusToken(view, app.choice.held.side, app.choice.held.index);
  return { root, note: headsNote(shown) };
}

function headsNote(shown) {
  const several = shown.length > 1 ? " The number beside a token is the largest of the heads shown." : "";
  const faint = `Lines below a weight of ${LEVELS[0]} are left out.`;
  return `Hover a token to see only its lines, click to hold it, Esc to let go. ${faint}${several}`;
}

const rowY = (layout, index) => layout.top + layout.step * (index + 0.5);
const ends = (layout, query, key) => [layout.left + 6, rowY(layout, query), layout.right - 6, rowY(layout, key)];

// Heads side by side, not on top of each other.
const shiftOf = (n, count) => (n - (count - 1) / 2) * Math.min(2, 12 / count);

function segment(layout, query, key, shift = 0) {
  const [x1, y1, x2, y2] = ends(layout, query, key);
  return `M${x1} ${y1 + shift}L${x2} ${y2 + shift}`;
}

// One path for each head and strength, empty at first.
function linePaths(shown, dashed) {
  const element = svg("g", { class: dashed ? "tt-focus-only" : "tt-overview", "aria-hidden": "true" });
  const paths = shown.map((one) =>
    LEVELS.map((level) => {
      // Dashes tell heads apart; on faint lines nobody could see them, and they take long to draw.
      const dash = dashed && level >= 0.12 ? one.dash : null;
      const look = {
        "stroke-opacity": Math.min(1, (dashed ? 0.25 : 0.1) + 1.25 * level),
        "stroke-width": 0.8 + 3 * level,
      };
      return svg("path", { class: "tt-line", stroke: one.colour ?? null, "stroke-dasharray": dash ?? null, ...look });
    }),
  );
  element.append(...paths.flat());
  return { element, paths };
}

function fillPaths(lines, shown, layout, columns, cells) {
  shown.forEach((one, n) => {
    const shift = shiftOf(n, shown.length);
    const found = LEVELS.map(() => []);
    for (const [query, key] of cells) {
      const value = one.values[query * columns + key] / 10000;
      const level = LEVELS.findLastIndex((limit) => value >= limit);
      if (level >= 0) found[level].push(segment(layout, query, key, shift));
    }
    found.forEach((segments, level) => lines.paths[n][level].setAttribute("d", segments.join("")));
  });
}

function goldLines(app, layout, name) {
  const links = goldLinks(app);
  return svg("path", {
    class: `tt-gold-line ${name}`,
    d: links.map(([query, key]) => segment(layout, query, key)).join(""),
  });
}

function goldLinks(app) {
  const gold = app.state.gold?.[groupOf(app).kind];
  return gold && app.choice.gold ? gold.links : [];
}

function tokenColumn(app, side, layout) {
  const group = groupOf(app);
  const isQuery = side === "query";
  const tokens = isQuery ? group.queries : group.keys;
  return tokens.map((token, index) => {
    const y = rowY(layout, index);
    const x = isQuery ? layout.left - layout.label : layout.right;
    const box = svg("rect", {
      class: "tt-token-box",
      x,
      y: y - layout.step / 2 + 1,
      width: layout.label,
      height: layout.step - 2,
      rx: 3,
    });
    const place = { x: isQuery ? layout.left - 4 : layout.right + 4, y, "text-anchor": isQuery ? "end" : "start" };
    const text = tokenText(app, token, layout.label - 8, { ...place, "font-size": layout.size });
    const numberPlace = { x: isQuery ? 4 : layout.wide - 4, y, "text-anchor": isQuery ? "start" : "end" };
    const number = svg("text", { class: "tt-number", "font-size": 12, ...numberPlace });
    const first = isQuery && index === 0;
    const name = `${side} ${index + 1} of ${tokens.length}: ${visible(token)}`;
    const attributes = {
      class: "tt-token",
      role: "button",
      tabindex: first ? 0 : -1,
      "aria-pressed": "false",
      "aria-label": name,
    };
    const element = svg("g", attributes, box, text, number);
    element.dataset.side = side;
    element.dataset.index = index;
    return { element, box, number };
  });
}

function listenToTokens(view) {
  const { app, root } = view;
  const placeOf = (event) => {
    const token = event.target.closest?.(".tt-token");
    return token ? [token.dataset.side, Number(token.dataset.index)] : null;
  };
  root.addEventListener("pointerover", (event) => {
    if (!app.choice.held) focusToken(view, ...(placeOf(event) ?? [null]));
  });
  root.addEventListener("pointerleave", () => {
    if (!app.choice.held) focusToken(view, null);
  });
  root.addEventListener("focusin", (event) => {
    const place = placeOf(event);
    if (place && !app.choice.held) focusToken(view, ...place);
  });
  root.addEventListener("click", (event) => {
    const place = placeOf(event);
    if (place) holdToken(view, ...place);
  });
  root.addEventListener("keydown", (event) => tokenKey(view, placeOf(event), event));
}

function holdToken(view, side, index) {
  const { choice } = view.app;
  const again = choice.held && choice.held.side === side && choice.held.index === index;
  choice.held = again ? null : { side, index };
  choice[side] = index; // the neuron view opens here
  focusToken(view, side, index);
}

function tokenKey(view, place, event) {
  if (event.key === "Escape") {
    view.app.choice.held = null;
    focusToken(view, null);
  }
  if (!place) return;
  let [side, index] = place;
  if (event.key === "Enter" || event.key === " ") holdToken(view, side, index);
  else if (event.key === "ArrowDown") index += 1;
  else if (event.key === "ArrowUp") index -= 1;
  else if (event.key === "ArrowLeft") side = "query";
  else if (event.key === "ArrowRight") side = "key";
  else return;
  event.preventDefault();
  const target = view.tokens[side][clamp(index, 0, view.tokens[side].length - 1)].element;
  for (const one of view.root.querySelectorAll('.tt-token[tabindex="0"]')) one.setAttribute("tabindex", "-1");
  target.setAttribute("tabindex", "0");
  target.focus();
}

// Show the lines of one token only; without one, the overview again. Nothing is built: what is there is moved.
function focusToken(view, side, index) {
  const { root, tokens, current } = view;
  if (!side && !current) return undefined;
  if (current) {
    const before = tokens[current.side][current.index].element;
    before.classList.remove("tt-current");
    before.setAttribute("aria-pressed", "false");
  }
  view.current = side ? { side, index } : null;
  root.classList.toggle("tt-focused", Boolean(side));
  if (!side) return say(view.app);
  const element = tokens[side][index].element;
  element.classList.add("tt-current");
  element.setAttribute("aria-pressed", String(Boolean(view.app.choice.held)));
  moveLines(view, side, index);
  showNumbers(view, side, index);
  return undefined;
}

function cellsOf(view, side, index) {
  const count = side === "query" ? view.group.keys.length : view.group.queries.length;
  return Array.from({ length: count }, (_, other) => (side === "query" ? [index, other] : [other, index]));
}

function moveLines(view, side, index) {
  const cells = cellsOf(view, side, index);
  fillPaths(view.focus, view.shown, view.layout, view.group.keys.length, cells);
  const links = goldLinks(view.app).filter(([query, key]) => (side === "query" ? query : key) === index);
  view.goldNow.setAttribute("d", links.map(([query, key]) => segment(view.layout, query, key)).join(""));
}

function showNumbers(view, side, index) {
  const { app, group, shown } = view;
  const columns = group.keys.length;
  const other = side === "query" ? "key" : "query";
  const cells = cellsOf(view, side, index);
  const largest = cells.map(([query, key]) => Math.max(...shown.map((one) => one.values[query * columns + key]), 0));
  for (const one of view.tokens[side]) {
    one.number.textContent = "";
    one.box.removeAttribute("fill-opacity");
  }
  view.tokens[other].forEach((one, i) => {
    const masked = isMasked(group, ...cells[i]);
    const text = masked ? "masked" : weight(app, largest[i]);
    if (one.number.textContent !== text) one.number.textContent = text;
    one.box.setAttribute("fill-opacity", masked ? 0 : 0.06 + 0.5 * (largest[i] / 10000));
  });
  sayToken(app, side, index, largest);
}

function sayToken(app, side, index, largest) {
  const group = groupOf(app);
  const best = largest
    .map((value, i) => [value, i])
    .sort((a, b) => b[0] - a[0])
    .slice(0, 3)
    .filter(([value]) => value > 0);
  const others = side === "query" ? group.keys : group.queries;
  const parts =
    side === "query" ? [...rowName(app, index), " looks most at "] : [quoted(group.keys[index]), " gets most from "];
  best.forEach(([value, i], n) => parts.push(n ? ", " : "", quoted(others[i]), ` ${weight(app, value)}`));
  say(app, ...parts);
}

// -------------------------------------------------------------------------------------------- the matrix view

function matrixView(app) {
  const group = groupOf(app);
  const shown = picture(app);
  const layout = matrixLayout(app, group);
  const { cell, left, top, wide, tall } = layout;
  const attributes = {
    width: wide,
    height: tall,
    viewBox: `0 0 ${wide} ${tall}`,
    class: "tt-picture tt-matrix",
    tabindex: 0,
  };
  const name = `${pictureTitle(app)}. Arrow keys move over the cells.`;
  const root = svg("svg", { ...attributes, role: "group", "aria-roledescription": "heat map", "aria-label": name });
  const labels = { query: rowLabels(app, layout), key: columnLabels(app, layout) };
  const cells = matrixCells(group, shown.values, layout);
  const right = left + cell * group.keys.length;
  const frame = svg("rect", {
    class: "tt-frame",
    x: left,
    y: top,
    width: right - left,
    height: cell * group.queries.length,
  });
  const cursor = svg("rect", { class: "tt-cursor", width: cell, height: cell, visibility: "hidden" });
  root.append(cells, maskedCells(group, layout), frame, goldCells(app, layout), ...labels.query, ...labels.key, cursor);
  root.append(...scaleBar(layout, right), ...axisNames(layout, right));
  const view = { app, group, shown, layout, root, labels, cursor, current: null };
  listenToCells(view, cells);
  return { root, note: matrixNote(app, group) };
}

function matrixNote(app, group) {
  const masked = group.mask ? " Hatched cells are masked." : "";
  const open = app.choice.show === "heads" ? " Click a cell to open it in the neuron view." : "";
  return `Queries down, keys across; ${MEANINGS[app.choice.show]}${masked}${open}`;
}

function matrixLayout(app, group) {
  const wide = clamp(app.width, 420, 1000);
  const most = Math.max(group.keys.length, group.queries.length * 0.9);
  const cell = clamp(Math.floor((wide - 230) / most), 9, 34);
  const size = clamp(cell - 1, 8, 13);
  const rows = widest(app, group.queries, size, 140) + 10;
  const columns = widest(app, group.keys, size, 120);
  const left = 20 + rows;
  const top = 26 + Math.ceil(columns * 0.82) + size;
  const spread = Math.ceil(columns * 0.58);
  return {
    cell,
    size,
    rows,
    columns,
    left,
    top,
    wide: left + cell * group.keys.length + Math.max(spread, 70) + 10,
    tall: top + cell * group.queries.length + 10,
  };
}

function rowLabels(app, { cell, size, left, top, rows }) {
  return groupOf(app).queries.map((token, i) => {
    const place = { x: left - 6, y: top + cell * (i + 0.5), "text-anchor": "end", "font-size": size };
    return tokenText(app, token, rows - 8, place);
  });
}

function columnLabels(app, { cell, size, left, top, columns }) {
  return groupOf(app).keys.map((token, i) => {
    const x = left + cell * (i + 0.5);
    const place = { x, y: top - 8, transform: `rotate(-55 ${x} ${top - 8})`, "font-size": size };
    return tokenText(app, token, columns, place);
  });
}

function matrixCells(group, values, { cell, left, top }) {
  const element = svg("g", { class: "tt-cells" });
  const columns = group.keys.length;
  const gap = cell > 12 ? 1 : 0;
  values.forEach((value, place) => {
    const [query, key] = [Math.floor(place / columns), place % columns];
    const box = { x: left + cell * key, y: top + cell * query, width: cell - gap, height: cell - gap };
    const one = svg("rect", {
      class: "tt-cell",
      ...box,
      "fill-opacity": isMasked(group, query, key) ? 0 : value / 10000,
    });
    one.dataset.query = query;
    one.dataset.key = key;
    element.append(one);
  });
  return element;
}

// Grey and hatched, so that "not allowed" never looks like "allowed and zero".
function maskedCells(group, { cell, left, top }) {
  const boxes = [];
  const lines = [];
  for (let query = 0; query < group.queries.length; query += 1) {
    for (let key = 0; key < group.keys.length; key += 1) {
      if (!isMasked(group, query, key)) continue;
      const [x, y] = [left + cell * key, top + cell * query];
      boxes.push(`M${x} ${y}h${cell}v${cell}h${-cell}z`);
      lines.push(`M${x} ${y + cell}l${cell} ${-cell}`);
    }
  }
  const hatch = svg("path", { class: "tt-hatch", d: lines.join("") });
  return svg("g", { class: "tt-masked" }, svg("path", { class: "tt-masked-box", d: boxes.join("") }), hatch);
}

function goldCells(app, { cell, left, top }) {
  const corner = ([query, key]) => `M${left + cell * key + 1.5} ${top + cell * query + 1.5}`;
  const inner = cell - 4;
  const d = goldLinks(app)
    .map((link) => `${corner(link)}h${inner}v${inner}h${-inner}z`)
    .join("");
  return svg("g", {}, svg("path", { class: "tt-gold-under", d }), svg("path", { class: "tt-gold-cell", d }));
}

function axisNames({ top, left, tall }, right) {
  const look = { class: "tt-axis", "font-size": 12 };
  const middle = (top + tall - 10) / 2;
  return [
    svg("text", { ...look, x: (left + right) / 2, y: 12, "text-anchor": "middle" }, "key"),
    svg("text", { ...look, x: 12, y: middle, "text-anchor": "middle", transform: `rotate(-90 12 ${middle})` }, "query"),
  ];
}

function scaleBar({ top }, right) {
  const found = [];
  for (let i = 0; i <= 10; i += 1) {
    found.push(
      svg("rect", {
        class: "tt-cell",
        x: right + 20,
        y: top + 8 * (10 - i),
        width: 10,
        height: 8,
        "fill-opacity": i / 10,
      }),
    );
  }
  found.push(svg("rect", { class: "tt-frame", x: right + 20, y: top, width: 10, height: 88 }));
  for (const [text, y] of [
    ["1", top + 8],
    ["0", top + 88],
  ]) {
    found.push(svg("text", { class: "tt-axis", "font-size": 11, x: right + 34, y: y - 4 }, text));
  }
  return found;
}

function listenToCells(view, cells) {
  const { app, root } = view;
  root.addEventListener("pointerover", (event) => {
    const { query, key } = event.target.dataset;
    if (query !== undefined) pointAt(view, Number(query), Number(key));
  });
  cells.addEventListener("click", (event) => {
    const { query, key } = event.target.dataset;
    if (query === undefined) return;
    choose(app, { query: Number(query), key: Number(key) });
    if (headCount(app) && app.choice.show === "heads") choose(app, { view: "neuron" });
  });
  root.addEventListener("pointerleave", () => pointAt(view, null));
  root.addEventListener("focus", () => pointAt(view, app.choice.query, app.choice.key));
  root.addEventListener("keydown", (event) => cellKey(view, event));
}

function cellKey(view, event) {
  const { choice } = view.app;
  const step = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
  if (!step) return;
  event.preventDefault();
  choice.query = clamp(choice.query + step[0], 0, view.group.queries.length - 1);
  choice.key = clamp(choice.key + step[1], 0, view.group.keys.length - 1);
  pointAt(view, choice.query, choice.key);
}

function pointAt(view, query, key) {
  const { app, group, layout, labels, cursor, current } = view;
  if (current)
    for (const label of [labels.query[current[0]], labels.key[current[1]]]) label.classList.remove("tt-current");
  view.current = query === null ? null : [query, key];
  cursor.setAttribute("visibility", query === null ? "hidden" : "visible");
  if (query === null) return say(app);
  cursor.setAttribute("x", layout.left + layout.cell * key);
  cursor.setAttribute("y", layout.top + layout.cell * query);
  labels.query[query].classList.add("tt-current");
  labels.key[key].classList.add("tt-current");
  const value = weight(app, view.shown.values[query * group.keys.length + key]);
  const [name, told] = [`${view.shown.name}: `, isMasked(group, query, key) ? " is masked" : ` ${value}`];
  return say(app, name, ...rowName(app, query), " → ", quoted(group.keys[key]), told);
}

// --------------------------------------------------------------------------------------------- the model view

function modelView(app) {
  const group = groupOf(app);
  const most = Math.max(...group.layers.map((layer) => layer.heads));
  const gap = 10;
  const wide = clamp(app.width, 420, 1000);
  const size = clamp(Math.floor((wide - 70) / most) - gap, 24, 130);
  const ratio = clamp(group.queries.length / group.keys.length, 0.4, 2);
  const layout = { gap, size, high: Math.round(size * ratio), left: 64, top: 26 };
  const width = layout.left + most * (size + gap);
  const tall = layout.top + group.layers.length * (layout.high + gap);
  const root = svg("svg", { width, height: tall, viewBox: `0 0 ${width} ${tall}`, class: "tt-picture tt-model" });
  root.append(svg("title", {}, `${group.label}: all layers and heads`));
  for (let head = 0; head < most; head += 1) {
    const x = layout.left + head * (size + gap) + size / 2;
    root.append(
      svg(
        "text",
        { class: "tt-axis", "font-size": 12, x, y: 14, "text-anchor": "middle" },
        most > 12 ? head : `head ${head}`,
      ),
    );
  }
  group.layers.forEach((layer, row) => root.append(...modelRow(app, layer, row, layout)));
  listenToThumbs(app, root, group);
  return { root, note: "Each small picture is one head: queries down, keys across. Click one to open it." };
}

function modelRow(app, layer, row, layout) {
  const y = layout.top + row * (layout.high + layout.gap);
  const text = { class: "tt-axis", "font-size": 12, x: layout.left - 10, y: y + layout.high / 2, "text-anchor": "end" };
  const found = [svg("text", text, `layer ${layer.number}`)];
  for (let head = 0; head < layer.heads; head += 1) found.push(thumb(app, layer, row, head, layout, y));
  return found;
}

function thumb(app, layer, row, head, layout, y) {
  const group = groupOf(app);
  const x = layout.left + head * (layout.size + layout.gap);
  const box = { x, y, width: layout.size, height: layout.high };
  const first = row === 0 && head === 0;
  const silent = isSilent(app, group.kind, layer.number, head);
  const name = `layer ${layer.number}, head ${head}${silent ? ", switched off" : ""}`;
  const element = svg("g", { class: "tt-thumb", role: "button", tabindex: first ? 0 : -1, "aria-label": name });
  const href = pixels(app, group, headValues(group, layer, head));
  element.append(svg("rect", { class: "tt-thumb-paper", ...box }));
  element.append(svg("image", { ...box, href, preserveAspectRatio: "none", class: "tt-pixels" }));
  element.append(svg("rect", { class: "tt-frame", ...box }));
  if (silent)
    element.append(
      svg("path", {
        class: "tt-cross",
        d: `M${x} ${y}l${layout.size} ${layout.high}m${-layout.size} 0l${layout.size} ${-layout.high}`,
      }),
    );
  element.append(svg("title", {}, name));
  element.dataset.row = row;
  element.dataset.head = head;
  return element;
}

// One head as a picture of one dot per weight.
function pixels(app, group, values) {
  const canvas = html("canvas", { width: group.keys.length, height: group.queries.length });
  const context = canvas.getContext("2d");
  const image = context.createImageData(canvas.width, canvas.height);
  const [heat, grey] = [rgb(app, "--tt-heat"), rgb(app, "--tt-masked")];
  values.forEach((value, place) => {
    const masked = group.mask !== null && !group.mask[place];
    image.data.set([...(masked ? grey : heat), masked ? 255 : Math.round((value / 10000) * 255)], place * 4);
  });
  context.putImageData(image, 0, 0);
  return canvas.toDataURL();
}

// A colour of the style sheet as three numbers.
function rgb(app, name) {
  app.ruler.fillStyle = getComputedStyle(app.root).getPropertyValue(name).trim();
  const hex = app.ruler.fillStyle;
  return [1, 3, 5].map((place) => parseInt(hex.slice(place, place + 2), 16));
}

function listenToThumbs(app, root, group) {
  const open = (one) =>
    choose(app, { layer: Number(one.dataset.row), head: Number(one.dataset.head), show: "heads", view: "matrix" });
  root.addEventListener("click", (event) => {
    const one = event.target.closest(".tt-thumb");
    if (one) open(one);
  });
  root.addEventListener("pointerover", (event) => {
    const one = event.target.closest(".tt-thumb");
    if (one) sayThumb(app, group, one);
  });
  root.addEventListener("focusin", (event) => sayThumb(app, group, event.target));
  root.addEventListener("keydown", (event) => {
    const step = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
    const one = event.target.closest(".tt-thumb");
    if (event.key === "Enter" || event.key === " ") open(one);
    else if (step) moveFocus(root, one, step);
    else return;
    event.preventDefault();
  });
}

function sayThumb(app, group, one) {
  const layer = group.layers[Number(one.dataset.row)];
  const head = Number(one.dataset.head);
  const found = app.state.importance?.find((entry) => sameHead(entry.head, [group.kind, layer.number, head]));
  const change = found ? `: without it log p changes by ${signed(found.change, 4)}` : "";
  say(app, `${group.label}, layer ${layer.number}, head ${head}${change}`);
}

function moveFocus(root, one, [down, across]) {
  const [row, head] = [Number(one.dataset.row) + down, Number(one.dataset.head) + across];
  const next = root.querySelector(`.tt-thumb[data-row="${row}"][data-head="${head}"]`);
  if (!next) return;
  one.setAttribute("tabindex", "-1");
  next.setAttribute("tabindex", "0");
  next.focus();
}

// -------------------------------------------------------------------------------------------- the neuron view

function neuronView(app) {
  const group = groupOf(app);
  const layer = layerOf(app);
  if (!layer.query) return { root: missingNeurons(app, group), note: "" };
  const facts = neuronFacts(app, group, layer);
  const wide = clamp(app.width, 480, 860);
  const layout = { wide, left: 190, bars: wide - 190 - 16, strip: 54 };
  const rows = group.keys.length;
  const tall = 3 * (layout.strip + 14) + 66 + 30 + rows * 20 + 8;
  const root = svg("svg", { width: wide, height: tall, viewBox: `0 0 ${wide} ${tall}`, class: "tt-picture tt-neuron" });
  root.append(svg("title", {}, `${pictureTitle(app)}: how one weight comes about`));
  root.append(
    ...neuronStrips(app, group, facts, layout),
    ...formula(facts, layout),
    ...keyRows(app, group, facts, layout),
  );
  root.addEventListener("click", (event) => pickKey(app, event.target.closest(".tt-key-row")));
  root.addEventListener("keydown", (event) => {
    if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      pickKey(app, event.target.closest(".tt-key-row"));
    }
  });
  root.addEventListener("pointerover", (event) => sayNeuron(app, facts, event.target.dataset.feature));
  return {
    root,
    above: neuronSelects(app, group),
    note: "The formula for one query and one key: q · k, divided by √d_k, then softmax over all keys.",
  };
}

function missingNeurons(app, group) {
  const there = group.layers.filter((layer) => layer.query).map((layer) => layer.number);
  const known = there.length
    ? `They are there for layer ${there.join(", ")}.`
    : "Record with record_attention(model, qk=True), or use explore(model=…, text=…).";
  return html("p", { class: "tt-missing" }, `No queries and keys were kept for layer ${layerOf(app).number}. ${known}`);
}

// The numbers of the formula for the chosen query and key.
function neuronFacts(app, group, layer) {
  const { head, query, key } = app.choice;
  const size = layer.size;
  const vector = (numbers, length, row) =>
    numbers.subarray((head * length + row) * size, (head * length + row + 1) * size);
  const q = vector(layer.query, group.queries.length, query);
  const keyVectors = group.keys.map((_, row) => vector(layer.key, group.keys.length, row));
  const dot = (k) => q.reduce((sum, value, i) => sum + value * k[i], 0);
  const scores = keyVectors.map((k) => dot(k) / Math.sqrt(size));
  const k = keyVectors[key];
  const columns = group.keys.length;
  const weights = headValues(group, layer, head).subarray(query * columns, (query + 1) * columns);
  const masked = group.keys.map((_, one) => isMasked(group, query, one));
  return { q, k, product: q.map((value, i) => value * k[i]), dot: dot(k), size, scores, weights, masked, query, key };
}

function neuronSelects(app, group) {
  const select = (side, tokens) => {
    const control = html("select", { class: `tt-${side}` });
    options(
      control,
      tokens.map((token, i) => [i, `${i}: ${letters(visible(token)).slice(0, 30).join("")}`]),
      app.choice[side],
    );
    control.addEventListener("change", () => choose(app, { [side]: Number(control.value) }));
    return labelled(side, control);
  };
  return html("div", { class: "tt-bar" }, select("query", group.queries), select("key", group.keys));
}

function neuronStrips(app, group, facts, layout) {
  const strips = [
    ["q", group.queries[facts.query], facts.q],
    ["k", group.keys[facts.key], facts.k],
    ["q × k", "each feature", facts.product],
  ];
  return strips.flatMap(([name, token, values], row) => {
    const y = row * (layout.strip + 14);
    const title = svg("text", { class: "tt-axis tt-strong", "font-size": 14, x: 8, y: y + layout.strip / 2 }, name);
    const label = tokenText(app, token, 116, { x: 62, y: y + layout.strip / 2, "font-size": 13 });
    return [title, label, ...strip(values, y, layout)];
  });
}

// A vector as bars: up is positive, down is negative.
function strip(values, y, layout) {
  const step = layout.bars / values.length;
  const largest = Math.max(...values.map(Math.abs)) || 1;
  const middle = y + layout.strip / 2;
  const base = svg("path", { class: "tt-base", d: `M${layout.left} ${middle}h${layout.bars}` });
  const bars = [...values].map((value, i) => {
    const high = (Math.abs(value) / largest) * (layout.strip / 2);
    const box = {
      x: layout.left + i * step,
      y: value < 0 ? middle : middle - high,
      width: Math.max(1, step - 1),
      height: high,
    };
    return svg("rect", { class: value < 0 ? "tt-negative" : "tt-positive", ...box });
  });
  // What the pointer meets is the whole height of a feature, not its perhaps tiny bar.
  const hits = [...values].map((_, i) => {
    const hit = svg("rect", { class: "tt-hit", x: layout.left + i * step, y, width: step, height: layout.strip });
    hit.dataset.feature = i;
    return hit;
  });
  return [base, ...bars, ...hits];
}

function sayNeuron(app, facts, feature) {
  if (feature === undefined) return;
  const i = Number(feature);
  say(app, `feature ${i}: ${plain(facts.q[i], 4)} × ${plain(facts.k[i], 4)} = ${plain(facts.q[i] * facts.k[i], 4)}`);
}

function formula(facts, layout) {
  const y = 3 * (layout.strip + 14) + 20;
  const masked = facts.masked[facts.key];
  const open = facts.masked.filter((one) => !one).length;
  const steps = [
    ["q · k", plain(facts.dot, 4), "tt-dot"],
    [`÷ √${facts.size}`, plain(facts.scores[facts.key], 4), "tt-score"],
    [`softmax over ${open} keys`, masked ? "masked" : (facts.weights[facts.key] / 10000).toFixed(4), "tt-weight"],
  ];
  const third = (layout.wide - 16) / 3;
  return steps.flatMap(([name, value, mark], i) => {
    const x = 8 + third * i;
    const arrow = i ? svg("text", { class: "tt-axis", "font-size": 18, x: x - 26, y: y + 12 }, "→") : null;
    const label = svg("text", { class: "tt-axis", "font-size": 12, x, y }, name);
    return [label, svg("text", { class: `tt-value ${mark}`, "font-size": 20, x, y: y + 24 }, value), arrow].filter(
      Boolean,
    );
  });
}

function keyRows(app, group, facts, layout) {
  const top = 3 * (layout.strip + 14) + 66 + 22;
  const columns = { score: 250, bar: 268, number: layout.wide - 8 };
  const look = { class: "tt-axis", "font-size": 12, y: top - 12 };
  const titles = [
    svg("text", { ...look, x: columns.score, "text-anchor": "end" }, "scaled score"),
    svg("text", { ...look, x: columns.number, "text-anchor": "end" }, "weight"),
  ];
  return [...titles, ...group.keys.map((token, i) => keyRow(app, token, i, facts, layout, columns, top + 20 * i))];
}

function keyRow(app, token, i, facts, layout, columns, y) {
  const chosen = i === facts.key;
  const masked = facts.masked[i];
  const value = facts.weights[i] / 10000;
  const name = `key ${visible(token)}, ${masked ? "masked" : `weight ${value.toFixed(4)}`}`;
  const row = svg("g", {
    class: "tt-key-row",
    role: "button",
    tabindex: 0,
    "aria-label": name,
    "aria-pressed": String(chosen),
  });
  const middle = y + 10;
  row.append(svg("rect", { class: "tt-row-box", x: 2, y: y + 1, width: layout.wide - 4, height: 18, rx: 3 }));
  row.append(tokenText(app, token, 150, { x: 8, y: middle, "font-size": 13 }));
  row.append(
    svg(
      "text",
      { class: "tt-number", "font-size": 12, x: columns.score, y: middle, "text-anchor": "end" },
      plain(facts.scores[i], 4),
    ),
  );
  const room = layout.wide - columns.bar - 70;
  if (!masked)
    row.append(svg("rect", { class: "tt-positive", x: columns.bar, y: y + 5, width: room * value, height: 10 }));
  const text = masked ? "masked" : value.toFixed(4);
  row.append(
    svg("text", { class: "tt-number", "font-size": 12, x: columns.number, y: middle, "text-anchor": "end" }, text),
  );
  row.dataset.key = i;
  return row;
}

function pickKey(app, row) {
  if (!row) return;
  const key = Number(row.dataset.key);
  choose(app, { key });
  app.stage.querySelector(`.tt-key-row[data-key="${key}"]`)?.focus();
}

// ------------------------------------------------------------------------------------------------- the stage

function stage(app) {
  const above = html("div");
  const place = html("div", { class: "tt-stage" });
  const note = html("p", { class: "tt-note" });
  const element = html("div", {}, above, place, note);
  app.stage = place;
  const draw = { heads: headsView, matrix: matrixView, model: modelView, neuron: neuronView };
  const update = () => {
    const view = draw[app.choice.view](app);
    place.replaceChildren(view.root);
    above.replaceChildren(...(view.above ? [view.above] : []));
    note.textContent = view.note;
    if (!(app.choice.view === "heads" && app.choice.held)) say(app);
  };
  return { element, update };
}

function pictureTitle(app) {
  const { choice } = app;
  const group = groupOf(app);
  if (choice.view === "model") return `${group.label}: all layers and heads`;
  if (choice.view === "heads" && choice.show === "heads" && layerOf(app))
    return `${group.label}, layer ${layerOf(app).number}`;
  return `${group.label}, ${picture(app).name}`;
}

// One line below the picture: what is under the pointer, or what is shown at all.
function say(app, ...parts) {
  app.status.replaceChildren(...(parts.length ? parts : [pictureTitle(app)]));
}

function status(app) {
  const element = html("p", { class: "tt-status", role: "status", "aria-live": "polite" });
  app.status = element;
  return { element, update: () => {} };
}

// How well the shown picture hits what is known to be right.
function goldBar(app) {
  const element = html("p", { class: "tt-gold-score" });
  const update = () => {
    const gold = app.state.gold?.[groupOf(app).kind];
    element.hidden = !gold || app.choice.view === "model" || !app.choice.gold;
    if (!element.hidden) element.replaceChildren(...goldScores(app, gold));
  };
  return { element, update };
}

function goldScores(app, gold) {
  const layer = layerOf(app);
  const row = layer ? layer.number : "all";
  const single = app.choice.view === "heads" && app.choice.show === "heads" ? pictures(app) : null;
  // In the heads view several heads are one picture only on average.
  const column =
    app.choice.show !== "heads"
      ? app.choice.show
      : single && single.length !== 1
        ? "mean"
        : (single?.[0].head ?? app.choice.head);
  const name = column === "mean" ? "mean of heads" : (SHOWS[column] ?? `head ${column}`);
  const table = gold.errors ?? gold.masses;
  const value = table[`${row}/${column}`];
  const what = gold.errors
    ? "alignment error against the gold alignment (0 is perfect)"
    : "attention of the pronoun on its antecedent";
  const mark = html("span", { class: "tt-gold-mark", "aria-hidden": "true" });
  const shown = value === undefined ? "not defined for this choice" : value.toFixed(4);
  return [mark, ` ${what}, ${name}: `, html("strong", {}, shown)];
}

// ----------------------------------------------------------------------------------------------- intervening

function livePanel(app) {
  const element = html("div", { class: "tt-live" });
  if (!app.state.translation) return { element, update: () => (element.hidden = true) };
  const text = html("input", { type: "text", class: "tt-text", dir: "auto", spellcheck: "false" });
  const beam = html("select", { class: "tt-beam" });
  const send = button("Translate", "translate this sentence", () => request(app, { text: text.value }));
  const measure = html("input", { type: "checkbox", class: "tt-measure" });
  const fields = [
    labelled("sentence", text),
    labelled("decoding", beam),
    send,
    labelled("measure every head", measure),
  ];
  const form = html("form", { class: "tt-bar" }, ...fields);
  const output = html("div", { class: "tt-output", "aria-live": "polite" });
  const error = html("p", { class: "tt-error", role: "alert" });
  listenToForm(app, { form, text, beam, measure });
  element.append(form, output, error);
  const parts = { text, beam, send, measure, output, error };
  return { element, update: () => updateLive(app, parts) };
}

function listenToForm(app, { form, text, beam, measure }) {
  let timer = null;
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    clearTimeout(timer);
    request(app, { text: text.value });
  });
  text.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(() => request(app, { text: text.value }), 700);
  });
  beam.addEventListener("change", () => request(app, { beam: Number(beam.value) }));
  measure.addEventListener("change", () => request(app, { measure: measure.checked }));
}

function updateLive(app, { text, beam, send, measure, output, error }) {
  const { wanted } = app;
  if (document.activeElement !== text && text.getRootNode().activeElement !== text) text.value = wanted.text;
  const sizes = [...new Set([1, 2, 4, 8, wanted.beam])].sort((a, b) => a - b);
  options(
    beam,
    sizes.map((size) => [size, size === 1 ? "greedy" : `beam ${size}`]),
    wanted.beam,
  );
  measure.checked = Boolean(wanted.measure || app.state.importance);
  for (const control of [text, beam, send, measure]) {
    control.disabled = !app.ask;
    if (!app.ask) control.title = `This ${KERNEL}`;
  }
  output.replaceChildren(...translationLines(app));
  output.setAttribute("aria-busy", String(app.waiting));
  error.textContent = app.error;
  error.hidden = !app.error;
}

// A saved page looks up what was worked out beforehand.
function shownTranslation(app) {
  const found = app.ask
    ? null
    : app.state.silencing?.find((one) => app.wanted.silenced.some((head) => sameHead(head, one.head)));
  if (!found) return app.state;
  return { translation: found, difference: found.difference, before: app.state.translation, intact: true };
}

function translationLines(app) {
  const { translation, difference, before, intact } = shownTranslation(app);
  const tags = { "=": "span", "-": "del", "+": "ins" };
  const words = difference.flatMap((word) => [html(tags[word[0]], {}, word.slice(1)), " "]);
  const lines = [html("p", { class: "tt-translation", dir: "auto" }, ...words)];
  const numbers = `log p ${plain(translation.log_probability, 4)}, score ${plain(translation.score, 4)}`;
  const change = before
    ? ` · ${intact ? "with all heads on" : "before"}: log p ${plain(before.log_probability, 4)}`
    : "";
  lines.push(html("p", { class: "tt-numbers" }, app.waiting ? "translating …" : numbers + change));
  if (app.state.forced) lines.push(forcedLine(app));
  if (app.wanted.silenced.length) lines.push(silencedLine(app));
  if (!app.ask) lines.push(html("p", { class: "tt-note" }, savedNote(app)));
  return lines;
}

function savedNote(app) {
  const heads = app.state.silencing
    ? "Heads can be switched off one at a time; the pictures stay those of the whole model. "
    : "";
  return `This is a saved page. ${heads}Another sentence, another decoding or several heads at once ${KERNEL}.`;
}

function forcedLine(app) {
  return html(
    "p",
    { class: "tt-note" },
    "The pictures show the model while it writes the reference: ",
    html("bdi", {}, app.state.forced),
  );
}

function silencedLine(app) {
  const names = app.wanted.silenced.map(([kind, layer, head]) => `${kind} layer ${layer} head ${head}`);
  const line = html("p", { class: "tt-silenced" }, `Off: ${names.join("; ")} `);
  line.append(button("all heads on", "switch all heads on again", () => request(app, { silenced: [] })));
  return line;
}

function request(app, changes) {
  app.wanted = { ...app.wanted, ...changes };
  if (app.ask) {
    app.number += 1;
    app.waiting = true;
    app.ask({ ...app.wanted, number: app.number });
  }
  refresh(app);
}

// --------------------------------------------------------------------------------------------- head importance

function importancePanel(app) {
  const element = html("div", { class: "tt-importance" });
  const update = () => {
    const found = app.state.importance;
    element.hidden = !found;
    if (found)
      element.replaceChildren(html("h3", {}, "What each head is worth"), importanceBars(app, found), importanceNote());
  };
  return { element, update };
}

function importanceNote() {
  const text =
    "Change of the translation's log-probability when one head is switched off. Down: the head helped. " +
    "Click a bar to open its head.";
  return html("p", { class: "tt-note" }, text);
}

function importanceBars(app, entries) {
  const wide = clamp(app.width, 420, 1000);
  const places = entries.map(({ head }) => head.slice(0, 2).join(" "));
  const gaps = places.map((place, i) =>
    i && place !== places[i - 1] ? (entries[i].head[0] !== entries[i - 1].head[0] ? 18 : 6) : 0,
  );
  const step = (wide - 74 - gaps.reduce((a, b) => a + b, 0)) / entries.length;
  const largest = Math.max(...entries.map(({ change }) => Math.abs(change))) || 1;
  const low = Math.max(...entries.map(({ change }) => -change), 0) / largest;
  const high = Math.max(...entries.map(({ change }) => change), 0) / largest;
  const unit = 90 / Math.max(low + high, 0.01);
  const layout = { wide, step, unit, base: 18 + high * unit, bottom: 18 + (high + low) * unit };
  const root = svg("svg", {
    width: wide,
    height: layout.bottom + 24,
    viewBox: `0 0 ${wide} ${layout.bottom + 24}`,
    class: "tt-picture",
  });
  root.append(
    svg("path", { class: "tt-base", d: `M62 ${layout.base}H${wide}` }),
    ...importanceScale(layout, entries, largest),
  );
  let x = 68;
  entries.forEach((entry, i) => {
    x += gaps[i];
    root.append(
      ...importanceBar(app, entry, i === 0 || places[i] !== places[i - 1], entries[i - 1], x, layout, largest),
    );
    x += step;
  });
  root.addEventListener("click", (event) => openHead(app, event.target.closest(".tt-bar-head")));
  root.addEventListener("pointerover", (event) => sayBar(app, event.target.closest(".tt-bar-head")));
  root.addEventListener("focusin", (event) => sayBar(app, event.target));
  root.addEventListener("keydown", (event) => barKey(app, event));
  return root;
}

function importanceScale(layout, entries, largest) {
  const found = [svg("text", { class: "tt-axis", "font-size": 11, x: 58, y: layout.base, "text-anchor": "end" }, "0")];
  const far = entries.reduce((a, b) => (Math.abs(b.change) > Math.abs(a.change) ? b : a)).change;
  const y = layout.base - (far / largest) * layout.unit;
  if (far)
    found.push(svg("text", { class: "tt-axis", "font-size": 11, x: 58, y, "text-anchor": "end" }, signed(far, 2)));
  return found;
}

function importanceBar(app, entry, starts, previous, x, layout, largest) {
  const [kind, layer, head] = entry.head;
  const high = Math.max(1, (Math.abs(entry.change) / largest) * layout.unit);
  const y = entry.change < 0 ? layout.base : layout.base - high;
  const name = `${kind} layer ${layer} head ${head}: log p ${signed(entry.change, 4)}`;
  const found = [];
  if (starts) found.push(svg("text", { class: "tt-axis", "font-size": 11, x, y: layout.bottom + 14 }, `L${layer}`));
  if (kind !== previous?.head[0])
    found.push(svg("text", { class: "tt-axis tt-strong", "font-size": 12, x, y: 9 }, kind));
  const bar = svg("g", { class: "tt-bar-head", role: "button", tabindex: previous ? -1 : 0, "aria-label": name });
  bar.append(svg("rect", { class: "tt-hit", x, y: 14, width: layout.step, height: layout.bottom - 10 }));
  bar.append(
    svg("rect", {
      class: entry.change < 0 ? "tt-positive" : "tt-negative",
      x,
      y,
      width: Math.max(1, layout.step - 1.5),
      height: high,
    }),
  );
  bar.append(svg("title", {}, name));
  bar.dataset.head = entry.head.join(" ");
  found.push(bar);
  return found;
}

function openHead(app, bar) {
  if (!bar) return;
  const [kind, layer, head] = bar.dataset.head.split(" ");
  const group = app.groups.findIndex((one) => one.kind === kind);
  const row = app.groups[group].layers.findIndex((one) => one.number === Number(layer));
  const view = app.choice.view === "heads" ? "heads" : "matrix";
  choose(app, { group, layer: row, head: Number(head), show: "heads", view, held: null });
  if (view === "heads") alone(app, Number(head));
}

function sayBar(app, bar) {
  if (bar) say(app, bar.getAttribute("aria-label"));
}

function barKey(app, event) {
  const bars = [...event.currentTarget.querySelectorAll(".tt-bar-head")];
  const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
  if (event.key === "Enter" || event.key === " ") openHead(app, event.target);
  else if (step) {
    const next = bars[clamp(bars.indexOf(event.target) + step, 0, bars.length - 1)];
    event.target.setAttribute("tabindex", "-1");
    next.setAttribute("tabindex", "0");
    next.focus();
  } else return;
  event.preventDefault();
}

// ------------------------------------------------------------------------------------------- saving a picture

const LOOKS = [
  ...["fill", "fill-opacity", "stroke", "stroke-opacity", "stroke-width", "stroke-dasharray", "visibility"],
  ...["font-family", "font-weight", "dominant-baseline", "unicode-bidi", "image-rendering"],
];

// A copy of the picture that needs no style sheet.
function standalone(app) {
  const drawn = app.stage.querySelector("svg");
  if (!drawn) return null;
  const copy = drawn.cloneNode(true);
  const [from, to] = [drawn, copy].map((one) => [...one.querySelectorAll("[class]")]);
  from.forEach((element, i) => {
    const look = getComputedStyle(element);
    for (const name of LOOKS) to[i].setAttribute(name, look.getPropertyValue(name));
    for (const name of ["class", "tabindex", "role"]) to[i].removeAttribute(name);
  });
  for (const name of ["class", "tabindex"]) copy.removeAttribute(name);
  const paper = getComputedStyle(app.root).getPropertyValue("--tt-paper").trim();
  copy.prepend(svg("rect", { width: "100%", height: "100%", fill: paper }));
  return copy;
}

function exportPicture(app, type) {
  const copy = standalone(app);
  if (!copy) return;
  const text = new XMLSerializer().serializeToString(copy);
  const source = new Blob([text], { type: "image/svg+xml" });
  if (type === "svg") download(app, source, type);
  else rasterised(source, copy, (png) => download(app, png, type));
}

function rasterised(source, copy, done) {
  const address = URL.createObjectURL(source);
  const image = new Image();
  image.onload = () => {
    const scale = 2; // sharp in print
    const canvas = html("canvas", {
      width: scale * copy.getAttribute("width"),
      height: scale * copy.getAttribute("height"),
    });
    canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
    URL.revokeObjectURL(address);
    canvas.toBlob(done, "image/png");
  };
  image.src = address;
}

function download(app, blob, type) {
  const name = pictureTitle(app)
    .replace(/[^a-z0-9]+/gi, "-")
    .toLowerCase();
  const address = URL.createObjectURL(blob);
  const link = html("a", { href: address, download: `${app.choice.view}-${name}.${type}` });
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 1000);
}

// ------------------------------------------------------------------------------------------------- the whole

function choose(app, changes) {
  Object.assign(app.choice, changes);
  refresh(app);
}

function refresh(app) {
  settle(app);
  for (const panel of app.panels) panel.update();
}

function receive(app, state) {
  app.state = state;
  app.groups = state.groups.map(unpackedGroup);
  app.choice.held = null;
  if (!app.waiting) app.wanted = wantedOf(state);
}

const wantedOf = (state) => ({ text: "", beam: 4, silenced: [], measure: false, ...state.request });

function newApp(root, connection) {
  const app = { root, ask: connection.ask, waiting: false, error: "", number: 0, width: 800, panels: [] };
  app.ruler = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  app.choice = {
    view: "heads",
    group: 0,
    layer: 0,
    show: "heads",
    head: 0,
    hidden: new Set(),
    gold: true,
    query: 0,
    key: 0,
    held: null,
  };
  receive(app, connection.state());
  app.choice.group = app.groups.length - 1;
  app.choice.layer = groupOf(app).layers.length - 1;
  return app;
}

// Draw an explorer into an element; returns what takes it away again.
export function mount(element, connection) {
  const root = html("section", { class: "tt-explorer", "aria-label": "Attention explorer" });
  const app = newApp(root, connection);
  app.ask = app.state.live ? connection.ask : null;
  if (app.state.title) root.append(html("h2", { dir: "auto" }, app.state.title));
  const lower = [status(app), goldBar(app), importancePanel(app)];
  app.panels = [livePanel(app), toolBar(app), headBar(app), ...lower, stage(app)];
  const [live, bar, heads, line, gold, importance, picturePanel] = app.panels.map((panel) => panel.element);
  root.append(live, bar, heads, line, gold, picturePanel, importance);
  element.replaceChildren(root);
  const stop = connection.listen(
    () => {
      receive(app, connection.state());
      refresh(app);
    },
    (reply) => answered(app, reply),
  );
  const watcher = new ResizeObserver(() => resized(app));
  watcher.observe(root);
  refresh(app);
  return () => {
    stop();
    watcher.disconnect();
  };
}

function answered(app, reply) {
  if (reply.number !== app.number) return; // a newer question is under way
  app.waiting = false;
  app.error = reply.error;
  if (!reply.error) app.wanted = wantedOf(app.state);
  refresh(app);
}

function resized(app) {
  const width = app.root.clientWidth - 24;
  if (width <= 0 || Math.abs(width - app.width) < 2) return;
  app.width = width;
  refresh(app);
}

// A widget's model as a connection.
function connected(model) {
  return {
    state: () => model.get("state"),
    ask: (question) => {
      model.set("request", question);
      model.save_changes();
    },
    listen(onState, onReply) {
      const reply = () => onReply(model.get("reply"));
      model.on("change:state", onState);
      model.on("change:reply", reply);
      return () => {
        model.off("change:state", onState);
        model.off("change:reply", reply);
      };
    },
  };
}

// A saved page's state as a connection to nobody.
export function saved(text) {
  const state = JSON.parse(text);
  return { state: () => state, ask: null, listen: () => () => {} };
}

export default { render: ({ model, el }) => mount(el, connected(model)) };
