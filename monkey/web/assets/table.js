// A table of any number of rows, of which only those in sight are in the document.

import { useCallback, useEffect, useLayoutEffect, useRef, useState } from "./htm.js";
import { html } from "./markup.js";

const ROW = 30;
const SPARE = 12;

/**
 * `columns`: {key, title, width, right, cell(at)}; `places`: the rows to show, by their places; `open(at)` is Enter.
 */
export function Table({ columns, places, sort, onSort, open, selected, onSelect, label, tick, link }) {
  const box = useRef(null);
  const [top, setTop] = useState(0);
  const [height, setHeight] = useState(600);
  const [current, setCurrent] = useState(-1);
  useLayoutEffect(() => {
    const watch = new ResizeObserver(() => setHeight(box.current.clientHeight));
    watch.observe(box.current);
    return () => watch.disconnect();
  }, []);
  useEffect(() => setCurrent((at) => Math.min(at, places.length - 1)), [places.length]);
  const first = Math.max(0, Math.min(Math.floor(top / ROW), places.length - 1) - SPARE);
  const last = Math.min(places.length, Math.ceil((top + height) / ROW) + SPARE);
  const move = useCallback(
    (to) => {
      const at = Math.max(0, Math.min(places.length - 1, to));
      setCurrent(at);
      const view = box.current;
      const head = ROW;
      if (at * ROW < view.scrollTop) view.scrollTop = at * ROW;
      else if ((at + 1) * ROW + head > view.scrollTop + view.clientHeight) view.scrollTop = (at + 1) * ROW + head - view.clientHeight;
    },
    [places.length],
  );
  const press = (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.tagName === "BUTTON") return;
    const page = Math.max(1, Math.floor(height / ROW) - 2);
    const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -Infinity, End: Infinity, j: 1, k: -1 };
    if (event.key in steps) move(steps[event.key] === -Infinity ? 0 : steps[event.key] === Infinity ? places.length - 1 : current + steps[event.key]);
    else if (event.key === "Enter" && current >= 0) open(places[current]);
    else if (event.key === " " && current >= 0 && onSelect) onSelect(places[current]);
    else return;
    event.preventDefault();
  };
  const width = columns.reduce((sum, one) => sum + one.width, 0);
  const rows = [];
  for (let i = first; i < last; i++) rows.push(i);
  return html`
    <div class="table" ref=${box} tabindex="0" role="region" aria-label=${label} onKeyDown=${press} onScroll=${() => setTop(box.current.scrollTop)}>
      <table aria-rowcount=${places.length + 1} style=${{ minWidth: `${width}px` }} data-tick=${tick}>
        <colgroup>${columns.map((one) => html`<col key=${one.key} style=${{ width: `${one.width}px` }} />`)}</colgroup>
        <thead>
          <tr>
            ${columns.map((one) => html`<${Head} key=${one.key} one=${one} sort=${sort} onSort=${onSort} />`)}
          </tr>
        </thead>
        <tbody>
          <tr class="gap" aria-hidden="true"><td colspan=${columns.length} style=${{ height: `${first * ROW}px` }}></td></tr>
          ${rows.map((i) => {
            const at = places[i];
            const kind = `${i === current ? "current" : ""} ${selected?.has(at) ? "selected" : ""}`;
            return html`<tr key=${at} class=${kind} aria-rowindex=${i + 2} aria-selected=${selected ? selected.has(at) : undefined}
              onClick=${(event) => (event.target.closest("a, input") ? setCurrent(i) : (setCurrent(i), event.shiftKey && onSelect ? onSelect(at) : open(at)))}>
              ${columns.map((one) => html`<td key=${one.key} class=${one.right ? "right" : ""}>${one.cell(at)}</td>`)}
            </tr>`;
          })}
          <tr class="gap" aria-hidden="true"><td colspan=${columns.length} style=${{ height: `${(places.length - last) * ROW}px` }}></td></tr>
        </tbody>
      </table>
    </div>
  `;
}

function Head({ one, sort, onSort }) {
  if (!one.sortable) return html`<th scope="col">${one.title || html`<span class="unseen">${one.name || one.key}</span>`}</th>`;
  const up = sort === one.key;
  const down = sort === `-${one.key}`;
  const next = up ? `-${one.key}` : down ? one.key : one.largest ? `-${one.key}` : one.key;
  return html`<th scope="col" class=${one.right ? "right" : ""} aria-sort=${up ? "ascending" : down ? "descending" : "none"}>
    <button type="button" title=${one.title} onClick=${() => onSort(next)}>${one.title}<span class="arrow" aria-hidden="true">${up ? "↑" : down ? "↓" : ""}</span></button>
  </th>`;
}
