// The last requests that went wrong.

import { byId, el, show } from "./dom.js";
import { clock, moment, words } from "./format.js";

function way(failure) {
  const instances = [failure.prefill, failure.decode].filter(Boolean).join(" → ");
  return [instances, failure.bypass && `bypass: ${words(failure.bypass)}`].filter(Boolean).join(", ") || "no instance";
}

function row(failure) {
  return el(
    "tr",
    {},
    el("td", { class: "time" }, el("time", { datetime: new Date(failure.at * 1000).toISOString(), title: moment(failure.at) }, clock(failure.at))),
    el("td", { class: "how" }, el("span", { class: "badge bad" }, `${failure.status} ${words(failure.outcome)}`)),
    el("td", { class: "text" }, failure.reason, el("small", {}, `${words(failure.endpoint)}; ${way(failure)}; `, el("code", {}, failure.request_id))),
  );
}

export function showFailures(state) {
  show(byId("failures"), state.failures, (failures) => {
    if (failures.length === 0) return [el("p", { class: "empty" }, "No request has gone wrong since the proxy started.")];
    const heads = ["Time", "Status", "Reason and request"].map((name) => el("th", { scope: "col" }, name));
    const table = el("table", { class: "list failures" }, el("thead", {}, el("tr", {}, ...heads)), el("tbody", {}, ...failures.map(row)));
    return [el("div", { class: "tall", tabindex: 0, role: "region", "aria-labelledby": "failures-title" }, table)];
  });
}
