// One job: what it is, what it measured, what it wrote, and how it differs from another.

import { get, part } from "./api.js";
import { Chart, colours } from "./chart.js";
import { readSteps } from "./curves.js";
import { ago, bytes, duration, number, plural, value as show } from "./format.js";
import { useMemo, useState } from "./htm.js";
import { html } from "./markup.js";
import { Log } from "./log.js";
import { inReport } from "./report.js";
import { Dashboard, Link, State, Trouble, useLive, useLoaded, useView } from "./view.js";

export function JobPage({ sweep, job }) {
  const { version } = useLive();
  const place = `${part(sweep)}/${part(job)}`;
  const [found, error] = useLoaded(() => get(`job/${place}`), version, place);
  return html`
    <nav class="crumbs" aria-label="Place"><${Link} to=${{}}>Sweeps<//> <span aria-hidden="true">/</span> <${Link} to=${{ sweep }}>${sweep}<//> <span aria-hidden="true">/</span> <code>${job}</code></nav>
    <${Trouble} error=${error} />
    ${found ? html`<${Job} one=${found} place=${place} />` : !error && html`<p class="dim">Reading the job …</p>`}
  `;
}

function Job({ one, place }) {
  const { version } = useLive();
  const running = one.state === "running" || one.state === "frozen";
  const time = one.seconds ?? (running && one.started ? Date.now() / 1000 - one.started : null);
  const about = [one.agent && `on ${one.machine}`, time !== null && `${running ? "for" : "in"} ${duration(time)}`, one.attempt > 1 && `attempt ${one.attempt}`, one.ended && ago(one.ended), one.shared.length && `shared with ${one.shared.join(", ")}`, one.adopts && `adopts ${one.adopts}`];
  const varying = Object.entries(one.configuration.parameters).filter(([name]) => one.varying.includes(name));
  return html`
    <header class="sweep-head">
      <div class="line"><h1 class="mono">${one.job}</h1><${State} state=${one.state} note=${one.diverged ? "(diverged)" : ""} /><span class="dim">${about.filter(Boolean).join(" · ")}<${Dashboard} url=${one.dashboard} /></span></div>
      ${one.reason && html`<p class="reason">${one.reason}</p>`}
      <p class="tags">${varying.map(([name, value]) => html`<span key=${name} class="tag"><span class="dim">${name}</span> ${show(value)}</span>`)}</p>
      <pre class="command" tabindex="0" aria-label="Command">${one.configuration.recipe.command}</pre>
    </header>
    <${Metrics} one=${one} place=${place} version=${version} />
    <${Log} one=${one} place=${place} />
    <div class="pair">
      <${Configuration} one=${one} />
      <div>
        <${Attempts} one=${one} />
        <${Facts} one=${one} />
      </div>
    </div>
    <${Outputs} one=${one} />
  `;
}

function Metrics({ one, place }) {
  const { version } = useLive();
  const { painted } = useView();
  const names = Object.keys(one.summary);
  const ended = !["running", "frozen"].includes(one.state);
  const [found, error] = useLoaded(() => get(`job-curves/${place}?points=600`), ended ? one.state : version, place);
  const charts = useMemo(() => {
    const [colour] = colours(1);
    return Object.entries(found?.curves || {}).filter(([, curve]) => curve.logged > 1).slice(0, 24).map(([name, curve]) => [name, [{ id: name, label: name, colour, xs: readSteps(curve.steps), ys: curve.values }]]);
  }, [found, painted]);
  if (!names.length && !charts.length) return null;
  return html`<section class="card" aria-labelledby="metrics">
    <h2 id="metrics">Metrics</h2>
    <${Trouble} error=${error} />
    ${charts.length > 0 && html`<div class="charts">${charts.map(([name, curves]) => html`<figure key=${name}><figcaption>${name}</figcaption><${Chart} curves=${curves} height=${150} label=${`${name} over steps`} version=${painted} /></figure>`)}</div>`}
    <div class="scroll" tabindex="0" role="region" aria-label="Values of metrics"><table class="plain">
      <thead><tr><th scope="col">metric</th>${["last", "min", "max", "step", "values"].map((name) => html`<th scope="col" class="right" key=${name}>${name}</th>`)}</tr></thead>
      <tbody>${names.map((name) => html`<${Summary} key=${name} name=${name} of=${one.summary[name]} />`)}</tbody>
    </table></div>
  </section>`;
}

function Summary({ name, of }) {
  const last = of.last === null ? "nan" : number(of.last);
  const odd = of.nonfinite ? `, ${of.nonfinite} not finite` : "";
  return html`<tr><th scope="row">${name}</th><td class="right">${last}</td><td class="right">${number(of.min)}</td><td class="right">${number(of.max)}</td><td class="right">${number(of.step)}</td><td class="right">${number(of.count)}${odd}</td></tr>`;
}

function Configuration({ one }) {
  const { query, go } = useView();
  const [typed, setTyped] = useState(query.against || "");
  const against = query.against || "";
  const compare = (event) => {
    event.preventDefault();
    go({ ...query, against: typed.trim() }, { replace: true });
  };
  return html`<section class="card" aria-labelledby="configuration">
    <div class="line tools">
      <h2 id="configuration">Configuration</h2>
      <span class="room"></span>
      <form class="line" onSubmit=${compare}><label>against <input class="job-id" value=${typed} spellcheck=${false} placeholder="another job's id" onInput=${(event) => setTyped(event.target.value)} /></label><button type="submit">Compare</button></form>
    </div>
    ${against ? html`<${Difference} key=${against} one=${one} against=${against} />` : html`<${Whole} one=${one} />`}
  </section>`;
}

function Whole({ one }) {
  const { parameters, recipe } = one.configuration;
  const told = Object.entries(recipe).filter(([name, value]) => name !== "command" && value !== "");
  // Of a hash, the beginning is enough to read; all of it is compared.
  const short = told.map(([name, value]) => [name, /^[0-9a-f]{32,64}$/.test(value) ? value.slice(0, 12) : value]);
  const rows = [...Object.entries(parameters), ...short];
  return html`<table class="plain facts"><tbody>${rows.map(([name, value]) => html`<tr key=${name}><th scope="row">${name}</th><td><code>${show(value)}</code></td></tr>`)}</tbody></table>`;
}

/** Parts of a difference that are values, by what a row of each is called. */
const PARTS = { parameters: "parameter", command: "recipe", env: "env", environment: "environment", lock: "package", machine: "machine", metrics: "metric", usage: "usage", result: "result", outputs: "output" };
/** Files, lines of a file and characters of a line that are shown; `monkey diff` shows all. */
const MOST = { files: 50, lines: 200, characters: 400 };

function Difference({ one, against }) {
  const place = `${part(one.sweep)}/${part(one.job)}`;
  const [found, error] = useLoaded(() => get(`difference/${place}?against=${part(against)}`), 0, against);
  if (!found) return html`<${Trouble} error=${error} />`;
  const rows = Object.entries(PARTS).flatMap(([name, kind]) => (found[name] || []).map((row) => ({ kind, ...row })));
  for (const each of found.data || []) {
    rows.push({ kind: "dataset", ...each });
    for (const how of ["added", "removed", "changed"]) if (each[how]) rows.push({ kind: `${each.name} ${how}`, name: each[how].slice(0, MOST.files).join(" "), b: plural(each[how].length, "file") });
  }
  const { sweep, job } = found.b;
  return html`<div class="scroll" tabindex="0" role="region" aria-label="Differences"><table class="plain difference">
      <thead><tr><th scope="col">differs</th><th scope="col">this job</th><th scope="col"><${Link} to=${{ sweep, job }}><code>${job}</code><//></th></tr></thead>
      <tbody>
        ${rows.length === 0 && !found.code && html`<tr><td colspan="3" class="dim">Nothing that is recorded.</td></tr>`}
        ${rows.map((row) => html`<tr key=${`${row.kind} ${row.name}`}><th scope="row"><span class="dim">${row.kind}</span> ${row.name}</th><td><code class="minus">${"a" in row ? show(row.a) : "–"}</code></td><td><code class="plus">${"b" in row ? show(row.b) : "–"}</code></td></tr>`)}
      </tbody>
    </table></div>
    ${(found.notes || []).map((note) => html`<p class="dim" key=${note}>${note}</p>`)}
    ${found.code && html`<${CodeDifference} code=${found.code} />`}`;
}

function CodeDifference({ code }) {
  return html`${code.trouble && html`<p class="trouble">${code.trouble}</p>`}
    ${code.files.slice(0, MOST.files).map((file) => html`<${FileDifference} key=${file.path} file=${file} />`)}
    ${code.files.length > MOST.files && html`<p class="dim">… and ${plural(code.files.length - MOST.files, "more file")}; <code>monkey diff</code> shows them</p>`}`;
}

function FileDifference({ file }) {
  const sizes = [file.a, file.b].filter(Boolean).map((state) => [state.size === undefined ? "" : bytes(state.size), state.sha256.slice(0, 12)].join(" ")).join(" → ");
  const title = html`<code>${file.path}</code> <span class="dim">${file.status}${file.reason ? `, ${file.reason}` : ""}</span>`;
  if (!file.diff.length) return html`<p>${title} <code class="dim">${sizes}</code></p>`;
  const rest = file.diff.length - MOST.lines;
  return html`<details open><summary>${title}</summary><pre tabindex="0" class="changes" aria-label=${`Changes of ${file.path}`}>${file.diff.slice(0, MOST.lines).map((line, at) => html`<span key=${at} class=${{ "-": "minus", "+": "plus", "@": "dim" }[line[0]]}>${line.slice(0, MOST.characters)}${"\n"}</span>`)}${rest > 0 && `… ${plural(rest, "more line")}; monkey diff shows them`}</pre></details>`;
}

function Attempts({ one }) {
  const { query, go } = useView();
  if (!one.attempts.length) return null;
  return html`<section class="card" aria-labelledby="attempts">
    <h2 id="attempts">Attempts</h2>
    <table class="plain">
      <thead><tr><th scope="col">no.</th><th scope="col">machine</th><th scope="col" class="right">ran</th><th scope="col">ended</th><th scope="col">how</th></tr></thead>
      <tbody>${one.attempts.map((each) => html`<tr key=${each.number}>
        <td>${inReport ? each.number : html`<button type="button" class="link" onClick=${() => go({ ...query, attempt: each.number }, { replace: true })} aria-label=${`Log of attempt ${each.number}`}>${each.number}</button>`}</td>
        <td>${each.agent.split("/")[1] || each.agent}</td><td class="right">${duration(each.seconds)}</td><td>${ago(each.ended)}</td><td>${[each.outcome, each.reason].filter(Boolean).join(": ") || "not ended"}</td></tr>`)}</tbody>
    </table>
  </section>`;
}

function Facts({ one }) {
  const { facts, usage } = one;
  const used = [["memory_bytes", "peak memory", bytes], ["cpus", "CPUs used", number], ["gpu_percent", "GPU busy %", number], ["gpu_memory_bytes", "peak GPU memory", bytes]];
  const rows = used.filter(([name]) => name in usage).map(([name, title, spell]) => [title, spell(usage[name])]);
  for (const [name, told] of Object.entries(facts || {})) {
    if (["sha256", "trouble", "lock"].includes(name)) continue;
    rows.push([name.replaceAll("_", " "), told && typeof told === "object" && !Array.isArray(told) ? Object.entries(told).map(([key, text]) => `${key}=${show(text)}`).join(" ") : Array.isArray(told) ? told.map(show).join(", ") : show(told)]);
  }
  if (!rows.length) return null;
  return html`<section class="card" aria-labelledby="facts">
    <h2 id="facts">What it came from</h2>
    ${facts?.trouble && html`<p class="trouble">${facts.trouble}</p>`}
    <table class="plain facts"><tbody>${rows.map(([name, text]) => html`<tr key=${name}><th scope="row">${name}</th><td>${text}</td></tr>`)}</tbody></table>
    ${facts?.lock?.length > 0 && html`<details><summary>${facts.lock.length} packages</summary><pre tabindex="0" aria-label="Packages">${facts.lock.join("\n")}</pre></details>`}
  </section>`;
}

function Outputs({ one }) {
  if (!one.outputs.length) return null;
  return html`<section class="card" aria-labelledby="outputs">
    <div class="line tools"><h2 id="outputs">Outputs</h2><span class="room"></span><code class="dim">monkey fetch ${one.job}</code></div>
    <div class="scroll" tabindex="0" role="region" aria-label="Files"><table class="plain"><tbody>${one.outputs.slice(0, 500).map((each) => html`<tr key=${each.path}><th scope="row"><code>${each.path}</code></th><td class="dim"><code>${each.sha256.slice(0, 12)}</code></td><td class="dim"><code>${each.url}</code></td></tr>`)}</tbody></table></div>
  </section>`;
}
