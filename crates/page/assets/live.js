/** The state of the daemon, kept up to date by one stream. */

import { useEffect, useState } from "./vendor/hooks.js";
import { ApiError, listenForClosed, send } from "./api.js";

/** Without a line for this time, the stream counts as lost: the daemon sends one every 15 s. */
const SILENCE_MS = 40_000;
/** A stream that is back within this time was never away: no banner appears for a moment. */
const GRACE_MS = 1_500;
const WAIT_MS_MIN = 100;
const WAIT_MS_MAX = 5_000;
/** A longer line is no message of the daemon. */
const LINE_CHARS_MAX = 64 << 20;

const COLLECTIONS = /** @type {const} */ (["daemon", "servers", "clients", "running", "attention", "minutes", "totals"]);

/** @returns {any} */
const empty = () => Object.fromEntries(COLLECTIONS.map((name) => [name, new Map()]));

/**
 * `link`: `open` while the stream lives, `away` when it does not, `closed` when the session has ended.
 * @type {{state: State, known: boolean, link: "starting"|"open"|"away"|"closed", heardAt: number,
 *   closed: ApiError|null, told: string|null}}
 */
export let live = { state: empty(), known: false, link: "starting", heardAt: 0, closed: null, told: null };

/** @type {Set<() => void>} */
const listeners = new Set();

/** @param {Partial<typeof live>} change */
function set(change) {
  live = { ...live, ...change };
  for (const listener of listeners) listener();
}

/** Draws the component again when the part of the state changes. @template T @param {(it: typeof live) => T} select @returns {T} */
export function useLive(select) {
  const [value, setValue] = useState(() => select(live));
  useEffect(() => {
    const listen = () => setValue(() => select(live));
    listen();
    listeners.add(listen);
    return () => void listeners.delete(listen);
  }, []);
  return value;
}

/** @param {{[collection: string]: {[key: string]: any}}} sent */
function takeSnapshot(sent) {
  const state = empty();
  for (const name of COLLECTIONS) state[name] = new Map(Object.entries(sent[name] ?? {}));
  set({ state, known: true, link: "open", told: null });
}

/** @param {{at: [string, string], value: any}[]} changes */
function takeChanges(changes) {
  /** @type {any} */
  const state = { ...live.state };
  const copied = new Set();
  for (const { at: [collection, key], value } of changes) {
    if (!(state[collection] instanceof Map)) continue;
    if (!copied.has(collection)) state[collection] = new Map(state[collection]);
    copied.add(collection);
    if (value === null) state[collection].delete(key);
    else state[collection].set(key, value);
  }
  set({ state });
}

let number = 0;

/** Takes one line; returns false if the stream must be opened again. @param {string} line */
function takeLine(line) {
  const message = JSON.parse(line);
  live.heardAt = Date.now();
  switch (message.type) {
    case "snapshot":
      number = message.n;
      takeSnapshot(message.state);
      return true;
    case "change":
      if (message.n !== number + 1) return false;
      number = message.n;
      takeChanges(message.changes);
      return true;
    case "end":
      set({ told: String(message.message ?? "") || null });
      return false;
    default:
      return true;
  }
}

/** Reads one stream to its end. @param {AbortController} stop @param {() => void} heard */
async function readStream(stop, heard) {
  const response = await send("GET", "/live", undefined, stop.signal);
  const reader = /** @type {ReadableStream<Uint8Array<ArrayBuffer>>} */ (response.body).pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    heard();
    const lines = (rest + value).split("\n");
    rest = lines.pop() ?? "";
    if (rest.length > LINE_CHARS_MAX) return;
    for (const line of lines) if (line && !takeLine(line)) return;
  }
}

/** Ends the current pause. @type {() => void} */
let wake = () => {};
document.addEventListener("visibilitychange", () => wake());
addEventListener("online", () => wake());

/** @type {ReturnType<typeof setTimeout>|undefined} */
let toAway;

/** Says after a while that the daemon is away, unless a line arrives before. */
function doubt() {
  toAway ??= setTimeout(() => { if (live.link !== "closed") set({ link: "away" }); }, GRACE_MS);
}

let isFollowing = false;
/** Keeps a stream open until the session ends. */
export async function follow() {
  if (live.closed) set({ link: "starting", closed: null });
  if (isFollowing) return wake();
  isFollowing = true;
  let stop = new AbortController();
  listenForClosed((error) => {
    clearTimeout(toAway);
    set({ link: "closed", closed: error });
    stop.abort();
  });
  let wait = WAIT_MS_MIN;
  while (live.link !== "closed") {
    stop = new AbortController();
    const { signal, abort } = { signal: stop.signal, abort: () => stop.abort() };
    let silence = setTimeout(abort, SILENCE_MS);
    doubt();
    await readStream(stop, () => {
      clearTimeout(silence);
      clearTimeout(toAway);
      toAway = undefined;
      silence = setTimeout(abort, SILENCE_MS);
      wait = WAIT_MS_MIN;
    }).catch((error) => {
      if (!signal.aborted && !(error instanceof ApiError)) console.warn(error);
    });
    clearTimeout(silence);
    abort();
    if (live.heardAt) doubt();
    await new Promise((resolve) => {
      wake = () => resolve(undefined);
      setTimeout(wake, wait);
    });
    wait = Math.min(wait * 2, WAIT_MS_MAX);
  }
  isFollowing = false;
}
