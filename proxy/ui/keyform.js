// Asks for a key.

import { el } from "./dom.js";
import { hasKey, setKey } from "./source.js";

/** A form in a section of the page, unless it is there already; then `again` is called. */
export function askForKey(section, again) {
  const refused = hasKey();
  setKey("");
  section.hidden = false;
  if (!section.firstChild) {
    section.append(
      el("h2", { id: "key-title" }, "This proxy asks for a key"),
      el("p", {}, "Give a client's key, or an operator's. It is kept until this page is closed or loaded again."),
      keyForm("Key", "Show", again),
      el("p", { class: "refused", role: "alert" }),
    );
    section.querySelector("input").focus();
  }
  section.querySelector(".refused").textContent = refused ? "The proxy does not know this key." : "";
}

/** A field and a button; `then` is called when there is a key. */
export function keyForm(label, verb, then) {
  const field = el("input", { type: "password", autocomplete: "off", "aria-label": label, placeholder: label, required: true });
  const submit = (event) => {
    event.preventDefault();
    setKey(field.value);
    field.value = "";
    then();
  };
  return el("form", { class: "keyform", submit }, field, el("button", { type: "submit" }, verb));
}
