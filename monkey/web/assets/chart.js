// Curves over steps: uPlot draws axes and zooms; the curves are drawn at once, each from its own points.

import { useEffect, useRef, useState } from "./htm.js";
import { html } from "./markup.js";
import { number } from "./format.js";

const dark = matchMedia("(prefers-color-scheme: dark)");
const HUES = [172, 24, 262, 205, 340, 48, 130, 290, 0, 90];

export function isDark() {
  const chosen = document.documentElement.dataset.scheme;
  return chosen ? chosen === "dark" : dark.matches;
}

/** Colours of `count` curves, the best first: told apart while they are few, else from strong to faint. */
export function colours(count) {
  const light = isDark() ? 66 : 40;
  if (count <= HUES.length) return HUES.slice(0, count).map((hue) => `hsl(${hue} 62% ${light}%)`);
  return Array.from({ length: count }, (_, rank) => {
    const far = rank / (count - 1);
    const hue = 172 + 60 * far;
    return `hsl(${hue} ${62 - 40 * far}% ${light + (isDark() ? -22 : 26) * far}% / ${Math.max(0.25, 0.9 - far)})`;
  });
}

/** A colour of the style sheet, as a canvas takes it: a variable's own text would be a function of the scheme. */
function ink(box, name) {
  box.style.color = `var(${name})`;
  const found = getComputedStyle(box).color;
  box.style.color = "";
  return found;
}

/** The extent of all points that can be drawn; with `log`, of those above zero. */
function extent(curves, log, from = -Infinity, to = Infinity) {
  let [x0, x1, y0, y1] = [Infinity, -Infinity, Infinity, -Infinity];
  for (const { xs, ys } of curves) {
    for (let i = 0; i < xs.length; i++) {
      const x = xs[i];
      const y = ys[i];
      if (y === null || (log && y <= 0) || x < from || x > to) continue;
      if (x < x0) x0 = x;
      if (x > x1) x1 = x;
      if (y < y0) y0 = y;
      if (y > y1) y1 = y;
    }
  }
  if (x0 > x1) return { x: [0, 1], y: log ? [0.1, 1] : [0, 1], empty: true };
  const room = y1 > y0 ? (y1 - y0) * 0.05 : Math.abs(y1) * 0.05 || 0.5;
  return { x: [x0, x1 > x0 ? x1 : x0 + 1], y: log ? [y0 / 1.1, y1 * 1.1] : [y0 - room, y1 + room] };
}

/** Trace a curve; a place without a value is a gap, and a point alone is a dot. */
function trace(context, { xs, ys }, toX, toY) {
  let open = false;
  for (let i = 0; i < xs.length; i++) {
    const y = ys[i] === null ? NaN : toY(ys[i]);
    if (y !== y) {
      open = false;
    } else if (open) {
      context.lineTo(toX(xs[i]), y);
    } else {
      const x = toX(xs[i]);
      context.moveTo(x, y);
      if (i + 1 >= xs.length || ys[i + 1] === null) context.lineTo(x + 1.5, y);
      open = true;
    }
  }
}

function project(plot, log) {
  const { left, top, width, height } = plot.bbox;
  const { min: x0, max: x1 } = plot.scales.x;
  const [y0, y1] = log ? [Math.log(plot.scales.y.min), Math.log(plot.scales.y.max)] : [plot.scales.y.min, plot.scales.y.max];
  const toX = (x) => left + ((x - x0) / (x1 - x0)) * width;
  const toY = (y) => top + height - (((log ? (y > 0 ? Math.log(y) : NaN) : y) - y0) / (y1 - y0)) * height;
  return [toX, toY];
}

function draw(plot, curves, log) {
  const context = plot.ctx;
  const { left, top, width, height } = plot.bbox;
  const [toX, toY] = project(plot, log);
  context.save();
  context.beginPath();
  context.rect(left, top, width, height);
  context.clip();
  context.lineJoin = "round";
  // The best one last, above the others.
  for (let i = curves.length - 1; i >= 0; i--) {
    context.beginPath();
    trace(context, curves[i], toX, toY);
    context.strokeStyle = curves[i].colour;
    context.lineWidth = (curves.length > 50 ? 1 : 1.6) * devicePixelRatio;
    context.stroke();
  }
  context.restore();
}

/** Return the curve, and its point, that are nearest to a place of the pointer; null where none is near. */
function nearest(plot, curves, log, left, top) {
  const [toX, toY] = project(plot, log);
  const x = left * devicePixelRatio + plot.bbox.left;
  const y = top * devicePixelRatio + plot.bbox.top;
  let best = null;
  let least = (28 * devicePixelRatio) ** 2;
  for (const curve of curves) {
    const { xs, ys } = curve;
    const want = plot.posToVal(left, "x");
    let low = 0;
    let high = xs.length - 1;
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (xs[middle] < want) low = middle;
      else high = middle;
    }
    for (const i of [low, high]) {
      if (i < 0 || ys[i] === null) continue;
      const far = (toX(xs[i]) - x) ** 2 + (toY(ys[i]) - y) ** 2;
      if (far < least) [best, least] = [{ curve, i }, far];
    }
  }
  return best;
}

/** A chart of `curves`: {id, label, colour, xs, ys}. */
export function Chart({ curves, height = 260, log = false, onOpen, label, version }) {
  const box = useRef(null);
  const plot = useRef(null);
  const now = useRef({ curves, log });
  const [near, setNear] = useState(null);
  now.current = { curves, log };
  useEffect(() => {
    const made = makePlot(box.current, height, now, setNear);
    plot.current = made;
    const fit = new ResizeObserver(() => made.setSize({ width: Math.max(120, box.current.clientWidth), height }));
    fit.observe(box.current);
    return () => {
      fit.disconnect();
      made.destroy();
      plot.current = null;
    };
  }, [height, log, version]);
  useEffect(() => {
    const found = extent(curves, log);
    plot.current.setData([found.x, found.y], !plot.current.zoomed);
    if (plot.current.zoomed) plot.current.redraw();
    box.current.dataset.drawn = curves.length;
  }, [curves, log, height, version]);
  const place = near && plot.current && project(plot.current, log);
  return html`
    <div class="chart" role="img" aria-label=${label} onClick=${() => near && onOpen && onOpen(near.curve.id)} data-near=${near ? "yes" : undefined}>
      <div ref=${box}></div>
      ${near && place && html`<${Tip} near=${near} x=${place[0](near.curve.xs[near.i]) / devicePixelRatio} y=${place[1](near.curve.ys[near.i]) / devicePixelRatio} width=${box.current.clientWidth} />`}
    </div>
  `;
}

function Tip({ near, x, y, width }) {
  const { curve, i } = near;
  const side = x > width / 2 ? { right: `${width - x + 12}px` } : { left: `${x + 12}px` };
  return html`<div class="dot" style=${{ left: `${x}px`, top: `${y}px`, background: curve.colour }}></div>
    <div class="tip" style=${{ top: `${Math.max(0, y - 14)}px`, ...side }}>
      <b>${number(curve.ys[i])}</b> at ${number(curve.xs[i], 8)}<br /><span>${curve.label}</span>
    </div>`;
}

/** Set the scale of values to those that a zoom shows. */
function fitValues(made, curves, log) {
  if (!made.zoomed) return;
  const [min, max] = extent(curves, log, made.scales.x.min, made.scales.x.max).y;
  made.setScale("y", { min, max });
}

function makePlot(box, height, now, setNear) {
  const { log } = now.current;
  const axis = { stroke: ink(box, "--dim"), grid: { stroke: ink(box, "--line"), width: 1 }, ticks: { show: false }, font: "11px system-ui, sans-serif", gap: 6 };
  const spell = (_, values) => values.map((value) => (value === null ? "" : number(value)));
  const options = {
    width: Math.max(120, box.clientWidth),
    height,
    legend: { show: false },
    cursor: { points: { show: false }, drag: { x: true, y: false }, y: false },
    scales: {
      x: { time: false, range: (_, min, max) => [min, max] },
      y: { distr: log ? 3 : 1, range: () => extent(now.current.curves, log).y },
    },
    axes: [
      { ...axis, grid: { show: false }, values: spell, size: 28, space: 70 },
      { ...axis, values: spell, size: 58, space: 44, ...(log ? { filter: (made, splits) => splits.map((value) => (Number.isInteger(Math.round(1e6 * Math.log10(value)) / 1e6) ? value : null)) } : {}) },
    ],
    series: [{}, { paths: () => null, points: { show: false } }],
    hooks: {
      draw: [(made) => draw(made, now.current.curves, log)],
      // While its range is asked for, the scale of x is still the one before: so what a zoom shows is set after it.
      setScale: [(made, name) => name === "x" && made.zoomed && queueMicrotask(() => fitValues(made, now.current.curves, log))],
      setSelect: [(made) => (made.zoomed ||= made.select.width > 0)],
      ready: [(made) => made.over.addEventListener("dblclick", () => (made.zoomed = false))],
      setCursor: [(made) => setNear(made.cursor.left >= 0 ? nearest(made, now.current.curves, log, made.cursor.left, made.cursor.top) : null)],
    },
  };
  const first = extent(now.current.curves, log);
  return new window.uPlot(options, [first.x, first.y], box);
}
