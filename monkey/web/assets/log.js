// A job's log: its end, followed while it grows.

import { get } from "./api.js";
import { plain } from "./format.js";
import { useEffect, useLayoutEffect, useRef, useState } from "./htm.js";
import { html } from "./markup.js";
import { inReport } from "./report.js";
import { useLive, useView } from "./view.js";

const MOST = 1 << 20;

export function Log({ one, place }) {
  const { version } = useLive();
  const { query, go } = useView();
  const attempt = Number(query.attempt) || 0;
  const [shown, setShown] = useState({ text: "", start: 0, next: 0, growing: true, read: false });
  const [follow, setFollow] = useState(true);
  const box = useRef(null);
  const state = useRef({ next: 0, start: 0, text: "", busy: false, of: "" });
  const running = ["running", "frozen"].includes(one.state);
  const of = `${place} ${attempt}`;
  useEffect(() => {
    const mine = state.current;
    if (mine.of !== of) Object.assign(mine, { next: 0, start: 0, text: "", busy: false, over: false, of });
    if (mine.busy || mine.over) return;
    mine.busy = true;
    get(`log/${place}?attempt=${attempt}&at=${mine.next}`)
      .then((part) => {
        if (state.current.of !== of) return;
        const joined = part.start === mine.next ? mine.text + part.text : part.text;
        if (part.start !== mine.next || !mine.next) mine.start = part.start;
        mine.text = joined.slice(-MOST);
        mine.next = part.next;
        mine.over = !part.growing && (attempt > 0 || !["running", "frozen", "queued"].includes(one.state));
        setShown({ text: mine.text, start: mine.start, growing: part.growing, read: true });
      })
      .catch(() => {})
      .finally(() => (mine.busy = false));
  }, [of, version, one.state]);
  useLayoutEffect(() => {
    if (follow && box.current) box.current.scrollTop = box.current.scrollHeight;
  }, [shown.text, follow]);
  const scrolled = () => {
    const { scrollTop, scrollHeight, clientHeight } = box.current;
    setFollow(scrollHeight - scrollTop - clientHeight < 30);
  };
  if (inReport && !one.log_tail.length) return null;
  return html`<section class="card" aria-labelledby="log">
    <div class="line tools">
      <h2 id="log">Log</h2>
      ${attempt > 0 && html`<span>of attempt ${attempt} <button type="button" class="quiet" onClick=${() => go({ ...query, attempt: "" }, { replace: true })}>the newest</button></span>`}
      <span class="room"></span>
      ${running && html`<label class="check"><input type="checkbox" checked=${follow} onChange=${() => setFollow(!follow)} /> follow</label>`}
    </div>
    ${shown.start > 0 && html`<p class="dim">Its end; <code>monkey logs ${one.job}</code> has what comes before.</p>`}
    <pre class="log" ref=${box} tabindex="0" aria-label="Log" onScroll=${scrolled}>${plain(shown.text) || (shown.read ? "(nothing yet)" : "…")}</pre>
  </section>`;
}
