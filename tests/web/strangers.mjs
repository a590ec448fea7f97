// What other pages try against the page: each attempt that succeeds is returned as a line.

import { createServer } from "node:http";

import { launch } from "./browser.mjs";

const SHOWN_MS = 1_500;

// Runs in a page of another origin on this machine.
async function attempt(origin) {
  const tried = [];
  const add = (name, value) => tried.push([name, String(value)]);
  const quiet = (promise) => promise.then((it) => it, () => "refused");
  add("fetch", await quiet(fetch(`${origin}/api/v1/overview`).then((it) => it.text())));
  add("fetch with a body", await quiet(fetch(`${origin}/api/v1/session`, { method: "POST", headers: { "content-type": "application/json" }, body: "{}" }).then((it) => it.text())));
  await quiet(fetch(`${origin}/api/v1/servers/notes/disable`, { method: "POST", mode: "no-cors", body: "{}" }));
  await quiet(fetch(`${origin}/`, { mode: "no-cors" }));
  const image = new Image();
  image.src = `${origin}/assets/0/icon.svg`;
  document.body.append(image);
  const script = document.createElement("script");
  script.src = `${origin}/api/v1/overview`;
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
