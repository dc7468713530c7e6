// Numbers and times for people. What is not known is a dash.

export const UNKNOWN = "–";

const known = (value) => typeof value === "number" && Number.isFinite(value);

/** A number of about three digits. */
export function number(value) {
  if (!known(value)) return UNKNOWN;
  const size = Math.abs(value);
  const digits = size >= 100 || Number.isInteger(value) ? 0 : size >= 10 ? 1 : 2;
  return value.toLocaleString("en", { maximumFractionDigits: digits });
}

/** A share of 0 to 1. */
export function percent(value) {
  if (!known(value)) return UNKNOWN;
  const hundredths = value * 100;
  return `${hundredths.toLocaleString("en", { maximumFractionDigits: hundredths < 10 && hundredths > 0 ? 1 : 0 })} %`;
}

/** A duration in seconds, in milliseconds where that reads better. */
export function seconds(value) {
  if (!known(value)) return UNKNOWN;
  return value < 1 ? `${number(value * 1000)} ms` : `${number(value)} s`;
}

/** Bytes per second. */
export function speed(value) {
  if (!known(value)) return UNKNOWN;
  for (const [size, unit] of [[1e9, "GB/s"], [1e6, "MB/s"], [1e3, "kB/s"]]) {
    if (value >= size) return `${number(value / size)} ${unit}`;
  }
  return `${number(value)} B/s`;
}

/** How long ago, in one unit. */
export function ago(then, now) {
  if (!known(then)) return UNKNOWN;
  const passed = Math.max(0, now - then);
  for (const [size, unit] of [[86400, "d"], [3600, "h"], [60, "min"]]) {
    if (passed >= size) return `${Math.floor(passed / size)} ${unit} ago`;
  }
  return `${Math.floor(passed)} s ago`;
}

/** The time of day. */
export function clock(at) {
  return known(at) ? new Date(at * 1000).toLocaleTimeString("en-GB") : UNKNOWN;
}

/** Date and time of day. */
export function moment(at) {
  if (!known(at)) return UNKNOWN;
  const date = new Date(at * 1000).toLocaleDateString("en-GB", { day: "numeric", month: "short" });
  return `${date}, ${clock(at)}`;
}

/** A word of the proxy's for people. */
export const words = (name) => String(name ?? UNKNOWN).replaceAll(/[_-]/g, " ");
