// The curves of the jobs that the table shows first, or of those that were chosen there.

import { get, part } from "./api.js";
import { Chart, colours } from "./chart.js";
import { plural } from "./format.js";
import { useEffect, useMemo, useRef, useState } from "./htm.js";
import { html } from "./markup.js";
import { useLive, useView } from "./view.js";

const AT_ONCE = 100;
const TOPS = [5, 10, 30, 100, 1000];

export function readSteps(steps) {
  if (Array.isArray(steps)) return steps;
  return Array.from({ length: steps.count }, (_, i) => steps.from + i * steps.by);
}

export function Curves({ one, rows, metrics, places, chosen, clear }) {
  const { query, go } = useView();
  const { version } = useLive();
  const set = (changed) => go({ ...query, ...changed }, { replace: true });
  const metric = metrics.includes(query.metric) ? query.metric : metrics[0];
  const top = TOPS.includes(Number(query.top)) ? Number(query.top) : 10;
  const log = query.log === "yes";
  const column = rows.metrics.get(metric);
  const shown = useMemo(() => {
    const logged = places.filter((at) => column?.[at] !== null && column?.[at] !== undefined);
    return logged.slice(0, chosen ? TOPS.at(-1) : top);
  }, [places, top, chosen, column]);
  const points = Number(query.points) || (shown.length > 100 ? 200 : 600);
  const [curves, loading] = useCurves(one.name, metric, rows, shown, version, points);
  const missing = shown.length - curves.length;
  const label = `${metric} over steps, ${plural(curves.length, "curve")}`;
  return html`<section class="card curves" aria-labelledby="curves">
    <div class="line tools">
      <h2 id="curves">Curves</h2>
      <label>metric <select value=${metric} onChange=${(event) => set({ metric: event.target.value })}>${metrics.map((name) => html`<option key=${name} value=${name}>${name}</option>`)}</select></label>
      ${chosen > 0
        ? html`<span>${plural(chosen, "chosen job")} <button type="button" class="quiet" onClick=${clear}>show the first again</button></span>`
        : html`<label>of the first <select value=${top} onChange=${(event) => set({ top: event.target.value })}>${TOPS.map((count) => html`<option key=${count} value=${count}>${count}</option>`)}</select> rows</label>`}
      <label class="check"><input type="checkbox" checked=${log} onChange=${() => set({ log: log ? "" : "yes" })} /> log</label>
      <span class="room"></span>
      <span class="dim" role="status">${loading ? `reading ${loading} …` : missing > 0 ? `${plural(missing, "job")} without values` : ""}</span>
    </div>
    <${Chart} curves=${curves} log=${log} height=${280} label=${label} onOpen=${(job) => go({ sweep: one.name, job })} />
    <p class="dim hint">Drag to zoom, double click for all. A click on a curve opens its job; the space bar chooses rows of the table.</p>
  </section>`;
}

/** Keep the curves of these jobs: those that grow are asked for again, a few seconds apart. */
function useCurves(sweep, metric, rows, places, version, points) {
  const kept = useRef({ metric: "", of: new Map(), asked: 0 });
  const [done, setDone] = useState(0);
  const [loading, setLoading] = useState(0);
  const ids = useMemo(() => places.map((at) => rows.ids[at]), [places]);
  const key = ids.join();
  useEffect(() => {
    const store = kept.current;
    if (store.metric !== `${sweep} ${metric}`) Object.assign(store, { metric: `${sweep} ${metric}`, of: new Map(), asked: 0 });
    const now = Date.now();
    const wait = ids.length > 100 ? 10000 : 2000;
    const grown = now - store.asked >= wait;
    const due = ids.filter((id) => {
      const known = store.of.get(id);
      const state = rows.state(rows.places.get(id));
      return !known || (known.state !== state && known.state !== "succeeded") || (grown && known.growing);
    });
    const busy = due.filter((id) => !["queued"].includes(rows.state(rows.places.get(id))));
    if (!busy.length) return undefined;
    if (grown) store.asked = now;
    const stop = new AbortController();
    const mine = store.of;
    load(sweep, metric, busy, points, stop.signal, (found, left) => {
      for (const [id, curve] of Object.entries(found)) mine.set(id, { ...curve, state: rows.state(rows.places.get(id)), xs: curve.values ? readSteps(curve.steps) : [], ys: curve.values || [] });
      setDone((before) => before + 1);
      setLoading(left);
    }).catch(() => setLoading(0));
    return () => (store.metric !== `${sweep} ${metric}` || mine !== kept.current.of) && stop.abort();
  }, [sweep, metric, key, version]);
  const curves = useMemo(() => {
    const found = ids.map((id) => [id, kept.current.of.get(id)]).filter(([, curve]) => curve?.ys.length);
    const inks = colours(found.length);
    return found.map(([id, curve], rank) => ({ id, label: rows.label(rows.places.get(id)), colour: inks[rank], xs: curve.xs, ys: curve.ys }));
  }, [key, done, metric]);
  return [curves, loading];
}

async function load(sweep, metric, ids, points, signal, took) {
  const parts = [];
  for (let at = 0; at < ids.length; at += AT_ONCE) parts.push(ids.slice(at, at + AT_ONCE));
  let left = ids.length;
  const work = async () => {
    while (parts.length) {
      const jobs = parts.shift();
      const answer = await get(`curves/${part(sweep)}?metric=${part(metric)}&points=${points}&jobs=${jobs.join()}`, signal);
      left -= jobs.length;
      took(answer.curves, left);
    }
  };
  await Promise.all([work(), work(), work()]);
}
