// The engines.

import { byId, el, show } from "./dom.js";
import { number, percent } from "./format.js";
import { icon } from "./icons.js";

const COLUMNS = [
  ["In flight", (each) => number(each.in_flight)],
  ["Running", (each) => number(each.running)],
  ["Waiting", (each) => number(each.waiting)],
  ["KV cache", (each) => usage(each.kv_cache_usage)],
  ["Acceptance", (each) => percent(each.acceptance_rate)],
  ["Tokens/s", (each) => number(each.generated_per_second)],
];

function standing(each) {
  if (each.frozen) return ["cross", "bad", "Frozen"];
  if (!each.healthy) return ["cross", "bad", "Not healthy"];
  if (each.draining) return ["dash", "calm", "Drained"];
  if (each.breaker !== "closed") return ["bang", "warn", "Kept away from"];
  return each.reason ? ["bang", "warn", "Suspect"] : ["check", "ok", "Healthy"];
}

function usage(share) {
  if (typeof share !== "number") return percent(share);
  return el("span", { class: "usage" }, el("meter", { min: 0, max: 1, value: share, "aria-hidden": "true" }), percent(share));
}

function row(each) {
  const [sign, tone, word] = standing(each);
  const version = each.version ? `vLLM ${each.version}` : "";
  return el(
    "tr",
    {},
    el("th", { scope: "row" }, each.name, el("small", {}, [each.role, version].filter(Boolean).join(", "))),
    el("td", { class: "state" }, el("span", { class: `badge ${tone}` }, icon(sign), word), each.reason ? el("small", {}, each.reason) : ""),
    ...COLUMNS.map(([name, value]) => el("td", { class: "number", "data-label": name }, value(each))),
  );
}

export function showInstances(state) {
  show(byId("instances"), state.instances, (instances) => {
    if (instances.length === 0) return [el("p", { class: "empty" }, "The proxy's configuration names no instance.")];
    const heads = ["Instance", "State", ...COLUMNS.map(([name]) => name)];
    return [
      el(
        "table",
        { class: "list" },
        el("thead", {}, el("tr", {}, ...heads.map((name, number) => el("th", { scope: "col", class: number > 1 ? "number" : "" }, name)))),
        el("tbody", {}, ...instances.map(row)),
      ),
    ];
  });
}
