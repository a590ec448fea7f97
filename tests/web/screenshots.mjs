// Writes screenshots of the main pages, with the servers of `proxy demo`.
//
//     PROXY=target/release/proxy screenshots.mjs FOLDER docs/screenshots
//
// Runs in a folder with the packages of package.json; starts its servers in FOLDER.

import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import { launch, open } from "./browser.mjs";
import { shrink } from "./png.mjs";
import { Scene, serverOf } from "./scene.mjs";

const SHOTS = [
  ["now", "now", "light"],
  ["servers", "servers/flaky", "light"],
  ["tools", "tools/notes/add_note?q=write+down+a+note", "light"],
  ["changes", "tools?show=changes", "light"],
  ["calls", "calls?failures=true", "dark"],
  ["figures", "figures?days=7", "light"],
  ["configuration", "configuration", "dark"],
];

const [folder, out] = process.argv.slice(2);
const program = process.env.PROXY;
const demo = (name) => [program, "demo-server", name];
const rules = `[audit]
arguments = "full"

[[rules]]
decision = "ask"
annotation = "destructive"
reason = "a person decides about deletions"

[[rules]]
decision = "deny"
client = "cursor"
tool = "flaky/*"

[[quotas]]
calls = 200
per = "hour"
each = "client"
`;
const scene = new Scene(program, folder, { notes: demo("notes"), flaky: demo("flaky"), tracker: serverOf("notes", folder), database: serverOf("broken", folder) }, rules);
mkdirSync(out, { recursive: true });
scene.run("reindex");
scene.make("changed");
scene.run("reindex", "tracker");
const note = (title) => ["notes/add_note", { title }];
await scene.connect("claude-code", [note("Milk"), note("Oats"), ["notes/search_notes", { query: "milk" }], ["notes/list_examples", { count: 400 }], ["flaky/always_fails", {}], ["flaky/crash", {}]]);
await scene.connect("cursor", [note("Release on Friday"), ["tracker/search_notes", { query: "release" }], ["flaky/always_fails", {}], ["notes/search_notes", { query: "release" }]]);

const browser = await launch();
const { page } = await open(browser, scene.open(), { viewport: { width: 1280, height: 800 }, reducedMotion: "reduce" });
await page.getByText("Live", { exact: true }).waitFor();
for (const [name, fragment, colorScheme] of SHOTS) {
  await page.emulateMedia({ colorScheme });
  await page.evaluate((it) => { location.hash = it; }, `#/${fragment}`);
  await page.waitForFunction(() => !document.querySelector("main .loading"));
  await page.waitForTimeout(800);
  await page.evaluate(() => document.activeElement?.blur());
  const bytes = shrink(await page.screenshot());
  writeFileSync(join(out, `${name}.png`), bytes);
  console.log(`${name}.png: ${bytes.length} bytes`);
}
await browser.close();
scene.end();
