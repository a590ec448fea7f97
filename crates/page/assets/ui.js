/** The parts that all pages use. Text of servers is drawn by `Foreign` alone, as text nodes. */

import htm from "./vendor/htm.js";
import { h } from "./vendor/preact.js";
import { useCallback, useEffect, useId, useLayoutEffect, useRef, useState } from "./vendor/hooks.js";
import { ApiError, get, path, post, queryOf } from "./api.js";
import { cut, diffLines, formatAgo, formatCount, formatTime, splitHidden, visible } from "./text.js";

export const html = htm.bind(h);

/** @typedef {import("./vendor/preact.js").ComponentChildren} Children */

/** Returns the fragment of a page. @param {string[]} parts @param {{[name: string]: unknown}} [query] */
export const to = (parts, query = {}) => `#/${parts.map(encodeURIComponent).join("/")}${queryOf(query)}`;

/** @typedef {{page: string, parts: string[], query: {[name: string]: string}}} Route */

/** @returns {Route} */
export function readRoute() {
  const [names, query = ""] = location.hash.replace(/^#\/?/, "").split(/\?(.*)/s);
  const parts = names.split("/").filter(Boolean).map((part) => {
    try {
      return decodeURIComponent(part);
    } catch {
      return part;
    }
  });
  return { page: parts[0] ?? "now", parts: parts.slice(1), query: Object.fromEntries(new URLSearchParams(query)) };
}

/** Changes the query of this page without a new entry in the history. @param {{[name: string]: unknown}} change */
export function setQuery(change) {
  const { page, parts, query } = readRoute();
  history.replaceState(null, "", to([page, ...parts], { ...query, ...change }));
  dispatchEvent(new Event("hashchange"));
}

/** Returns what sets one member of the query. @param {string} name */
export const setterOf = (name) => (/** @type {any} */ value) => setQuery({ [name]: value === true ? "true" : value || "" });

/** Longer text is cut, and shown in steps of this many characters. */
const CHARS_MAX = 4_000;
const CHARS_STEP = 20_000;

/** Draws text that others wrote: bounded, isolated, with hidden characters as codes. @param {{text: unknown, max?: number, block?: boolean}} props */
export function Foreign({ text, max = CHARS_MAX, block = false }) {
  const [more, setMore] = useState(0);
  const whole = String(text ?? "").replaceAll("\r\n", "\n");
  const shown = cut(whole, max + more);
  const parts = splitHidden(shown).map((it) => (it.hidden ? html`<span class="hidden-char" title="a hidden character">${it.text}</span>`
    : it.text));
  const left = whole.length - shown.length;
  if (!block) return html`<bdi>${parts}${left > 0 && " ..."}</bdi>`;
  return html`<bdi class="block">${parts}</bdi>
    ${left > 0 && html` <button type="button" class="quiet" onClick=${() => setMore(more + CHARS_STEP)}>
    Show more (${formatCount(left)} characters left)</button>`}`;
}

/** Text in lines of their own, scrolled by keyboard too. @param {{text: string, label: string, tail?: boolean}} props */
export function Pre({ text, label, tail = false }) {
  const ref = useRef(/** @type {HTMLElement|null} */ (null));
  useLayoutEffect(() => {
    if (tail && ref.current) ref.current.scrollTop = ref.current.scrollHeight;
  }, [text]);
  return html`<div class="pre" tabindex="0" role="region" aria-label=${visible(label)} ref=${ref}>
    <${Foreign} text=${text} block max=${tail ? 60_000 : CHARS_MAX} /></div>`;
}

/** Draws again at this interval; 0: never. @param {number} ms */
export function useNow(ms) {
  const [now, setNow] = useState(Date.now());
  useEffect(() => {
    if (!ms) return;
    const timer = setInterval(() => setNow(Date.now()), ms);
    return () => clearInterval(timer);
  }, [ms]);
  return ms ? Math.max(now, Date.now()) : now;
}

/** @param {{s: number|null|undefined, none?: string}} props */
export function Ago({ s, none = "never" }) {
  const now = useNow(15_000);
  if (!s) return none;
  return html`<time datetime=${new Date(s * 1000).toISOString()} title=${formatTime(s * 1000)}>${formatAgo(s * 1000, now)}</time>`;
}

/** A state as a word with a coloured dot. @param {{kind: "ok"|"warn"|"bad"|"off"|"busy", children?: Children}} props */
export const Mark = ({ kind, children }) => html`<span class=${`mark ${kind}`}>${children}</span>`;

/** A figure that leads to its source. @param {{label: string, value: Children, href?: string, kind?: string, note?: Children}} props */
export const Figure = ({ label, value, href, kind = "", note }) => html`<div class=${`figure ${kind}`}>
  <dt>${label}</dt><dd>${href ? html`<a href=${href}>${value}</a>` : value}${note && html`<small>${note}</small>`}</dd></div>`;

/** A command to type in a terminal. @param {{text: string}} props */
export function Copy({ text }) {
  const [copied, setCopied] = useState(false);
  const copy = async () => {
    await navigator.clipboard.writeText(text).then(() => setCopied(true), () => setCopied(false));
    setTimeout(() => setCopied(false), 2_000);
  };
  return html`<span class="copy"><code><${Foreign} text=${text} max=${400} /></code>
    <button type="button" class="quiet" aria-label=${`Copy: ${visible(text, 80)}`}
    onClick=${copy}>${copied ? "Copied" : "Copy"}</button></span>`;
}

/** A next step of the daemon: a command is copied, a sentence is read. @param {{step?: string|null}} props */
export const NextStep = ({ step }) => (!step ? null : /^proxy\s/.test(step) ? html`<${Copy} text=${step} />`
  : html`<span class="next"><${Foreign} text=${step} /></span>`);

/** A link to an address that a person visits; another address is shown as text. @param {{address: string, children?: Children}} props */
export const Visit = ({ address, children }) => (/^https?:\/\//i.test(address) ? html`<a class="button primary" href=${address}
  target="_blank" rel="noopener noreferrer">${children}</a>` : html`<${Foreign} text=${address} max=${400} />`);

/** Begins a login, and leads to its address. @param {{server: string, address?: string|null}} props */
export const Login = ({ server, address }) => (address
  ? html`<${Visit} address=${address}>Open the login at ${visible(URL.canParse(address) ? new URL(address).host : "its address", 60)}<//>`
  : html`<${Action} kind="primary" label=${`Log in to ${visible(server)}`} run=${() =>
    act(() => post(path("servers", server, "login")))}>Log in<//>`);

/**
 * Loads a path again whenever it or one of `deps` changes; the last answer stays until the next one.
 * @param {string|null} path @param {any[]} [deps]
 * @returns {{data: any, error: ApiError|null, busy: boolean, reload: () => void}}
 */
export function useFetch(path, deps = []) {
  const [answer, setAnswer] = useState(/** @type {any} */ ({ path: null, data: null, error: null, busy: true }));
  const [turn, setTurn] = useState(0);
  useEffect(() => {
    if (path === null) return;
    const stop = new AbortController();
    setAnswer((/** @type {any} */ old) => ({ ...old, busy: true }));
    get(path, stop.signal).then(
      (data) => setAnswer({ path, data, error: null, busy: false }),
      (error) => { if (!stop.signal.aborted) setAnswer((/** @type {any} */ old) =>
        ({ path, data: old.path === path ? old.data : null, error, busy: false })); });
    return () => stop.abort();
  }, [path, turn, ...deps]);
  return { ...answer, reload: useCallback(() => setTurn((it) => it + 1), []) };
}

/** Returns the value once it has been the same for this time. @template T @param {T} value @param {number} ms @returns {T} */
export function useSettled(value, ms) {
  const [settled, setSettled] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(value), ms);
    return () => clearTimeout(timer);
  }, [value, ms]);
  return settled;
}

/** @typedef {{message: string, bad?: boolean, nextStep?: string, undo?: number|null, diff?: string|null}} Notice */

/** @type {(notice: Notice|null) => void} */
let showNotice = () => {};
/** @param {typeof showNotice} show */
export const listenForNotices = (show) => { showNotice = show; };
let saidAt = 0;
/** Shows a notice; null removes it, unless it is the one of the action that led to this page. @param {Notice|null} notice */
export function say(notice) {
  if (notice === null && Date.now() - saidAt < 1_000) return;
  saidAt = Date.now();
  showNotice(notice);
}

/** Says what an action did, or why it failed; returns its answer. @template T @param {() => Promise<T>} action @returns {Promise<T|null>} */
export async function act(action) {
  try {
    const done = await action();
    say(/** @type {any} */ (done));
    return done;
  } catch (error) {
    say(noticeOf(error));
    return null;
  }
}

/** @param {any} error @returns {Notice} */
export const noticeOf = (error) => ({ message: error.message, bad: true, nextStep: error.nextStep });

/** @param {{error: any}} props */
export const Failure = ({ error }) =>
  (error ? html`<div class="failure" role="alert"><${Foreign} text=${error.message} block /> <${NextStep} step=${error.nextStep} /></div>`
    : null);

/** A button that is busy until its action ends. @param {{run: () => any, kind?: string, label?: string, children?: Children}} props */
export function Action({ run, kind = "", label, children }) {
  const [busy, setBusy] = useState(false);
  const start = async () => {
    if (busy) return;
    setBusy(true);
    try {
      await run();
    } finally {
      setBusy(false);
    }
  };
  return html`<button type="button" class=${kind} aria-label=${label} aria-busy=${busy} aria-disabled=${busy} onClick=${start}>
    ${children}</button>`;
}

/**
 * A field with its name, hint and error.
 * @param {{label: Children, hint?: Children, error?: Children, kind?: string, value: any, onInput: (value: any) => void, options?: (string|[string, string])[],
 *   list?: string[], required?: boolean, wide?: boolean, input?: {[attribute: string]: any}}} props
 */
export function Field({ label, hint, error, kind = "text", value, onInput, options, list, required, wide, input = {} }) {
  const id = useId();
  const told = [hint && `${id}-hint`, error && `${id}-error`].filter(Boolean).join(" ") || undefined;
  const all = { id, "aria-describedby": told, "aria-invalid": error ? "true" : undefined, "aria-required": required ? "true" : undefined,
    autocomplete: "off", spellcheck: false, ...input };
  const read = (/** @type {any} */ event) => onInput(kind === "checkbox" ? event.currentTarget.checked : event.currentTarget.value);
  const control = options ? html`<select ...${all} value=${value} onChange=${read}>
      ${options.map((it) => (typeof it === "string" ? html`<option value=${it}>${visible(it)}</option>`
        : html`<option value=${it[0]}>${it[1]}</option>`))}</select>`
    : kind === "textarea" ? html`<textarea ...${all} value=${value} onInput=${read}></textarea>`
    : kind === "checkbox" ? html`<input type="checkbox" ...${all} checked=${value} onChange=${read} />`
    : html`<input type=${kind} ...${all} list=${list && `${id}-list`} value=${value} onInput=${read} />
      ${list && html`<datalist id=${`${id}-list`}>${list.map((it) => html`<option value=${it}></option>`)}</datalist>`}`;
  return html`<div class=${`field ${kind} ${wide ? "wide" : ""}`}>
    <label for=${id}>${label}${required && html`<span class="required"> required</span>`}</label>${control}
    ${hint && html`<div class="hint" id=${`${id}-hint`}>${hint}</div>`}
    ${error && html`<div class="error" id=${`${id}-error`}>${error}</div>`}</div>`;
}

/** A dialog over the page; Escape closes it. @param {{title: string, onClose: () => void, children?: Children}} props */
export function Dialog({ title, onClose, children }) {
  const ref = useRef(/** @type {HTMLDialogElement|null} */ (null));
  const id = useId();
  useLayoutEffect(() => {
    const before = /** @type {HTMLElement|null} */ (document.activeElement);
    ref.current?.showModal();
    return () => before?.isConnected && before.focus();
  }, []);
  return html`<dialog ref=${ref} aria-labelledby=${id} onClose=${onClose}>
    <header><h2 id=${id}>${title}</h2><button type="button" class="quiet" onClick=${onClose}>Close</button></header>${children}</dialog>`;
}

/** The details beside a list: they get the focus, and give it back to the row. @param {{children?: Children}} props */
export function DetailPane({ children }) {
  const ref = useRef(/** @type {HTMLElement|null} */ (null));
  useEffect(() => {
    ref.current?.focus({ preventScroll: true });
    return () => void setTimeout(() => {
      const row = /** @type {HTMLElement|null} */ (document.querySelector('.grid [role="row"][tabindex="0"]'));
      if (document.activeElement === document.body) row?.focus();
    });
  }, []);
  return html`<div class="detail" tabindex="-1" ref=${ref}>${children}</div>`;
}

/** Asks before an action that cannot be taken back. @param {{title: string, text: Children, button: string, run: () => Promise<any>, onClose: () => void}} props */
export const Confirm = ({ title, text, button, run, onClose }) => html`<${Dialog} title=${title} onClose=${onClose}>
  <p>${text}</p><div class="buttons"><${Action} kind="danger" run=${async () => { await run(); onClose(); }}>${button}<//>
  <button type="button" onClick=${onClose}>Keep</button></div><//>`;

/** Moves the focus among the elements that match with the arrow keys. @param {KeyboardEvent} event @param {string} selector */
export function rove(event, selector) {
  const all = /** @type {HTMLElement[]} */ ([...(/** @type {Element} */ (event.currentTarget)).querySelectorAll(selector)]);
  const at = all.indexOf(/** @type {HTMLElement} */ (document.activeElement));
  const next = { ArrowRight: at + 1, ArrowDown: at + 1, ArrowLeft: at - 1, ArrowUp: at - 1, Home: 0, End: all.length - 1 }[event.key];
  if (at < 0 || next === undefined || !all[next]) return;
  event.preventDefault();
  all[at].tabIndex = -1;
  all[next].tabIndex = 0;
  all[next].focus();
}

/** A short table of the page. @param {{label: string, head: Children[], rows: Children[][], keys?: (string|number)[], numeric?: number[]}} props */
export const Table = ({ label, head, rows, keys, numeric = [] }) => html`<div class="scroll" tabindex="0" role="region" aria-label=${label}>
  <table><thead><tr>${head.map((it, i) => html`<th scope="col" class=${numeric.includes(i) ? "num" : ""}>${it}</th>`)}</tr></thead>
  <tbody>${rows.map((row, i) => html`<tr key=${keys?.[i] ?? i}>
    ${row.map((it, j) => html`<td class=${numeric.includes(j) ? "num" : ""}>${it}</td>`)}</tr>`)}</tbody></table></div>`;

/** Lines around a change that stay. */
const CONTEXT = 3;
const DIFF_LINES_MAX = 1_000;

/** @param {{label: string, before?: string|null, now: string}} props */
export function Diff({ label, before, now }) {
  const lines = diffLines(before ?? "", now);
  const isNear = lines.map((_, i) => lines.slice(Math.max(0, i - CONTEXT), i + CONTEXT + 1).some((it) => it.sign !== " "));
  const shown = lines.map((line, i) => ({ ...line, i })).filter(({ i }) => isNear[i] && (before || lines[i].sign === "+"));
  return html`<${DiffLines} label=${label}
    lines=${shown.map(({ sign, text, i }, at) => ({ sign, text, gap: at > 0 && shown[at - 1].i !== i - 1 }))} />`;
}

/** @param {{label?: string, text: string}} props */
export const DiffText = ({ label = "", text }) =>
  html`<${DiffLines} label=${label} lines=${text.trimEnd().split("\n").filter((it) => !/^(---|\+\+\+) /.test(it))
  .map((it) => ({ sign: "+-@".includes(it[0] ?? "x") ? it[0] : " ", text: it.slice(1), gap: false }))} />`;

/** @param {{label: string, lines: {sign: string, text: string, gap: boolean}[]}} props */
function DiffLines({ label, lines }) {
  /** @type {{[sign: string]: [string, string]}} */
  const kinds = { "+": ["ins", "added: "], "-": ["del", "removed: "], "@": ["gap", ""], " ": ["same", ""] };
  const left = lines.length - DIFF_LINES_MAX;
  return html`<div class="diff" tabindex="0" role="region" aria-label=${`Difference ${label}`.trim()}>${lines.slice(0, DIFF_LINES_MAX)
    .map(({ sign, text, gap }) => html`
    ${gap && html`<div class="gap">...</div>`}
    <div class=${kinds[sign][0]}><span aria-hidden="true">${sign}</span><span class="sr">${kinds[sign][1]}</span>
      <${Foreign} text=${text} block /></div>`)}
    ${left > 0 && html`<div class="gap">${formatCount(left)} more lines</div>`}</div>`;
}
