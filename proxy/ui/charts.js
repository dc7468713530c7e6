// Which charts there are.

import { Chart } from "./chart.js";
import { byId } from "./dom.js";
import { number, percent, seconds } from "./format.js";

const KINDS = [
  { title: "Time to first token", lines: [{ name: "ttft_p95", label: "p95" }, { name: "ttft_p50", label: "p50" }], format: seconds, empty: "No streamed answers", alert: "ttft" },
  { title: "Time per output token", lines: [{ name: "tpot_p95", label: "p95" }, { name: "tpot_p50", label: "p50" }], format: seconds, empty: "No streamed answers" },
  { title: "Throughput", lines: [{ name: "output_tokens_per_second", label: "tokens/s" }], format: number, empty: "The engines tell no tokens" },
  { title: "Draft acceptance", lines: [{ name: "acceptance_rate", label: "accepted" }], format: percent, full: 1, empty: "No tokens were drafted", alert: "acceptance", below: true },
  { title: "KV cache in use", lines: [{ name: "kv_cache_usage", label: "fullest" }], format: percent, full: 1, empty: "The engines tell nothing of it", alert: "kv_cache_usage" },
  { title: "KV received from prefill", lines: [{ name: "kv_received_share", label: "of prompt tokens" }], format: percent, full: 1, empty: "No prompts came to decode" },
];
let charts = null;

export function showCharts(state) {
  if (charts === null) {
    charts = KINDS.map((kind) => new Chart(kind));
    byId("charts").append(...charts.map((chart) => chart.node));
  }
  for (const chart of charts) {
    const value = state.thresholds[chart.kind.alert];
    const isUseful = typeof value === "number" && chart.kind.alert !== undefined;
    chart.update(state.history, state.at, isUseful ? { value, below: chart.kind.below ?? false } : null);
  }
}
