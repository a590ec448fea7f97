/** Calls: the audit log, filtered; one call with its result, its command and its rule. */

import { useEffect, useMemo, useRef, useState } from "../vendor/hooks.js";
import { get, path, queryOf } from "../api.js";
import { Grid } from "../grid.js";
import { useLive } from "../live.js";
import { formatBytes, formatClock, formatCount, formatMoment, formatMs, formatTime, nest, plural, pretty, prettyText, visible } from "../text.js";
import { Copy, DetailPane, Failure, Field, Foreign, Mark, Pre, html, setQuery, setterOf, to } from "../ui.js";
import { Forbid } from "./forbid.js";
import { drafts, toTool } from "./tools.js";

/** @typedef {Call & {group?: string, depth?: number}} Row */

const PAGE = 200;
/** The list follows the daemon at most this often, however many calls there are. */
const REFRESH_MS = 1_000;
const FILTERS = ["since", "until", "client", "caller", "server", "tool", "slow", "failures", "session", "rule", "outcome", "redacted"];

/** @param {Call} call */
const ownName = (call) => call.tool ?? call.prompt ?? call.resource ?? "";
/** @param {Call} call */
const fullName = (call) => `${call.server}/${ownName(call)}`;
/** @param {{call: Call}} props */
const Outcome = ({ call }) => html`<${Mark} kind=${call.outcome === "ok" ? "ok" : /refus|den|cancel/.test(call.outcome) ? "warn" : "bad"}>
  ${visible(call.outcome, 40)}<//>`;

/** @type {import("../grid.js").Column[]} */
const COLUMNS = [
  { key: "at", head: "Time", cell: (it) => (it.group ? html`<strong><${Foreign} text=${it.group} max=${120} /></strong>`
    : formatMoment(Date.parse(it.at))) },
  { key: "tool", head: "Call", cell: (it) =>
    (it.group ? "" : it.lost ? html`<span class="muted">${plural(it.lost, "call")} not logged</span>`
      : html`<span class="mono" style=${{ paddingLeft: `${(it.depth ?? 0) * 18}px` }}>
        ${it.depth > 0 && html`<span class="sr">by the script: </span>`}<${Foreign} text=${fullName(it)} max=${160} /></span>`) },
  { key: "client", head: "Client", kind: "p2", cell: (it) =>
    (it.group || it.lost ? "" : html`<${Foreign} text=${it.client || "command line"} max=${60} />`) },
  { key: "decision", head: "Rules", kind: "p3", cell: (it) => (it.group ? "" : html`<span class="muted">${it.decision ?? ""}
    ${it.rule ? ` (rule ${it.rule})` : ""}</span>`) },
  { key: "outcome", head: "Outcome", cell: (it) => (it.group || it.lost ? "" : html`<${Outcome} call=${it} />`) },
  { key: "ms", head: "Took", num: true, kind: "p2", cell: (it) => (it.group ? "" : formatMs(it.ms)) },
  { key: "tokens", head: "Tokens", num: true, kind: "p3", cell: (it) =>
    (it.group ? "" : html`${it.cut ? html`<span class="muted">cut</span> ` : ""}${formatCount(it.tokens)}`) },
];

/** Passes the first change at once and later ones once a second. @template T @param {T} value @param {number} ms */
function useThrottled(value, ms) {
  const [passed, setPassed] = useState(value);
  const last = useRef(0);
  useEffect(() => {
    const timer = setTimeout(() => {
      last.current = Date.now();
      setPassed(value);
    }, Math.max(0, last.current + ms - Date.now()));
    return () => clearTimeout(timer);
  }, [value]);
  return passed;
}

/** Loads the newest calls, again whenever there are more, and older ones on demand. @param {string} filter */
function useCalls(filter) {
  const total = useThrottled(useLive((it) => it.state.totals.get("totals")?.calls ?? 0), REFRESH_MS);
  const [list, setList] = useState(/** @type {{filter: string|null, calls: Map<number, Call>, next: number|null, error: any}} */ ({
    filter: null, calls: new Map(), next: null, error: null }));
  /** The list and the page of it that were requested last. */
  const requested = useRef(/** @type {any[]} */ ([]));
  const load = async (/** @type {number|null} */ before, /** @type {AbortSignal|undefined} */ signal) => {
    try {
      const answer = await get(`/calls${queryOf({ ...Object.fromEntries(new URLSearchParams(filter)), before, limit: PAGE })}`, signal);
      setList((old) => {
        // The list began anew while this page of it was loaded.
        if (before !== null && (old.filter !== filter || old.next !== before)) return old;
        /** @type {Call[]} */
        const sent = answer.calls;
        const oldest = sent.length ? sent[sent.length - 1].n : 0;
        // Calls between the two lists are missing: begin anew.
        const isGap = old.filter !== filter || (before === null && answer.next_before !== null
          && oldest > Math.max(0, ...old.calls.keys()));
        const calls = new Map(isGap ? [] : old.calls);
        for (const call of sent) calls.set(call.n, call);
        return { filter, calls, next: isGap || before !== null ? answer.next_before ?? null : old.next, error: null };
      });
    } catch (error) {
      if (signal?.aborted) return;
      requested.current = [];
      setList((old) => ({ ...old, error }));
    }
  };
  useEffect(() => {
    const stop = new AbortController();
    load(null, stop.signal);
    return () => stop.abort();
  }, [filter, total]);
  const older = () => {
    if (list.next === null || list.filter !== filter || (requested.current[0] === filter && requested.current[1] === list.next)) return;
    requested.current = [filter, list.next];
    load(list.next, undefined);
  };
  const calls = useMemo(() => [...list.calls.values()].sort((a, b) => b.n - a.n), [list.calls]);
  return { calls, isLoaded: list.filter === filter, hasMore: list.next !== null, error: list.error, older };
}

/** Reads a kept result on, part by part. @param {{handle: string}} props */
function Result({ handle }) {
  const [part, setPart] = useState(0);
  const [answer, setAnswer] = useState(/** @type {any} */ (null));
  const [error, setError] = useState(/** @type {any} */ (null));
  const read = (/** @type {number} */ next) => get(`${path("results", handle)}?part=${next}`)
    .then((it) => { setAnswer(it); setPart(next); setError(null); }, setError);
  return html`<h3>Result</h3><div class="buttons"><button type="button" onClick=${() => read(part + 1)}>
    ${part ? "Read the next part" : "Read the result"}</button>
    ${part > 1 && html`<button type="button" onClick=${() => read(part - 1)}>Back</button>`}
      ${part > 0 && html`<span class="muted">part ${part}</span>`}</div>
    <${Failure} error=${error} />${answer && html`<${Pre} text=${prettyText(answer.text)} label="Result" />`}`;
}

/** @param {{call: Call, calls: Call[], back: string}} props */
function Detail({ call, calls, back }) {
  const name = fullName(call);
  const children = calls.filter((it) => it.parent && it.parent === call.run).reverse();
  const script = calls.find((it) => it.run && it.run === call.parent);
  const isKnown = typeof call.arguments === "object" && call.arguments !== null;
  const again = () => {
    if (isKnown) drafts.set(name, call.arguments);
    location.hash = toTool(name);
  };
  return html`<article aria-labelledby="call-name"><header><h2 id="call-name"><${Foreign} text=${name} max=${200} /></h2>
    <${Outcome} call=${call} /><a class="button quiet close" href=${back}>Close</a></header>
    <div class="buttons">${call.tool !== undefined && html`<button type="button" class="primary" onClick=${again}>Run it again</button>`}
      ${call.tool !== undefined && call.client && html`<${Forbid} server=${call.server} tool=${call.tool} client=${call.client} />`}
      <a class="button" href=${to(["calls"], { server: call.server, tool: ownName(call) })}>Same tool</a>
      <a class="button" href=${to(["calls"], { outcome: call.outcome })}>Same outcome</a>
      ${call.session !== undefined && html`<a class="button" href=${to(["calls"], { session: call.session })}>Same session</a>`}
      <a class="button" href=${to(["servers", call.server])}>Server</a></div>
    <dl class="facts"><dt>Time</dt><dd><time datetime=${call.at}>${formatTime(Date.parse(call.at))}</time></dd>
      <dt>Client</dt><dd><${Foreign} text=${call.client || "command line"} max=${80} />
        ${call.transport && html` <span class="muted">by ${call.transport}</span>`}
          ${call.caller && html` <span class="muted">with <${Foreign} text=${call.caller} max=${80} /></span>`}</dd>
      <dt>Session</dt><dd>${call.session ?? "none"}</dd>
      <dt>Rules</dt><dd>${call.decision || "not asked"}
        ${call.rule ? html` by <a href=${to(["configuration"], { rule: call.rule })}>rule ${call.rule}</a>` : call.decision
          ? " by the preset" : ""}</dd>
      <dt>Took</dt><dd>${formatMs(call.ms)}</dd><dt>Sent</dt><dd>${formatBytes(call.bytes_in ?? 0)}</dd>
      <dt>Result</dt><dd>${formatBytes(call.bytes)}, ${plural(call.tokens ?? 0, "token")}${call.cut ? ", cut" : ""}
        ${call.redacted ? `, ${plural(call.redacted, "text")} redacted` : ""}</dd>
      ${call.parent && html`<dt>Script</dt><dd>${script ? html`<a href=${to(["calls", String(script.n)])}>made by call ${script.n}</a>`
        : "made by a script"}</dd>`}</dl>
    <h3>Arguments</h3>${isKnown ? html`<${Pre} text=${pretty(call.arguments)} label="Arguments" />`
      : html`<p class="muted">The log keeps ${call.arguments ? html`only their digest, <span class="mono">
      <${Foreign} text=${call.arguments} max=${80} /></span>`
        : "no arguments"}. It keeps them with <code>audit.arguments = "full"</code>.</p>`}
    ${call.command && html`<h3>In a terminal</h3><${Copy} text=${call.command} />`}
    ${children.length > 0 && html`<h3>Calls of the script</h3><ul class="list">
      ${children.map((it) => html`<li key=${it.n}><a class="mono grow" href=${to(["calls", String(it.n)])}>
        <${Foreign} text=${fullName(it)} max=${120} /></a><${Outcome} call=${it} /><span class="num">
          ${formatMs(it.ms)}</span></li>`)}</ul>`}
    ${call.handle && html`<${Result} key=${call.handle} handle=${call.handle} />`}</article>`;
}

/** Puts the calls of a session under a line of their own, the newest session first. @param {Row[]} calls @returns {Row[]} */
function groupBySession(calls) {
  return [...Map.groupBy(calls, (it) => String(it.session ?? ""))].flatMap(([key, rows]) => [{ ...rows[0], n: -rows[0].n,
    group: `Session ${key || "unknown"}: ${rows[0].client || "command line"}` }, ...rows]);
}

/** @param {import("../ui.js").Route} props */
export function Calls({ parts, query }) {
  const filter = new URLSearchParams(FILTERS.filter((it) => query[it]).map((it) => [it, query[it]])).toString();
  const { calls, isLoaded, hasMore, error, older } = useCalls(filter);
  const servers = useLive((it) => it.state.servers);
  const clients = useMemo(() => [...new Set(calls.map((it) => it.client).filter(Boolean))].sort(), [calls]);
  const rows = useMemo(() => {
    const tree = nest(calls, (it) => it.run, (it) => it.parent, true).map(({ item, depth }) => (depth ? { ...item, depth } : item));
    return query.group ? groupBySession(tree) : tree;
  }, [calls, query.group]);
  const n = parts[0] ? Number(parts[0]) : null;
  const [single, setSingle] = useState(/** @type {Call|null} */ (null));
  const chosen = n === null ? null : calls.find((it) => it.n === n) ?? (single?.n === n ? single : null);
  useEffect(() => {
    if (n !== null && isLoaded && !chosen) get(`/calls?before=${n + 1}&limit=1`).then((it) => setSingle(it.calls[0] ?? null), () => {});
  }, [n, isLoaded]);
  const isSpan = /^\d+$/.test(query.since ?? "");
  const moments = isSpan ? `${formatMoment(Number(query.since) * 1000)}${query.until ? ` to ${formatClock(Number(query.until) * 1000)}`
    : ""}` : "";
  const back = to(["calls"], query);
  return html`<div class=${`split ${chosen ? "has-detail" : ""}`}><div class="master">
    <div class="toolbar" role="search">
      <${Field} label="Time" value=${query.since ?? ""} options=${[["", "all"], ["15m", "15 minutes"], ["1h", "1 hour"], ["1d", "1 day"],
        ["2d", "2 days"], ["7d", "7 days"], ["30d", "30 days"], ...(isSpan ? [[query.since, moments]] : [])]}
          onInput=${(/** @type {string} */ it) => setQuery({ since: it, until: "" })} />
      <${Field} label="Server" value=${query.server ?? ""}
        options=${[["", "all"], ...[...new Set([...servers.keys(), ...(query.server ? [query.server] : [])])].sort()
          .map((it) => [it, visible(it)])]} onInput=${setterOf("server")} />
      <${Field} label="Tool" kind="search" value=${query.tool ?? ""} onInput=${setterOf("tool")} />
      <${Field} label="Client" kind="search" value=${query.client ?? ""} list=${clients} onInput=${setterOf("client")} />
      <${Field} label="Slower than (ms)" kind="search" value=${query.slow ?? ""} input=${{ inputmode: "numeric" }}
        onInput=${(/** @type {string} */ it) => setQuery({ slow: it.replace(/\D/g, "") })} />
      <${Field} label="Failed only" kind="checkbox" value=${query.failures === "true"} onInput=${setterOf("failures")} />
      <${Field} label="By session" kind="checkbox" value=${query.group === "true"} onInput=${setterOf("group")} />
      <span class="muted grow">${isLoaded ? `${plural(calls.length, "call")}${hasMore ? ", older ones follow as you scroll" : ""}`
        : ""}</span>
      ${["caller", "session", "rule", "outcome", "redacted"].filter((it) => query[it])
        .map((it) => html`<button type="button" class="chip" onClick=${() => setQuery({ [it]: "" })}>${it} ${visible(query[it], 40)}
          <span aria-hidden="true"> ×</span><span class="sr"> remove this filter</span></button>`)}
      ${filter && html`<a class="button quiet" href="#/calls">Clear</a>`}</div>
    <${Failure} error=${error} />
    <${Grid} label="Calls" kind="calls" columns=${COLUMNS} rows=${rows} keyOf=${(/** @type {Call} */ it) => String(it.n)}
      selected=${n === null ? null : String(n)} onEnd=${older}
      classOf=${(/** @type {Row} */ it) => (it.group ? "group" : "")}
      open=${(/** @type {Row} */ it) => { if (it.group) setQuery({ session: it.session, group: "" });
        else if (!it.lost) location.hash = to(["calls", String(it.n)], query); }}
      empty=${isLoaded ? (filter ? "No call matches." : "No calls yet. The log begins with the first one.") : "Loading ..."} /></div>
    ${chosen && html`<${DetailPane} key=${chosen.n}><${Detail} call=${chosen} calls=${calls} back=${back} /><//>`}</div>`;
}
