/** Clients: who is connected, and what each one sees. */

import { useMemo, useState } from "../vendor/hooks.js";
import { path, post } from "../api.js";
import { Grid } from "../grid.js";
import { useLive } from "../live.js";
import { formatCount, plural, visible } from "../text.js";
import { Ago, Confirm, DetailPane, Failure, Foreign, act, html, to, useFetch } from "../ui.js";

/** @param {Client} it */
const nameOf = (it) => it.name || "unnamed client";

/** @type {import("../grid.js").Column[]} */
const COLUMNS = [
  { key: "name", head: "Client", sort: (it) => nameOf(it), cell: (it) =>
    html`<strong><${Foreign} text=${nameOf(it)} max=${80} /></strong> <span class="muted">
      <${Foreign} text=${it.version ?? ""} max=${30} /></span>` },
  { key: "transport", head: "By", sort: (it) => it.transport, cell: (it) => it.transport },
  { key: "cwd", head: "Folder", kind: "p3", cell: (it) =>
    html`<span class="mono muted"><${Foreign} text=${it.cwd ?? ""} max=${160} /></span>` },
  { key: "pid", head: "Process", num: true, kind: "p3", cell: (it) => it.pid ?? "" },
  { key: "since", head: "Connected", kind: "p2", sort: (it) => it.since, num: true, cell: (it) => html`<${Ago} s=${it.since} />` },
  { key: "calls", head: "Calls since then", num: true, sort: (it) => it.calls, cell: (it) => formatCount(it.calls) },
];

/** @param {{client: Client}} props */
function Detail({ client }) {
  const [ends, setEnds] = useState(false);
  const name = nameOf(client);
  return html`<article aria-labelledby="client-name"><header><h2 id="client-name"><${Foreign} text=${name} max=${100} /></h2>
    <span class="muted">number ${client.number}</span><a class="button quiet close" href="#/clients">Close</a></header>
    <div class="buttons"><a class="button" href=${to(["calls"], { client: client.name })}>Its calls</a>
      ${client.name && html`<a class="button" href=${to(["tools"], { client: client.name })}>Forbid a tool</a>`}
      <button type="button" class="danger" onClick=${() => setEnds(true)}>End the session</button></div>
    ${ends && html`<${Confirm} title=${`End the session of ${visible(name, 60)}`} button="End the session" onClose=${() => setEnds(false)}
      text="Its calls in flight are cancelled. Most clients connect again when they need a tool."
        run=${() => act(() => post(path("clients", client.number, "end")))} />`}
    <dl class="facts"><dt>Version</dt><dd><${Foreign} text=${client.version ?? "not announced"} max=${60} /></dd><dt>Transport</dt><dd>
      ${client.transport}</dd>
      ${client.caller && html`<dt>Credential</dt><dd><${Foreign} text=${client.caller} max=${100} /></dd>`}
      ${client.pid && html`<dt>Process</dt><dd>${client.pid}</dd>`}
        ${client.cwd && html`<dt>Folder</dt><dd class="mono"><${Foreign} text=${client.cwd} max=${400} /></dd>`}
      ${client.protocol && html`<dt>Protocol</dt><dd>${client.protocol}</dd>`}
      ${client.profiles?.map((it) => html`<dt>Profile</dt><dd><${Foreign} text=${it} max=${300} /></dd>`)}
      <dt>Connected</dt><dd><${Ago} s=${client.since} /></dd>
      ${client.rule && html`<dt>Settings</dt><dd><code><${Foreign} text=${client.rule} max=${200} /></code></dd>`}
      ${client.max_result_tokens && html`<dt>Budget</dt><dd>${plural(client.max_result_tokens, "token")} a result</dd>`}</dl>
    ${client.servers && html`<h3>It sees ${plural(client.servers.length, "server")}</h3><ul class="tags">
      ${client.servers.slice(0, 200).map((it) => html`<li><a href=${to(["servers", it])}>
        <${Foreign} text=${it} max=${60} /></a></li>`)}</ul>`}</article>`;
}

/** @param {import("../ui.js").Route} props */
export function Clients({ parts }) {
  const clients = useLive((it) => it.state.clients);
  const numbers = [...clients.keys()].join();
  const { data, error } = useFetch("/clients", [numbers]);
  const rows = useMemo(() => {
    const seen = new Map((data?.clients ?? []).map((/** @type {Client} */ it) => [String(it.number), it]));
    return [...clients.entries()].map(([key, it]) => ({ ...seen.get(key), ...it })).sort((a, b) => b.since - a.since);
  }, [clients, data]);
  const chosen = rows.find((it) => String(it.number) === parts[0]);
  return html`<div class=${`split ${chosen ? "has-detail" : ""}`}><div class="master"><${Failure} error=${error} />
    <${Grid} label="Clients" kind="clients" columns=${COLUMNS} rows=${rows} keyOf=${(/** @type {Client} */ it) => String(it.number)}
      selected=${chosen ? String(chosen.number) : null}
      open=${(/** @type {Client} */ it) => { location.hash = to(["clients", String(it.number)]); }}
        empty=${html`No client is connected. <code>proxy init</code> writes the entries of your clients.`} /></div>
    ${chosen && html`<${DetailPane} key=${chosen.number}><${Detail} client=${chosen} /><//>`}</div>`;
}
