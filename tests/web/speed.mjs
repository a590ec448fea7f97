// Measures the page with 100 servers and 5,000 tools, and prints medians. It asserts nothing.
//
//     PROXY=target/release/proxy speed.mjs FOLDER [paints] [changes] [processor] [list]
//
// SERVERS=3 takes as many servers instead. Runs in a folder with the packages of package.json; starts its servers in FOLDER.

import { readFileSync } from "node:fs";
import { createServer } from "node:http";

import { launch, open } from "./browser.mjs";
import { generate } from "./generated.mjs";

const PAINTS = 9;
const CHANGES = 31;
const TURNS = 4;
const LOAD_S = 10;
const CALLS_A_SECOND = 1_000;
const TICKS_A_SECOND = 100;
const LISTED = 10_000;

const { scene, call } = await generate(process.env.PROXY, process.argv[2], Number(process.env.SERVERS ?? 100));
// The first call of a server starts it.
await call("notes/list_notes", {});
const browser = await launch();
const median = (values) => [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)];
const print = (what, values, unit) => console.log(`${what}: ${median(values).toFixed(1)} ${unit} (${Math.min(...values).toFixed(1)} to ${
  Math.max(...values).toFixed(1)}, ${values.length} runs)`);
const rest = (ms) => new Promise((resolve) => { setTimeout(resolve, ms); });
const show = (page, fragment) => page.evaluate((it) => { location.hash = it; }, `#/${fragment}`);

const firstPaint = (page) => page.evaluate(() => performance.getEntriesByName("first-contentful-paint")[0]?.startTime ?? NaN);

// From the start of the navigation, in the clock of the browser; a page of one word shows the part of the browser itself.
async function measurePaints() {
  const [painted, drawn, listed, tools, word] = [[], [], [], [], []];
  const server = createServer((_, response) => response.writeHead(200, { "content-type": "text/html" }).end("<!doctype html><p>word"));
  await new Promise((resolve) => { server.listen(0, "127.0.0.1", resolve); });
  for (let i = 0; i < PAINTS; i++) {
    const address = scene.open();
    const context = await browser.newContext({ viewport: { width: 1440, height: 900 } });
    const page = await context.newPage();
    await page.addInitScript(() => {
      const look = () => {
        if (window.drawn || !document.querySelector("main .figures dd, main .grid-body > [role=row]")) return;
        requestAnimationFrame(() => setTimeout(() => { window.drawn ??= performance.now(); }));
      };
      new MutationObserver(look).observe(document, { childList: true, subtree: true });
    });
    const measured = async () => (await page.waitForFunction(() => window.drawn)).jsonValue();
    await page.goto(address);
    drawn.push(await measured());
    painted.push(await firstPaint(page));
    for (const [fragment, values] of [["servers", listed], ["tools", tools]]) {
      await page.goto(`${new URL(address).origin}/?${fragment}${i}#/${fragment}`);
      values.push(await measured());
    }
    await context.close();
    const other = await browser.newContext({ viewport: { width: 1440, height: 900 } });
    const empty = await other.newPage();
    await empty.goto(`http://127.0.0.1:${server.address().port}/`);
    await empty.waitForFunction(() => performance.getEntriesByName("first-contentful-paint").length > 0);
    word.push(await firstPaint(empty));
    await other.close();
  }
  server.close();
  print("first paint", painted, "ms");
  print("first paint of a page of one word", word, "ms");
  print("the figures of Now drawn", drawn, "ms");
  print("the list of 100 servers drawn", listed, "ms");
  print("the list of 5,000 tools drawn", tools, "ms");
}

// From the moment a client sends a call until its effect is painted; a call takes about a millisecond.
async function measureChanges(page) {
  await show(page, "now");
  await page.evaluate(() => {
    window.changes = [];
    let old = "";
    const look = () => {
      const now = document.querySelectorAll(".figures dd")[3]?.textContent ?? "";
      if (now !== old) requestAnimationFrame(() => setTimeout(() => window.changes.push(Date.now())));
      old = now;
    };
    new MutationObserver(look).observe(document.body, { childList: true, subtree: true, characterData: true });
  });
  const times = [];
  for (let i = 0; i < CHANGES; i++) {
    await rest(150 + Math.random() * 100);
    const before = await page.evaluate(() => window.changes.length);
    const began = Date.now();
    await call("notes/list_notes", {});
    const at = await page.waitForFunction((it) => window.changes[it], before);
    times.push((await at.jsonValue()) - began);
  }
  print("a call shown", times, "ms");
}

const { daemons: [daemon] } = JSON.parse(scene.run("status", "--json"));
function processorTime() {
  const fields = readFileSync(`/proc/${daemon.pid}/stat`, "utf8").split(") ")[1].split(" ");
  return (Number(fields[11]) + Number(fields[12])) / TICKS_A_SECOND;
}

// Returns the processor time of the daemon, in % of a core, while this runs.
async function processorShare(run) {
  const [time, began] = [processorTime(), Date.now()];
  await run();
  return ((processorTime() - time) / (Date.now() - began)) * 100_000;
}

async function measureProcessor() {
  const load = () => scene.burst("notes/list_notes", {}, CALLS_A_SECOND * LOAD_S, CALLS_A_SECOND);
  const idle = () => rest(LOAD_S * 1_000);
  const kinds = { "closed": null, "open at Now": "now", "open at Calls": "calls", "open at Figures": "figures" };
  const shares = Object.fromEntries(Object.keys(kinds).flatMap((kind) => [[kind, []], [`${kind}, idle`, []]]));
  await load();
  for (let turn = 0; turn < TURNS; turn++) {
    for (const [kind, fragment] of Object.entries(kinds)) {
      const tab = fragment && await open(browser, scene.open());
      if (tab) await tab.page.getByText("Live", { exact: true }).waitFor();
      if (tab) await show(tab.page, fragment);
      await rest(1_000);
      shares[kind].push(await processorShare(load));
      shares[`${kind}, idle`].push(await processorShare(idle));
      await tab?.context.close();
      await rest(1_000);
    }
  }
  for (const [kind, values] of Object.entries(shares)) {
    const calls = kind.endsWith("idle") ? "" : ` at ${CALLS_A_SECOND} calls a second`;
    print(`processor time of the daemon${calls}, tab ${kind}`, values, "% of a core");
  }
}

// The calls of the load are in the log: more than the list asks for.
async function measureList(page) {
  await show(page, "now");
  const began = Date.now();
  const bytes = await page.evaluate(async (limit) => {
    const headers = { authorization: `Bearer ${sessionStorage.getItem("proxy-token")}` };
    return (await (await fetch(`/api/v1/calls?limit=${limit}`, { headers })).text()).length;
  }, LISTED);
  console.log(`${LISTED} calls in one answer: ${Date.now() - began} ms, ${bytes} bytes`);
  await show(page, "calls");
  const grid = page.getByRole("grid", { name: "Calls" });
  await grid.locator(".grid-body > [role=row]").first().waitFor();
  const scrolled = Date.now();
  const rows = () => page.evaluate(() => Number(document.querySelector(".grid.calls").getAttribute("aria-rowcount")));
  while ((await rows()) < LISTED) await page.evaluate(() => document.querySelector(".grid.calls").scrollTo(0, 1e9)).then(() => rest(5));
  console.log(`${LISTED} calls by scrolling: ${Date.now() - scrolled} ms`);
  const frames = await page.evaluate(async () => {
    const [grid, times] = [document.querySelector(".grid.calls"), []];
    for (let i = 0; i < 60; i++) {
      const began = performance.now();
      grid.scrollTop = (i * 7919 * 34) % grid.scrollHeight;
      await new Promise((resolve) => { requestAnimationFrame(() => setTimeout(resolve)); });
      times.push(performance.now() - began);
    }
    return times;
  });
  print(`a scroll to another place among ${LISTED} calls`, frames, "ms");
  const memory = await page.evaluate(() => performance.memory?.usedJSHeapSize ?? 0);
  console.log(`memory of the tab's scripts: ${Math.round(memory / 1e6)} MB`);
}

const requests = [];
async function inTab(measure) {
  const { page, context, told } = await open(browser, scene.open());
  await page.getByText("Live", { exact: true }).waitFor();
  await measure(page);
  requests.push(...told.requests);
  await context.close();
}

const parts = process.argv.slice(3);
const plays = (part) => parts.length === 0 || parts.includes(part);
if (plays("paints")) await measurePaints();
if (plays("changes")) await inTab(measureChanges);
if (plays("processor")) await measureProcessor();
if (plays("list")) {
  await scene.burst("notes/list_notes", {}, LISTED);
  await inTab(measureList);
}
const origins = new Set(requests.map((it) => new URL(it).origin));
console.log(`requests: ${requests.length}, to ${[...origins].join(", ")}`);
await browser.close();
scene.end();
