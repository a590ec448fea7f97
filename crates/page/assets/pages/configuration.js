/** Configuration: mistakes, rules with their hits, and the changes that this page made. */

import { useEffect, useState } from "../vendor/hooks.js";
import { path, post } from "../api.js";
import { useLive } from "../live.js";
import { formatCount, formatMoment, formatTime, plural, visible } from "../text.js";
import { Action, DiffText, Failure, Field, Foreign, Mark, NextStep, Pre, act, html, setQuery, to, useFetch } from "../ui.js";
import { RuleDialog } from "./rule.js";

const MARKS = /** @type {{[decision: string]: "ok"|"warn"|"bad"}} */ ({ allow: "ok", ask: "warn", deny: "bad" });

/** The members of a rule or quota that say which calls it is about. @param {{rule: Rule, others: string[]}} props */
const Matches = ({ rule, others }) => {
  const members = Object.entries(rule).filter(([name, value]) => !others.includes(name) && value !== null && value !== undefined);
  return html`<div>${members.map(([name, value]) => html`<span class="match"><span class="muted">${name}</span> <code>
    <${Foreign} text=${typeof value === "string" ? value : JSON.stringify(value)} max=${300} /></code></span>`)}
    ${members.length === 0 && "every call"}</div>`;
};

/** @param {{it: NumberedRule, marked: boolean, remove: () => void}} props */
function RuleItem({ it, marked, remove }) {
  return html`<li class=${marked ? "marked" : ""}><span class="num muted">${it.number}</span>
    <${Mark} kind=${MARKS[it.rule.decision] ?? "off"}>${visible(it.rule.decision)}<//>
    <div class="grow"><${Matches} rule=${it.rule} others=${["decision", "reason"]} />
      ${it.rule.reason && html`<p class="muted"><${Foreign} text=${it.rule.reason} max=${300} /></p>`}
      ${it.idle && html`<p><${Mark} kind="warn">matches nothing<//> <span class="muted">
        <${Foreign} text=${it.idle} max=${400} /></span> <${NextStep} step=${it.next_step} /></p>`}</div>
    <a class="num" href=${to(["calls"], { rule: it.number })}>${plural(it.hits, "hit")}
      <span class="sr"> of rule ${it.number}</span></a>
    <button type="button" aria-label=${`Remove rule ${it.number}`} onClick=${remove}>Remove</button></li>`;
}

/** @param {{quotas: Quota[]}} props */
const Quotas = ({ quotas }) => html`<section aria-labelledby="quotas"><h2 id="quotas">Quotas</h2>
  ${quotas.length === 0 ? html`<p class="muted">No quotas: no number of calls or tokens is limited.</p>`
    : html`<ol class="list">${quotas.map((it) => html`<li key=${it.number}><span class="num muted">${it.number}</span><strong>${it.about}</strong>
      <div class="grow"><${Matches} rule=${it.quota} others=${["calls", "tokens", "repeats", "per"]} /></div>
      <ul>${it.uses.map((use) => html`<li class=${use.used >= it.limit ? "bad" : ""}>
        ${use.counted && html`<${Foreign} text=${use.counted} max=${200} />: `}${formatCount(use.used)} of ${formatCount(it.limit)} used,
        ${" "}whole again at ${formatMoment(use.resets_at * 1000)}</li>`)}${it.uses.length === 0 && html`<li class="muted">
        ${it.quota.repeats ? "counted in each session" : "not used"}</li>`}</ul></li>`)}</ol>`}
  </section>`;

/** @param {{query: {[name: string]: string}, rules: number, reload: () => void, close: () => void}} props */
function AddRule({ query, rules, reload, close }) {
  const [rule, setRule] = useState({ decision: query.decision ?? "deny", client: query.client ?? "", server: query.server ?? "",
    tool: query.tool ?? "", category: "", reason: "" });
  const [position, setPosition] = useState("1");
  const [error, setError] = useState(/** @type {any} */ (null));
  const [shows, setShows] = useState(false);
  const servers = useLive((it) => it.state.servers);
  const clients = useLive((it) => it.state.clients);
  const written = Object.fromEntries(Object.entries(rule).filter(([, value]) => value !== ""));
  const place = Number(position);
  const check = async () => {
    try {
      await post("/rules", { rule: written, position: place, dry_run: true });
      setError(null);
      setShows(true);
    } catch (cause) {
      setError(cause);
    }
  };
  const field = (/** @type {keyof typeof rule} */ name, /** @type {string} */ label, /** @type {object} */ more = {}) =>
    html`<${Field} label=${label} value=${rule[name]} error=${isAt(name) ? html`<${Foreign} text=${error.message} />` : undefined}
      ...${more}
    onInput=${(/** @type {string} */ it) => setRule({ ...rule, [name]: it })} />`;
  const isAt = (/** @type {string} */ name) => error?.field === name || error?.field === `rule.${name}`;
  const isKnown = error && [...Object.keys(rule), "position"].some(isAt);
  const { data } = useFetch(rule.server && servers.has(rule.server) ? path("servers", rule.server) : null);
  const names = (data?.tools ?? []).map((/** @type {any} */ it) => it.name);
  return html`<form class="panel" aria-labelledby="add-rule" onSubmit=${(/** @type {Event} */ event) => event.preventDefault()}>
    <h3 id="add-rule">Add a rule</h3>
    <p class="muted">A call must match all fields that are filled in. Patterns may have <code>*</code>. The first rule that matches decides.</p>
    <div class="row">${field("decision", "Decision", { options: [["deny", "deny"], ["ask", "ask a person"], ["allow", "allow"]] })}
      ${field("client", "Client", { hint: "Every client if empty",
        list: [...new Set([...clients.values()].map((it) => it.name).filter(Boolean))] })}
      ${field("server", "Server", { hint: "Every server if empty", list: [...servers.keys()] })}
        ${field("tool", "Tool", { hint: "Name, server/name or a pattern", list: names })}
      ${field("category", "Category")}
        ${field("reason", "Reason", { wide: true, hint: "Shown to the model that is refused and to the person who is asked" })}
      <${Field} label="Place" value=${position} error=${isAt("position") ? error.message : undefined}
        options=${Array.from({ length: rules + 1 }, (_, i) => [String(i + 1), i === 0 ? "first" : i === rules ? "last"
          : `before rule ${i + 1}`])} onInput=${setPosition} /></div>
    ${!isKnown && html`<${Failure} error=${error} />`}
    <div class="buttons"><${Action} kind="primary" run=${check}>Show the change<//>
      <button type="button" onClick=${close}>Cancel</button></div>
    ${shows && html`<${RuleDialog} title="Add this rule?" rule=${written} position=${place} button="Add the rule" onClose=${() =>
      setShows(false)} onDone=${() => { reload(); close(); }} />`}</form>`;
}

/** @param {import("../ui.js").Route} props */
export function Configuration({ query }) {
  const daemon = useLive((it) => it.state.daemon).get("daemon");
  const rules = useLive((it) => it.state.attention);
  const { data, error, reload } = useFetch("/configuration", [daemon?.config_number, daemon?.config_mistakes,
    [...rules.values()].filter((it) => it.kind === "rule").length]);
  const [removes, setRemoves] = useState(/** @type {NumberedRule|null} */ (null));
  /** @type {ConfigurationAnswer|null} */
  const it = data;
  useEffect(() => {
    if (query.rule) document.querySelector("li.marked")?.scrollIntoView({ block: "center" });
  }, [query.rule, it]);
  const mistakes = it?.mistakes ?? daemon?.config_mistakes;
  const undo = async (/** @type {number} */ id) => {
    await act(() => post(path("changes", id, "undo")));
    reload();
  };
  return html`<div class="single"><${Failure} error=${error} />
    ${it && html`<p class="muted">File <code><${Foreign} text=${it.file} max=${300} /></code></p>`}
    ${mistakes && html`<section aria-labelledby="mistakes"><h2 id="mistakes">Mistakes</h2>
      <p>The previous configuration stays in effect until these are corrected.</p>
        <${Pre} text=${mistakes} label="Mistakes of the configuration" /></section>`}
    ${it && html`<section aria-labelledby="rules"><header class="toolbar"><h2 id="rules" class="grow">Rules</h2>
      ${!query.add && html`<a class="button primary" href="#/configuration?add=1">Add a rule</a>`}</header>
      ${query.add && html`<${AddRule} key=${JSON.stringify(query)} query=${query} rules=${it.rules.length} reload=${reload}
        close=${() => setQuery({ add: "", decision: "", server: "", tool: "", client: "" })} />`}
      ${it.rules.length === 0 ? html`<p class="muted">No rules: the preset <code>${it.policy}</code> decides about every call.</p>`
        : html`<ol class="list rules">${it.rules.map((rule) =>
        html`<${RuleItem} key=${rule.number} it=${rule} marked=${query.rule === String(rule.number)}
          remove=${() => setRemoves(rule)} />`)}</ol><p class="muted">If no rule matches, the preset <code>
            ${it.policy}</code> decides. Hits are those among the newest ${plural(it.hits_among, "call")}.
            <code>proxy policy test SERVER/TOOL</code> in a terminal tests a call.</p>`}
      ${removes && html`<${RuleDialog} title=${`Remove rule ${removes.number}?`} rule=${removes.rule} remove=${removes.number}
        button="Remove the rule" onClose=${() => setRemoves(null)} onDone=${reload} />`}</section>
    <${Quotas} quotas=${it.quotas} />
    <section aria-labelledby="changes"><h2 id="changes">Changes made here</h2>
      ${it.changes.length === 0 ? html`<p class="muted">This page has changed nothing yet.</p>`
        : html`<ul class="list">${it.changes.map((change) => html`<li class="column" key=${change.id}>
      <div class="toolbar"><span class="grow"><${Foreign} text=${change.message} max=${300} /></span>
        <time class="muted" datetime=${new Date(change.at * 1000).toISOString()}>${formatTime(change.at * 1000)}</time>
          ${change.can_undo && html`<${Action} label=${`Undo: ${visible(change.message, 80)}`} run=${() => undo(change.id)}>Undo<//>`}</div>
      ${change.diff && html`<details><summary>Difference</summary><${DiffText} label=${visible(change.message, 80)}
        text=${change.diff} /></details>`}</li>`)}</ul>`}</section>`}</div>`;
}
