// The scene of the tests: a program `proxy` with servers of `server.mjs` in a folder of its own.

import { execFileSync, spawn } from "node:child_process";
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

const HERE = dirname(fileURLToPath(import.meta.url));
const REVISION = "2025-11-25";

// Returns the command of a server of `server.mjs`.
export const serverOf = (...args) => [process.execPath, join(HERE, "server.mjs"), ...args];

export class Scene {
  // `servers`: name to the words of its command; `head` is the top of the configuration.
  constructor(program, folder, servers, head = "") {
    if (!program) throw new Error("PROXY names no program");
    this.program = program;
    this.folder = folder;
    mkdirSync(folder, { recursive: true });
    this.environment = { ...process.env, PROXY_CONFIG: join(folder, "config.toml"), PROXY_STATE_DIR: join(folder, "state"), HOME: folder, NO_COLOR: "1" };
    const tables = Object.entries(servers).map(([name, [command, ...args]]) => `[servers.${name}]\ncommand = ${JSON.stringify(command)}\nargs = ${JSON.stringify(args)}\n`);
    writeFileSync(this.environment.PROXY_CONFIG, [head, ...tables].join("\n"));
    this.children = [];
  }

  // Runs a command; returns what it prints, whatever its exit code is.
  run(...args) {
    try {
      return execFileSync(this.program, args, { env: this.environment, cwd: this.folder, encoding: "utf8", stdio: ["ignore", "pipe", "pipe"], timeout: 60_000 });
    } catch (error) {
      return `${error.stdout ?? ""}${error.stderr ?? error}`;
    }
  }

  // Returns an address with a new code.
  open() {
    const text = this.run("web", "--no-browser");
    const found = text.match(/http:\/\/[^\s]+#[0-9a-f]{32}/);
    if (!found) throw new Error(`\`proxy web --no-browser\` printed no address:\n${text}`);
    return found[0];
  }

  // Makes a file that changes what a server does.
  make(name) {
    writeFileSync(join(this.folder, name), "");
  }

  // Removes such a file.
  unmake(name) {
    rmSync(join(this.folder, name));
  }

  // Makes this many calls of a tool as a client of its own, at most 64 at a time and `rate` a second.
  async burst(tool_name, tool_input, count, rate = Infinity) {
    const child = spawn(this.program, ["serve"], { env: this.environment, cwd: this.folder, stdio: ["pipe", "pipe", "ignore"] });
    this.children.push(child);
    const send = (id, method, params) => child.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", id, method, params })}\n`);
    send(0, "initialize", { protocolVersion: REVISION, capabilities: {}, clientInfo: { name: "burst", version: "1.0.0" } });
    const params = { name: "execute_dynamic_tool", arguments: { tool_name, tool_input } };
    let [sent, answered, began] = [0, 0, 0];
    await new Promise((resolve) => {
      const fill = () => {
        const due = Math.min(count, Math.floor(((Date.now() - began) / 1_000) * rate) || 0);
        while (sent < (rate === Infinity ? count : due) && sent - answered < 64) send(++sent, "tools/call", params);
      };
      createInterface({ input: child.stdout }).on("line", (line) => {
        const { id } = JSON.parse(line);
        if (id === 0) began = Date.now();
        if (id > 0 && ++answered === count) resolve();
        if (began) fill();
      });
      const timer = setInterval(() => (answered === count ? clearInterval(timer) : began && fill()), 5);
    });
    child.stdin.end();
  }

  // Connects a client by this name, which makes these calls. It answers no question.
  async connect(name, calls, capabilities = {}) {
    const child = spawn(this.program, ["serve"], { env: this.environment, cwd: this.folder, stdio: ["pipe", "pipe", "ignore"] });
    this.children.push(child);
    const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
    let id = 0;
    const ask = async (method, params) => {
      child.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", id: ++id, method, params })}\n`);
      for (;;) {
        const { value, done } = await lines.next();
        if (done) throw new Error("`proxy serve` ended");
        const message = JSON.parse(value);
        if (message.id === id) return message;
      }
    };
    await ask("initialize", { protocolVersion: REVISION, capabilities, clientInfo: { name, version: "1.0.0" } });
    child.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", method: "notifications/initialized" })}\n`);
    const call = (tool_name, tool_input) => ask("tools/call", { name: "execute_dynamic_tool", arguments: { tool_name, tool_input } });
    for (const [tool, input] of calls) await call(tool, input);
    return call;
  }

  // Kills the daemon, as a crash would.
  kill() {
    const { daemons } = JSON.parse(this.run("status", "--json"));
    for (const { pid } of daemons) process.kill(pid, "SIGKILL");
  }

  // Ends all programs of the scene and removes its folder.
  end() {
    for (const child of this.children) child.stdin.end();
    this.run("daemon", "stop");
    for (const child of this.children) child.kill();
    if (!process.env.KEEP_SCENE) rmSync(this.folder, { recursive: true, force: true });
  }
}
