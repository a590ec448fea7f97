// Writes a screenshot of every page with 0, 3 and 100 servers (5,000 tools), light and dark, 320 px and 1440 px wide: to look at.
//
//     PROXY=target/debug/proxy gallery.mjs FOLDER OUT [COUNT...]
//
// Runs in a folder with the packages of package.json. OUT/COUNT-WIDTH-SCHEME.png has all pages of a kind beside each other.

import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import { launch, open } from "./browser.mjs";
import { generate } from "./generated.mjs";

const PAGES = ["now", "servers", "servers?add=1", "tools", "tools?q=add+a+note", "tools?show=changes", "calls", "clients", "figures?days=7",
  "configuration"];
const DETAILS = ["servers/broken", "servers/notes", "tools/notes/add_note", "tools/hostile/markup", "calls", "clients"];
const SIZES = [[1440, "light"], [1440, "dark"], [320, "light"], [320, "dark"]];

const [folder, out, ...counts] = process.argv.slice(2);
mkdirSync(out, { recursive: true });
const browser = await launch();

for (const count of counts.length ? counts.map(Number) : [0, 3, 100]) {
  const { scene } = await generate(process.env.PROXY, join(folder, String(count)), count);
  const { page } = await open(browser, scene.open(), { reducedMotion: "reduce" });
  await page.getByText("Live", { exact: true }).waitFor();
  for (const [width, colorScheme] of SIZES) {
    await page.setViewportSize({ width, height: width > 400 ? 900 : 640 });
    await page.emulateMedia({ colorScheme });
    const shots = [];
    for (const [i, fragment] of [...PAGES, ...(count ? DETAILS : [])].entries()) {
      await page.evaluate((it) => { location.hash = it; }, `#/${fragment}`);
      await page.waitForFunction(() => !document.querySelector("main .loading"));
      if (i >= PAGES.length && !fragment.includes("/")) await page.locator(".grid-body [role=row]:not(.group)").first().click();
      await page.waitForTimeout(400);
      await page.evaluate(() => document.activeElement?.blur());
      const name = join(out, `${count}-${width}-${colorScheme}-${String(i).padStart(2, "0")}-${fragment.replaceAll(/\W+/g, "-")}.png`);
      writeFileSync(name, await page.screenshot({ fullPage: true }));
      shots.push(name);
    }
    await writeSheet(join(out, `${count}-${width}-${colorScheme}.png`), shots, width);
  }
  await page.context().close();
  scene.end();
}
await browser.close();

// Puts pictures beside each other, each cut to the same height.
async function writeSheet(name, shots, width) {
  const [columns, wide, high] = width > 400 ? [3, 720, 640] : [6, 320, 900];
  const page = await (await browser.newContext({ viewport: { width: columns * (wide + 10), height: 600 } })).newPage();
  const pictures = shots.map((it) => `<figure><figcaption>${it.split("/").pop()}</figcaption><div><img src="data:image/png;base64,${readFileSync(it, "base64")}"></div></figure>`);
  await page.setContent(`<style>body { margin: 0; display: flex; flex-wrap: wrap; gap: 8px; background: #888; font: 12px sans-serif }
    figure { margin: 0; width: ${wide}px } div { height: ${high}px; overflow: hidden } img { width: 100%; display: block }</style>${pictures.join("")}`);
  writeFileSync(name, await page.screenshot({ fullPage: true }));
  await page.context().close();
}
