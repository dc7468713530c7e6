// All that is known of one pair.

import { el, show } from "./dom.js";
import { ago, moment, number, seconds, speed, words } from "./format.js";
import { signOf, STANDINGS } from "./icons.js";

export class Detail {
  constructor() {
    this.node = el("div", { class: "detail", role: "group", "aria-label": "The pair in detail" });
  }

  show(pair, now) {
    show(this.node, [pair, rows(pair, now)], () => told(pair, now));
  }
}

function told(pair, now) {
  const word = signOf(STANDINGS, pair.standing)[2];
  return [
    el("h3", {}, `${pair.prefill} → ${pair.decode}: ${word}`),
    pair.reason ? el("p", { class: "reason" }, pair.reason) : "",
    el("dl", { class: "facts" }, ...rows(pair, now).map(([name, value]) => el("div", {}, el("dt", {}, name), el("dd", {}, value)))),
  ];
}

function rows(pair, now) {
  const proof = pair.proof;
  const found = [
    ["Gets requests", pair.gets_requests ? "yes" : "no"],
    ["Handed over", number(pair.handed_over)],
    ["Failed", number(pair.failed)],
  ];
  if (pair.last_handed_over !== null) found.push(["Last hand-over", ago(pair.last_handed_over, now)]);
  if (proof) {
    found.push(["Last canary", `${words(proof.verdict)}, ${ago(proof.at, now)} (${moment(proof.at)})`]);
    found.push(["KV tokens", number(proof.tokens)]);
    if (proof.seconds !== null) found.push(["Took", seconds(proof.seconds)]);
    if (proof.bytes_per_second !== null) found.push(["Transfer", speed(proof.bytes_per_second)]);
  }
  return found;
}
