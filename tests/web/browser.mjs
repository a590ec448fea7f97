// Debian's Chromium, and a page that reports everything that a user would not see.

import { existsSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";

// Packages are installed in the folder in which the script is started.
const require = createRequire(join(process.cwd(), "package.json"));
const { chromium } = require("playwright-core");

const ARGUMENTS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"];

export async function launch(more = []) {
  const executablePath = process.env.CHROMIUM ?? "/usr/bin/chromium";
  if (!existsSync(executablePath)) throw new Error(`no ${executablePath}: install the package \`chromium\`, or set CHROMIUM`);
  return chromium.launch({ executablePath, args: [...ARGUMENTS, ...more] });
}

const KINDS = { js: "text/javascript", css: "text/css", svg: "image/svg+xml" };

// Serves the page from this folder in place of the files in the program: for work on the page without a build.
async function serve(context, folder) {
  await context.route("**/assets/**", (route) => {
    const file = new URL(route.request().url()).pathname.split("/").slice(3).join("/");
    return route.fulfill({ path: join(folder, file), contentType: KINDS[file.split(".").pop()] });
  });
  await context.route(/^http:\/\/[^/]+\/$/, async (route) => {
    const body = readFileSync(join(folder, "index.html"), "utf8").replaceAll("/assets/", "/assets/0/");
    return route.fulfill({ response: await route.fetch(), body });
  });
}

// Opens a page in a context of its own; `told` collects requests, messages of the console, reports of the policy and dialogs.
export async function open(browser, address, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 }, ...options });
  if (process.env.ASSETS) await serve(context, process.env.ASSETS);
  const page = await context.newPage();
  const told = { requests: [], console: [], errors: [], dialogs: 0 };
  context.on("request", (it) => told.requests.push(it.url()));
  context.on("page", (it) => it !== page && told.errors.push(`a window was opened: ${it.url()}`));
  page.on("console", (it) => ["error", "warning"].includes(it.type()) && told.console.push(`${it.text()} ${it.location().url}`));
  page.on("pageerror", (it) => told.errors.push(String(it.stack ?? it)));
  page.on("dialog", (it) => {
    told.dialogs += 1;
    it.dismiss();
  });
  await page.addInitScript(() => {
    window.reports = [];
    document.addEventListener("securitypolicyviolation", (it) => window.reports.push(`${it.violatedDirective} ${it.blockedURI} ${it.sample}`));
  });
  page.setDefaultTimeout(15_000);
  await page.goto(address);
  return { page, context, told };
}

// Returns the findings of axe as lines.
export async function findings(page) {
  await page.evaluate(readFileSync(require.resolve("axe-core/axe.min.js"), "utf8"));
  const { violations } = await page.evaluate(() => window.axe.run(document, { resultTypes: ["violations"] }));
  return violations.flatMap((it) => it.nodes.map((node) => `${it.id} (${it.impact}): ${node.target.join(" ")} ${node.failureSummary?.replaceAll("\n", " ")}`));
}
