/** Now: what needs a person, calls in flight, the last hour. */

import { useMemo, useState } from "../vendor/hooks.js";
import { path, post } from "../api.js";
import { Bars } from "../charts.js";
import { Members } from "../form.js";
import { useLive } from "../live.js";
import { formatClock, formatCount, formatMs, nest, plural, visible } from "../text.js";
import { Action, Ago, Figure, Foreign, Login, Mark, NextStep, Visit, act, html, to, useNow } from "../ui.js";
import { AddServer } from "./add.js";

/** In the order in which the page shows them. @type {{[kind: string]: {name: string, mark: "bad"|"warn"|"busy"}}} */
const KINDS = {
  question: { name: "Question", mark: "busy" },
  pins: { name: "Accepted tools", mark: "bad" },
  mistakes: { name: "Configuration", mark: "bad" },
  login: { name: "Login", mark: "warn" },
  review: { name: "Changed tools", mark: "warn" },
  down: { name: "Server", mark: "bad" },
  rule: { name: "Idle rule", mark: "warn" },
};
const SHOWN_OF_KIND = 5;

/** The answer to a question, in place of the client that was asked. @param {{question: Question, title: string}} props */
function Answer({ question, title }) {
  const [content, setContent] = useState(/** @type {{[name: string]: any}} */ ({}));
  const [lacks, setLacks] = useState(/** @type {{[name: string]: string}} */ ({}));
  const send = (/** @type {object} */ answer) => act(() => post(path("questions", question.id), answer));
  const accept = () => {
    const lacking = [question.schema?.required ?? []].flat().filter((it) => content[it] === undefined);
    setLacks(Object.fromEntries(lacking.map((it) => [it, "This value is needed."])));
    return lacking.length ? null : send({ action: "accept", ...(question.schema && { content }) });
  };
  const label = (/** @type {string} */ verb) => `${verb}: ${visible(title, 120)}`;
  return html`<form onSubmit=${(/** @type {Event} */ event) => event.preventDefault()}>
    ${question.schema && html`<${Members} schema=${question.schema} value=${content} errors=${lacks} onChange=${setContent} />`}
    ${question.address && html`<p><${Visit} address=${question.address}>Open the address<//></p>`}
    <div class="buttons"><${Action} kind="primary" label=${label("Answer")} run=${accept}>
      ${question.schema ? "Answer" : "Done"}<//>
      <${Action} label=${label("Decline")} run=${() => send({ action: "decline" })}>Decline<//></div></form>`;
}

/** @param {{it: Attention}} props */
function Item({ it }) {
  const { name, mark } = KINDS[it.kind] ?? { name: it.kind, mark: "warn" };
  const server = it.server;
  const address = useLive((state) => state.state.servers.get(server ?? "")?.login_address);
  return html`<li class="attention">
    <div class="what"><${Mark} kind=${mark}>${name}<//> <strong><${Foreign} text=${it.title} max=${200} /></strong>
      ${it.since_at && html` <span class="muted"><${Ago} s=${it.since_at} /></span>`}
      ${it.detail && html`<p class=${it.question ? "prose" : "muted"}><${Foreign} text=${it.detail} block=${Boolean(it.question)}
        max=${it.question ? 20_000 : 500} /></p>`}
      ${it.kind === "question" && (it.question ? html`<${Answer} question=${it.question} title=${it.title} />`
        : html`<p class="muted">Answer it in the client that was asked.</p>`)}</div>
    <div class="buttons">
      ${it.kind === "review" && html`<a class="button primary" href=${to(["tools"], { show: "changes", server })}>Review</a>`}
      ${["mistakes", "rule"].includes(it.kind) && html`<a class="button" href="#/configuration">Open</a>`}
      ${it.kind === "down" && server
        && html`<${Action} kind="primary" label=${`Restart ${visible(server)}`}
        run=${() => act(() => post(path("servers", server, "restart")))}>Restart<//>`}
      ${it.kind === "login" && server && html`<${Login} server=${server} address=${address} />`}
      ${server && it.kind !== "review"
        && html`<a class="button" href=${to(["servers", server])} aria-label=${`Details of ${visible(server)}`}>Details</a>`}
      ${!["review", "down", "login"].includes(it.kind) && html`<${NextStep} step=${it.next_step} />`}
    </div></li>`;
}

function AttentionList() {
  const attention = useLive((it) => it.state.attention);
  const kinds = Object.keys(KINDS);
  const place = (/** @type {string} */ kind) => (kinds.indexOf(kind) + kinds.length) % kinds.length;
  const isWhole = useLive((it) => it.state.daemon).get("daemon")?.is_whole;
  const items = [...attention].sort(([, a], [, b]) => place(a.kind) - place(b.kind));
  const shown = [...Map.groupBy(items, ([, it]) => it.kind).values()].flatMap((all) => all.slice(0, SHOWN_OF_KIND));
  return html`<section aria-labelledby="attention"><h2 id="attention">Needs attention ${items.length > 0
    && html`<span class="badge">${formatCount(items.length)}</span>`}</h2>
    ${items.length === 0 ? html`<p class="calm">${isWhole ? html`<${Mark} kind="ok">Nothing needs you.<//>` : "Looking ..."}</p>`
      : html`<ul class="list">${shown.map(([key, it]) => html`<${Item} key=${key} it=${it} />`)}
    ${items.length > shown.length && html`<li class="muted">and ${formatCount(items.length - shown.length)} more: <a
      href="#/servers">all servers</a>, <a href="#/tools?show=changes">all changed tools</a></li>`}</ul>`}</section>`;
}

const RUNNING_MAX = 50;

function RunningCalls() {
  const running = useLive((it) => it.state.running);
  const now = useNow(running.size ? 500 : 0);
  const calls = nest([...running.values()].sort((a, b) => a.since_ms - b.since_ms), (it) => it.id, (it) => it.parent);
  return html`<section aria-labelledby="running"><h2 id="running">Calls in flight ${calls.length > 0 && html`<span class="badge quiet">
    ${formatCount(calls.length)}</span>`}</h2>
    ${calls.length === 0 ? html`<p class="muted">No call runs at the moment. The last ones are in <a href="#/calls">Calls</a>.</p>`
      : html`<ul class="list">${calls.slice(0, RUNNING_MAX).map(({ item: it, depth }) => html`
      <li class="running" key=${it.id} style=${{ paddingLeft: `${12 + depth * 22}px` }}><span class="mono grow">
        ${depth > 0 && html`<span class="sr">by the script: </span>`}<${Foreign} text=${it.tool} max=${160} /></span>
          <span class="muted"><${Foreign} text=${it.client || "command line"} max=${60} /></span>
        <span class="num clock">${formatMs(Math.max(0, now - it.since_ms))}</span>
        <${Action} label=${`Cancel ${visible(it.tool)}`} run=${() => act(() => post(path("running", it.id, "cancel")))}>Cancel<//></li>`)}
      ${calls.length > RUNNING_MAX && html`<li class="muted">and ${formatCount(calls.length - RUNNING_MAX)} more</li>`}</ul>`}</section>`;
}

const MINUTES = 60;

function LastHour() {
  const minutes = useLive((it) => it.state.minutes);
  const now = Math.floor(useNow(10_000) / 60_000);
  const points = useMemo(() => Array.from({ length: MINUTES }, (_, i) => {
    const minute = now - MINUTES + 1 + i;
    const { calls = 0, errors = 0 } = minutes.get(String(minute)) ?? {};
    const name = formatClock(minute * 60_000);
    return { name, value: calls, bad: errors, text: `${name}: ${plural(calls, "call")}, ${plural(errors, "error")}`,
      href: to(["calls"], { since: minute * 60, until: minute * 60 + 60 }) };
  }), [minutes, now]);
  const sum = (/** @type {"value"|"bad"} */ part) => points.reduce((all, it) => all + it[part], 0);
  return html`<section aria-labelledby="hour"><h2 id="hour">Last hour</h2>
    <p class="muted"><a href="#/calls?since=1h">${plural(sum("value"), "call")}</a>, <a href="#/calls?since=1h&failures=true">
      ${plural(sum("bad"), "error")}</a></p>
    <${Bars} label="Calls and errors by minute" points=${points} legend=${["calls", "errors"]} /></section>`;
}

export function Now() {
  const servers = useLive((it) => it.state.servers);
  const clients = useLive((it) => it.state.clients);
  const totals = useLive((it) => it.state.totals).get("totals");
  const hasAttention = useLive((it) => it.state.attention.size > 0);
  const known = useLive((it) => it.known);
  if (!known) return html`<p class="loading">Loading ...</p>`;
  if (servers.size === 0) {
    return html`<section class="welcome"><h2>Add your first server</h2>
      <p>This proxy has no servers yet. Add one here, or take over those of your clients in a terminal:
        ${" "}<code>proxy init</code> shows what it would do and asks first.</p>
      <${AddServer} /></section>${hasAttention && html`<${AttentionList} />`}`;
  }
  const all = [...servers.values()];
  const bad = all.filter((it) => ["down", "stale", "login required"].includes(it.state)).length;
  const tools = all.reduce((sum, it) => sum + (it.enabled ? it.tools : 0), 0);
  return html`<dl class="figures">
      <${Figure} label="Servers" value=${formatCount(servers.size)} href="#/servers" note=${bad ? `${formatCount(bad)} with a problem`
        : "all in order"} kind=${bad ? "bad" : ""} />
      <${Figure} label="Tools" value=${formatCount(tools)} href="#/tools" />
      <${Figure} label="Clients" value=${formatCount(clients.size)} href="#/clients" />
      <${Figure} label="Calls since start" value=${formatCount(totals?.calls ?? 0)} href="#/calls" />
      <${Figure} label="Errors since start" value=${formatCount(totals?.errors ?? 0)} href="#/calls?failures=true" />
    </dl><${AttentionList} /><${RunningCalls} /><${LastHour} />`;
}
