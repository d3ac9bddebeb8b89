// The form that edits a spec, or makes one: fields beside the text, which is the truth; then its plan, and the apply of that.

import { get, part, post } from "./api.js";
import { Apply, Plan } from "./edit-plan.js";
import { Fields, Parameters } from "./edit-fields.js";
import { useEffect, useRef, useState } from "./htm.js";
import { html } from "./markup.js";
import { Link, Trouble, useView } from "./view.js";

const FRESH = `name: NAME
command: python3 train.py --lr {lr} --seed {seed}
parameters:
  lr: [0.01, 0.1]
  seed: {range: [0, 3]}
metric: {name: loss, goal: minimize}
`;
/** Texts that were left without being saved, by file ("" for a new one): a look at another view loses none. */
const drafts = new Map();
addEventListener("beforeunload", (event) => drafts.size && event.preventDefault());
/** Milliseconds without a key before the text is checked. */
const PAUSE = 350;

/** The file of a sweep, if the form can edit it: one of specs/. */
export function editableFile(source) {
  return /^specs\/([A-Za-z0-9][A-Za-z0-9._-]*\.ya?ml)$/.exec(source || "")?.[1];
}

export function EditPage({ file }) {
  const { project, go } = useView();
  const [specs, setSpecs] = useState(null);
  const [error, setError] = useState(null);
  // A new file keeps its editor, with the plan that it shows, once it is saved.
  const [made, setMade] = useState({ file: "", turn: 0 });
  useEffect(() => {
    get("specs").then(setSpecs, setError);
    if ((file || "") !== made.file) setMade({ file: "", turn: made.turn + 1 });
  }, [file]);
  const own = (file || "") === made.file;
  if (project?.read_only) return html`<p>Behind a proxy this page only shows: edit specs by an editor.</p>`;
  return html`
    <nav class="crumbs" aria-label="Place"><${Link} to=${{}}>Sweeps<//> <span aria-hidden="true">/</span> ${file ? `specs/${file}` : "new sweep"}</nav>
    <${Trouble} error=${error} />
    ${specs && html`<div class="line tools">
      <h1>${file ? `specs/${file}` : "New sweep"}</h1>
      <span class="room"></span>
      <label>Open <select value=${file || ""} onChange=${(event) => go({ view: "edit", file: event.target.value })}>
        <option value="">a new file</option>
        ${specs.files.map((one) => html`<option key=${one.file} value=${one.file}>specs/${one.file}</option>`)}
      </select></label>
    </div>`}
    ${specs && (own
      ? html`<${Editor} key=${made.turn} file=${file} start=${{ text: FRESH.replace("NAME", freeName(specs.files)), base: "" }} run=${specs.run} make=${(name) => {
          setMade({ file: name, turn: made.turn });
          go({ view: "edit", file: name }, { replace: true });
        }} />`
      : file && html`<${Opened} key=${file} file=${file} run=${specs.run} />`)}
  `;
}

function freeName(files) {
  const taken = new Set(files.flatMap((one) => [one.name, one.file.replace(/\.ya?ml$/, "")]));
  let at = 1;
  while (taken.has(`sweep-${at}`)) at += 1;
  return `sweep-${at}`;
}

function Opened({ file, run }) {
  const [found, setFound] = useState(null);
  const [error, setError] = useState(null);
  useEffect(() => {
    get(`specs/${part(file)}`).then(setFound, setError);
  }, []);
  if (!found) return html`<${Trouble} error=${error} />${!error && html`<p class="dim">Reading the file …</p>`}`;
  return html`<${Editor} file=${file} start=${found} run=${run} />`;
}

/** The file that a new text is saved to: named as its sweep, unless the user names it. */
function fileOf(form, named) {
  const name = form?.fields.find((each) => each.path.length === 1 && each.path[0] === "name")?.value || "";
  return named ?? (/^[A-Za-z0-9][A-Za-z0-9._-]*$/.test(name) ? `${name}.yaml` : "");
}

function Editor({ file, start, run, make }) {
  const left = drafts.get(file || "");
  const [text, setText] = useState(left?.text ?? start.text);
  const [state, setState] = useState({ form: start.form || null, problems: start.problems || [], of: start.form ? start.text : null });
  const [base, setBase] = useState(left?.base ?? start.base);
  const [saved, setSaved] = useState(left ? left.saved : start.base ? start.text : null);
  const [named, setNamed] = useState(null);
  const [plan, setPlan] = useState(null);
  const [error, setError] = useState(null);
  const [conflict, setConflict] = useState(null);
  const [busy, setBusy] = useState("");
  const [apply, setApply] = useState(run && run.file === file ? { id: run.id, runs: true } : null);
  // A field has been typed in, and its text is not in the spec's yet.
  const [typing, setTyping] = useState(false);
  const box = useRef(null);
  const now = useRef({});
  now.current = { text, base, saved, file: file || "", named, changed: text !== (saved ?? start.text) };
  const to = file || fileOf(state.form, named);
  const addressOf = (name) => `specs/${part(name || "new.yaml")}`;
  const address = addressOf(to);

  const take = (answer) => setState({ form: answer.form, problems: answer.problems, of: answer.text });
  const change = (next) => {
    setText(next);
    setError(null);
  };
  useEffect(() => {
    if (text === state.of) return undefined;
    const wait = setTimeout(async () => {
      try {
        const answer = await post(`${address}/form`, { text });
        if (now.current.text === text) take(answer);
      } catch (failure) {
        setState((before) => ({ ...before, problems: failure.body?.problems?.length ? failure.body.problems : [{ message: failure.message, hint: failure.body?.hint }], of: text }));
      }
    }, PAUSE);
    return () => clearTimeout(wait);
  }, [text, address]);
  useEffect(() => {
    drafts.delete(file || "");
    const leave = (event) => now.current.changed && event.preventDefault();
    addEventListener("beforeunload", leave);
    return () => {
      removeEventListener("beforeunload", leave);
      const { changed, file: name, ...draft } = now.current;
      if (changed) drafts.set(name, draft);
      else drafts.delete(name);
    };
  }, []);

  /** Change a field: the server changes the text, and leaves the rest of it as it is. One after the other: none is lost. */
  const queue = useRef(Promise.resolve(null));
  const edit = (changed) => {
    queue.current = queue.current.then(async () => {
      const before = now.current.text;
      try {
        const answer = await post(`${address}/form`, { text: before, edit: changed });
        if (now.current.text !== before) throw new Error("the text was changed meanwhile: change the field again");
        now.current.text = answer.text;
        setText(answer.text);
        take(answer);
        setError(null);
        return null;
      } catch (failure) {
        setError(failure);
        return failure;
      } finally {
        setTyping(false);
      }
    });
  };
  const attempt = (what, work) => async () => {
    setBusy(what);
    setError(null);
    try {
      // A click that leaves a field changes it first. A value that was refused stands in no text: nothing is done of that.
      const refused = await queue.current;
      queue.current = Promise.resolve(null);
      if (refused) setError(refused);
      else await work(now.current.text, await findFile(now.current.text));
    } catch (failure) {
      if (failure.body?.found) setConflict(failure.body.found);
      if (failure.body?.problems?.length) setState((before) => ({ ...before, problems: failure.body.problems, of: now.current.text }));
      setError(failure);
    } finally {
      setBusy("");
      setTyping(false);
    }
  };
  /** The file of a text; a name that was typed just before the click counts. */
  const findFile = async (of) => {
    const found = file || fileOf(of === state.of ? state.form : (await post(`${address}/form`, { text: of })).form, now.current.named);
    if (!found) throw new Error("expected a name of letters, digits, dots, hyphens and underscores: name the sweep, or the file");
    return found;
  };
  const makePlan = async (of, name) => {
    setPlan(null);
    setPlan({ ...(await post(`${addressOf(name)}/plan`, { text: of })), text: of, file: name });
  };
  const save = async (of, name) => {
    const answer = await post(`${addressOf(name)}/save`, { text: of, base });
    setBase(answer.base);
    setSaved(of);
    setConflict(null);
    if (!file) make(name);
  };
  const startApply = async (of, name) => {
    if (of !== plan.text || name !== plan.file) throw new Error("the plan is of another text: plan again");
    if (of !== saved) await save(of, name);
    const started = await post(`${addressOf(name)}/apply`, { digest: plan.digest });
    setApply({ id: started.id, runs: true });
  };
  const ended = (code) => {
    setApply((before) => ({ ...before, runs: false }));
    // What was applied is no plan any more; what the world moved under is another one: that is shown.
    if (code === 3) attempt("plan", makePlan)();
    else setPlan(null);
  };
  const jump = (problem) => {
    const before = text.split("\n").slice(0, problem.line - 1).reduce((sum, line) => sum + line.length + 1, 0);
    box.current.focus();
    box.current.setSelectionRange(before + problem.column - 1, before + problem.column - 1);
    box.current.scrollTop = Math.max(0, (problem.line - 4) * 19);
  };
  const fits = plan && plan.text === text && plan.file === to;
  const wrong = state.problems.length > 0;
  // What was not checked yet, the server checks at the click.
  const refused = state.of === text && !typing && (wrong || !to);
  return html`
    <div class="pair editor">
      <section class="card" aria-labelledby="fields" onInput=${() => setTyping(true)}>
        <h2 id="fields">Fields</h2>
        ${!file && html`<label class="field"><span>File in specs/</span><input value=${to} onChange=${(event) => setNamed((now.current.named = event.target.value.trim()))} spellcheck=${false} /></label>`}
        ${state.form ? html`<${Fields} fields=${state.form.fields.slice(0, 2)} edit=${edit} />
              <${Parameters} parameters=${state.form.parameters} edit=${edit} />
              <fieldset><legend>How jobs run</legend><${Fields} fields=${state.form.fields.slice(2)} edit=${edit} /></fieldset>` : html`<p class="dim">${state.of === null ? "Reading the text …" : "The text is no YAML that fields can show: correct it first."}</p>`}
      </section>
      <div>
        <section class="card" aria-labelledby="text">
          <div class="line"><h2 id="text">Text</h2><span class="room"></span><span class="dim" role="status">${text === saved ? "saved" : saved === null ? "a new file" : "not saved"}</span></div>
          <textarea ref=${box} class="mono" aria-labelledby="text" aria-describedby="problems" aria-invalid=${wrong} spellcheck=${false} rows=${Math.min(40, Math.max(16, text.split("\n").length + 1))} value=${text} onInput=${(event) => change(event.target.value)}></textarea>
          <ul id="problems" class="mistakes" aria-label="What is wrong" aria-live="polite">
            ${state.problems.map((one) => html`<li>${one.line ? html`<button type="button" class="link" onClick=${() => jump(one)}>${one.file}:${one.line}:${one.column}</button> ` : ""}${one.message}${one.hint ? html`<br /><span class="dim">${one.hint}</span>` : ""}</li>`)}
          </ul>
          <div class="orders" role="group" aria-label="Plan, save, apply">
            <button type="button" disabled=${busy || refused} onClick=${attempt("plan", makePlan)}>Plan</button>
            <button type="button" disabled=${busy || refused || (text === saved && !typing)} onClick=${attempt("save", save)}>Save</button>
            <button type="button" class="main" disabled=${busy || !fits || !plan.changes || apply?.runs} onClick=${attempt("apply", startApply)}>${text === saved ? "Apply this plan" : "Save and apply this plan"}</button>
            <span class="dim" role="status">${busy === "plan" ? "planning …" : busy === "save" ? "saving …" : plan && !fits ? "the plan is of another text: plan again" : ""}</span>
          </div>
          <${Trouble} error=${error} />
        </section>
        ${plan && html`<${Plan} plan=${plan} fits=${fits} />`}
        ${apply && html`<${Apply} key=${apply.id} id=${apply.id} file=${to} ended=${ended} />`}
      </div>
    </div>
    ${conflict && html`<${Conflict} mine=${text} found=${conflict} takeTheirs=${() => {
      change(conflict.text);
      setSaved(conflict.text);
      setBase(conflict.base);
      setConflict(null);
    }} keepMine=${() => {
      setBase(conflict.base);
      setSaved(conflict.text);
      setConflict(null);
      setError(null);
    }} />`}
  `;
}

/** Both texts, where the file was changed since it was opened. */
function Conflict({ mine, found, takeTheirs, keepMine }) {
  return html`<section class="card conflict" aria-labelledby="conflict">
    <h2 id="conflict">The file was changed meanwhile</h2>
    <div class="pair">
      <figure><figcaption>In the file now</figcaption><pre tabindex="0" aria-label="Text of the file">${found.base ? found.text : "(the file was removed)"}</pre></figure>
      <figure><figcaption>Yours</figcaption><pre tabindex="0" aria-label="Your text">${mine}</pre></figure>
    </div>
    <div class="orders"><button type="button" onClick=${takeTheirs}>Take the file's text</button><button type="button" onClick=${keepMine}>Keep mine</button></div>
  </section>`;
}
