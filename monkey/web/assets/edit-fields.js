// The fields of a spec: each change of one becomes a change of the text.

import { useEffect, useRef, useState } from "./htm.js";
import { html } from "./markup.js";

const FORMS = { values: "these values", range: "whole numbers", between: "between", value: "one value", other: "as in the text" };
const DISTRIBUTIONS = ["", "uniform", "log_uniform_values", "int_uniform"];

/** An input that changes nothing until it is left, or Enter is pressed. */
function Box({ value, set, ...rest }) {
  const [typed, setTyped] = useState(value);
  const sent = useRef(value);
  useEffect(() => {
    setTyped(value);
    sent.current = value;
  }, [value]);
  const leave = () => {
    // Once: Enter, and the blur that follows, are one change.
    if (typed === value || typed === sent.current) return;
    sent.current = typed;
    set(typed);
  };
  return html`<input ...${rest} value=${typed} spellcheck=${false} onInput=${(event) => setTyped(event.target.value)} onBlur=${leave} onKeyDown=${(event) => event.key === "Enter" && leave()} />`;
}

export function Fields({ fields, edit }) {
  return fields.map((field) => html`<${Field} key=${field.path.join(".")} field=${field} edit=${edit} />`);
}

function Field({ field, edit }) {
  const { path, label, kind, value, options, hint } = field;
  const set = (next) => edit(next.trim() === "" ? { path } : kind === "text" || kind === "choice" ? { path, text: next } : { path, yaml: next });
  return html`<label class="field">
    <span>${label}</span>
    ${kind === "choice" ? html`<select value=${value} onChange=${(event) => set(event.target.value)}><option value="">default</option>${options.map((one) => html`<option key=${one} value=${one}>${one}</option>`)}</select>` : html`<${Box} value=${value} set=${set} placeholder=${hint} />`}
  </label>`;
}

export function Parameters({ parameters, edit }) {
  const [name, setName] = useState("");
  const [values, setValues] = useState("");
  const add = (event) => {
    event.preventDefault();
    if (!name.trim() || !values.trim()) return;
    edit({ path: ["parameters", name.trim()], yaml: `[${values}]` });
    setName("");
    setValues("");
  };
  return html`<fieldset>
    <legend>Parameters</legend>
    ${parameters.map((one) => html`<${Parameter} key=${one.name} one=${one} edit=${edit} />`)}
    <form class="parameter" onSubmit=${add}>
      <input aria-label="Name of a new parameter" placeholder="name" value=${name} spellcheck=${false} onInput=${(event) => setName(event.target.value)} />
      <input class="wide" aria-label="Values of the new parameter" placeholder="values: 0.1, 0.01" value=${values} spellcheck=${false} onInput=${(event) => setValues(event.target.value)} />
      <button type="submit">Add</button>
    </form>
  </fieldset>`;
}

/** What a parameter becomes when its form is changed: near to what it was. */
function convert(one, form) {
  const parts = one.form === "between" ? [one.min, one.max] : one.text.split(",").map((each) => each.trim());
  const [first, last] = [parts[0] || "0", parts.at(-1) || "1"];
  if (form === "values") return `[${parts.join(", ")}]`;
  if (form === "value") return first;
  if (form === "range") return `{range: [${/^-?\d+$/.test(first) ? first : 0}, ${/^-?\d+$/.test(last) && last !== first ? last : 3}]}`;
  return `{min: ${first}, max: ${last === first ? `${first}1` : last}}`;
}

function Parameter({ one, edit }) {
  const path = ["parameters", one.name];
  const of = (label) => `${label} of ${one.name}`;
  const inner = one.part ? [...path, one.part] : path;
  const text = (next) => edit({ path: inner, yaml: one.form === "values" || one.form === "range" ? `[${next}]` : next });
  const bound = (key) => (next) => edit(next ? { path: [...path, key], yaml: next } : { path: [...path, key] });
  const held = one.form === "other" || one.more !== "";
  return html`<div class="parameter" role="group" aria-label=${one.name}>
    <${Box} aria-label=${of("Name")} value=${one.name} set=${(name) => edit({ path, name: name.trim() })} />
    <select aria-label=${of("Form")} value=${one.form} disabled=${held} onChange=${(event) => edit({ path, yaml: convert(one, event.target.value) })}>
      ${Object.entries(FORMS).map(([form, words]) => (form !== "other" || one.form === "other") && html`<option key=${form} value=${form}>${words}</option>`)}
    </select>
    ${one.form === "other" && html`<code class="wide">${one.text}</code>`}
    ${one.form === "between" &&
    html`<${Box} class="short" aria-label=${of("Minimum")} value=${one.min} set=${bound("min")} />
      <${Box} class="short" aria-label=${of("Maximum")} value=${one.max} set=${bound("max")} />
      <select aria-label=${of("Distribution")} value=${one.distribution} onChange=${(event) => bound("distribution")(event.target.value)}>
        ${[...new Set([...DISTRIBUTIONS, one.distribution])].map((each) => html`<option key=${each} value=${each}>${each || "any"}</option>`)}
      </select>`}
    ${["values", "range", "value"].includes(one.form) && html`<${Box} class="wide" aria-label=${of(one.form === "range" ? "First, end and step" : "Values")} value=${one.text} set=${text} />`}
    <button type="button" class="quiet" aria-label=${`Remove ${one.name}`} onClick=${() => edit({ path })}>✕</button>
    ${one.more && html`<span class="dim more">${one.more}</span>`}
  </div>`;
}
