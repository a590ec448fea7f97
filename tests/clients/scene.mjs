// The scene of the three tools, played by the official TypeScript SDK.
//
//     scene.mjs SDK GATE URL
//     scene.mjs SDK GATE COMMAND ARGUMENT...
//
// SDK is `v1` (the package `sdk`), `v2` (the package `client`) or `v2-auto` (the same, which asks
// for the modern era first). For each progress heard, a file is made: GATE and its number. Prints
// one JSON object of what was seen. The packages are looked up beside the current folder.

import { writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const require = createRequire(join(process.cwd(), "here.js"));
const load = (name) => import(pathToFileURL(require.resolve(name)).href);

const [mode, gate, target, ...args] = process.argv.slice(2);
const sdk = mode.slice(0, 2);
const packages = {
  v1: [
    "@modelcontextprotocol/sdk/client/index.js",
    "@modelcontextprotocol/sdk/client/streamableHttp.js",
    "@modelcontextprotocol/sdk/client/stdio.js",
  ],
  v2: [
    "@modelcontextprotocol/client",
    "@modelcontextprotocol/client",
    "@modelcontextprotocol/client/stdio",
  ],
};
const [{ Client }, { StreamableHTTPClientTransport }, { StdioClientTransport }] =
  await Promise.all(packages[sdk].map(load));

const transport = target.startsWith("http")
  ? new StreamableHTTPClientTransport(new URL(target))
  : new StdioClientTransport({ command: target, args });
const options = mode === "v2-auto" ? { versionNegotiation: { mode: "auto" } } : {};
const client = new Client({ name: `scene-${mode}`, version: "1.0.0" }, options);
await client.connect(transport);

const text = (result) => result.content.map((block) => block.text).join("\n");
const progress = [];
const execute = (tool_name, options) => {
  const call = { name: "execute_dynamic_tool", arguments: { tool_name, tool_input: {} } };
  return sdk === "v1" ? client.callTool(call, undefined, options) : client.callTool(call, options);
};

const tools = await client.listTools();
const found = await client.callTool({ name: "search_tools", arguments: { query: "work" } });
const done = await execute("any/work", {
  onprogress: (it) => {
    progress.push([it.progress, it.total]);
    writeFileSync(`${gate}${it.progress}`, "");
  },
});
const wrong = await execute("any/wrok");
const seen = {
  revision: client.getNegotiatedProtocolVersion?.() ?? transport.protocolVersion,
  instructions: client.getInstructions(),
  tools: tools.tools.map((tool) => tool.name),
  found: text(found),
  done: text(done),
  progress,
  wrong: text(wrong),
  wrong_is_error: wrong.isError,
};
await transport.terminateSession?.();
await client.close();
console.log(JSON.stringify(seen));
