// The plan of a spec, as `monkey plan` prints it, and the apply of it, as it goes.

import { get } from "./api.js";
import { useEffect, useState } from "./htm.js";
import { html } from "./markup.js";
import { Link, Trouble } from "./view.js";

const KINDS = { "+": "succeeded", "~": "paused", "?": "paused", "=": "queued", "-": "failed", "!": "failed", $: "paused", "*": "running", "↑": "running", "@": "running" };
/** Milliseconds between two looks at a running apply. */
const EVERY = 400;

export function Plan({ plan, fits }) {
  return html`<section class="card plan" aria-labelledby="plan">
    <h2 id="plan">Plan</h2>
    ${plan.parts.map(
      (part) => html`<h3>${part.title}</h3>
        <ul>
          ${part.lines.map((line) => html`<li class=${line.detail ? "dim detail" : ""}>${!line.detail && html`<span class=${`sign state ${KINDS[line.mark] || ""}`}>${line.mark}</span>`}<span>${line.text}</span></li>`)}
        </ul>`,
    )}
    <p><b>${plan.verdict}</b></p>
    <p class="dim">Digest <code>${plan.digest}</code>: an apply does exactly this, or nothing.${fits ? "" : " The text was changed since."}</p>
  </section>`;
}

export function Apply({ id, file, ended }) {
  const [said, setSaid] = useState("");
  const [code, setCode] = useState(null);
  const [error, setError] = useState(null);
  const [sweep, setSweep] = useState("");
  useEffect(() => {
    let [here, at, all] = [true, 0, ""];
    const look = async () => {
      try {
        const found = await get(`applies/${id}?at=${at}`);
        if (!here) return;
        [at, all] = [found.next, all + found.text];
        setSaid(all);
        setError(null);
        if (found.code !== null) {
          setCode(found.code);
          const { files } = await get("specs");
          setSweep(found.code === 0 ? files.find((one) => one.file === file)?.name || "" : "");
          ended(found.code);
          return;
        }
      } catch (failure) {
        setError(failure);
        if (failure.status) return;
      }
      if (here) setTimeout(look, EVERY);
    };
    look();
    return () => (here = false);
  }, []);
  const words = code === null ? "running: it goes on if you close this page" : code === 0 ? "applied" : code === 3 ? "nothing was applied: the plan is another one by now" : `ended with exit code ${code}`;
  return html`<section class="card" aria-labelledby="apply">
    <div class="line"><h2 id="apply">Apply</h2><span class="dim" role="status">${words}</span>${sweep && html`<${Link} to=${{ sweep }}>to the sweep ${sweep}<//>`}</div>
    <pre class="log" tabindex="0" aria-label="What the apply says">${said || "…"}</pre>
    <${Trouble} error=${error} />
  </section>`;
}
