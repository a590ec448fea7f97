// A client for the conformance suite's authorization scenarios: a user at a terminal who logs in with
// `proxy`, calls every tool, and logs in again if required.
//
// node client.mjs PROXY SERVER_URL      the suite adds the address, and sets variables

import { spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";

const [proxy, url] = process.argv.slice(2);
const context = JSON.parse(process.env.MCP_CONFORMANCE_CONTEXT || "{}");
const folder = mkdtempSync(join(tmpdir(), "proxy-conformance-"));
const quote = JSON.stringify;

const oauth = [`client_metadata_url = "https://conformance-test.local/client-metadata.json"`];
if (context.client_id) oauth.push(`client_id = ${quote(context.client_id)}`);
if (context.client_secret) oauth.push(`client_secret = ${quote(context.client_secret)}`);
// Credentials that the operator of the server would give to a user.
const keep = (name, text) => {
  const path = join(folder, name);
  writeFileSync(path, text);
  return quote("${file:" + path + "}");
};
const scenario = process.env.MCP_CONFORMANCE_SCENARIO ?? "";
const isMachine = /client-credentials|enterprise-managed|wif/.test(scenario);
if (scenario.includes("client-credentials")) oauth.push(`grant = "client_credentials"`);
if (scenario.includes("endpoint-fallback")) oauth.push(`endpoints = "assumed"`);
if (context.private_key_pem) oauth.push(`private_key = ${keep("key", context.private_key_pem)}`);
if (context.valid_jwt) oauth.push(`grant = "jwt_bearer"`, `assertion = ${keep("jwt", context.valid_jwt)}`);
if (context.idp_id_token) {
  oauth.push(`grant = "enterprise_managed"`, `assertion = ${keep("id", context.idp_id_token)}`);
  oauth.push(`idp_issuer = ${quote(context.idp_issuer)}`, `idp_client_id = ${quote(context.idp_client_id)}`);
}
const config = join(folder, "config.toml");
writeFileSync(config, `[servers.it]\nurl = ${quote(url)}\n[servers.it.oauth]\n${oauth.join("\n")}\n`);

const start = (args) =>
  spawn(proxy, ["--config", config, ...args], {
    stdio: ["pipe", "pipe", "inherit"],
    env: {
      PATH: process.env.PATH, HOME: folder, XDG_STATE_HOME: join(folder, "state"),
      XDG_RUNTIME_DIR: folder, PROXY_SEARCH__SEMANTIC: "off",
    },
  });
const ended = (child) => new Promise((done) => child.on("exit", done));

const run = async (...args) => {
  const child = start(args);
  child.stdin.end();
  let text = "";
  child.stdout.on("data", (data) => (text += data));
  let code = await ended(child);
  return { code, text };
};

// The suite's authorization server redirects immediately, without a page.
const logIn = async () => {
  const child = start(["login", "it", "--no-browser", "--quiet"]);
  const end = ended(child);
  createInterface({ input: child.stdout }).on("line", async (line) => {
    if (!line.startsWith("http")) return;
    const response = await fetch(line, { redirect: "manual" });
    const location = response.headers.get("location");
    if (location) child.stdin.write(`${location}\n`);
    else child.kill();
  });
  const code = await end;
  child.stdin.destroy();
  return code === 0;
};

const LOGINS_MAX = 3;
let logins = 0;
let isGood = false;
for (;;) {
  const indexed = await run("reindex");
  let needsLogin = indexed.code !== 0;
  if (!needsLogin) {
    const list = await run("search", "*", "--standalone", "--json");
    const names = [...list.text.matchAll(/"(it\/[^"(]+)["(]/g)].map((it) => it[1]);
    for (const name of new Set(names)) {
      const call = await run("call", "--standalone", name, "{}");
      if (call.code !== 0) needsLogin = true;
    }
    isGood = !needsLogin;
  }
  if (!needsLogin || isMachine || logins++ === LOGINS_MAX || !(await logIn())) break;
}
rmSync(folder, { recursive: true, force: true });
process.exit(isGood ? 0 : 1);
