// The sweeps of the project, the newest first.

import { plural } from "./format.js";
import { html } from "./markup.js";
import { Bar, Link, Pace, standing, State, when } from "./view.js";

export function Sweeps({ project }) {
  const { sweeps } = project;
  return html`
    <div class="line tools"><h1>Sweeps</h1><span class="room"></span>${!project.read_only && html`<${Link} to=${{ view: "edit" }}>New sweep<//>`}</div>
    ${sweeps.length === 0 && html`<p class="dim">No sweep was applied yet; <code>monkey apply</code> does.</p>`}
    <ul class="cards">
      ${sweeps.map((one) => html`<li key=${one.name}><${Card} one=${one} /></li>`)}
    </ul>
  `;
}

function Card({ one }) {
  const failed = one.counts.failed || 0;
  const about = [one.source, `revision ${one.revision}`, one.author, when(one.applied)].filter(Boolean).join(" · ");
  return html`<article class="card sweep">
    <div class="line">
      <h2><${Link} to=${{ sweep: one.name }}>${one.name}<//></h2>
      <${State} state=${standing(one)} />
      <span class="room"></span>
      ${failed > 0 && html`<span class="state failed"><i aria-hidden="true"></i>${failed.toLocaleString("en")} failed</span>`}
      ${one.standing === "working" ? html`<${Pace} one=${one} />` : html`<span class="dim">${plural(one.jobs, "job")}</span>`}
    </div>
    <${Bar} counts=${one.counts} jobs=${one.jobs} />
    <p class="dim about">${about}</p>
  </article>`;
}
