/** Figures: calls, errors, times and tokens by tool, server, client or day. */

import { useMemo } from "../vendor/hooks.js";
import { queryOf, send } from "../api.js";
import { Bars, Ranges } from "../charts.js";
import { Grid } from "../grid.js";
import { useLive } from "../live.js";
import { formatCount, formatDay, formatMs, plural, visible } from "../text.js";
import { Action, Failure, Field, Figure, Foreign, act, html, setterOf, to, useFetch } from "../ui.js";


const TOP = 1_000;
/** Tools in the chart of times. */
const RANGES = 12;

/** @param {{[code: string]: number}} errors */
const sumErrors = (errors) => Object.values(errors).reduce((sum, it) => sum + it, 0);
/** @param {Line} it */
const tokensOf = (it) => it.tokens_in + it.tokens_out;

/** Midnights are those of the daemon, in UTC. @param {string} day */
const spanOfDay = (day) => ({ since: Date.parse(`${day}T00:00Z`) / 1000, until: Date.parse(`${day}T00:00Z`) / 1000 + 86_400 });

/** Returns the calls behind a line. @param {string} by @param {string} name @param {string} days @param {object} [more] */
function callsOf(by, name, days, more = {}) {
  if (by === "day") return to(["calls"], { ...spanOfDay(name), ...more });
  const [server, tool] = name.split(/\/(.*)/s);
  const filter = by === "tool" ? { server, tool } : { [by]: name };
  return to(["calls"], { ...filter, since: `${days}d`, ...more });
}

/** @param {string} by @param {string} days @param {Map<string, Server>} servers @returns {import("../grid.js").Column[]} */
const columnsOf = (by, days, servers) => [
  { key: "name", head: { tool: "Tool", server: "Server", client: "Client", day: "Day" }[by] ?? "Name", sort: (it) => it.name, cell: (it) =>
    html`<span class=${by === "tool" ? "mono" : ""}><${Foreign} text=${by === "day" ? formatDay(it.name) : it.name || "command line"}
      max=${140} /></span>` },
  { key: "calls", head: "Calls", num: true, sort: (it) => it.calls, cell: (it) => html`<a tabindex="-1" href=${callsOf(by, it.name, days)}>
    ${formatCount(it.calls)}</a>` },
  { key: "errors", head: "Errors", num: true, sort: (it) => sumErrors(it.errors), cell: (it) =>
    (sumErrors(it.errors) ? html`<a tabindex="-1" class="bad" href=${callsOf(by, it.name, days, { failures: "true" })}>
      ${formatCount(sumErrors(it.errors))}</a>` : "0") },
  { key: "p50", head: "p50", num: true, kind: "p2", sort: (it) => it.p50_us ?? 0, cell: (it) => formatMs(it.p50_us && it.p50_us / 1000) },
  { key: "p95", head: "p95", num: true, kind: "p2", sort: (it) => it.p95_us ?? 0, cell: (it) => formatMs(it.p95_us && it.p95_us / 1000) },
  { key: "in", head: "Tokens in", num: true, kind: "p3", sort: (it) => it.tokens_in, cell: (it) => formatCount(it.tokens_in) },
  { key: "out", head: "Tokens out", num: true, kind: "p3", sort: (it) => it.tokens_out, cell: (it) => formatCount(it.tokens_out) },
  { key: "tokens", head: "Tokens", num: true, sort: tokensOf, cell: (it) => html`<a tabindex="-1" href=${callsOf(by, it.name, days)}>
    ${formatCount(tokensOf(it))}</a>` },
  { key: "cut", head: "Cut", num: true, kind: "p3", sort: (it) => it.tokens_cut, cell: (it) => formatCount(it.tokens_cut) },
  { key: "redacted", head: "Redacted", num: true, kind: "p3", sort: (it) => it.redacted, cell: (it) => (it.redacted
    ? html`<a tabindex="-1" href=${callsOf(by, it.name, days, { redacted: "true" })}>${formatCount(it.redacted)}</a>` : "0") },
  ...(by === "server" ? [{ key: "front", head: "Definitions", num: true, kind: "p3", sort: (/** @type {Line} */ it) =>
    servers.get(it.name)?.tokens ?? 0, cell: (/** @type {Line} */ it) => formatCount(servers.get(it.name)?.tokens) }] : []),
];

/** Saves a file of the browser. @param {Blob} blob @param {string} name */
function save(blob, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

/** The days up to today, also those without a call. @param {Line[]} lines @param {number} days */
function fillDays(lines, days) {
  const known = new Map(lines.map((it) => [it.name, it]));
  const today = Math.floor(Date.now() / 86_400_000);
  return Array.from({ length: days }, (_, i) => {
    const name = new Date((today - days + 1 + i) * 86_400_000).toISOString().slice(0, 10);
    return known.get(name) ?? { name, calls: 0, errors: {}, tokens_in: 0, tokens_out: 0, tokens_cut: 0, cuts: 0, tokens_saved: 0 };
  });
}

/** @param {{days: string, by: Line[], tools: Line[]}} props */
function Charts({ days, by, tools }) {
  const all = useMemo(() => fillDays(by, Number(days)), [by, days]);
  const calls = all.map((it) => ({ name: formatDay(it.name), value: it.calls, bad: sumErrors(it.errors),
    href: callsOf("day", it.name, days),
      text: `${formatDay(it.name)}: ${plural(it.calls, "call")}, ${plural(sumErrors(it.errors), "error")}` }));
  const saved = all.map((it) => ({ name: formatDay(it.name), value: it.tokens_saved ?? 0, href: callsOf("day", it.name, days),
    text: `${formatDay(it.name)}: ${plural(it.tokens_saved ?? 0, "token")} saved` }));
  const timed = tools.filter((it) => it.p50_us && it.p95_us).sort((a, b) => b.calls - a.calls).slice(0, RANGES)
    .map((it) => ({ name: it.name, p50: (it.p50_us ?? 0) / 1000, p95: (it.p95_us ?? 0) / 1000, href: callsOf("tool", it.name, days) }));
  return html`<div class="charts"><${Bars} label="Calls and errors by day" points=${calls} legend=${["calls", "errors"]} />
    ${by.some((it) => it.tokens_saved !== undefined && it.tokens_saved !== null)
      && html`<${Bars} label="Tokens saved by day" points=${saved} legend=${["tokens saved"]} />`}
    ${timed.length > 0 && html`<${Ranges} label="Times of the tools with most calls" rows=${timed} />`}</div>`;
}

/** @param {import("../ui.js").Route} props */
export function Figures({ query }) {
  const { by = "tool", days = "30" } = query;
  const servers = useLive((it) => it.state.servers);
  const main = useFetch(`/figures${queryOf({ by, days, top: TOP })}`);
  const byDay = useFetch(`/figures${queryOf({ by: "day", days, top: TOP })}`);
  const byTool = useFetch(`/figures${queryOf({ by: "tool", days, top: TOP })}`);
  /** @type {FiguresAnswer|null} */
  const figures = main.data;
  const columns = useMemo(() => columnsOf(by, days, servers), [by, days, servers]);
  const exportJson = () => act(async () => {
    const response = await send("GET", `/figures${queryOf({ by, days, top: TOP })}`);
    save(await response.blob(), `proxy-${by}-${days}-days.json`);
    return { message: `Exported ${by === "day" ? "the days" : `the ${by}s`} as JSON.` };
  });
  const [since, span] = [`${days}d`, days === "1" ? "today" : `last ${days} days`];
  const total = figures?.total;
  return html`<div class="single"><div class="toolbar"><${Field} label="By" value=${by} options=${["tool", "server", "client", "day"]} onInput=${setterOf("by")} />
      <${Field} label="Days" value=${days} options=${["1", "7", "30", "90"]} onInput=${setterOf("days")} /><span class="grow"></span>
      <${Action} run=${exportJson}>Export JSON<//></div>
    <${Failure} error=${main.error ?? byDay.error ?? byTool.error} />
    ${figures && total && html`<dl class="figures">
      <${Figure} label="Calls" value=${formatCount(total.calls)} href=${to(["calls"], { since })} note=${span} />
        <${Figure} label="Errors" value=${formatCount(sumErrors(total.errors))} href=${to(["calls"], { since, failures: "true" })} note=${span} />
      <${Figure} label="p50" value=${formatMs(total.p50_us && total.p50_us / 1000) || "none"} href=${to(["calls"], { since })} />
        <${Figure} label="p95" value=${formatMs(total.p95_us && total.p95_us / 1000) || "none"}
          href=${to(["calls"], { since, slow: total.p95_us ? Math.floor(total.p95_us / 1000) : "" })} />
      <${Figure} label="Tokens in" value=${formatCount(total.tokens_in)} href=${to(["calls"], { since })} />
        <${Figure} label="Tokens out" value=${formatCount(total.tokens_out)} href=${to(["calls"], { since })} />
      <${Figure} label="Tokens saved" href=${to(["figures"], { by: "day", days })}
        value=${formatCount(figures.tokens_saved_by_definitions + figures.tokens_saved_by_scripts)} note=${`${plural(figures.sessions, "session")}, ${plural(figures.scripts, "script")}`} />
      <${Figure} label="Redacted" value=${formatCount(total.redacted)} href=${to(["calls"], { since, redacted: "true" })}
        note="texts in results" />
      <${Figure} label="Searches" value=${formatCount(figures.searches)}
        note=${`${formatCount(figures.searches_without_hit)} without a hit`} /></dl>
    <${Charts} days=${days} by=${byDay.data?.lines ?? []} tools=${byTool.data?.lines ?? []} />
    <${Grid} key=${by} label=${`Figures by ${by}`} kind=${`lines by-${by}`} columns=${columns} rows=${figures.lines}
      keyOf=${(/** @type {Line} */ it) => it.name} sort=${by === "day" ? { key: "name", up: false } : by === "tool"
        ? { key: "calls", up: false } : { key: "tokens", up: false }}
      open=${(/** @type {Line} */ it) => { location.hash = callsOf(by, it.name, days); }} empty="No calls in this time." />
    ${figures.asked_without_hit.length > 0 && html`<section aria-labelledby="without-hit"><h2 id="without-hit">Searches without a hit</h2>
      <ul class="tags">${figures.asked_without_hit.slice(0, 40).map((it) => html`<li><a href=${to(["tools"], { q: it.words })}>
        <${Foreign} text=${it.words} max=${80} /></a> <span class="muted">${formatCount(it.count)}</span></li>`)}</ul></section>`}
    ${figures.categories?.length > 0 && html`<section aria-labelledby="categories"><h2 id="categories">Calls by category</h2>
      <ul class="tags">${figures.categories.slice(0, 40)
        .map((it) => html`<li><${Foreign} text=${visible(it.name, 80)} /> <span class="muted">
          ${formatCount(it.calls)}</span></li>`)}</ul></section>`}`}
  </div>`;
}
