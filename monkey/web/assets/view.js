// What views share: the address, the newest version, and small parts of pages.

import { get } from "./api.js";
import { BAR, duration, plural } from "./format.js";
import { createContext, useContext, useEffect, useRef, useState } from "./htm.js";
import { html } from "./markup.js";

/** The address as an object, and ways to change it. */
export const View = createContext(null);
/** The newest version that the server announced. */
export const Live = createContext({ version: 0 });

export const useView = () => useContext(View);
export const useLive = () => useContext(Live);

/** A link within the page. */
export function Link({ to, children, ...rest }) {
  const { go, spell } = useView();
  const click = (event) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
    event.preventDefault();
    go(to);
  };
  return html`<a href=${spell(to)} onClick=${click} ...${rest}>${children}</a>`;
}

/** A link to Grafana, if the project has one. */
export function Dashboard({ url }) {
  return url ? html` · <a href=${url} target="_blank" rel="noreferrer">Grafana</a>` : null;
}

/** Load with each version, one request after the other; returns [what came, the error]. */
export function useLoaded(load, version, ...about) {
  const [found, setFound] = useState([null, null]);
  const state = useRef({ busy: false, again: false });
  useEffect(() => {
    let here = true;
    const mine = (state.current = { busy: false, again: false });
    const run = async () => {
      if (mine.busy) {
        mine.again = true;
        return;
      }
      mine.busy = true;
      try {
        const loaded = await load();
        if (here && state.current === mine) setFound([loaded, null]);
      } catch (error) {
        if (here && state.current === mine) setFound(([before]) => [before, error]);
      }
      mine.busy = false;
      if (mine.again && here) {
        mine.again = false;
        run();
      }
    };
    mine.run = run;
    run();
    return () => (here = false);
  }, about);
  useEffect(() => {
    state.current.run?.();
  }, [version]);
  return found;
}

export function useGot(path) {
  const { version } = useLive();
  return useLoaded(() => get(path), version, path);
}

export function State({ state, note }) {
  return html`<span class=${`state ${state}`}><i aria-hidden="true"></i>${state}${note ? html` <span class="dim">${note}</span>` : ""}</span>`;
}

/** How far a sweep is, as a bar of its jobs' states. */
export function Bar({ counts, jobs }) {
  const shown = BAR.filter((state) => counts[state]);
  const words = shown.map((state) => `${counts[state]} ${state}`).join(", ");
  return html`<div class="bar" role="img" aria-label=${words || "no jobs"}>
    ${shown.map((state) => html`<i key=${state} class=${state} title=${`${counts[state]} ${state}`} style=${{ flexGrow: counts[state] }}></i>`)}
  </div>`;
}

/** How a sweep stands, in a word; what a user ordered goes before how single jobs ended. */
export function standing(one) {
  if (one.cancelled !== null) return one.goal ? "stopped" : "cancelled";
  if (one.paused && one.counts.paused) return "paused";
  return one.standing === "working" && (one.counts.running || one.counts.frozen) ? "running" : one.standing === "working" ? "queued" : one.standing;
}

export function Pace({ one }) {
  if (one.standing !== "working") return null;
  const done = one.jobs - (one.counts.queued || 0) - (one.counts.running || 0) - (one.counts.frozen || 0);
  const rate = one.rate ? (one.rate >= 1 ? `${one.rate.toFixed(1)} jobs/s` : `${(60 * one.rate).toFixed(1)} jobs/min`) : "";
  const left = one.eta ? `${duration(one.eta)} left` : "";
  return html`<span class="dim">${[`${done.toLocaleString("en")} of ${plural(one.jobs, "job")}`, rate, left].filter(Boolean).join(" · ")}</span>`;
}

export function Trouble({ error }) {
  if (!error) return null;
  return html`<div class="trouble" role="alert"><b>${error.message}</b>${error.body?.hint ? html`<br />${error.body.hint}` : ""}</div>`;
}

export function when(iso) {
  const at = new Date(iso);
  return Number.isNaN(at.getTime()) ? iso : at.toLocaleString([], { dateStyle: "medium", timeStyle: "short" });
}
