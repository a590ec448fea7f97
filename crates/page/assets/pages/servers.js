/** Servers: the list, and one server with its log, history and processes. */

import { useMemo, useState } from "../vendor/hooks.js";
import { path, post } from "../api.js";
import { Grid } from "../grid.js";
import { live, useLive } from "../live.js";
import { formatBytes, formatCount, formatTime, plural, visible } from "../text.js";
import { Action, Ago, Confirm, DetailPane, Failure, Field, Figure, Foreign, Login, Mark, NextStep, Pre, Table, act, html, setterOf, to,
  useFetch } from "../ui.js";
import { AddServer } from "./add.js";
import { toTool } from "./tools.js";

/** @type {{[state: string]: "ok"|"warn"|"bad"|"off"|"busy"}} */
const MARKS = { ready: "ok", starting: "busy", stopped: "off", disabled: "off", "not asked yet": "off", stale: "warn",
  "login required": "warn", down: "bad" };

/** @type {{[state: string]: string}} */
const MEANINGS = { stopped: "starts with its next call", down: "starts with its next call, after a wait", stale: "the last survey failed",
  disabled: "in the configuration" };

/** @param {{server: Server}} props */
export const State = ({ server }) => html`<${Mark} kind=${MARKS[server.state] ?? "off"}>${server.state}<//>`;

/** @param {string} name @param {string} action */
const order = (name, action) => act(() => post(path("servers", name, action)));

/** The last restart of each server, until it succeeds or the server starts again. @type {Map<string, {message: string, starts: number}>} */
const RESTARTS = new Map();

/** @param {string} name */
async function restart(name) {
  const starts = 1 + (live.state.servers.get(name)?.starts ?? 0);
  RESTARTS.set(name, { message: "restarting", starts });
  const done = await order(name, "restart");
  // The row shows why a restart has failed.
  if (done) RESTARTS.set(name, { message: done.message, starts });
  else RESTARTS.delete(name);
}

/** @param {Server} it */
function restartOf(it) {
  if ((it.starts ?? 0) > (RESTARTS.get(it.name)?.starts ?? Infinity)) RESTARTS.delete(it.name);
  return RESTARTS.get(it.name)?.message ?? "";
}

/** @type {import("../grid.js").Column[]} */
const COLUMNS = [
  { key: "name", head: "Server", sort: (it) => it.name, cell: (it) => html`<strong><${Foreign} text=${it.name} max=${80} /></strong>` },
  { key: "state", head: "State", sort: (it) => it.state, cell: (it) => html`<${State} server=${it} />` },
  { key: "why", head: "Why", kind: "p3", cell: (it) => html`<span class="muted"><${Foreign}
    text=${it.why ?? MEANINGS[it.state] ?? restartOf(it)}
    max=${160} /></span>` },
  { key: "tools", head: "Tools", num: true, kind: "p2", sort: (it) => it.tools, cell: (it) => formatCount(it.tools) },
  { key: "tokens", head: "Tokens", num: true, kind: "p2", sort: (it) => it.tokens, cell: (it) => formatCount(it.tokens) },
  { key: "calls", head: "Calls since start", num: true, sort: (it) => it.calls, cell: (it) => formatCount(it.calls) },
  { key: "errors", head: "Errors since start", num: true, kind: "p2", sort: (it) => it.errors, cell: (it) =>
    (it.errors ? html`<span class="bad">${formatCount(it.errors)}</span>` : "0") },
  { key: "memory", head: "Memory", num: true, kind: "p3", sort: (it) => it.memory_bytes ?? 0, cell: (it) => formatBytes(it.memory_bytes) },
  { key: "processes", head: "Processes", num: true, kind: "p3", sort: (it) => it.processes.length, cell: (it) =>
    it.processes.filter((/** @type {any} */ p) => p.pid || p.state === "ready").length || "" },
  { key: "used", head: "Last used", num: true, kind: "p3", sort: (it) => it.last_used_at ?? 0, cell: (it) =>
    html`<${Ago} s=${it.last_used_at} />` },
];

/** @param {{name: string}} props */
function Detail({ name }) {
  const server = useLive((it) => it.state.servers).get(name);
  const { data, error } = useFetch(path("servers", name), [server]);
  const [asks, setAsks] = useState(false);
  /** @type {Server|undefined} */
  const it = server ?? data?.server;
  if (!it) return error ? html`<${Failure} error=${error} />` : html`<p class="loading">Loading ...</p>`;
  /** @type {ServerDetail|null} */
  const detail = data?.server.name === name ? data : null;
  return html`<article aria-labelledby="server-name"><header><h2 id="server-name"><${Foreign} text=${name} /></h2><${State} server=${it} />
      <a class="button quiet close" href="#/servers">Close</a></header>
    ${(it.why || it.next_step) && html`<div class=${it.state === "down" ? "failure" : "told-why"}>
      <${Foreign} text=${it.why ?? ""} block /> <${NextStep} step=${it.next_step && !it.why?.includes(it.next_step) ? it.next_step
        : null} /></div>`}
    <div class="buttons">
      ${it.enabled && it.is_remote && (it.state === "login required" || it.login_address) && html`<${Login} server=${name} address=${it.login_address} />`}
      ${it.enabled && html`<${Action} kind=${it.state === "login required" ? "" : "primary"} run=${() => restart(name)}>Restart<//>
        <${Action} run=${() => order(name, "reindex")}>Reindex<//>`}
      ${it.enabled ? html`<button type="button" onClick=${() => setAsks(true)}>Disable</button>`
        : html`<${Action} kind="primary" run=${() => order(name, "enable")}>Enable<//>`}
      <a class="button" href=${to(["calls"], { server: name, failures: "true" })}>Failed calls</a>
    </div>
    ${asks && html`<${Confirm} title=${`Disable ${visible(name)}`} button="Disable" onClose=${() => setAsks(false)}
      run=${() => order(name, "disable")}
      text="Its tools are no longer found or called, and its processes stop. The table stays in the configuration; Enable takes it back." />`}
    <dl class="figures small">
      <${Figure} label="Calls" value=${formatCount(it.calls)} href=${to(["calls"], { server: name })} note="since start" />
      <${Figure} label="Errors" value=${formatCount(it.errors)} href=${to(["calls"], { server: name, failures: "true" })} note="since start" />
      <${Figure} label="Tools" value=${formatCount(it.tools)} href=${to(["tools"], { server: name })} />
      <${Figure} label="Up front" value=${formatCount(it.tokens)} href=${to(["figures"], { by: "server" })}
        note="tokens without the proxy" />
      <${Figure} label="Memory" value=${formatBytes(it.memory_bytes) || "none"} note=${plural(it.starts ?? 0, "start")} />
      <${Figure} label="Last used" value=${html`<${Ago} s=${it.last_used_at} />`} />
    </dl>
    <${Failure} error=${error} />
    ${it.processes.length > 0 && html`<h3>Processes</h3><${Table} label="Processes" numeric=${[4]}
      head=${["Client", "State", "Process", "Protocol", "Memory"]} rows=${it.processes.map((p) => [
      html`<${Foreign} text=${p.client_name ?? "all clients"} max=${60} />`, p.state, p.pid ?? "", p.protocol ?? "",
        formatBytes(p.memory_bytes)])} />
      ${it.processes.filter((p) => p.waiting_calls)
        .map((p) => html`<p class="muted">${plural(p.waiting_calls, "call")} waiting for the call of another client</p>`)}
      ${it.processes.filter((p) => p.last_failure).slice(0, 3)
        .map((p) => html`<p class="muted">Last failure, <${Ago} s=${p.last_failure_at} />: <${Foreign} text=${p.last_failure}
          max=${600} /></p>`)}`}
    ${detail && html`<${Rest} detail=${detail} />`}</article>`;
}

/** @param {{detail: ServerDetail}} props */
function Rest({ detail }) {
  const { name } = detail.server;
  const names = (/** @type {string} */ verb, /** @type {string[]} */ list) => list.length > 0 && html`<div><span class="muted">
    ${verb}</span> ${list.slice(0, 12).map((it, i) => html`${i > 0 && ", "}<a class="mono" href=${toTool(`${name}/${it}`)}>
      <${Foreign} text=${it} max=${60} /></a>`)}${list.length > 12 && ` and ${list.length - 12} more`}</div>`;
  return html`<h3>Log</h3>${detail.log.length ? html`<${Pre} text=${detail.log.join("\n")} label=${`Log of ${name}`} tail />`
    : html`<p class="muted">The server has written nothing to stderr.</p>`}
    <h3>Start</h3><dl class="facts"><dt>${detail.launch.kind === "address" ? "Address" : "Command"}</dt><dd class="mono">
      <${Foreign} text=${detail.launch.text} max=${1000} /></dd>
      ${detail.server_version && html`<dt>Version</dt><dd><${Foreign} text=${detail.server_version} max=${80} /></dd>`}
      ${detail.launch.kind === "command" && html`<dt>Sandbox</dt><dd><${Foreign} text=${detail.sandbox ?? "none"} /></dd>`}
      ${detail.server.login && html`<dt>Login</dt><dd><${Foreign} text=${detail.server.login.issuer} max=${200} /></dd>`}
      ${detail.instructions && html`<dt>Instructions</dt><dd><${Foreign} text=${detail.instructions} block max=${1200} /></dd>`}</dl>
    <h3>Tools</h3><p class="muted">${plural(detail.tools.length, "tool")}, ${plural(detail.prompts, "prompt")}, ${plural(detail.resources,
      "resource")}</p>
    ${detail.tools.length > 0 && html`<${Table} label=${`Tools of ${visible(name)}`} numeric=${[2]} head=${["Tool", "Purpose", "Tokens"]}
      rows=${detail.tools.slice(0, 200).map((it) => [
      html`<a class="mono" href=${toTool(it.name)}><${Foreign} text=${it.name.slice(name.length + 1)} max=${80} /></a>`,
        html`<${Foreign} text=${it.purpose} max=${200} />`, formatCount(it.tokens)])} />`}
    ${detail.tools.length > 200 && html`<p>
      <a href=${to(["tools"], { server: name })}>All ${formatCount(detail.tools.length)} tools</a></p>`}
    <h3>History</h3>${detail.history.length === 0 ? html`<p class="muted">No survey has changed this server.</p>`
      : html`<ul class="list">${detail.history.slice(0, 20).map((it) => html`<li class="column">
      <time datetime=${new Date(it.at * 1000).toISOString()}>${formatTime(it.at * 1000)}</time>
        ${it.version && html`<div><span class="muted">version</span> <${Foreign} text=${it.version[0]} max=${60} /> to <${Foreign}
          text=${it.version[1]} max=${60} /></div>`}
      ${names("added", it.added)}${names("changed", it.changed)}${names("removed", it.removed)}</li>`)}</ul>`}`;
}

/** @param {import("../ui.js").Route} props */
export function Servers({ parts, query }) {
  const servers = useLive((it) => it.state.servers);
  const { words = "", state = "" } = query;
  const states = useMemo(() => [...new Set([...servers.values()].map((it) => it.state))].sort(), [servers]);
  const rows = useMemo(() => [...servers.values()].sort((a, b) => a.name.localeCompare(b.name)).filter((it) =>
    (!state || it.state === state) && `${it.name} ${it.category ?? ""} ${it.why ?? ""}`.toLowerCase().includes(words.toLowerCase())),
      [servers, words, state]);
  if (query.add) return html`<div class="single"><header class="toolbar"><a class="button" href="#/servers">All servers</a></header>
    <h2>Add a server</h2><${AddServer} /></div>`;
  const selected = parts[0] ?? null;
  return html`<div class=${`split ${selected ? "has-detail" : ""}`}><div class="master">
    <div class="toolbar" role="search"><${Field} label="Filter" kind="search" value=${words} onInput=${setterOf("words")} />
      <${Field} label="State" value=${state} options=${[["", "all"], ...states.map((it) => [it, it])]} onInput=${setterOf("state")} />
      <span class="muted grow">${formatCount(rows.length)} of ${plural(servers.size, "server")}</span>
        <a class="button primary" href="#/servers?add=1">Add a server</a></div>
    <${Grid} label="Servers" kind="servers" columns=${COLUMNS} rows=${rows} keyOf=${(/** @type {Server} */ it) => it.name}
      selected=${selected} classOf=${(/** @type {Server} */ it) => (it.enabled ? "" : "dim")}
      open=${(/** @type {Server} */ it) => { location.hash = to(["servers", it.name], query); }} empty=${servers.size ? "No server matches."
        : html`No servers yet. <a href="#/servers?add=1">Add one</a>.`} /></div>
    ${selected && html`<${DetailPane} key=${selected}><${Detail} name=${selected} /><//>`}</div>`;
}
