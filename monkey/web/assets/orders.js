// Orders to a sweep: the same as `monkey pause`, `resume`, `cancel` and `retry`. Behind a proxy there are none.

import { order } from "./api.js";
import { visible } from "./format.js";
import { useState } from "./htm.js";
import { html } from "./markup.js";
import { useView } from "./view.js";

export function Orders({ one }) {
  const { project } = useView();
  const [said, setSaid] = useState("");
  const [busy, setBusy] = useState(false);
  if (!project || project.read_only) return null;
  const give = async (name, body = {}) => {
    setBusy(true);
    try {
      const found = await order(name, { sweep: one.name, ...body });
      setSaid(found.said);
    } catch (error) {
      const asked = error.body?.ask;
      if (asked && confirm(visible(asked))) return give(name, { ...body, agreed: asked });
      setSaid(asked ? "nothing was changed" : [error.message, error.body?.hint].filter(Boolean).join(". "));
    } finally {
      setBusy(false);
    }
    return undefined;
  };
  const cancel = () => {
    const reason = prompt(`Cancel ${one.name}? Running jobs are stopped. The reason, if any:`, "");
    if (reason !== null) give("cancel", { reason });
  };
  const left = one.jobs - (one.counts.succeeded || 0) - (one.counts.failed || 0);
  const active = !one.paused && one.cancelled === null;
  const failed = one.counts.failed || 0;
  return html`<div class="orders" role="group" aria-label="Orders">
    <span class="dim" role="status">${said}</span>
    ${failed > 0 && html`<button type="button" disabled=${busy} onClick=${() => give("retry")}>Retry ${failed.toLocaleString("en")} failed</button>`}
    ${active && left > 0 && html`<button type="button" disabled=${busy} onClick=${() => give("pause")}>Pause …</button>`}
    ${!active && html`<button type="button" disabled=${busy} onClick=${() => give("resume")}>Resume</button>`}
    ${one.cancelled === null && left > 0 && html`<button type="button" class="harm" disabled=${busy} onClick=${cancel}>Cancel …</button>`}
  </div>`;
}
