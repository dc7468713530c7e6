// The matrix of prefill and decode instances.

import { byId, el, show } from "./dom.js";
import { ago, number, speed } from "./format.js";
import { icon, signOf, STANDINGS } from "./icons.js";
import { Detail } from "./pairdetail.js";

// Until one is chosen, the first pair of the worst standing is told of.
const WORST_FIRST = ["refused", "out", "suspect", "failing", "trial", "untried", "away"];
const ROOMY = 104; // pixels that a cell with words needs
let matrix = null;

class Matrix {
  constructor(prefills, decodes) {
    this.cells = new Map();
    this.detail = new Detail();
    const rows = prefills.map((prefill) =>
      el("tr", {}, el("th", { scope: "row" }, prefill), ...decodes.map((decode) => el("td", {}, this.cell(prefill, decode)))),
    );
    const heads = decodes.map((decode) => el("th", { scope: "col" }, el("span", {}, decode)));
    const corner = el("td", { class: "corner" }, el("span", {}, "prefill ↓ decode →"));
    const table = el(
      "table",
      { class: "matrix", "aria-label": "Pairs, prefill by row, decode by column", keydown: (event) => this.move(event, decodes.length) },
      el("thead", {}, el("tr", {}, corner, ...heads)),
      el("tbody", {}, ...rows),
    );
    const scroll = el("div", { class: "scroll" }, table);
    this.legend = el("ul", { class: "signs", "aria-label": "Signs" });
    this.node = el("div", {}, scroll, this.legend, this.detail.node);
    const fit = () => this.node.classList.toggle("compact", scroll.clientWidth - 90 < ROOMY * decodes.length);
    new ResizeObserver(fit).observe(scroll);
  }

  cell(prefill, decode) {
    const choose = () => this.choose(cell);
    const button = el("button", { type: "button", tabindex: this.cells.size === 0 ? 0 : -1, focus: choose, click: choose, pointerenter: () => this.peek(cell), pointerleave: () => this.peek(null) });
    const cell = { button, pair: null };
    this.cells.set(key(prefill, decode), cell);
    return button;
  }

  update(pairs, now) {
    for (const pair of pairs) {
      const cell = this.cells.get(key(pair.prefill, pair.decode));
      cell.pair = pair;
      const [sign, tone, word] = signOf(STANDINGS, pair.standing);
      cell.button.className = `cell ${tone}`;
      cell.button.setAttribute("aria-label", `${pair.prefill} to ${pair.decode}: ${[word, pair.reason].filter(Boolean).join(", ")}`);
      show(cell.button, [pair, ageOf(pair, now)], () => [
        el("span", { class: "badge" }, icon(sign), el("span", { class: "word" }, word)),
        el("span", { class: "more" }, pair.reason || facts(pair)),
        el("span", { class: "age" }, ageOf(pair, now)),
      ]);
    }
    show(this.legend, [...new Set(pairs.map((pair) => pair.standing))].sort(), (found) => found.map(explained));
    this.now = now;
    this.tell();
  }

  choose(cell) {
    for (const each of this.cells.values()) each.button.tabIndex = each === cell ? 0 : -1;
    this.chosen = cell;
    this.tell();
  }

  peek(cell) {
    this.peeked = cell;
    this.tell();
  }

  tell() {
    const cell = this.peeked ?? this.chosen ?? worst([...this.cells.values()]);
    for (const each of this.cells.values()) each.button.classList.toggle("chosen", each === cell);
    this.detail.show(cell.pair, this.now);
  }

  /** The arrow keys go from cell to cell. */
  move(event, columns) {
    const step = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -columns, ArrowDown: columns }[event.key];
    const cells = [...this.cells.values()];
    const from = cells.findIndex((cell) => cell.button === document.activeElement);
    if (step === undefined || from < 0 || !cells[from + step]) return;
    event.preventDefault();
    cells[from + step].button.focus();
  }
}

function explained(standing) {
  const [sign, tone, word] = signOf(STANDINGS, standing);
  return el("li", { class: `badge ${tone}` }, icon(sign), word);
}

function worst(cells) {
  for (const standing of WORST_FIRST) {
    const found = cells.find((cell) => cell.pair.standing === standing);
    if (found) return found;
  }
  return cells[0];
}

const key = (prefill, decode) => JSON.stringify([prefill, decode]);
const ageOf = (pair, now) => (pair.proof ? ago(pair.proof.at, now) : "");

function facts(pair) {
  if (!pair.proof) return pair.handed_over > 0 ? `${number(pair.handed_over)} handed over` : "";
  const rate = pair.proof.bytes_per_second;
  return `${number(pair.proof.tokens)} KV tokens${rate === null ? "" : `, ${speed(rate)}`}`;
}

export function showPairs(state) {
  const names = (role) => [...new Set(state.pairs.map((pair) => pair[role]))];
  const [prefills, decodes] = [names("prefill"), names("decode")];
  const working = state.pairs.filter((pair) => pair.gets_requests).length;
  byId("pairs-note").textContent = state.pairs.length > 0 ? `${working} of ${state.pairs.length} get requests` : "";
  show(byId("pairs"), [prefills, decodes], () => {
    matrix = state.pairs.length > 0 ? new Matrix(prefills, decodes) : null;
    return [matrix?.node ?? el("p", { class: "empty" }, "There are no pairs: no KV is handed over from a prefill to a decode instance here.")];
  });
  matrix?.update(state.pairs, state.at);
}
