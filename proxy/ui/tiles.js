// The most important numbers: rates of the last minute, and what is the case now.

import { byId, el, show } from "./dom.js";
import { number, percent } from "./format.js";

const MINUTE = 60;

/** Of the points of the last minute that know it. */
function mean(points, name, now) {
  const values = points.filter((point) => point.at > now - MINUTE && point[name] !== null).map((point) => point[name]);
  return values.length > 0 ? values.reduce((sum, value) => sum + value, 0) / values.length : null;
}

export function showTiles(state) {
  const points = state.history.points;
  const last = points.at(-1) ?? {};
  const of = (name) => mean(points, name, state.at);
  const failed = of("failed_per_second");
  const tiles = [
    ["Requests", number(of("requests_per_second")), "per second, last minute", ""],
    ["Failures", number(failed), "per second, last minute", failed > 0 ? "bad" : ""],
    ["Output", number(of("output_tokens_per_second")), "tokens/s, last minute", ""],
    ["In flight", number(last.in_flight), "requests now", ""],
    ["Waiting", number(last.waiting), "requests now", ""],
    ["Through PD", percent(of("pd_share")), "of requests, last minute", ""],
  ];
  show(byId("tiles"), tiles, () =>
    tiles.map(([name, value, unit, tone]) =>
      el("div", { class: `tile ${tone}` }, el("dt", {}, name), el("dd", {}, value, " ", el("small", {}, unit))),
    ),
  );
}
