// Asking the server: the token of the link becomes a cookie and a key; then JSON, and a stream of version numbers.
// In a report, what was kept answers in its place.

import { findAnswer, inReport } from "./report.js";

const KEY = "monkey-key";
let key = inReport ? "" : localStorage.getItem(KEY) || "";

export class Refused extends Error {
  constructor(status, body) {
    super(body.error || `the server answered ${status}`);
    this.status = status;
    this.body = body;
  }
}

async function answer(response) {
  const body = await response.json().catch(() => ({}));
  if (!response.ok) throw new Refused(response.status, body);
  return body;
}

const readToken = () => (inReport ? null : new URLSearchParams(location.hash.slice(1)).get("token"));

/** Does the address have a token? */
export const isLink = () => Boolean(readToken());

/** Exchange the token of the fragment, and take it out of the address. */
export async function logIn() {
  const token = readToken();
  if (!token) return;
  history.replaceState(null, "", location.pathname + location.search);
  const found = await post("login", { token });
  key = found.key;
  localStorage.setItem(KEY, key);
}

export async function post(path, body) {
  const headers = { "Content-Type": "application/json", "X-Monkey-Key": key };
  return answer(await fetch(`api/${path}`, { method: "POST", headers, body: JSON.stringify(body) }));
}

export async function get(path, signal) {
  if (inReport) return (await findAnswer(path)) ?? missing();
  return answer(await fetch(`api/${path}`, { headers: { "X-Monkey-Key": key }, signal }));
}

function missing() {
  throw new Refused(404, { error: "this report does not have that", hint: "`monkey web` shows the whole project, live" });
}

export async function order(name, body) {
  return post(`orders/${name}`, body);
}

export const part = encodeURIComponent;

/** Call `told` with each event while the page is seen; a page that nobody sees asks for nothing. Returns what begins anew. */
export function follow(told) {
  if (inReport) return told({ version: 1 });
  let stop = new AbortController();
  const run = async () => {
    if (document.hidden) return;
    const mine = (stop = new AbortController());
    let pause = 500;
    while (!mine.signal.aborted) {
      try {
        for await (const event of events(mine.signal)) {
          pause = 500;
          told(event);
        }
      } catch (error) {
        if (mine.signal.aborted) return;
        told({ lost: true, refused: error.status === 401 });
        if (error.status === 401) return;
      }
      await new Promise((resolve) => setTimeout(resolve, pause));
      pause = Math.min(2 * pause, 8000);
    }
  };
  const restart = () => {
    stop.abort();
    run();
  };
  document.addEventListener("visibilitychange", restart);
  run();
  return restart;
}

async function* events(signal) {
  const response = await fetch("api/events", { headers: { "X-Monkey-Key": key }, signal });
  if (!response.ok) throw new Refused(response.status, {});
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) throw new Error("the stream ended");
    const parts = (rest + value).split("\n\n");
    rest = parts.pop();
    for (const each of parts) yield JSON.parse(each.slice("data: ".length));
  }
}
