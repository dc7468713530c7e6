// Small signs, so that no meaning hangs on a colour alone.

import { svg } from "./dom.js";

const PATHS = {
  check: "M3.5 8.5l3 3 6-7",
  cross: "M4 4l8 8M12 4l-8 8",
  bang: "M8 3v6.2M8 12.4v.2",
  question: "M5.6 5.8c.2-3 5-3 5 .2 0 1.9-2.6 2-2.6 3.800M8 12.600v.2",
  dash: "M4 8h8",
  ring: "M8 3.500a4.5 4.5 0 1 0 0 9a4.5 4.5 0 1 0 0-9z",
  retry: "M12.5 8a4.5 4.5 0 1 1-1.4-3.200M12.6 2.600v2.800h-2.8",
  ban: "M8 2.800a5.2 5.2 0 1 0 0 10.400a5.2 5.2 0 1 0 0-10.400zM4.4 4.400l7.2 7.2",
};

/** One of them; it says nothing to a screen reader, so a word has to stand beside it. */
export function icon(name) {
  return svg("svg", { class: "icon", viewBox: "0 0 16 16", "aria-hidden": "true" }, svg("path", { d: PATHS[name] }));
}

/** Sign and tone of a pair's standing, and what it is called. */
export const STANDINGS = {
  proven: ["check", "ok", "Proven"],
  working: ["check", "ok", "Working"],
  untried: ["ring", "calm", "Not tried yet"],
  trial: ["retry", "warn", "On trial"],
  failing: ["bang", "warn", "Failing"],
  suspect: ["question", "bad", "Suspect"],
  out: ["cross", "bad", "Out of use"],
  refused: ["ban", "bad", "Refused"],
  away: ["dash", "calm", "Away"],
};

/** Of the deployment. */
export const HEALTHS = {
  ready: ["check", "ok", "Ready"],
  degraded: ["bang", "warn", "Degraded"],
  down: ["cross", "bad", "Down"],
};

/** Of any name, also of one that this page does not know. */
export const signOf = (signs, name) => (Object.hasOwn(signs, name) ? signs[name] : ["question", "calm", String(name)]);
