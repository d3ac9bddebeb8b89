// Machines and their agents, by their last heartbeats.

import { ago, number } from "./format.js";
import { html } from "./markup.js";
import { Link, Trouble, useGot } from "./view.js";

export function Machines() {
  const [found, error] = useGot("machines");
  if (!found) return html`<h1>Machines</h1><${Trouble} error=${error} />`;
  return html`
    <h1>Machines</h1>
    ${found.length === 0 && html`<p class="dim">No agent is at work.</p>`}
    <ul class="cards machines">
      ${found.map((one) => html`<li key=${one.id}><${Machine} one=${one} /></li>`)}
    </ul>
  `;
}

function Machine({ one }) {
  const state = one.alive ? "running" : one.left ? "queued" : "failed";
  const word = one.alive ? "at work" : one.left ? "left" : "lost";
  return html`<article class="card">
    <div class="line">
      <h2>${one.machine}</h2>
      <span class="dim">${one.fleet}</span>
      <span class="room"></span>
      <span class=${`state ${state}`}><i aria-hidden="true"></i>${word}</span>
    </div>
    ${one.alive && html`<div class="meters"><${Meter} name="CPU" percent=${one.cpu} /><${Meter} name="Memory" percent=${one.memory} />${one.gpus.map((gpu, at) => html`<${Meter} key=${at} name=${`GPU ${at}`} percent=${gpu} />`)}</div>`}
    ${one.alert && html`<p class="trouble">${one.alert}</p>`}
    <p class="dim about">${one.alive ? `${one.jobs} job${one.jobs === 1 ? "" : "s"}` : ""} ${one.alive ? "· " : ""}heard of ${ago(one.heard)}</p>
    ${one.running.length > 0 && html`<p class="about">${one.running.slice(0, 12).map((job) => html`<${Link} key=${job.job} to=${{ sweep: String(job.sweep), job: String(job.job) }}><code>${String(job.job).slice(0, 8)}</code><//> `)}${one.running.length > 12 ? "…" : ""}</p>`}
  </article>`;
}

function Meter({ name, percent }) {
  if (typeof percent !== "number") return null;
  const full = Math.max(0, Math.min(100, percent));
  return html`<div class="meter"><span>${name}</span><div class="track" aria-hidden="true"><i style=${{ width: `${full}%` }}></i></div><span class="right">${number(Math.round(full))}%</span></div>`;
}
