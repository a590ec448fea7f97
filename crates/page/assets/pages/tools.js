/** Tools: the search as a model has it, one tool with its form, and changed definitions. */

import { useEffect, useMemo, useRef, useState } from "../vendor/hooks.js";
import { path, post, queryOf } from "../api.js";
import { errorsByField, JsonField, Members } from "../form.js";
import { Grid } from "../grid.js";
import { useLive } from "../live.js";
import { formatCount, formatMs, plural, pretty, prettyText, shell, visible } from "../text.js";
import { Action, Confirm, DetailPane, Copy, Diff, Failure, Field, Foreign, Mark, Pre, act, html, noticeOf, say, setterOf, to, useFetch,
  useSettled } from "../ui.js";
import { Forbid } from "./forbid.js";

/** A search starts once nothing was typed for this time. */
const SETTLE_MS = 90;
/** The list without a query has all tools. */
const ALL = 10_000;
const HITS = 20;

/** Arguments that were written in forms or taken from calls, by tool. @type {Map<string, any>} */
export const drafts = new Map();

/** @param {string} name */
export const toTool = (name, query = {}) => to(["tools", ...name.split(/\/(.*)/s).slice(0, 2)], query);

/** @type {import("../grid.js").Column[]} */
const COLUMNS = [
  { key: "name", head: "Tool", cell: (it) => html`<span class="mono"><${Foreign} text=${it.name} max=${120} /></span>
    ${it.changed && html` <${Mark} kind="warn">changed<//>`}${it.hidden && html` <${Mark} kind="off">hidden<//>`}
      ${it.perhaps && html` <${Mark} kind="off">perhaps<//>`}` },
  { key: "score", head: "Score", num: true, cell: (it) => (it.relevance_score === undefined ? "" : it.relevance_score.toFixed(2)) },
  { key: "purpose", head: "Purpose", kind: "p2", cell: (it) => html`<${Foreign} text=${it.purpose ?? it.description ?? ""} max=${220} />` },
  { key: "category", head: "Category", kind: "p3", cell: (it) =>
    html`<span class="muted"><${Foreign} text=${it.category ?? ""} max=${60} /></span>` },
];

/** The evidence for a hit. @param {{hit: Hit}} props */
const Why = ({ hit }) => html`<h3>Why this hit</h3><dl class="facts why">
  ${(hit.evidence ?? []).map((it) => html`<dt><${Foreign} text=${it.label} max=${160} /></dt><dd class="num">${it.amount.toFixed(2)}</dd>`)}
  <dt>score</dt><dd class="num"><strong>${hit.relevance_score?.toFixed(2)}</strong></dd></dl>`;

/** A form that checks a call first, and then makes it. @param {{tool: Tool}} props */
function Try({ tool }) {
  const schema = tool.input_schema ?? {};
  const [input, setInput] = useState(() => drafts.get(tool.name) ?? {});
  const [asJson, setAsJson] = useState(!schema.properties && Object.keys(schema).length > 1);
  const [checked, setChecked] = useState(/** @type {any} */ (null));
  const [answer, setAnswer] = useState(/** @type {{is_error: boolean, text: string, ms: number, dry: boolean}|null} */ (null));
  const [errors, setErrors] = useState({});
  const [asks, setAsks] = useState(false);
  const [turn, setTurn] = useState(0);
  const stop = useRef(/** @type {AbortController|null} */ (null));
  const [calling, setCalling] = useState(false);
  useEffect(() => () => stop.current?.abort(), []);
  const change = (/** @type {any} */ it) => {
    setInput(it ?? {});
    setChecked(null);
    drafts.set(tool.name, it ?? {});
  };
  const send = async (/** @type {boolean} */ dry) => {
    stop.current = new AbortController();
    setCalling(!dry);
    setAnswer(null);
    try {
      const reply = await post("/calls", { tool_name: tool.name, tool_input: input, dry_run: dry }, stop.current.signal);
      setAnswer({ ...reply, dry });
      setErrors(reply.is_error ? errorsByField(schema, reply.text) : {});
      if (dry) setChecked(reply.is_error ? null : input);
    } catch (error) {
      if (!stop.current?.signal.aborted) say(noticeOf(error));
    } finally {
      setCalling(false);
    }
  };
  const isDestructive = tool.annotations?.destructiveHint === true && !tool.annotations?.readOnlyHint;
  const mayCall = checked !== null && checked === input;
  return html`<form onSubmit=${(/** @type {Event} */ event) => event.preventDefault()}>
    <div class="toolbar"><h3>Try it</h3><label class="switch">
      <input type="checkbox" checked=${asJson} onChange=${() => setAsJson(!asJson)} /> as JSON</label>
      ${tool.example && html`<button type="button" class="quiet" onClick=${() => { change(tool.example?.tool_input); setTurn(turn + 1);
        }}>Use the example</button>`}</div>
    ${asJson ? html`<${JsonField} key=${turn} label="Arguments" value=${input} onChange=${change} />`
      : html`<${Members} key=${turn} schema=${schema} value=${input} errors=${errors} onChange=${change} />`}
    <div class="buttons"><${Action} kind=${mayCall ? "" : "primary"} run=${() => send(true)}>Check the call<//>
      ${mayCall && !calling && html`<${Action} kind=${isDestructive ? "danger" : "primary"}
        run=${() => (isDestructive ? setAsks(true) : send(false))}>Call the tool<//>`}
      ${calling && html`<button type="button" onClick=${() => { stop.current?.abort(); setCalling(false); }}>Cancel the call</button>`}
      <${Copy} text=${shell("proxy", "call", tool.name, JSON.stringify(input))} /></div>
    ${asks && html`<${Confirm} title=${`Call ${visible(tool.name)}?`} text="The server marks this tool as destructive."
      button="Call the tool" onClose=${() => setAsks(false)} run=${() => send(false)} />`}
    <div role="status">${answer && html`<p><${Mark} kind=${answer.is_error ? "bad" : "ok"}>
      ${answer.dry ? (answer.is_error ? "This call would fail" : "This call may be made") : answer.is_error
        ? "The tool answered with an error" : "The tool answered"}<//> <span class="muted">in ${formatMs(answer.ms)}</span></p>`}</div>
    ${answer && html`<${Pre} text=${prettyText(answer.text)} label="Answer" />`}</form>`;
}

/** @param {{name: string, client: string, hit: Hit|undefined, back: string}} props */
function Detail({ name, client, hit, back }) {
  const [server, own = ""] = name.split(/\/(.*)/s);
  const known = useLive((it) => it.state.daemon.get("daemon")?.catalog_number);
  const { data, error } = useFetch(path("tools", server, own), [known]);
  /** @type {Tool|null} */
  const tool = data?.name === name ? data : null;
  const close = html`<a class="button quiet close" href=${back}>Close</a>`;
  if (!tool) return html`<header><h2><${Foreign} text=${name} /></h2>${close}</header>${error ? html`<${Failure} error=${error} />`
    : html`<p class="loading">Loading ...</p>`}`;
  const hints = Object.entries(tool.annotations ?? {}).filter(([key, value]) => key.endsWith("Hint") && value === true)
    .map(([key]) => key.slice(0, -4));
  return html`<article aria-labelledby="tool-name"><header><h2 id="tool-name"><${Foreign} text=${name} max=${200} /></h2>
      ${tool.changed && html`<a href=${to(["tools"], { show: "changes", server })}><${Mark} kind="warn">changed<//></a>`}
        ${tool.login_required && html`<${Mark} kind="warn">login required<//>`}
          ${tool.deprecated && html`<${Mark} kind="off">deprecated<//>`}
      ${hints.map((it) => html`<${Mark} kind=${it === "destructive" ? "bad" : "off"}>${it}<//>`)}${close}</header>
    <p class="signature mono"><${Foreign} text=${tool.signature} max=${1500} block /></p>
    <p class="prose"><${Foreign} text=${tool.description} block /></p>
    ${[tool.usage, tool.notes, ...(tool.remarks ?? [])].filter(Boolean)
      .map((it) => html`<p class="muted"><${Foreign} text=${typeof it === "string" ? it : pretty(it)} block /></p>`)}
    <div class="buttons"><a class="button" href=${to(["calls"], { server, tool: own })}>Calls</a>
      <a class="button" href=${to(["servers", server])}>Server ${visible(server, 40)}</a>
      ${client && html`<${Forbid} key=${client} server=${server} tool=${own} client=${client} />`}
      <${Forbid} server=${server} tool=${own} /></div>
    <${Try} key=${name} tool=${tool} />
    ${hit?.evidence && html`<${Why} hit=${hit} />`}
    <details><summary>Schema of the arguments</summary><${Pre} text=${pretty(tool.input_schema ?? {})}
      label="Schema of the arguments" /></details>
    ${tool.output_schema && html`<details><summary>Schema of the result</summary>
      <${Pre} text=${pretty(tool.output_schema)} label="Schema of the result" /></details>`}
    <dl class="facts"><dt>Used</dt><dd>${plural(tool.used ?? 0, "time")}</dd>
      ${tool.server_version && html`<dt>Server version</dt><dd><${Foreign} text=${tool.server_version} max=${80} /></dd>`}
      ${tool.category && html`<dt>Category</dt><dd><${Foreign} text=${[tool.category, ...(tool.tags ?? [])].join(", ")}
        max=${300} /></dd>`}</dl></article>`;
}

/** @param {Review[]} reviews @param {boolean} accept @param {() => void} reload */
const decide = (reviews, accept, reload) => act(() => post("/reviews", { definitions: reviews.map(({ digest, name }) => ({ digest, name })),
  accept })).then(reload);

/** @param {{review: Review, reload: () => void}} props */
function ReviewItem({ review, reload }) {
  const run = (/** @type {boolean} */ accept) => decide([review], accept, reload);
  const kind = /** @type {const} */ ({ changed: "warn", new: "busy", refused: "bad" })[review.state] ?? "warn";
  const name = visible(review.name, 80);
  return html`<li class="review"><header><h3><${Foreign} text=${review.name} max=${160} /></h3><${Mark} kind=${kind}>${review.state}<//>
    <span class="muted">${review.kind}</span>${review.held && review.state !== "refused" && html`<${Mark} kind="warn">held<//>`}</header>
    ${review.signs.map((it) => html`<p class="failure"><strong>Look twice:</strong> <${Foreign} text=${it} max=${300} /></p>`)}
    <${Diff} label=${`of ${name}`} before=${review.before && prettyText(review.before)} now=${prettyText(review.now)} />
    <div class="buttons"><${Action} kind="primary" label=${`Accept ${name}`} run=${() => run(true)}>Accept<//>
      ${review.state !== "refused" && html`<${Action} label=${`Refuse ${name}`} run=${() => run(false)}>Refuse<//>`}
      <span class="muted mono">${review.digest.slice(0, 12)}</span></div></li>`;
}

/** @param {{server: string|undefined}} props */
function Changes({ server }) {
  const attention = useLive((it) => it.state.attention);
  const count = [...attention.values()].filter((it) => it.kind === "review").map((it) => `${it.server} ${it.count} ${it.since_at}`).join();
  const { data, error, reload } = useFetch("/reviews", [count]);
  const [all, setAll] = useState(/** @type {string|null} */ (null));
  /** @type {Review[]} */
  const reviews = (data?.reviews ?? []).filter((/** @type {Review} */ it) => !server || it.server === server);
  const servers = [...new Set(reviews.map((it) => it.server))];
  return html`<div class="single">
    <p class="muted">A tool is accepted as it was when its server was added. These definitions changed or are new since then.${server
      && html` Only ${visible(server)}; <a href="#/tools?show=changes">all servers</a>.`}</p>
    <${Failure} error=${error} />${!data ? !error && html`<p class="loading">Loading ...</p>` : reviews.length === 0
      && html`<p class="calm"><${Mark} kind="ok">No definition waits for a decision.<//></p>`}
    ${servers.map((name) => {
      const own = reviews.filter((it) => it.server === name);
      return html`<section key=${name}><header class="toolbar"><h2><${Foreign} text=${name} /></h2><span class="muted grow">
        ${plural(own.length, "definition")}</span>
        ${own.length > 1 && html`<button type="button" onClick=${() => setAll(name)}>Accept all ${own.length}</button>`}</header>
        <ul class="list">${own.slice(0, 50)
          .map((it) => html`<${ReviewItem} key=${it.name + it.kind} review=${it} reload=${reload} />`)}</ul>
        ${all === name && html`<${Confirm} title=${`Accept ${plural(own.length, "definition")} of ${visible(name)}`}
          text="Accept only definitions whose difference you have read." button="Accept all of them" onClose=${() => setAll(null)}
            run=${() => decide(own, true, reload)} />`}</section>`;
    })}${data?.more > 0 && html`<p class="muted">${formatCount(data.more)} more after these.</p>`}</div>`;
}

/** @param {import("../ui.js").Route} props */
export function Tools({ parts, query }) {
  const servers = useLive((it) => it.state.servers);
  const attention = useLive((it) => it.state.attention);
  const { q = "", category = "", server = "", client = "" } = query;
  const words = useSettled(q, SETTLE_MS);
  const known = useLive((it) => `${it.state.daemon.get("daemon")?.catalog_number} ${it.state.daemon.get("daemon")?.config_number}`);
  const names = [...new Set([...useLive((it) => it.state.clients).values()].map((it) => it.name ?? "").filter(Boolean))];
  const { data, error, busy } = useFetch(`/tools${queryOf({ query: words, category: server || category, client, limit: words ? HITS
    : ALL })}`, [known]);
  /** @type {Found|null} */
  const found = data;
  const all = found?.tools?.length ? found.tools : found?.without_filter ?? [];
  const rows = useMemo(() => (server ? all.filter((it) => it.name.startsWith(`${server}/`)) : all), [found, server]);
  const categories = useMemo(() => [...new Set([...servers.values()].map((it) => it.category ?? "").filter(Boolean))].sort(), [servers]);
  const changes = [...attention.values()].filter((it) => it.kind === "review").reduce((sum, it) => sum + (it.count ?? 1), 0);
  const isChanges = query.show === "changes";
  const selected = !isChanges && parts.length > 0 ? parts.join("/") : null;
  return html`<nav class="tabs" aria-label="Views of tools"><a href="#/tools" aria-current=${isChanges ? undefined : "page"}>Search</a>
    <a href="#/tools?show=changes" aria-current=${isChanges ? "page" : undefined}>Changes ${changes > 0
      && html`<span class="badge">${formatCount(changes)}</span>`}</a></nav>
    ${isChanges ? html`<${Changes} server=${query.server} />` : html`<div class=${`split ${selected ? "has-detail" : ""}`}>
      <div class="master">
    <div class="toolbar" role="search"><${Field} label="Search as a model does" kind="search" wide value=${q} onInput=${setterOf("q")}
      input=${{ placeholder: "create an issue, read a file ..." }} />
      <${Field} label="Category" value=${category} options=${[["", "all"], ...categories.map((it) => [it, visible(it)])]} onInput=${setterOf("category")} />
      <${Field} label="Server" value=${server} options=${[["", "all"], ...[...servers.keys()].sort().map((it) => [it, visible(it)])]}
        onInput=${setterOf("server")} />
      <${Field} label="As client" kind="search" value=${client} list=${names} onInput=${setterOf("client")} />
      <span class="muted grow" role="status">
        ${found && !busy ? (words ? `${plural(rows.length, "hit")} of ${formatCount(found.total ?? rows.length)}`
          : plural(rows.length, "tool")) : ""}</span></div>
    <${Failure} error=${error} />
    ${found?.message && words && html`<p class="told-why"><${Foreign} text=${found.message} max=${400} /> ${found.suggestion
      && html`<${Foreign} text=${found.suggestion} max=${200} />`}</p>`}
    <${Grid} label="Tools" kind=${words ? "tools scored" : "tools"} columns=${words ? COLUMNS : COLUMNS.filter((it) => it.key !== "score")}
      rows=${rows} keyOf=${(/** @type {Hit} */ it) => it.name} selected=${selected}
      open=${(/** @type {Hit} */ it) => { location.hash = toTool(it.name, query); }} empty=${found ? "No tool matches."
        : "Loading ..."} /></div>
    ${selected && html`<${DetailPane} key=${selected}><${Detail} name=${selected} client=${client} hit=${rows.find((it) => it.name === selected)}
      back=${to(["tools"], query)} /><//>`}</div>`}`;
}
