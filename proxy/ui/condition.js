// How the deployment is, in a word and with the reasons.

import { byId, el, show } from "./dom.js";
import { HEALTHS, icon, signOf } from "./icons.js";

const MEANINGS = {
  ready: "Everything serves.",
  degraded: "Requests are answered, but not everything works.",
  down: "Requests are not answered.",
};

export function showCondition(state) {
  const modes = state.proxy.modes;
  show(byId("condition"), [state.health, state.reasons, modes], ([health, reasons]) => {
    const [sign, tone, word] = signOf(HEALTHS, health);
    document.title = `${word} – Duet`;
    return [
      el("p", { class: `badge large ${tone}` }, icon(sign), el("strong", {}, word)),
      el(
        "div",
        { class: "why" },
        el("p", {}, `${MEANINGS[health] ?? ""} ${way(modes)}`),
        reasons.length > 0 && el("ul", { class: "reasons" }, ...reasons.map((reason) => el("li", {}, reason))),
      ),
    ];
  });
}

function way(modes) {
  if (modes.pd) return "Prompts are computed by prefill, answers by decode.";
  return modes.aggregated ? "Each request is served by one instance." : "";
}
