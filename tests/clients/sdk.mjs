// One interface to the official TypeScript SDK, old and new. Its packages are resolved from the
// current folder.

import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const require = createRequire(join(process.cwd(), "here.js"));
const load = (name) => import(pathToFileURL(require.resolve(name)).href);

const packages = {
  v1: [
    "@modelcontextprotocol/sdk/client/index.js",
    "@modelcontextprotocol/sdk/client/streamableHttp.js",
    "@modelcontextprotocol/sdk/client/stdio.js",
    "@modelcontextprotocol/sdk/types.js",
  ],
  v2: [
    "@modelcontextprotocol/client",
    "@modelcontextprotocol/client",
    "@modelcontextprotocol/client/stdio",
  ],
};

// The requests of servers, by their schema in the old SDK.
const asks = {
  "elicitation/create": "ElicitRequestSchema",
  "sampling/createMessage": "CreateMessageRequestSchema",
  "roots/list": "ListRootsRequestSchema",
};

// A client of a URL, or of a command and its arguments. `mode` is `v1` (the package `sdk`), `v2`
// (the package `client`) or `v2-auto` (the same, which tries the modern era first). `answers` has a
// function for each request of servers.
export async function connect(mode, [target, ...args], answers = {}, capabilities = {}) {
  const sdk = mode.slice(0, 2);
  const [{ Client }, { StreamableHTTPClientTransport }, { StdioClientTransport }, types] =
    await Promise.all(packages[sdk].map(load));
  const transport = target.startsWith("http")
    ? new StreamableHTTPClientTransport(new URL(target))
    : new StdioClientTransport({ command: target, args });
  const options = mode === "v2-auto" ? { versionNegotiation: { mode: "auto" } } : {};
  const client = new Client(
    { name: `scene-${mode}`, version: "1.0.0" },
    { ...options, capabilities },
  );
  for (const [method, answer] of Object.entries(answers)) {
    client.setRequestHandler(types ? types[asks[method]] : method, answer);
  }
  await client.connect(transport);
  return { client, transport, sdk };
}
