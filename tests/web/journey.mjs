// Plays a person's visits to the web page of the real program, and prints every failure. Exit code 1: there are failures.
//
//     PROXY=target/debug/proxy journey.mjs FOLDER    starts servers, a client and a daemon in FOLDER
//     journey.mjs http://127.0.0.1:PORT/#CODE        visits a page that runs, without the parts that need the program
//
// ONLY=TEXT plays only the steps whose name has this text. Runs in a folder with the packages of package.json.

import { findings, launch, open } from "./browser.mjs";
import { HOSTILE } from "./hostile.mjs";
import { Scene, serverOf } from "./scene.mjs";
import { attack, attackFromInside } from "./strangers.mjs";

const PAGES = ["now", "servers", "tools", "calls", "clients", "figures", "configuration"];
const MORE = ["servers?add=1", "tools?show=changes"];

const failures = [];
const note = (text) => console.log(text);
function check(isTrue, name, detail = "") {
  if (!isTrue) failures.push(`${name}${detail && `: ${detail}`}`);
}
async function step(name, run) {
  if (process.env.ONLY && !name.includes(process.env.ONLY)) return;
  const before = failures.length;
  try {
    await run();
  } catch (error) {
    failures.push(`${name}: ${String(error.stack ?? error).split("\n").slice(0, 6).join("\n    ")}`);
    if (process.env.SHOTS) await page.screenshot({ path: `${process.env.SHOTS}/failure-${failures.length}.png` });
  }
  note(`${failures.length === before ? "ok    " : "FAILED"} ${name}`);
}

const target = process.argv[2];
const scene = target.startsWith("http") ? null : new Scene(process.env.PROXY, target, {
  notes: serverOf("notes", target),
  hostile: serverOf("hostile"),
  broken: serverOf("broken", target),
  many: serverOf("tools", "400"),
}, `[[rules]]
decision = "ask"
tool = "delete_note"
client = "asker"

[[quotas]]
calls = 50000
per = "day"
server = "notes"
each = "client"

[redaction]
enabled = true
`);
let address = target;
let call = async () => {};
if (scene) {
  scene.run("reindex");
  scene.make("changed");
  scene.run("reindex", "notes");
  call = await scene.connect("claude-code", [
    ["notes/add_note", { title: "Milk" }],
    ["notes/search_notes", { query: "milk" }],
    ["hostile/markup", {}],
    ["notes/add_note", { title: `ghp_${"a".repeat(36)}` }],
    ["broken/query", { sql: "select 1" }],
  ]);
  address = scene.open();
}
const origin = new URL(address).origin;
const browser = await launch();
const { page, context, told } = await open(browser, address);

const show = async (fragment) => {
  await page.evaluate((it) => { location.hash = it; }, `#/${fragment}`);
  await page.waitForFunction(() => !document.querySelector("main .loading") && document.querySelector("main h1"));
};
const main = () => page.locator("main");
const row = (grid, text) => page.getByRole("grid", { name: grid }).getByRole("row").filter({ hasText: text }).first();

await step("a first visit without servers shows how to add one", async () => {
  if (!scene) return;
  const empty = new Scene(process.env.PROXY, `${target}-empty`, {});
  const first = await open(browser, empty.open());
  await first.page.getByRole("heading", { name: "Add your first server" }).waitFor();
  await first.page.getByRole("button", { name: /^docker/ }).first().waitFor();
  for (const found of await findings(first.page)) check(false, "axe", found);
  check(first.told.errors.length === 0, "errors", first.told.errors.join("\n"));
  await first.context.close();
  empty.end();
});

await step("the code is taken out of the address", async () => {
  await page.getByRole("heading", { name: "Now", level: 1 }).waitFor();
  check(page.url() === `${origin}/#/now`, "address", page.url());
  await page.getByText("Live", { exact: true }).waitFor();
  check((await context.cookies()).length === 0, "no cookie");
  check(await page.evaluate(() => localStorage.length === 0), "nothing in localStorage");
});

await step("a used code opens nothing and says how to go on", async () => {
  const other = await open(browser, address);
  await other.page.getByRole("alert").getByText("proxy web").waitFor();
  check(!other.page.url().includes(address.split("#")[1]), "the code is gone from the address");
  await other.context.close();
});

await step("every page: a title, no finding of axe, no overflow; light and dark, 1440 px and 320 px", async () => {
  for (const [width, colorScheme] of [[1440, "light"], [1440, "dark"], [320, "light"], [3840, "dark"]]) {
    await page.setViewportSize({ width, height: 900 });
    await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
    for (const fragment of [...PAGES, ...MORE]) {
      await show(fragment);
      await page.waitForTimeout(150);
      const at = `${fragment}, ${width} px, ${colorScheme}`;
      check((await page.title()).endsWith("- proxy"), `${at}: title`);
      const wide = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
      check(wide <= 0, `${at}: overflow`, `${wide} px`);
      for (const found of await findings(page)) check(false, `${at}: axe`, found);
      check(await page.evaluate(() => document.getAnimations().length === 0), `${at}: nothing moves`);
    }
  }
  await page.setViewportSize({ width: 1440, height: 900 });
});

await step("details have no finding of axe", async () => {
  for (const fragment of ["servers", "tools", "calls", "clients"]) {
    await show(fragment);
    await page.locator(".grid-body").getByRole("row").first().click();
    await page.locator(".detail article").waitFor();
    for (const found of await findings(page)) check(false, `${fragment}: axe`, found);
  }
});

await step("hostile text is text", async () => {
  for (const fragment of scene ? ["servers/hostile", "tools/hostile/markup", "tools/hostile/megabyte", "tools?show=changes", "calls"] : PAGES) {
    await show(fragment);
    await page.waitForTimeout(300);
    const seen = await page.evaluate(() => ({
      elements: document.querySelectorAll("main img, main script, main iframe, main a[href^=javascript]").length,
      raw: /[\u202a-\u202e\u2066-\u2069\u{e0000}-\u{e007f}\u001b]/u.test(document.querySelector("main")?.textContent ?? ""),
      length: document.querySelector("main")?.textContent?.length ?? 0,
    }));
    check(seen.elements === 0, `${fragment}: elements from text`, String(seen.elements));
    check(!seen.raw, `${fragment}: a hidden character is not shown`);
    check(seen.length < 300_000, `${fragment}: a bounded page`, `${seen.length} characters`);
  }
  if (!scene) return;
  await show("tools/hostile/markup");
  await page.locator(".detail .prose").getByText("U+202E").first().waitFor();
  const prose = await page.locator(".detail .prose").textContent();
  check(prose.includes(HOSTILE.slice(0, 20)), "the description is shown as it is", prose.slice(0, 80));
  await page.getByRole("button", { name: "Check the call" }).click();
  await page.getByRole("region", { name: "Answer" }).waitFor();
});

// The five tasks: with the mouse, and again by keyboard. Each begins at `Now` and needs no word of this file.

const press = (...keys) => keys.reduce((all, key) => all.then(() => page.keyboard.press(key)), Promise.resolve());
// Presses Tab until the focus is on the element with this role and name; then `key`.
async function tabTo(role, name, key) {
  for (let presses = 0; presses < 150; presses++) {
    await page.keyboard.press("Tab");
    const found = await page.getByRole(role, { name }).evaluateAll((all) => all.includes(document.activeElement));
    if (found) return key ? page.keyboard.press(key) : undefined;
  }
  throw new Error(`Tab reaches no ${role} named ${name}`);
}
const go = (key) => press("g", key);
const blur = () => page.evaluate(() => document.activeElement?.blur?.());

const TASKS = {
  "see why a server fails and restart it": async (by) => {
    if (by === "mouse") {
      await main().getByRole("link", { name: /^Details of / }).first().click();
      await page.locator(".detail").getByText(scene ? "is the database running?" : "ECONNREFUSED").first().waitFor();
      scene?.make("mended");
      await main().getByRole("button", { name: "Restart" }).click();
    } else {
      scene?.unmake("mended");
      scene?.run("reindex", "broken");
      await go("s");
      await tabTo("row", /broken|filesystem|sentry/, undefined).catch(() => {});
      await page.getByRole("grid", { name: "Servers" }).getByRole("row", { name: /broken|filesystem|sentry/ }).first().waitFor();
      await press("Home");
      for (let i = 0; i < 200 && !(await page.evaluate(() => /broken|filesystem|sentry/.test(document.activeElement?.textContent ?? ""))); i++) await press("ArrowDown");
      await press("Enter");
      await page.locator(".detail").getByText(scene ? "is the database running?" : "ECONNREFUSED").first().waitFor();
      await tabTo("button", "Restart", "Enter");
    }
    await page.locator(".notice").waitFor();
  },
  "approve a changed tool after reading its difference": async (by) => {
    if (by === "mouse") await main().getByRole("link", { name: "Review" }).first().click();
    else await tabTo("link", "Review", "Enter");
    const item = page.locator(".review").filter({ hasText: "id_rsa" }).first();
    await item.locator(".diff .ins").filter({ hasText: "id_rsa" }).waitFor();
    const name = await item.getByRole("heading").textContent();
    if (by === "mouse") await item.getByRole("button", { name: /^Accept / }).click();
    else await tabTo("button", new RegExp(`^Accept .*${name.split("/")[1]}`), "Enter");
    await page.locator(".review").filter({ hasText: name }).waitFor({ state: "detached" });
  },
  "find a failed call of the last two days and run it again": async (by) => {
    if (by === "mouse") {
      await page.getByRole("navigation").getByRole("link", { name: /^Calls/ }).click();
      await page.getByLabel("Time", { exact: true }).selectOption("2d");
      await page.getByLabel("Failed only").check();
      await row("Calls", "tool_error").click();
      await main().getByRole("button", { name: "Run it again" }).click();
      await main().getByRole("textbox").first().waitFor();
      await page.locator(".detail form").getByRole("textbox").first().fill("milk");
      await main().getByRole("button", { name: "Check the call" }).click();
      await main().getByRole("button", { name: "Call the tool" }).click();
    } else {
      await go("c");
      await tabTo("combobox", "Time");
      await page.keyboard.type("2 days");
      await tabTo("checkbox", "Failed only", "Space");
      await page.waitForURL(/failures=true/);
      await row("Calls", "tool_error").waitFor();
      await tabTo("row", /./);
      await press("Home");
      for (let i = 0; i < 50 && !(await page.evaluate(() => /tool_error/.test(document.activeElement?.textContent ?? ""))); i++) await press("ArrowDown");
      await press("Enter");
      await tabTo("button", "Run it again", "Enter");
      await page.locator(".detail form").waitFor();
      await tabTo("textbox", /query|title/);
      await page.keyboard.type("milk");
      await tabTo("button", "Check the call", "Enter");
      await main().getByRole("button", { name: "Call the tool" }).waitFor();
      await tabTo("button", "Call the tool", "Enter");
    }
    await main().getByText(/^The tool answered/).waitFor();
  },
  "forbid a tool for one client": async (by) => {
    const tool = scene ? "add_note" : "search_issue";
    const server = scene ? "notes" : "github";
    const client = by === "mouse" && scene ? "claude-code" : "cursor";
    const dialog = page.getByRole("dialog");
    if (by === "mouse") {
      await page.getByRole("navigation").getByRole("link", { name: "Clients" }).click();
      await row("Clients", client).click();
      await main().getByRole("link", { name: "Forbid a tool" }).click();
      await page.getByLabel("Search as a model does").fill(tool);
      await row("Tools", `${server}/${tool}`).click();
      await main().getByRole("button", { name: `Forbid for ${client}` }).click();
      await dialog.locator(".diff .ins").filter({ hasText: client }).waitFor();
      for (const found of await findings(page)) check(false, "axe", found);
      await dialog.getByRole("button", { name: "Forbid the tool" }).click();
    } else {
      await go("t");
      await tabTo("searchbox", "Search as a model does");
      await page.keyboard.type(tool);
      await tabTo("combobox", "As client");
      await page.keyboard.type(client);
      await page.waitForURL(new RegExp(`client=${client}`));
      await row("Tools", `${server}/${tool}`).waitFor();
      await tabTo("row", /./);
      await press("Home");
      for (let i = 0; i < 50 && !(await page.evaluate((it) => document.activeElement?.textContent?.includes(it), `${server}/${tool}`)); i++) await press("ArrowDown");
      await press("Enter");
      await page.locator(".detail article").waitFor();
      await tabTo("button", `Forbid for ${client}`, "Enter");
      await dialog.getByRole("button", { name: "Forbid the tool" }).waitFor();
      await tabTo("button", "Forbid the tool", "Enter");
    }
    await dialog.waitFor({ state: "detached" });
    if (by === "mouse") await page.getByRole("navigation").getByRole("link", { name: "Configuration" }).click();
    else await go("k");
    // The rules in effect, not the changes of the file below them.
    await page.getByRole("region", { name: "Rules" }).getByRole("listitem").filter({ hasText: tool }).filter({ hasText: client }).first().waitFor();
    if (!scene) return;
    const verdict = scene.run("policy", "test", `${server}/${tool}`, "--client", client);
    check(verdict.startsWith(`deny ${server}/${tool}, by rule 1`), "the verdict on a call", verdict);
  },
  "find out which server costs most tokens": async (by) => {
    if (by === "mouse") {
      await page.getByRole("navigation").getByRole("link", { name: "Figures" }).click();
      await page.getByLabel("By", { exact: true }).selectOption("server");
      await page.getByRole("columnheader", { name: /^Tokens ▼|^Tokens$/ }).waitFor();
      await page.getByRole("grid", { name: "Figures by server" }).getByRole("row").nth(1).getByRole("link").last().click();
    } else {
      await go("f");
      await tabTo("combobox", "By");
      await page.keyboard.type("server");
      await page.getByRole("grid", { name: "Figures by server" }).waitFor();
      await tabTo("row", /./, "Enter");
    }
    await page.waitForURL(/#\/calls\?.*server=/);
    await row("Calls", ":").waitFor();
  },
};

for (const by of ["mouse", "keyboard"]) {
  for (const [name, run] of Object.entries(TASKS)) {
    await step(`${name}, by ${by}`, async () => {
      await show("now");
      await blur();
      await run(by);
    });
  }
}

await step("shortcuts are documented, and a dialog gives the focus back", async () => {
  await show("now");
  await blur();
  await press("?");
  await page.getByRole("dialog", { name: "Shortcuts" }).waitFor();
  for (const found of await findings(page)) check(false, "axe", found);
  await press("Escape");
  await page.getByRole("dialog").waitFor({ state: "detached" });
  await press("Tab");
  check(await page.evaluate(() => document.activeElement?.textContent === "Skip to the content"), "the first Tab reaches the skip link");
});

await step("a mistake is shown at its field", async () => {
  await show("servers?add=1");
  await page.getByLabel(/^Address/).fill("ftp://example.com");
  await page.getByRole("region", { name: "A server at an address" }).getByRole("button", { name: "Add the server" }).click();
  await page.locator('[aria-invalid="true"]').waitFor();
  const told = await page.getByLabel(/^Address/).getAttribute("aria-describedby");
  check((await page.locator(`#${told?.split(" ").pop()}`).textContent())?.trim(), "the field names its mistake");
});

await step("a change in the daemon is visible, without polling", async () => {
  if (!scene) return;
  await show("now");
  await page.waitForTimeout(600);
  const before = told.requests.length;
  const calls = page.locator(".figures").getByText(/^\d/).nth(3);
  const old = await calls.textContent();
  await call("notes/add_note", { title: "Oats" });
  await page.waitForFunction((it) => document.querySelectorAll(".figures dd")[3]?.textContent !== it, old);
  check(told.requests.length === before, "requests", told.requests.slice(before).join(" "));
});

await step("limits of callers and their use are shown, and lead to the calls", async () => {
  if (!scene) return;
  scene.run("call", "notes/list_notes");
  await show("configuration");
  await page.getByRole("region", { name: "Quotas" }).getByText(/^claude-code: \d+ of 50,000 used/).waitFor();
  await page.getByRole("link", { name: "0 hits of rule" }).or(page.getByRole("link", { name: /hits? of rule 1/ })).first().click();
  await page.waitForURL(/#\/calls\?rule=1/);
  await show("figures?days=1");
  await page.locator(".figure").filter({ hasText: "Redacted" }).getByRole("link", { name: "1", exact: true }).click();
  await row("Calls", "notes/add_note").click();
  await page.locator(".detail").getByText("1 text redacted").waitFor();
  await show("figures?days=1&by=client");
  await row("Figures by client", "proxy-cli").click();
  await row("Calls", "proxy-cli").waitFor();
  await show("clients");
  await row("Clients", "claude-code").click();
  await page.locator(".detail").getByText("2025-11-25").waitFor();
});

await step("a lost stream comes back without a banner, a notice or a new page", async () => {
  if (!scene) return;
  await show("now");
  await page.evaluate(() => {
    window.seen = [];
    const look = () => window.seen.push(...document.querySelectorAll(".banner, .notice, .content.old, main .loading"));
    new MutationObserver(look).observe(document.body, { childList: true, subtree: true, attributes: true });
  });
  const streams = () => told.requests.filter((it) => it.endsWith("/live")).length;
  const before = streams();
  // Ends all requests of the page.
  await page.evaluate(() => window.stop());
  for (let waits = 0; streams() === before && waits < 100; waits++) await page.waitForTimeout(50);
  check(streams() > before, "the stream is opened again");
  const old = await page.locator(".figures dd").nth(3).textContent();
  await call("notes/add_note", { title: "Rye" });
  await page.waitForFunction((it) => document.querySelectorAll(".figures dd")[3]?.textContent !== it, old);
  check(await page.evaluate(() => window.seen.length === 0), "nothing flickers");
});

await step("no request to anybody else, no report of the policy, no error", async () => {
  const foreign = told.requests.filter((it) => new URL(it).origin !== origin && !it.startsWith("data:") && !it.startsWith(`blob:${origin}`));
  check(foreign.length === 0, "requests to others", foreign.join(" "));
  check(told.requests.every((it) => !/[0-9a-f]{64}/.test(it)), "no token in an address");
  const reports = await page.evaluate(() => window.reports);
  check(reports.length === 0, "reports of the policy", reports.join(" "));
  check(told.errors.length === 0, "errors", told.errors.join("\n"));
  // A restart of a server that does not start is answered with 502. The network error is that of the stream which the step before ended.
  const expected = /status of (404|422)|status of 502 .*\/servers\/[^/]+\/restart$|network error/;
  const unexpected = told.console.filter((it) => !expected.test(it));
  check(unexpected.length === 0, "messages of the console", unexpected.join("\n"));
  check(told.dialogs === 0, "dialogs of scripts");
});

await step("a tab keeps its session when it is loaded again, and signs out for good", async () => {
  await page.reload();
  await page.getByText("Live", { exact: true }).waitFor();
  if (!scene) return;
  const other = await open(browser, scene.open());
  await other.page.getByRole("button", { name: "Sign out" }).click();
  await other.page.getByRole("alert").getByText("proxy web").waitFor();
  await other.page.reload();
  await other.page.getByRole("alert").getByText("proxy web").waitFor();
  check(await other.page.evaluate(() => sessionStorage.length === 0), "the token is gone");
  await other.context.close();
});

await step("a question is answered here in place of the client", async () => {
  if (!scene) return;
  const asking = await scene.connect("asker", [], { elicitation: {} });
  const answered = asking("notes/delete_note", { id: 7 });
  await show("now");
  const item = page.locator("li.attention").filter({ hasText: "waits for your approval" });
  await item.getByText("notes/delete_note").waitFor();
  for (const found of await findings(page)) check(false, "axe", found);
  await item.getByLabel(/allow/).selectOption("once");
  await item.getByRole("button", { name: /^Answer/ }).click();
  check(JSON.stringify(await answered).includes("is done"), "the call goes on");
  await item.waitFor({ state: "detached" });
});

await step("the calls of a script are a tree", async () => {
  if (!scene) return;
  await call("proxy/run_script", { script: "await notes.add_note({ title: 'of a script' }); 1" });
  await show("calls?since=15m");
  const script = row("Calls", "run_script");
  await script.waitFor();
  const at = await script.getAttribute("aria-rowindex");
  const next = page.getByRole("grid", { name: "Calls" }).locator(`[aria-rowindex="${Number(at) + 1}"]`);
  check((await next.textContent())?.includes("by the script: notes/add_note"), "the next row", (await next.textContent()) ?? "");
  await next.click();
  await page.locator(".detail").getByRole("link", { name: /^made by call/ }).click();
  await page.locator(".detail").getByRole("heading", { name: "Calls of the script" }).waitFor();
});

await step("a script that got into the page reaches nothing", async () => {
  if (!scene) return;
  const other = await open(browser, scene.open());
  await other.page.getByText("Live", { exact: true }).waitFor();
  for (const succeeded of await attackFromInside(other.page)) check(false, "inside", succeeded);
  check((await other.context.cookies()).length === 0, "no cookie");
  await other.context.close();
});

await step("10,000 calls are a list that is read to its end", async () => {
  if (!scene) return;
  const total = (least) => page.waitForFunction((it) => {
    const shown = Number(document.querySelectorAll(".figures dd")[3]?.textContent?.replace(/\D/g, ""));
    return shown >= it && shown;
  }, least);
  await show("now");
  const before = await (await total(1)).jsonValue();
  await show("calls");
  const grid = page.getByRole("grid", { name: "Calls" });
  const hasFocus = () => page.evaluate(() => !!document.activeElement?.matches(".grid.calls .grid-body > [role=row]"));
  await grid.locator(".grid-body").getByRole("row").first().focus();
  await scene.burst("notes/list_notes", {}, 10_000);
  check(await hasFocus(), "a row has the focus after 10,000 calls that replaced the list");
  // All calls are counted: from here on the list changes by the keys alone.
  await show("now");
  await total(before + 10_000);
  await show("calls");
  await grid.locator(".grid-body").getByRole("row").first().focus();
  const count = async () => Number(await grid.getAttribute("aria-rowcount"));
  for (let presses = 0; (await main().getByText("older ones follow").count()) && presses < 120; presses++) {
    const before = await count();
    await press("End");
    await page.waitForFunction((it) => Number(document.querySelector(".grid.calls")?.getAttribute("aria-rowcount")) > it
      || !document.querySelector("main")?.textContent?.includes("older ones follow"), before);
    check(await hasFocus(), "a row has the focus after End", `press ${presses + 1}`);
  }
  check((await count()) > 10_000, "all calls are in the list", String(await count()));
  await press("End");
  await grid.getByRole("row", { name: /notes\/add_note/ }).or(row("Calls", "add_note")).first().waitFor();
  const drawn = await grid.locator(".grid-body > [role=row]").count();
  check(drawn < 150, "rows in the document", String(drawn));
});

await step("pages of others reach nothing", async () => {
  if (!scene) return;
  for (const succeeded of await attack(origin)) check(false, "a stranger", succeeded);
  await show("servers");
  await row("Servers", "notes").getByText("disabled").waitFor({ state: "detached" });
});

/** @type {string[]} */
let noticesBefore = [];

await step("a daemon that is killed: a banner, and the last state stays, greyed", async () => {
  if (!scene) return;
  await show("servers");
  noticesBefore = await page.locator(".notice").allTextContents();
  scene.kill();
  await page.getByRole("alert").waitFor();
  await page.locator(".content.old").waitFor();
  await row("Servers", "notes").waitFor();
});

await step("the tab goes on where it was once the page is opened again, at the same address", async () => {
  if (!scene) return;
  const next = scene.open();
  check(new URL(next).origin === origin, "the address", next);
  await page.getByRole("alert").getByText("proxy web").waitFor();
  await page.locator(".content.old").waitFor();
  await (await context.newPage()).goto(next);
  await page.locator(".content.old").waitFor({ state: "detached" });
  check((await page.getByRole("alert").count()) === 0, "no banner");
  check(page.url().endsWith("#/servers"), "the place", page.url());
  const notices = await page.locator(".notice").allTextContents();
  check(notices.join() === noticesBefore.join(), "no new notice", notices.join("; "));
});

await browser.close();
scene?.end();
for (const failure of failures) console.log(`\nFAILED ${failure}`);
note(failures.length ? `\n${failures.length} failures` : "\nall passed");
process.exit(failures.length ? 1 : 0);
