// The rows of one sweep: columns of the server, kept up to date; sorted and filtered by places.

import { STATES, value as show } from "./format.js";

const FIELDS = ["state", "attempt", "seconds", "started", "machine", "reason", "diverged", "counts"];

export class Rows {
  constructor() {
    this.version = 0;
    this.count = 0;
    this.ids = [];
    this.parameters = [];
    this.columns = {};
    this.metrics = new Map();
    this.places = new Map();
    this.titles = {};
  }

  /** Take in an answer: all rows, or those that changed. Returns whether anything did. */
  take(answer) {
    this.version = answer.version;
    Object.assign(this.titles, answer.titles);
    if (answer.table) {
      const text = answer.table.ids;
      this.count = text.length / 16;
      this.ids = Array.from({ length: this.count }, (_, at) => text.slice(16 * at, 16 * at + 16));
      this.places = new Map(this.ids.map((id, at) => [id, at]));
      this.parameters = answer.table.parameters.map(rankValues);
      this.columns = answer.columns;
      this.metrics = new Map(Object.entries(answer.metrics));
      return true;
    }
    answer.places.forEach((at, i) => {
      for (const name of FIELDS) this.columns[name][at] = answer.columns[name][i];
      for (const column of this.metrics.values()) column[at] = null;
    });
    for (const [name, values] of Object.entries(answer.metrics)) {
      if (!this.metrics.has(name)) this.metrics.set(name, new Array(this.count).fill(null));
      const column = this.metrics.get(name);
      answer.places.forEach((at, i) => (column[at] = values[i]));
    }
    return answer.places.length > 0;
  }

  state(at) {
    return STATES[this.columns.state[at]];
  }

  /** What is said beside the state of a job. */
  note(at) {
    return this.columns.diverged[at] ? "(diverged)" : "";
  }

  /** Seconds that a job ran; of one that runs, until now. */
  seconds(at) {
    const ended = this.columns.seconds[at];
    if (ended !== null || !this.columns.started[at]) return ended;
    return ["running", "frozen"].includes(this.state(at)) ? Math.max(0, Date.now() / 1000 - this.columns.started[at]) : null;
  }

  /** What heads the column of a parameter (`p:NAME`) or a metric (`m:NAME`): ours keep their names. */
  title(key) {
    return this.titles[key] ?? key.slice(2);
  }

  parameter(name) {
    return this.parameters.find((one) => one.name === name);
  }

  value(parameter, at) {
    return parameter.values[parameter.index[at]];
  }

  /** A parameter's value as the terminal shows it; "" for a job without it. */
  text(parameter, at) {
    return parameter.index[at] < 0 ? "" : spell(parameter, parameter.index[at]);
  }

  /** What tells a job from the others. */
  label(at) {
    const told = this.parameters.filter((one) => one.varies && one.index[at] >= 0);
    return told.map((one) => `${one.name} ${this.text(one, at)}`).join("  ") || this.ids[at];
  }

  /** A number to sort each place by; NaN goes last, whichever way. */
  keys(name) {
    if (name.startsWith("p:")) {
      const one = this.parameter(name.slice(2));
      return one ? one.index.map((index) => (index < 0 ? NaN : one.ranks[index])) : null;
    }
    if (name.startsWith("m:")) return this.metrics.get(name.slice(2))?.map((value) => (typeof value === "number" ? value : NaN));
    if (name === "state") return this.columns.state;
    if (name === "attempt") return this.columns.attempt;
    if (name === "time") return this.ids.map((_, at) => this.seconds(at) ?? NaN);
    if (name === "machine" || name === "reason") return rankTexts(this.columns[name]);
    if (name === "job") return rankTexts(this.ids);
    return null;
  }

  /**
   * The places that pass the filter, in order: `sort` is a column, with "-" before it for the largest first.
   *
   * By a metric, jobs that count come first, as in `monkey results`: what failed, runs or diverged is never the best.
   */
  order(filter, sort) {
    const places = [];
    for (let at = 0; at < this.count; at++) if (filter(at)) places.push(at);
    const keys = sort && this.keys(sort.replace(/^-/, ""));
    if (!keys) return places;
    const sign = sort.startsWith("-") ? -1 : 1;
    const sorted = (some) => {
      const known = some.filter((at) => keys[at] === keys[at]);
      const unknown = known.length < some.length ? some.filter((at) => keys[at] !== keys[at]) : [];
      known.sort((a, b) => sign * (keys[a] - keys[b]) || a - b);
      return known.concat(unknown);
    };
    if (!/^-?m:/.test(sort)) return sorted(places);
    const { counts } = this.columns;
    return sorted(places.filter((at) => counts[at])).concat(sorted(places.filter((at) => !counts[at])));
  }
}

function rankValues(one) {
  const order = one.values.map((value, at) => [value, at]);
  order.sort(([a], [b]) => (typeof a === "number" && typeof b === "number" ? a - b : compare(show(a), show(b))));
  const ranks = [];
  order.forEach(([, at], rank) => (ranks[at] = rank));
  const longest = one.values.reduce((most, _, at) => Math.max(most, measure(spell(one, at))), 0);
  return { ...one, ranks, longest };
}

/** The server spells values that a browser would spell otherwise, and cuts those that are too long, so that they differ. */
function spell(parameter, index) {
  return parameter.texts[index] ?? show(parameter.values[index]);
}

/** Roughly how many letters wide a text is: those of Chinese take two. */
function measure(text) {
  return text.length + (text.match(/[^\x00-\u02ff…]/g)?.length ?? 0);
}

function rankTexts(texts) {
  const ranks = new Map([...new Set(texts)].sort().map((text, rank) => [text, text ? rank : NaN]));
  return texts.map((text) => ranks.get(text));
}

function compare(a, b) {
  return a < b ? -1 : a > b ? 1 : 0;
}

const TERM = /^([^\s<>=!~]+)(<=|>=|!=|=|<|>|~)(.+)$/;

/** Make a filter of words: `lr<0.1 state=failed text`; all must hold. */
export function makeFilter(rows, text, states) {
  const tests = text.split(/\s+/).filter(Boolean).map((word) => makeTest(rows, word));
  if (states.size) tests.push((at) => states.has(rows.state(at)));
  return (at) => tests.every((test) => test(at));
}

function makeTest(rows, word) {
  const [, name, sign, wanted] = word.match(TERM) || [];
  const read = name && makeReader(rows, name);
  if (!read) {
    const low = word.toLowerCase();
    return (at) => `${rows.ids[at]} ${rows.state(at)} ${rows.note(at)} ${rows.columns.machine[at]} ${rows.columns.reason[at]} ${rows.label(at)}`.toLowerCase().includes(low);
  }
  const number = Number(wanted);
  return (at) => {
    const found = read(at);
    if (found === null || found === undefined) return sign === "!=";
    if (sign === "~") return show(found).toLowerCase().includes(wanted.toLowerCase());
    const [a, b] = typeof found === "number" && number === number ? [found, number] : [show(found), wanted];
    return { "=": a === b, "!=": a !== b, "<": a < b, ">": a > b, "<=": a <= b, ">=": a >= b }[sign];
  };
}

function makeReader(rows, name) {
  if (name === "state") return (at) => rows.state(at);
  if (name === "seconds" || name === "time") return (at) => rows.seconds(at);
  if (name === "job") return (at) => rows.ids[at];
  if (["attempt", "machine", "reason"].includes(name)) return (at) => rows.columns[name][at];
  const parameter = rows.parameters.find((one) => rows.title(`p:${one.name}`) === name) ?? rows.parameter(bare(name, "parameter."));
  if (parameter) return (at) => rows.value(parameter, at);
  const metrics = [...rows.metrics.keys()];
  const metric = metrics.find((one) => rows.title(`m:${one}`) === name) ?? metrics.find((one) => one === bare(name, "metric."));
  return metric === undefined ? null : (at) => rows.metrics.get(metric)[at];
}

/** A name without the prefix that tells parameters, metrics and our own columns apart. */
function bare(name, prefix) {
  return name.startsWith(prefix) ? name.slice(prefix.length) : name;
}
