// Draws one chart of the history.

import { el, svg } from "./dom.js";
import { clock } from "./format.js";
import { most, nearest, runs, ticks } from "./scale.js";

const HEIGHT = 148;
const EDGE = { left: 52, right: 10, top: 10, bottom: 22 };
const SPAN = 600; // seconds

/**
 * `kind`: {title, lines: [{name, label}], format, empty, full (the least upper end), threshold: {value, label, below}}.
 */
export class Chart {
  constructor(kind) {
    this.kind = kind;
    this.legend = el("p", { class: "legend" });
    this.drawing = svg("svg", { role: "img", height: HEIGHT, pointermove: (event) => this.point(event), pointerleave: () => this.point(null) });
    this.frame = el("div", { class: "frame" }, this.drawing);
    this.node = el("figure", { class: "card chart" }, el("figcaption", {}, el("h3", {}, kind.title), this.legend), this.frame);
    new ResizeObserver(() => this.draw()).observe(this.frame);
  }

  update(history, now, threshold) {
    this.points = history.points.filter((point) => point.at >= now - SPAN);
    [this.interval, this.now, this.threshold] = [history.interval, now, threshold];
    this.draw();
  }

  /** A pointer is there: tell what was then. */
  point(event) {
    const left = this.drawing.getBoundingClientRect().left;
    this.cursor = event === null ? null : this.now - SPAN + ((event.clientX - left - EDGE.left) / this.wide()) * SPAN;
    this.draw();
  }

  wide() {
    return Math.max(40, this.frame.clientWidth - EDGE.left - EDGE.right);
  }

  draw() {
    if (!this.points || this.frame.clientWidth === 0) return;
    const names = this.kind.lines.map((line) => line.name);
    const known = this.points.filter((point) => names.some((name) => point[name] !== null));
    const chosen = this.cursor ? nearest(known, this.cursor) : (this.points.at(-1) ?? null);
    this.tell(chosen, known);
    const marks = ticks(Math.max(most(known, names), this.kind.full ?? 0, this.threshold?.value ?? 0) || 1);
    const top = marks.at(-1);
    const x = (at) => EDGE.left + (1 - (this.now - at) / SPAN) * this.wide();
    const y = (value) => HEIGHT - EDGE.bottom - (value / top) * (HEIGHT - EDGE.top - EDGE.bottom);
    this.drawing.setAttribute("width", this.frame.clientWidth);
    this.drawing.replaceChildren(
      ...this.axes(known.length > 0 ? marks : [0], x, y),
      ...(known.length > 0 ? this.limit(x, y) : []),
      ...this.kind.lines.flatMap((line, number) => runs(this.points, line.name, this.interval).map((run) => piece(run, line.name, number, x, y))),
      ...(this.cursor && chosen ? [svg("line", { class: "cursor", x1: x(chosen.at), x2: x(chosen.at), y1: EDGE.top, y2: HEIGHT - EDGE.bottom })] : []),
      ...(known.length === 0 ? [svg("text", { class: "nothing", x: x(this.now - SPAN / 2), y: y(top / 2) + 4 }, this.kind.empty)] : []),
    );
  }

  axes(marks, x, y) {
    const from = x(this.now - SPAN);
    const levels = marks.flatMap((mark) => [
      svg("line", { class: "grid", x1: from, x2: x(this.now), y1: y(mark), y2: y(mark) }),
      svg("text", { class: "tick left", x: EDGE.left - 8, y: y(mark) + 4 }, this.kind.format(mark)),
    ]);
    const times = [[SPAN, "10 min ago", "start"], [SPAN / 2, "5 min", "middle"], [0, "now", "end"]];
    const labels = times.map(([ago, text, anchor]) =>
      svg("text", { class: "tick", x: x(this.now - ago), y: HEIGHT - 5, "text-anchor": anchor }, text),
    );
    return [...levels, ...labels];
  }

  limit(x, y) {
    if (!this.threshold) return [];
    const at = y(this.threshold.value);
    return [svg("line", { class: "threshold", x1: x(this.now - SPAN), x2: x(this.now), y1: at, y2: at })];
  }

  /** The values of a point in words, for eyes and for screen readers. */
  tell(point, known) {
    const values = this.kind.lines.map((line) => [line.label, this.kind.format(point?.[line.name])]);
    const first = point?.[this.kind.lines[0].name];
    const crossed = this.threshold && typeof first === "number" && (this.threshold.below ? first < this.threshold.value : first > this.threshold.value);
    const limit = this.threshold && `${crossed ? (this.threshold.below ? "under" : "over") : "limit"} ${this.kind.format(this.threshold.value)}`;
    this.legend.replaceChildren(
      ...values.map(([label, value], number) => el("span", { class: `series s${number}` }, `${label} `, el("b", {}, value))),
      ...(limit ? [el("span", { class: crossed ? "series limit crossed" : "series limit" }, limit)] : []),
      ...(this.cursor && point ? [el("span", { class: "then" }, clock(point.at))] : []),
    );
    const said = known.length === 0 ? this.kind.empty : `now ${values.map((pair) => pair.join(" ")).join(", ")}${limit ? `, ${limit}` : ""}`;
    this.drawing.setAttribute("aria-label", `${this.kind.title}: ${said}`);
  }
}

/** A line, or a dot where only one point is known. */
function piece(run, name, number, x, y) {
  if (run.length === 1) return svg("circle", { class: `dot s${number}`, cx: x(run[0].at), cy: y(run[0][name]), r: 2.5 });
  const points = run.map((point) => `${x(point.at).toFixed(1)},${y(point[name]).toFixed(1)}`).join(" ");
  return svg("polyline", { class: `line s${number}`, points });
}
