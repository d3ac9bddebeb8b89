// The page: logs in, follows the server's versions, and shows the view that the address names.

import { follow, get, isLink, logIn } from "./api.js";
import { EditPage } from "./edit.js";
import { visible } from "./format.js";
import { render, useCallback, useEffect, useState } from "./htm.js";
import { html } from "./markup.js";
import { JobPage } from "./job.js";
import { Machines } from "./machines.js";
import { inReport } from "./report.js";
import { SweepPage } from "./sweep.js";
import { Sweeps } from "./sweeps.js";
import { Live, View, when } from "./view.js";

// A browser may refuse to change the query of a file's address; it never refuses to change the fragment.
const [MARK, PART] = inReport ? ["#", "hash"] : ["?", "search"];

function readAddress() {
  return Object.fromEntries(new URLSearchParams(location[PART].slice(1)));
}

function spell(query) {
  const kept = Object.entries(query).filter(([, value]) => value !== "" && value !== undefined && value !== null);
  return `${location.pathname}${kept.length ? MARK + new URLSearchParams(kept) : ""}`;
}

// All files of a machine have one storage, and in a frame that trusts no file there is none: a report keeps nothing.
const storage = inReport ? {} : localStorage;
const scheme = storage["monkey-scheme"];
if (scheme) document.documentElement.dataset.scheme = scheme;

function App() {
  const [query, setQuery] = useState(readAddress);
  const [live, setLive] = useState({ version: 0 });
  const [project, setProject] = useState(null);
  const [refusal, setRefusal] = useState(null);
  const [ready, setReady] = useState(false);
  const [painted, setPainted] = useState(0);
  useEffect(() => {
    const back = () => setQuery(readAddress());
    addEventListener("popstate", back);
    let restart = null;
    const enter = async () => {
      // A dead link does not lock a page that is open: what its server says does.
      await logIn().catch((error) => restart || setRefusal(error));
      setReady(true);
      if (restart) restart();
      else restart = follow((event) => setLive((before) => ({ ...before, lost: false, refused: false, ...event })));
    };
    enter();
    // The link of a new server, opened in the tab of the one before, changes the fragment alone: nothing is loaded.
    addEventListener("hashchange", () => isLink() && enter());
    // Canvases are drawn in the colours of the scheme that was.
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => setPainted((before) => before + 1));
    return () => removeEventListener("popstate", back);
  }, []);
  useEffect(() => {
    if (!ready || live.refused) return;
    get("sweeps").then(
      (found) => {
        setProject(found);
        setRefusal(null);
        if (inReport && found.sweeps.length === 1 && !location.hash) go({ sweep: found.sweeps[0].name }, { replace: true });
      },
      (error) => error.status === 401 && setRefusal(error),
    );
  }, [ready, live.version, live.refused]);
  const go = useCallback((next, { replace = false } = {}) => {
    const wanted = spell(next);
    if (wanted !== location.pathname + location[PART]) history[replace ? "replaceState" : "pushState"](null, "", wanted);
    setQuery(next);
    if (!replace) scrollTo(0, 0);
  }, []);
  const turn = () => {
    const shown = getComputedStyle(document.documentElement).colorScheme === "dark" || (!document.documentElement.dataset.scheme && matchMedia("(prefers-color-scheme: dark)").matches);
    document.documentElement.dataset.scheme = shown ? "light" : "dark";
    storage["monkey-scheme"] = document.documentElement.dataset.scheme;
    setPainted((before) => before + 1);
  };
  const name = project?.project || "monkey";
  const here = query.job ? `${query.job.slice(0, 8)} · ${query.sweep}` : query.sweep || ({ machines: "machines", edit: query.file || "new sweep" }[query.view] || "sweeps");
  useEffect(() => {
    document.title = visible(`${here} · ${name}`);
  }, [here, name]);
  if (refusal || live.refused) return html`<${Locked} error=${refusal} />`;
  const shared = { query, go, spell, live, project, painted };
  return html`
    <${View.Provider} value=${shared}>
      <${Live.Provider} value=${live}>
        <header class="top">
          <nav aria-label="Views">
            <a class="brand" href=${spell({})} onClick=${(event) => step(event, () => go({}))}>${name}</a>
            <a href=${spell({})} aria-current=${!query.view && !query.sweep ? "page" : undefined} onClick=${(event) => step(event, () => go({}))}>Sweeps</a>
            ${!inReport && html`<a href=${spell({ view: "machines" })} aria-current=${query.view === "machines" ? "page" : undefined} onClick=${(event) => step(event, () => go({ view: "machines" }))}>Machines</a>`}
          </nav>
          <${Pulse} live=${live} project=${project} />
          <button type="button" class="quiet" onClick=${turn} aria-label="Light or dark">◐</button>
        </header>
        <main>${project && html`<${Problems} project=${project} />`} ${ready && page(query, project)}</main>
      <//>
    <//>
  `;
}

/** Follow a link within the page, unless a new tab is wanted. */
function step(event, then) {
  if (event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
  event.preventDefault();
  then();
}

function page(query, project) {
  if (query.view === "machines") return html`<${Machines} />`;
  if (query.view === "edit") return html`<${EditPage} file=${query.file} />`;
  if (query.sweep && query.job) return html`<${JobPage} key=${`${query.sweep} ${query.job}`} sweep=${query.sweep} job=${query.job} />`;
  if (query.sweep) return html`<${SweepPage} key=${query.sweep} sweep=${query.sweep} />`;
  return project ? html`<${Sweeps} project=${project} />` : html`<p class="dim">Reading the store …</p>`;
}

function Pulse({ live, project }) {
  if (inReport) return html`<span class="pulse kept"><span class="words">report${project?.newest ? ` · newest result ${when(1000 * project.newest)}` : ""}</span></span>`;
  const [kind, text] = live.lost
    ? ["lost", "the server does not answer"]
    : live.trouble
      ? ["lost", `the store: ${live.trouble}`]
      : live.version
        ? ["live", project ? `live · ${project.agents} agent${project.agents === 1 ? "" : "s"}` : "live"]
        : ["wait", "connecting"];
  return html`<span class=${`pulse ${kind}`} role="status"><i aria-hidden="true"></i><span class="words">${text}</span></span>`;
}

function Problems({ project }) {
  if (!project.problems.length) return null;
  return html`<details class="problems">
    <summary>${project.problems.length === 1 ? "1 thing needs" : `${project.problems.length} things need`} attention</summary>
    <ul>
      ${project.problems.map((line) => html`<li>${line}</li>`)}
    </ul>
  </details>`;
}

function Locked({ error }) {
  const why = error && error.status !== 401 ? error.message : "";
  return html`<main class="locked">
    <h1>This page needs its link</h1>
    <p>Open the link that <code>monkey web</code> printed last. It holds for one run of the server.</p>
    ${why && html`<p class="dim">${why}</p>`}
  </main>`;
}

render(html`<${App} />`, document.getElementById("app"));
