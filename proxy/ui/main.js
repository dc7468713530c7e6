// Asks the proxy every two seconds and shows what it says; keeps the last answer when there is none.

import { showAbout, showAdvice } from "./about.js";
import { showActions } from "./actions.js";
import { showCharts } from "./charts.js";
import { showCondition } from "./condition.js";
import { byId, el, show } from "./dom.js";
import { showFailures } from "./failures.js";
import { clock } from "./format.js";
import { showInstances } from "./instances.js";
import { askForKey } from "./keyform.js";
import { showPairs } from "./pairs.js";
import { NeedsKey, overview } from "./source.js";
import { showTiles } from "./tiles.js";

const PAUSE = 2000; // milliseconds
let answeredAt = null; // seconds since the epoch, by this machine's clock
let waiting = null;

async function look() {
  clearTimeout(waiting);
  try {
    showAll(await overview());
  } catch (error) {
    if (error instanceof NeedsKey) lock();
    else showAway(error.message);
  }
  if (!document.hidden) waiting = setTimeout(look, PAUSE);
}

function showAll(state) {
  answeredAt = Date.now() / 1000;
  byId("away").hidden = byId("key").hidden = true;
  byId("all").hidden = false;
  byId("content").classList.remove("stale");
  byId("freshness").textContent = `Updated ${clock(answeredAt)}`;
  const profile = state.about?.profile;
  byId("profile").textContent = typeof profile === "string" ? profile : "";
  for (const part of [showCondition, showTiles, showPairs, showCharts, showInstances, showFailures, showAbout, showAdvice]) {
    part(state);
  }
  showActions(state, look);
}

function showAway(reason) {
  const since = answeredAt ?? opened;
  const kept = answeredAt === null ? "" : " What you see below is from then.";
  byId("away").hidden = false;
  // Only what is new is written: screen readers say an alert again whenever it changes.
  show(byId("away"), [reason, since], () => [
    el("strong", {}, "The proxy does not answer"),
    ` (${reason}), since ${clock(since)}.${kept}`,
  ]);
  byId("content").classList.add("stale");
  byId("freshness").textContent = answeredAt === null ? "No answer yet" : `Last answer ${clock(answeredAt)}`;
}

function lock() {
  byId("all").hidden = byId("away").hidden = true;
  byId("freshness").textContent = "Locked";
  askForKey(byId("key"), look);
}

const opened = Date.now() / 1000;
document.addEventListener("visibilitychange", () => document.hidden || look());
look();
