// What runs, and what the advisor said of it.

import { byId, el, show } from "./dom.js";
import { ago, moment, number, words } from "./format.js";

const VERDICTS = { yes: "ok", "first-measure": "warn", withdraw: "bad" };

function fact([name, value]) {
  return el("div", {}, el("dt", {}, name), el("dd", {}, value));
}

export function showAbout(state) {
  const about = state.about ?? {};
  const techniques = Array.isArray(about.techniques) ? about.techniques.join(", ") || "none" : null;
  const proxy = state.proxy;
  const facts = [
    ["Profile", about.profile],
    ["For", about.description],
    ["Techniques", techniques],
    ["Stage", about.stage && words(about.stage)],
    ["Proxy", `${proxy.version ? `version ${proxy.version}, ` : ""}${number(proxy.workers)} ${proxy.workers === 1 ? "worker" : "workers"}, since ${moment(proxy.started_at)}`],
    ["Configuration", proxy.configuration],
  ].filter(([, value]) => typeof value === "string" && value !== "");
  show(byId("about"), [facts, state.about === null], () => [
    el("dl", { class: "facts wide" }, ...facts.map(fact)),
    state.about === null ? el("p", { class: "empty" }, "The launcher tells nothing of this deployment: it was started without it.") : "",
  ]);
}

export function showAdvice(state) {
  const advice = state.about?.advice ?? null;
  show(byId("advice"), [advice, advice && ago(advice.at, state.at)], () => (advice ? told(advice, state.at) : how()));
}

function told(advice, now) {
  const each = (one) =>
    el("li", {}, el("span", { class: `badge ${Object.hasOwn(VERDICTS, one.verdict) ? VERDICTS[one.verdict] : "calm"}` }, words(one.verdict)), el("div", {}, el("strong", {}, String(one.title ?? one.technique)), el("small", {}, String(one.reason ?? ""))));
  return [
    el("p", { class: "note" }, `Said ${ago(advice.at, now)} (${moment(advice.at)}). Ask again: `, el("code", {}, "launcher advise --window 600")),
    el("ul", { class: "advice" }, ...(Array.isArray(advice.advice) ? advice.advice : []).map(each)),
  ];
}

const how = () => [
  el("p", { class: "empty" }, "Nobody has asked yet which technique would help here. Ask while there is traffic, for ten minutes:"),
  el("p", {}, el("code", {}, "launcher advise --window 600")),
];
