/** Configuration: mistakes, rules with their hits, and the changes that this page made. */

import { useEffect } from "../vendor/hooks.js";
import { path, post } from "../api.js";
import { useLive } from "../live.js";
import { formatCount, formatMoment, formatTime, plural, visible } from "../text.js";
import { Action, DiffText, Failure, Foreign, Mark, NextStep, Pre, act, html, to, useFetch } from "../ui.js";

const MARKS = /** @type {{[decision: string]: "ok"|"warn"|"bad"}} */ ({ allow: "ok", ask: "warn", deny: "bad" });

/** The members of a rule or quota that say which calls it is about. @param {{rule: Rule, others: string[]}} props */
const Matches = ({ rule, others }) => {
  const members = Object.entries(rule).filter(([name, value]) => !others.includes(name) && value !== null && value !== undefined);
  return html`<div>${members.map(([name, value]) => html`<span class="match"><span class="muted">${name}</span> <code>
    <${Foreign} text=${typeof value === "string" ? value : JSON.stringify(value)} max=${300} /></code></span>`)}
    ${members.length === 0 && "every call"}</div>`;
};

/** @param {{it: NumberedRule, marked: boolean}} props */
function RuleItem({ it, marked }) {
  return html`<li class=${marked ? "marked" : ""}><span class="num muted">${it.number}</span>
    <${Mark} kind=${MARKS[it.rule.decision] ?? "off"}>${visible(it.rule.decision)}<//>
    <div class="grow"><${Matches} rule=${it.rule} others=${["decision", "reason"]} />
      ${it.rule.reason && html`<p class="muted"><${Foreign} text=${it.rule.reason} max=${300} /></p>`}
      ${it.idle && html`<p><${Mark} kind="warn">matches nothing<//> <span class="muted">
        <${Foreign} text=${it.idle} max=${400} /></span> <${NextStep} step=${it.next_step} /></p>`}</div>
    <a class="num" href=${to(["calls"], { rule: it.number })}>${plural(it.hits, "hit")}
      <span class="sr"> of rule ${it.number}</span></a></li>`;
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

/** @param {import("../ui.js").Route} props */
export function Configuration({ query }) {
  const daemon = useLive((it) => it.state.daemon).get("daemon");
  const rules = useLive((it) => it.state.attention);
  const { data, error, reload } = useFetch("/configuration", [daemon?.config_number, daemon?.config_mistakes,
    [...rules.values()].filter((it) => it.kind === "rule").length]);
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
    ${it && html`<section aria-labelledby="rules"><h2 id="rules">Rules</h2>
      ${it.rules.length === 0 ? html`<p class="muted">No rules: the preset <code>${it.policy}</code> decides about every call.</p>`
        : html`<ol class="list rules">${it.rules.map((rule) =>
        html`<${RuleItem} key=${rule.number} it=${rule} marked=${query.rule === String(rule.number)} />`)}</ol>
        <p class="muted">If no rule matches, the preset <code>${it.policy}</code> decides. Hits are those among the newest
          ${" "}${plural(it.hits_among, "call")}.</p>`}
      <p class="muted">Add, change and remove rules in the file. <code>proxy policy test SERVER/TOOL</code> in a terminal tests a call.</p>
    </section>
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
