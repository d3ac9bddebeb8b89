// A report is this page in one file: the answers of the server are in the file, compressed.

const block = document.getElementById("answers");
/** Is this page a report? Then there is no server: nothing follows, and no order can be given. */
export const inReport = block !== null;

let unpacked = null;

async function unpack() {
  const packed = Uint8Array.from(atob(block.textContent), (character) => character.charCodeAt(0));
  const told = await new Response(new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"))).json();
  return { answers: told.answers, curves: new Map(Object.entries(told.curves).map(([sweep, packs]) => [sweep, unpackCurves(packs)])) };
}

/** Return a map of jobs to maps of metrics to curves; each curve is three columns of whole numbers. */
function unpackCurves({ jobs, metrics, of, gaps, digits, powers }) {
  const found = new Map();
  of.forEach(([job, metric, logged], at) => {
    if (!found.has(jobs[job])) found.set(jobs[job], new Map());
    const values = digits[at].map((whole, i) => (whole === null ? null : Number(`${whole}e${powers[at][i]}`)));
    found.get(jobs[job]).set(metrics[metric], { steps: addUp(gaps[at]), values, logged, growing: false });
  });
  return found;
}

function addUp(gaps) {
  let step = 0;
  return Array.isArray(gaps) ? gaps.map((gap) => (step += gap)) : gaps;
}

/** Return what the server would answer to this path; undefined where the report does not have it. */
export async function findAnswer(path) {
  unpacked ??= unpack();
  const { answers, curves } = await unpacked;
  const [place, query] = path.split("?");
  const [kind, sweep, job] = place.split("/").map(decodeURIComponent);
  if (kind === "curves") {
    const asked = new URLSearchParams(query);
    const of = curves.get(sweep);
    return { curves: Object.fromEntries(asked.get("jobs").split(",").map((id) => [id, of?.get(id)?.get(asked.get("metric")) || {}])) };
  }
  if (kind === "job-curves") return { growing: false, curves: Object.fromEntries(curves.get(sweep)?.get(job) || []) };
  if (kind === "log") return answerLog(answers[`job/${sweep}/${job}`]);
  if (kind === "difference") return answerDifference(answers, sweep, job, new URLSearchParams(query).get("against"));
  const name = [kind, sweep, job].filter((each) => each !== undefined).join("/");
  return Object.hasOwn(answers, name) ? answers[name] : undefined;
}

/** A log of which only the end was kept: it begins after its first byte. */
function answerLog(one) {
  const text = one ? one.log_tail.join("\n") : "";
  return { text, start: 1, next: 1 + text.length, growing: false };
}

/** What differs between two jobs by their pages: the server compares more, by what the store has. */
function answerDifference(answers, sweep, job, against) {
  const [other, id] = against.includes("/") ? against.split("/") : [sweep, against];
  const [one, two] = [`job/${sweep}/${job}`, `job/${other}/${id}`].map((name) => (Object.hasOwn(answers, name) ? answers[name] : undefined));
  if (!one || !two) return undefined;
  const [a, b] = [one, two].map(listParts);
  const parts = Object.keys(a).map((name) => [name, compareValues(a[name], b[name])]);
  return { ...Object.fromEntries(parts), b: { sweep: other, job: id }, notes: ["`monkey diff` compares code and data, too: a report has neither"] };
}

function listParts({ configuration, facts, machine, summary, outputs, state, reason }) {
  const told = Object.entries(facts || {}).filter(([name]) => !["sha256", "trouble", "lock"].includes(name));
  return {
    parameters: Object.entries(configuration.parameters),
    command: Object.entries(configuration.recipe),
    lock: (facts?.lock || []).map((line) => [String(line).split(/[=@ ]/)[0], line]),
    machine: [["host", machine], ...told],
    metrics: Object.entries(summary).map(([name, each]) => [`${name} last`, each.last]),
    result: [["state", state], ...(reason ? [["reason", reason]] : [])],
    outputs: outputs.map((each) => [each.path, each.sha256]),
  };
}

/** Rows of the names whose values differ; a side that has no value is not in its row. */
function compareValues(before, after) {
  const [a, b] = [new Map(before), new Map(after)];
  const names = [...new Set([...a.keys(), ...b.keys()])].filter((name) => JSON.stringify(a.get(name)) !== JSON.stringify(b.get(name)));
  return names.map((name) => ({ name, ...(a.has(name) ? { a: a.get(name) } : {}), ...(b.has(name) ? { b: b.get(name) } : {}) }));
}
