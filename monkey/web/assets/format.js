// Numbers, times and states as text.

export const STATES = ["queued", "running", "frozen", "succeeded", "failed", "cancelled", "paused", "stopped", "expired"];
/** The order in which a bar shows them. */
export const BAR = ["succeeded", "stopped", "failed", "cancelled", "expired", "running", "frozen", "paused", "queued"];

export function number(value, digits = 5) {
  if (value === null || value === undefined) return "";
  if (typeof value !== "number") return String(value);
  if (Number.isInteger(value) && Math.abs(value) < 1e15) return String(value);
  const size = Math.abs(value);
  if (size && (size < 1e-4 || size >= 1e9)) return value.toExponential(digits - 2).replace(/\.?0+e/, "e");
  return String(Number(value.toPrecision(digits)));
}

export function duration(seconds) {
  if (seconds === null || seconds === undefined || !Number.isFinite(seconds)) return "";
  if (seconds < 10) return `${seconds.toFixed(1)}s`;
  const whole = Math.round(seconds);
  if (whole < 60) return `${whole}s`;
  if (whole < 3600) return `${Math.floor(whole / 60)}m ${String(whole % 60).padStart(2, "0")}s`;
  const hours = Math.floor(whole / 3600);
  if (hours < 48) return `${hours}h ${String(Math.floor((whole % 3600) / 60)).padStart(2, "0")}m`;
  return `${Math.floor(hours / 24)}d ${hours % 24}h`;
}

export function ago(at) {
  return at ? `${duration(Math.max(0, Date.now() / 1000 - at))} ago` : "";
}

export function bytes(size) {
  if (!Number.isFinite(size)) return "";
  const units = ["B", "kB", "MB", "GB", "TB"];
  let at = 0;
  while (size >= 1000 && at < units.length - 1) {
    size /= 1000;
    at += 1;
  }
  return `${at ? size.toPrecision(3) : size} ${units[at]}`;
}

/** Controls, and what turns a text around; `terminal_codes.py` has the same. */
const HIDDEN = "\\x00-\\x08\\x0b-\\x1f\\x7f-\\x9f\\u061c\\u200e\\u200f\\u202a-\\u202e\\u2066-\\u2069";
const HIDDEN_ONE = new RegExp(`[${HIDDEN}]`, "g");
const OBEYED = new RegExp(`\\x1b\\[[0-?]*[ -/]*[@-~]?|\\x9b[0-?]*[ -/]*[@-~]?|\\x1b[\\]P^_X][^\\x07\\x1b]*(?:\\x07|\\x1b\\\\)?|\\x1b[ -/]*[0-~]?|[${HIDDEN}]`, "g");

/** Return a text with those characters spelled out that would not show, or would turn the text around. */
export function visible(text) {
  return text.replace(HIDDEN_ONE, (each) => `\\u${each.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

/** A parameter or a setting, exact; text without its quotes. */
export function value(of) {
  if (of === undefined) return "";
  return typeof of === "string" ? of : JSON.stringify(of);
}

export function plural(count, word) {
  return `${count.toLocaleString("en")} ${word}${count === 1 ? "" : "s"}`;
}

/** A log as a terminal leaves it: without colours, and of a progress bar the last state. */
export function plain(text) {
  return text.split("\n").map(readLine).join("\n");
}

function readLine(line) {
  let shown = "";
  for (const part of line.split("\r").reverse()) {
    shown += part.replace(OBEYED, "").slice(shown.length);
    if (/\x1b\[[02]?K/.test(part)) break;
  }
  return shown;
}
