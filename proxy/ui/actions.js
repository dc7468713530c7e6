// What may be done from here: prove every pair now. Only with an operator's key.

import { byId, el, show } from "./dom.js";
import { keyForm } from "./keyform.js";
import { hasKey, NeedsKey, prove } from "./source.js";

let isProving = false;

export function showActions(state, again) {
  const actions = state.pairs.length === 0 ? "nothing" : state.proxy.actions;
  const refused = actions === "locked" && hasKey();
  show(byId("actions"), [actions, refused], () => BUILDERS[actions]?.(again, refused) ?? []);
}

const BUILDERS = {
  unconfigured: () => [
    el(
      "details",
      {},
      el("summary", {}, "Read-only"),
      el("p", {}, "To prove pairs from here, make an operator's key with ", el("code", {}, "proxy --new-key NAME"), ", put the line that it prints below ", el("code", {}, "proxy.admin_keys"), " in the profile, and start the deployment again. Or run ", el("code", {}, "launcher prove"), "."),
    ),
  ],
  locked: (again, refused) => [
    el(
      "details",
      { open: refused },
      el("summary", {}, "Unlock actions"),
      keyForm("Operator's key", "Unlock", again),
      refused ? el("p", { class: "refused", role: "alert" }, "This is no operator's key.") : "",
    ),
  ],
  unlocked: (again) => [el("button", { type: "button", click: (event) => proveAll(event.currentTarget, again) }, "Prove every pair now")],
};

async function proveAll(button, again) {
  if (isProving) return;
  isProving = true;
  button.setAttribute("aria-disabled", "true");
  byId("proved").textContent = "A canary goes through every pair…";
  try {
    byId("proved").textContent = said((await prove()).pairs);
  } catch (error) {
    byId("proved").textContent = error instanceof NeedsKey ? "The proxy does not know this key." : `Nothing was proven: ${error.message}.`;
  } finally {
    isProving = false;
    button.removeAttribute("aria-disabled");
  }
  again();
}

function said(pairs) {
  const bad = pairs.filter((pair) => pair.proof?.verdict !== "proven");
  if (bad.length === 0) return pairs.length === 1 ? "The pair is proven." : `All ${pairs.length} pairs are proven.`;
  const first = bad[0];
  return `${bad.length} of ${pairs.length} pairs did not come through. ${first.prefill} to ${first.decode}: ${first.proof?.reason || first.reason || first.standing}.`;
}
