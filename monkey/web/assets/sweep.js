// One sweep: how far it is, its curves, its jobs, and what failed.

import { get, part } from "./api.js";
import { Curves } from "./curves.js";
import { editableFile } from "./edit.js";
import { duration, number, plural, STATES, value as show } from "./format.js";
import { useEffect, useMemo, useRef, useState } from "./htm.js";
import { html } from "./markup.js";
import { Orders } from "./orders.js";
import { makeFilter, Rows } from "./rows.js";
import { Table } from "./table.js";
import { Bar, Dashboard, Link, Pace, standing, State, Trouble, useLive, useLoaded, useView, when } from "./view.js";

const METRICS = 4;

export function SweepPage({ sweep }) {
  const { version } = useLive();
  const rows = useRef(new Rows());
  const [found, error] = useLoaded(
    async () => {
      const answer = await get(`sweep/${part(sweep)}?since=${rows.current.version}`);
      rows.current.take(answer);
      return { ...answer };
    },
    version,
    sweep,
  );
  if (!found) return html`<${Crumbs} sweep=${sweep} /><${Trouble} error=${error} />${!error && html`<p class="dim">Reading the jobs …</p>`}`;
  return html`
    <${Crumbs} sweep=${sweep} />
    <${Header} one=${found} />
    <${Trouble} error=${error} />
    <${Body} one=${found} rows=${rows.current} />
  `;
}

function Crumbs({ sweep }) {
  return html`<nav class="crumbs" aria-label="Place"><${Link} to=${{}}>Sweeps<//> <span aria-hidden="true">/</span> ${sweep}</nav>`;
}

function Header({ one }) {
  const by = one.cancelled !== null ? [one.cancelled === "cancelled" ? "" : one.cancelled, one.cancelled_by && `by ${one.cancelled_by}`].filter(Boolean).join(" ") : "";
  const goal = one.metric ? `${one.maximize ? "highest" : "lowest"} ${one.metric} is best` : "";
  const about = [one.source, one.commit && `commit ${one.commit}`, `revision ${one.revision}`, one.author, when(one.applied), goal];
  return html`<header class="sweep-head">
    <div class="line">
      <h1>${one.name}</h1>
      <${State} state=${standing(one)} note=${by} />
      <${Pace} one=${one} />
      <span class="room"></span>
      <${Orders} one=${one} />
      <${EditLink} source=${one.source} />
    </div>
    <${Bar} counts=${one.counts} jobs=${one.jobs} />
    <p class="dim about">${about.filter(Boolean).join(" · ")}<${Dashboard} url=${one.dashboard} /></p>
  </header>`;
}

/** A link to the form, for a spec that lies where the form finds it. */
function EditLink({ source }) {
  const { project } = useView();
  const file = editableFile(source);
  return file && project && !project.read_only ? html`<${Link} to=${{ view: "edit", file }}>Edit<//>` : null;
}

function Body({ one, rows }) {
  const { query, go, painted } = useView();
  const set = (changed) => go({ ...query, ...changed }, { replace: true });
  const [selected, setSelected] = useState(new Set());
  const metrics = useMemo(() => orderMetrics(rows, one.metric), [rows.metrics.size, one.metric, one.version > 0]);
  const states = useMemo(() => new Set((query.state || "").split(",").filter(Boolean)), [query.state]);
  const ranked = one.metric && rows.metrics.has(one.metric) ? `${one.maximize ? "-" : ""}m:${one.metric}` : "";
  const sort = query.sort ?? ranked;
  const filter = useMemo(() => makeFilter(rows, query.where || "", states), [query.where, states, rows.ids, metrics]);
  const places = useMemo(() => rows.order(filter, sort), [filter, sort, one.version]);
  const everything = query.columns === "all";
  const columns = useMemo(() => makeColumns(rows, metrics, one, everything), [rows.parameters, metrics, one.metric, everything, one.version]);
  const toggle = (at) => setSelected((before) => (before.has(at) ? new Set([...before].filter((each) => each !== at)) : new Set([...before, at])));
  const chosen = places.filter((at) => selected.has(at));
  const failed = one.counts.failed > 0;
  const extra = rows.parameters.filter((each) => !each.varies).length + Math.max(0, metrics.length - METRICS);
  return html`
    ${metrics.length > 0 && html`<${Curves} key=${painted} one=${one} rows=${rows} metrics=${metrics} places=${chosen.length ? chosen : places} chosen=${chosen.length} clear=${() => setSelected(new Set())} />`}
    ${failed && html`<${Failures} one=${one} />`}
    <section aria-labelledby="jobs">
      <div class="line tools">
        <h2 id="jobs">Jobs</h2>
        <span class="dim" role="status">${places.length === rows.count ? plural(rows.count, "job") : `${places.length.toLocaleString("en")} of ${plural(rows.count, "job")}`}</span>
        <span class="room"></span>
        <${Chips} counts=${one.counts} states=${states} set=${(state) => set({ state })} />
        <${Filter} text=${query.where || ""} set=${(where) => set({ where })} />
        ${extra > 0 && html`<label class="check"><input type="checkbox" checked=${everything} onChange=${() => set({ columns: everything ? "" : "all" })} /> all columns</label>`}
      </div>
      <${Table} columns=${columns} places=${places} sort=${sort} onSort=${(next) => set({ sort: next })} selected=${selected} onSelect=${toggle}
        open=${(at) => go({ sweep: one.name, job: rows.ids[at] })} label=${`Jobs of ${one.name}: arrows move, Enter opens, the space bar chooses for the curves`} tick=${one.version} />
      ${places.length === 0 && html`<p class="dim">No job passes the filter.</p>`}
    </section>
  `;
}

/** Metrics by name, the one that ranks first. */
function orderMetrics(rows, ranks) {
  const names = [...rows.metrics.keys()].filter((name) => name !== ranks).sort();
  return rows.metrics.has(ranks) ? [ranks, ...names] : names;
}

function Chips({ counts, states, set }) {
  const shown = STATES.filter((state) => counts[state] || states.has(state));
  if (shown.length < 2) return null;
  const toggle = (state) => {
    const next = new Set(states);
    if (!next.delete(state)) next.add(state);
    set([...next].join(","));
  };
  return html`<div class="chips" role="group" aria-label="States">
    ${shown.map((state) => html`<button type="button" key=${state} aria-pressed=${states.has(state)} onClick=${() => toggle(state)}><span class=${`state ${state}`}><i aria-hidden="true"></i>${state}</span> <b>${(counts[state] || 0).toLocaleString("en")}</b></button>`)}
  </div>`;
}

function Filter({ text, set }) {
  const [typed, setTyped] = useState(text);
  const box = useRef(null);
  const told = useRef(text);
  useEffect(() => {
    // An echo of our own changes nothing: more may have been typed meanwhile.
    if (text !== told.current) setTyped((told.current = text));
  }, [text]);
  useEffect(() => {
    const wait = setTimeout(() => typed !== told.current && set((told.current = typed)), 200);
    return () => clearTimeout(wait);
  }, [typed]);
  useEffect(() => {
    const jump = (event) => {
      if (event.key === "/" && !["INPUT", "TEXTAREA", "SELECT"].includes(event.target.tagName)) {
        event.preventDefault();
        box.current.focus();
      }
    };
    addEventListener("keydown", jump);
    return () => removeEventListener("keydown", jump);
  }, []);
  return html`<input ref=${box} type="search" class="filter" value=${typed} placeholder="filter: lr<0.1 state=failed" aria-label="Filter the jobs; press / to come here" spellcheck=${false} onInput=${(event) => setTyped(event.target.value)} />`;
}

function makeColumns(rows, metrics, one, everything) {
  const { columns } = rows;
  const longest = (texts, most) => Math.min(most, 44 + 7.4 * Math.max(...texts.map((text) => text.length)));
  const found = [{ key: "state", title: "state", sortable: true, width: columns.diverged.some(Boolean) ? 190 : 128, cell: (at) => html`<${State} state=${rows.state(at)} note=${rows.note(at)} />` }];
  for (const each of rows.parameters) {
    if (!each.varies && !everything) continue;
    const right = each.values.every((value) => typeof value === "number");
    const title = rows.title(`p:${each.name}`);
    // A value that is cut here could look like another one: the column is as wide as its longest.
    const width = Math.max(72, longest([title], 260), 44 + 7.4 * each.longest);
    found.push({ key: `p:${each.name}`, title, sortable: true, right, width, cell: (at) => html`<span title=${show(rows.value(each, at))}>${rows.text(each, at)}</span>` });
  }
  for (const name of everything ? metrics : metrics.slice(0, METRICS)) {
    const largest = name === one.metric ? one.maximize : false;
    const title = rows.title(`m:${name}`);
    found.push({ key: `m:${name}`, title, sortable: true, right: true, largest, width: Math.max(92, longest([title], 220)), cell: (at) => number(rows.metrics.get(name)?.[at]) });
  }
  found.push({ key: "time", title: "time", sortable: true, right: true, largest: true, width: 84, cell: (at) => duration(rows.seconds(at)) });
  if (everything || columns.attempt.some((n) => n > 1)) found.push({ key: "attempt", title: "attempt", sortable: true, right: true, largest: true, width: 82, cell: (at) => columns.attempt[at] || "" });
  if (everything || new Set(columns.machine).size > 2) found.push({ key: "machine", title: "machine", sortable: true, width: 120, cell: (at) => columns.machine[at] });
  found.push({ key: "job", title: "job", sortable: true, width: 158, cell: (at) => html`<${Link} to=${{ sweep: one.name, job: rows.ids[at] }} tabindex="-1"><code>${rows.ids[at]}</code><//>` });
  if (columns.reason.some(Boolean)) found.push({ key: "reason", title: "reason", sortable: true, width: 260, cell: (at) => html`<span class="dim" title=${columns.reason[at]}>${columns.reason[at]}</span>` });
  return found;
}

/** Kinds of failure. Their rules take the server a while: it is asked when there are more failures, and at the end. */
function Failures({ one }) {
  const sweep = one.name;
  const { trouble } = useLive();
  const [kinds, error] = useLoaded(() => get(`failures/${part(sweep)}`), `${one.revision} ${one.counts.failed} ${one.standing} ${trouble}`, sweep);
  if (!kinds) return html`<${Trouble} error=${error} />`;
  return html`<section class="card failures" aria-labelledby="failures">
    <h2 id="failures">Failures</h2>
    ${kinds.map(
      (kind) => html`<details key=${kind.signature}>
        <summary><b class="failed-count">${kind.jobs.toLocaleString("en")}×</b> ${kind.reason} ${kind.last_line && html`<code>${kind.last_line}</code>`}</summary>
        ${kind.rule && html`<p class="reason">${kind.rule.text}</p>`}
        ${kind.diff.length > 0 && html`<p class="dim">A change of the spec that would spare such jobs:</p><pre tabindex="0" aria-label="Change of the spec">${kind.diff.join("\n")}</pre>`}
        <pre tabindex="0" aria-label="End of a log">${kind.tail.join("\n") || "(no output)"}</pre>
        <p>To run them again: <code class="copied">monkey retry ${sweep} --signature ${kind.signature}</code></p>
        <${Link} to=${{ sweep, job: kind.job }}>one of them: <code>${kind.job}</code><//>
      </details>`,
    )}
  </section>`;
}
