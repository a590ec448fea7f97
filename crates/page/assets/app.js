/** The frame: session, navigation, banner, notices, shortcuts. */

import { render } from "./vendor/preact.js";
import { useEffect, useRef, useState } from "./vendor/hooks.js";
import { ApiError, closeSession, hasSession, listenForSessions, openSession, path, post, takeCode } from "./api.js";
import { follow, live, useLive } from "./live.js";
import { formatCount, formatMoment, plural } from "./text.js";
import { Action, Copy, Dialog, DiffText, Foreign, Mark, NextStep, act, html, listenForNotices, noticeOf, readRoute, say } from "./ui.js";
import { Calls } from "./pages/calls.js";
import { Clients } from "./pages/clients.js";
import { Configuration } from "./pages/configuration.js";
import { Figures } from "./pages/figures.js";
import { Now } from "./pages/now.js";
import { Servers } from "./pages/servers.js";
import { Tools } from "./pages/tools.js";

/** @type {{[page: string]: {name: string, key: string, draw: any}}} */
const PAGES = {
  now: { name: "Now", key: "n", draw: Now },
  servers: { name: "Servers", key: "s", draw: Servers },
  tools: { name: "Tools", key: "t", draw: Tools },
  calls: { name: "Calls", key: "c", draw: Calls },
  clients: { name: "Clients", key: "l", draw: Clients },
  figures: { name: "Figures", key: "f", draw: Figures },
  configuration: { name: "Configuration", key: "k", draw: Configuration },
};

const SHORTCUTS = [["?", "this help"], ["/", "go to the search or filter"], ["Escape", "close a dialog, or the details"],
  ...Object.values(PAGES).map((it) => [`g ${it.key}`, it.name]),
  ["Arrows, Home, End", "move in a list or a chart"], ["Enter", "open the row"]];

/** Two keys of a shortcut follow each other within this time. */
const PAIR_MS = 1_200;
/** Stored without meaning for anyone else: "off" turns shortcuts of one key off. */
const KEYS = "proxy-shortcuts";

/** Handles shortcuts; they are off while text is written. @param {() => void} showHelp */
function listenForKeys(showHelp) {
  let goes = 0;
  return (/** @type {KeyboardEvent} */ event) => {
    const target = /** @type {HTMLElement} */ (event.target);
    if (event.key === "Escape" && !document.querySelector("dialog[open]")) {
      const close = /** @type {HTMLElement|null} */ (document.querySelector(".detail .close"));
      if (target.matches("input, textarea")) target.blur();
      else close?.click();
      return;
    }
    if (event.ctrlKey || event.metaKey || event.altKey || target.matches("input, textarea, select")
      || document.querySelector("dialog[open]") || localStorage.getItem(KEYS) === "off") return;
    const page = Object.keys(PAGES).find((it) => PAGES[it].key === event.key);
    if (page && Date.now() - goes < PAIR_MS) location.hash = `#/${page}`;
    else if (event.key === "?") showHelp();
    else if (event.key === "/") /** @type {HTMLElement|null} */ (document.querySelector("main input[type=search]"))?.focus();
    else {
      goes = event.key === "g" ? Date.now() : 0;
      return;
    }
    goes = 0;
    event.preventDefault();
  };
}

/** @param {{onClose: () => void}} props */
function Help({ onClose }) {
  const [on, setOn] = useState(localStorage.getItem(KEYS) !== "off");
  const turn = () => {
    localStorage.setItem(KEYS, on ? "off" : "on");
    setOn(!on);
  };
  return html`<${Dialog} title="Shortcuts" onClose=${onClose}><dl class="facts keys">
    ${SHORTCUTS.map(([key, meaning]) => html`<dt>${key.split(" ").map((it) => html`<kbd>${it}</kbd> `)}</dt><dd>${meaning}</dd>`)}</dl>
    <label class="switch"><input type="checkbox" checked=${on} onChange=${turn} /> Shortcuts of single keys</label><//>`;
}

/** Says that the page shows an old state, and how to open it again. */
function Banner() {
  const { link, closed, told, known } = useLive((it) => it);
  if (link === "closed") return html`<div class="banner" role="alert"><p><${Foreign} max=${400} text=${known && closed?.code === "unauthorized"
      ? "The session of this page ended with its daemon." : closed?.message ?? "This page has no session."} /> Open the page again with</p>
    <${Copy} text="proxy web" /> ${known && closed?.code === "unauthorized" && html`<p>This tab then goes on by itself.</p>`}</div>`;
  if (link !== "away") return null;
  return html`<div class="banner" role="alert"><p><strong>The daemon is away.</strong>
    ${live.heardAt > 0 && ` This is its state of ${formatMoment(live.heardAt)}.`} ${told && html`<${Foreign} text=${told} max=${300} /> `}
    The page connects again as soon as a daemon runs: the next call of a client starts it, or</p><${Copy} text="proxy daemon start" /></div>`;
}

function NoticeBar() {
  const [notice, setNotice] = useState(/** @type {import("./ui.js").Notice|null} */ (null));
  useEffect(() => listenForNotices(setNotice), []);
  const undo = notice?.undo;
  return html`<div role="status" class="notices">${notice?.message && html`<div class=${`notice ${notice.bad ? "bad" : ""}`}>
    <p><${Foreign} text=${notice.message} max=${1500} block /> <${NextStep} step=${notice.nextStep} /></p>
      ${notice.diff && html`<details><summary>Difference</summary><${DiffText} label="of this change" text=${notice.diff} /></details>`}
    <div class="buttons">${undo && html`<${Action} run=${() => act(() => post(path("changes", undo, "undo")))}>Undo<//>`}
      <button type="button" class="quiet" onClick=${() => setNotice(null)}>Dismiss</button></div></div>`}</div>`;
}

/** @param {{page: string}} props */
function Navigation({ page }) {
  const attention = useLive((it) => it.state.attention).size;
  const running = useLive((it) => it.state.running).size;
  const daemon = useLive((it) => it.state.daemon).get("daemon");
  const link = useLive((it) => it.link);
  /** @type {{[page: string]: [number, string]}} */
  const counts = { now: [attention, "need attention"], calls: [running, "in flight"] };
  const marks = /** @type {const} */ ({ starting: ["busy", "Connecting"], open: ["ok", "Live"], away: ["bad", "Away"],
    closed: ["off", "Signed out"] });
  return html`<header class="side"><a class="brand" href="#/now">proxy</a>
    <nav aria-label="Pages">${Object.entries(PAGES)
      .map(([key, it]) => html`<a href=${`#/${key}`} aria-current=${page === key ? "page" : undefined}>${it.name}
      ${counts[key]?.[0] > 0 && html` <span class=${`badge ${key === "now" ? "" : "quiet"}`}>${formatCount(counts[key][0])}
        <span class="sr"> ${counts[key][1]}</span></span>`}</a>`)}</nav>
    <span class="sr" role="status">${attention > 0 && `${plural(attention, "matter")} in need of attention`}</span>
    <div class="foot"><${Mark} kind=${marks[link][0]}>${marks[link][1]}<//><span class="muted">
      ${daemon ? `${daemon.version}, process ${daemon.pid}` : ""}</span>
      <button type="button" class="quiet" onClick=${() => dispatchEvent(new Event("help"))}>Shortcuts</button>
        ${link === "open" && html`<${Action} kind="quiet"
          run=${() => closeSession().catch((error) => say(noticeOf(error)))}>Sign out<//>`}</div></header>`;
}

function App() {
  const [route, setRoute] = useState(readRoute);
  const [help, setHelp] = useState(false);
  const link = useLive((it) => it.link);
  const known = useLive((it) => it.known);
  const heading = useRef(/** @type {HTMLElement|null} */ (null));
  const page = Object.hasOwn(PAGES, route.page) ? route.page : "now";
  useEffect(() => {
    const press = listenForKeys(() => setHelp(true));
    const show = () => setHelp(true);
    const turn = () => setRoute(readRoute());
    addEventListener("hashchange", turn);
    addEventListener("keydown", press);
    addEventListener("help", show);
  }, []);
  const first = useRef(true);
  useEffect(() => {
    document.title = `${PAGES[page].name} - proxy`;
    if (!first.current) {
      say(null);
      heading.current?.focus({ preventScroll: true });
      scrollTo(0, 0);
    }
    first.current = false;
  }, [page]);
  const isOld = known && link !== "open";
  return html`<a class="skip" href="#content" onClick=${(/** @type {Event} */ event) => { event.preventDefault(); heading.current?.focus();
    }}>Skip to the content</a>
    <${Navigation} page=${page} /><main id="content" class=${`page-${page}`}><${Banner} /><h1 tabindex="-1" ref=${heading}>
      ${PAGES[page].name}</h1><${NoticeBar} />
      <div class=${`content ${isOld ? "old" : ""}`}>
        ${(known || link !== "closed") && html`<${PAGES[page].draw} key=${page} ...${route} />`}</div></main>
    ${help && html`<${Help} onClose=${() => setHelp(false)} />`}`;
}

async function start() {
  const code = takeCode();
  const root = /** @type {HTMLElement} */ (document.getElementById("app"));
  if (code) {
    await openSession(code).catch((error) => { live.closed = error; });
  } else if (!hasSession()) {
    live.closed = new ApiError(401, { message: "This page needs a code that is valid once.", code: "unauthorized" });
  }
  if (live.closed) live.link = "closed";
  root.replaceChildren();
  render(html`<${App} />`, root);
  listenForSessions(follow);
  if (live.link !== "closed") await follow();
}

await start();
