// Shows apps of real servers behind the proxy in Chromium, in a host that is made of the reference parts of `ext-apps`.
//
//     driver.mjs MODE APPS [COMMAND]... | driver.mjs MODE APPS URL
//
// MODE is `v2` or `v2-auto` (see ../clients/sdk.mjs), APPS `all` or `few`. The proxy has the servers that `servers.mjs` names. With
// RESTART, a command, that command runs while an app is shown. Prints the failures; exits with 1 if there are some.

import { execFileSync } from "node:child_process";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { isDeepStrictEqual } from "node:util";

import { connect } from "../clients/sdk.mjs";
import { launch } from "../web/browser.mjs";
import { APPS } from "./servers.mjs";

const require = createRequire(join(process.cwd(), "package.json"));
const [mode, which, ...target] = process.argv.slice(2);
const failures = [];
const check = (name, holds, seen) => {
  if (!holds) failures.push(`${name}: ${JSON.stringify(seen)?.slice(0, 600)}`);
};
process.on("uncaughtException", (error) => {
  console.log([...failures, error.stack].join("\n"));
  process.exit(1);
});
const here = (file) => readFileSync(new URL(file, import.meta.url), "utf8");

// --- the origins: the host, the sandbox, and a place that no app may reach

const bundle = () => {
  const options = { entryPoints: [new URL("host.mjs", import.meta.url).pathname], bundle: true, format: "esm", write: false, nodePaths: [join(process.cwd(), "node_modules")] };
  return require("esbuild").buildSync(options).outputFiles[0].text;
};

// The policy of a host for what a page declares.
function policy(text) {
  const csp = JSON.parse(text);
  const named = (kind) => (csp[kind] ?? []).join(" ");
  const resources = named("resourceDomains");
  const files = `'self' 'unsafe-inline' blob: data: ${resources}`;
  return `default-src 'none'; script-src 'unsafe-eval' 'wasm-unsafe-eval' ${files}; style-src ${files}; img-src ${files}; font-src ${files}; media-src ${files}; worker-src blob: ${resources}; connect-src ${named("connectDomains") || "'none'"}; frame-src ${named("frameDomains") || "'none'"}; base-uri ${named("baseUriDomains") || "'none'"}; object-src 'none'`;
}

async function listen(answer, port = 0) {
  const server = createServer((request, response) => answer(new URL(request.url, "http://x"), response));
  await new Promise((resolve) => server.listen(port, "127.0.0.1", resolve));
  return { server, origin: `http://127.0.0.1:${server.address().port}` };
}

const script = bundle();
const host = await listen(({ pathname }, response) => {
  response.setHeader("Content-Type", pathname === "/host.js" ? "text/javascript" : "text/html");
  response.end(pathname === "/host.js" ? script : '<!doctype html><body><script type="module" src="/host.js"></script>');
});
const sandbox = await listen(({ searchParams }, response) => {
  response.setHeader("Content-Type", "text/html");
  response.setHeader("Content-Security-Policy", policy(searchParams.get("csp") ?? "{}"));
  response.end(`<!doctype html><style>html,body{margin:0;height:100%}</style><body><script>${here("sandbox.js")}</script>`);
});
const reached = [];
const canary = await listen(({ pathname }, response) => {
  reached.push(pathname);
  response.setHeader("Access-Control-Allow-Origin", "*");
  response.setHeader("Content-Type", pathname === "/image" ? "image/svg+xml" : "text/html");
  response.end(pathname === "/image" ? '<svg xmlns="http://www.w3.org/2000/svg" width="1" height="1"/>' : "reached");
}, Number(process.env.CANARY_PORT));

// --- the client of the proxy, and the browser

const capabilities = { extensions: { "io.modelcontextprotocol/ui": { mimeTypes: ["text/html;profile=mcp-app"] } } };
const { client } = await connect(mode, target, {}, capabilities);
const asked = [];
async function toServer(method, params) {
  asked.push({ method, params });
  try {
    const { name, arguments: input, uri } = params;
    if (method === "tools/call") return { result: await client.callTool({ name, arguments: input }) };
    if (method === "resources/read") return { result: await client.readResource({ uri }) };
    return { result: await client.listResources() };
  } catch (error) {
    return { error: error.message };
  }
}

const browser = await launch(["--enable-unsafe-swiftshader"]);
const context = await browser.newContext({ viewport: { width: 1000, height: 1000 } });
const page = await context.newPage();
page.setDefaultTimeout(20_000);
const windows = [];
context.on("page", (it) => windows.push(it.url()));
if (process.env.LOUD) {
  page.on("console", (it) => /message|Message/.test(it.text()) || console.log("console:", it.text().slice(0, 200)));
  page.on("framenavigated", (it) => console.log("navigated:", it.url().slice(0, 100)));
}
await page.exposeFunction("toServer", toServer);
await page.goto(host.origin);
await page.waitForFunction(() => window.openView !== undefined);

const until = async (name, look) => {
  const end = Date.now() + 15_000;
  let seen;
  while (Date.now() < end) {
    seen = await look().catch((error) => String(error));
    if (seen === true) return true;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  check(name, false, seen);
  return false;
};

const depth = (it) => (it.parentFrame() ? 1 + depth(it.parentFrame()) : 0);

const appFrame = () => page.frames().find((it) => depth(it) === 3);

// Sends arguments as a model writes them: the app is there before they are whole.
async function stream(partial) {
  for (const it of partial) await page.evaluate((given) => window.sendPartial(given), it);
  await until("an app is shown for partial arguments", async () => (await appFrame()?.evaluate(() => window.isReady)) === true);
  await page.evaluate((given) => window.sendPartial(given), partial.at(-1));
}

// Calls a tool as a host's model does, and shows our page for it. Returns the frame of the app, if there is one.
async function show(tool, input, { partial, hasApp = true } = {}) {
  const { tools } = await client.listTools();
  const { resourceUri: uri } = tools.find((it) => it.name === "execute_dynamic_tool")._meta.ui;
  const given = { tool_name: tool, tool_input: input };
  const frame = (await client.readResource({ uri })).contents[0];
  const { csp, permissions } = frame._meta.ui;
  await page.evaluate(([origin, view]) => window.openView(origin, view), [sandbox.origin, { html: frame.text, csp, permissions }]);
  if (partial) await stream(partial);
  await page.evaluate((given) => window.sendInput(given), given);
  const result = await client.callTool({ name: "execute_dynamic_tool", arguments: given });
  await page.evaluate((result) => window.sendResult(result), result);
  let app = null;
  if (hasApp) {
    await until(`${tool}: its app is shown`, async () => {
      app = appFrame();
      return app !== undefined;
    });
    await app?.waitForLoadState();
  }
  return { app, result, csp };
}

async function picture(name) {
  if (!process.env.PICTURES) return;
  mkdirSync(process.env.PICTURES, { recursive: true });
  await page.screenshot({ path: join(process.env.PICTURES, `${name.replaceAll("/", "-")}.png`) });
}

// --- the sample apps

for (const [tool, { input = {}, looks, few, partial }] of Object.entries(APPS)) {
  if (which === "few" && !few) continue;
  const { app, result } = await show(tool, input, { partial });
  check(`${tool}: its result`, !result.isError, result);
  if (app) await until(`${tool}: what it shows`, () => looks({ app, page, asked, result }));
  await picture(tool);
  const origin = await app?.evaluate(() => String(window.origin));
  check(`${tool}: its origin`, origin === "null", origin);
}

// A person presses a button of an app: the tool of its own server is called, though another server has one of this name.
{
  const { app } = await show("vanillajs/get-time", {});
  asked.length = 0;
  await app.getByRole("button", { name: "Get Server Time" }).click();
  await until("a button calls the tool of its server", async () => asked.some((it) => it.params.arguments?.tool_name === "vanillajs/get-time"));
  check("a button calls nothing else", asked.length === 1, asked);
  check("a call of an app names its server", asked[0]?.params.arguments.tool_input["proxy/app"] === "vanillajs", asked[0]);
  await page.evaluate(() => window.setTheme("light"));
  check("an app ends before it is closed", (await page.evaluate(() => window.closeView())) === "ended");
}

// An app that calls a tool of its own every two seconds goes on after its server was restarted.
if (process.env.RESTART) {
  const { app } = await show("monitor/get-system-info", {});
  const polls = () => asked.filter((it) => it.params.arguments?.tool_name === "monitor/poll-system-stats").length;
  await until("an app calls a tool for apps alone", async () => polls() > 0);
  execFileSync(process.env.RESTART, ["servers", "restart", "monitor"], { stdio: "ignore" });
  const before = polls();
  await until("an app goes on after its server was restarted", async () => polls() > before + 1);
  const said = await client.callTool({ name: "execute_dynamic_tool", arguments: { tool_name: "monitor/poll-system-stats", tool_input: {} } });
  check("a model does not call a tool for apps alone", said.content[0].text.startsWith("error denied"), said);
  check("the restarted app still shows itself", (await app.textContent("body")).includes("CPU"), null);
}

// A call without an app shows nothing.
{
  const { result } = await show("proxy/list", {}, { hasApp: false });
  check("a call without an app has a result", !result.isError && result._meta === undefined, result);
  await until("a call without an app shows nothing", () => page.evaluate(() => window.height === 0));
  check("a call without an app has no frame", page.frames().length === 3, page.frames().length);
  const { app } = await show("trap/broken", {}, { hasApp: false });
  await until("an app that cannot be read says so", async () => (await page.frames()[2].textContent("body")).includes("The app of trap/broken cannot be shown"));
  check("an app that cannot be read has no frame", app === null);
}

// --- the hostile app

const REFUSED = {
  "own tool for models": "only for models",
  "other server": "unknown_tool",
  "other server by a path": "unknown_tool",
  "other server by its own name": "unknown_tool",
  "other server by an option": "unknown_tool",
  "tool of the proxy": "unknown_tool",
  "the three tools": "unknown_tool",
  "read ui://get-time/mcp-app.html": "trap has no",
  "read proxy://vanillajs/ui://get-time/mcp-app.html": "trap has no",
  "read ui://proxy/tool/VklDVElN": "trap has no",
  "read ui://proxy/result/r-00000000": "trap has no",
  "read ui://proxy/frame": "trap has no",
  "tools/list": "passes on no",
  "resources/list": "passes on no",
  "prompts/list": "passes on no",
  "sampling/createMessage": "passes on no",
  "elicitation/create": "passes on no",
  constructor: "passes on no",
  "a link of another kind": "no address of the web",
  "document of the frame": "threw",
  "document of the top": "threw",
  storage: "threw",
  cookies: "threw",
};

async function spring(name, partial) {
  reached.length = 0;
  asked.length = 0;
  windows.length = 0;
  await page.evaluate(() => {
    window.heard = [];
  });
  const { app } = await show(`${name}/mine`, { n: 1 }, { partial });
  await until(`${name}: it has tried everything`, () => app.evaluate(() => window.done));
  const found = await app.evaluate(() => ({ tried: window.tried, told: window.told, hello: window.hello }));
  await page.waitForTimeout(300);
  return { app, ...found };
}

{
  const { app, tried, told, hello } = await spring("trap");
  await picture("trap");
  for (const [name, why] of Object.entries(REFUSED)) check(`trap: ${name}`, JSON.stringify(tried[name] ?? "").includes(why), tried[name]);
  check("trap: own tool", tried["own tool"]?.structuredContent?.from === "trap" && isDeepStrictEqual(tried["own tool"].structuredContent.given, { a: 1 }), tried["own tool"]);
  check("trap: own tool for apps", tried["own tool for apps"]?.structuredContent?.from === "trap", tried["own tool for apps"]);
  check("trap: an envelope is arguments", tried["other server by an envelope"]?.structuredContent?.from === "trap", tried["other server by an envelope"]);
  check("trap: its own resource", tried["read own"]?.contents?.[0].text === "own", tried["read own"]);
  for (const [name, not] of [["fetch", "reached"], ["image", "loaded"], ["navigate the top", null], ["navigate the frame", null]]) check(`trap: ${name}`, tried[name] !== not, tried[name]);
  check("trap: a window", tried["open a window"] === "null" && windows.length === 0, [tried["open a window"], windows]);
  check("trap: nothing reached the canary", reached.length === 0, reached);
  // The host was asked for the app, for what the app may ask for, and for nothing in the name of another server.
  const outside = asked.filter(({ method, params }) =>
    method === "tools/call"
      ? params.name !== "execute_dynamic_tool" || !params.arguments.tool_name.startsWith("trap/") || params.arguments.tool_input["proxy/app"] !== "trap" || Object.keys(params.arguments.tool_input).some((it) => it.startsWith("proxy/") && it !== "proxy/app")
      : !params.uri.startsWith("proxy://trap/") && !/^ui:\/\/proxy\/(tool|result)\//.test(params.uri) || params.uri.startsWith("ui://proxy/result/r-0"),
  );
  check("trap: nothing in the name of another server", outside.length === 0, outside);
  check("trap: nothing reached a window past the frame", !JSON.stringify(asked).includes('"from":"past"'), asked);
  const heard = await page.evaluate(() => window.heard);
  const kinds = heard.map((it) => it.kind).sort();
  check("trap: what the host was asked", isDeepStrictEqual(kinds, ["context", "display", "link", "log", "message"]), kinds);
  const message = heard.find((it) => it.kind === "message")?.params.content[0].uri;
  check("trap: a link to a resource means its own server", message === "proxy://trap/secret://of-another", message);
  check("trap: its height", (await page.evaluate(() => window.height)) === 222);
  const methods = told.map((it) => it.method);
  check("trap: what it was told", isDeepStrictEqual(methods, ["ui/notifications/tool-input", "ui/notifications/tool-result"]), told);
  check("trap: its input", isDeepStrictEqual(told[0]?.params, { arguments: { n: 1 } }), told[0]);
  check("trap: its result is whole and as sent", isDeepStrictEqual(told[1]?.params.structuredContent, { from: "trap", given: { n: 1 } }) && told[1]?.params._meta?.["proxy/app"] === undefined, told[1]);
  check("trap: the host", hello?.hostInfo?.name === "reference" && hello.hostContext.toolInfo.tool.name === "mine" && hello.hostCapabilities.sampling === undefined, hello);
  check("trap: a person is still where they were", page.url().startsWith(host.origin) && !(await page.content()).includes("taken over"), page.url());
  await app.evaluate(() => window.leave.address());
  const again = await spring("trap");
  await again.app.evaluate(() => window.leave.form());
  await page.waitForTimeout(300);
  check("trap: it cannot leave", reached.length === 0, reached);
}

// The same page of a server that declares the canary reaches it: what stops the trap is what it declares.
{
  const partial = [{ tool_name: "greedy/mi" }, { tool_name: "greedy/mine", tool_input: { n: 0 } }];
  const { app, tried, told } = await spring("greedy", partial);
  const methods = told.map((it) => it.method.split("/").at(-1));
  check("greedy: what it was told", isDeepStrictEqual(methods.slice(-3), ["tool-input-partial", "tool-input", "tool-result"]), methods);
  check("greedy: its partial input", isDeepStrictEqual(told.at(-3)?.params, { arguments: { n: 0 } }), told);
  check("greedy: fetch", tried.fetch === "reached", tried.fetch);
  check("greedy: image", tried.image === "loaded", tried.image);
  const places = [...new Set(reached)].sort();
  check("greedy: what it reached", isDeepStrictEqual(places, ["/fetch", "/frame-of-app", "/image"]), places);
  // A host changes its theme, shows a stored result whose whole is gone, and cancels a call.
  await page.evaluate(() => window.setTheme("light"));
  const gone = { content: [{ type: "text", text: "stored" }], _meta: { "proxy/app": { whole: "r0000000000000000" } } };
  await page.evaluate((result) => window.sendResult(result), gone);
  await page.evaluate(() => window.sendCancelled());
  await until("greedy: later notifications", async () => {
    const later = (await app.evaluate(() => window.told)).slice(told.length);
    const of = (method) => later.find((it) => it.method === `ui/notifications/${method}`)?.params;
    const isStored = of("tool-result")?.content[0].text === "stored" && of("tool-result")._meta["proxy/app"] === undefined;
    return of("host-context-changed")?.theme === "light" && of("tool-cancelled")?.reason === "a person" && isStored;
  });
}

await browser.close();
await client.close();
for (const { server } of [host, sandbox, canary]) server.close();
if (failures.length > 0) {
  console.log(failures.join("\n"));
  process.exit(1);
}
console.log(`every app is shown (${mode}, ${which})`);
process.exit(0);
