// Plays the scene of the three tools with the official TypeScript SDK.
//
//     scene.mjs SDK GATE URL
//     scene.mjs SDK GATE COMMAND ARGUMENT...
//
// SDK is a mode of sdk.mjs. For each progress notification it creates the file GATE plus its number.
// Prints the results as one JSON object.

import { writeFileSync } from "node:fs";

import { connect } from "./sdk.mjs";

const [mode, gate, ...target] = process.argv.slice(2);
const { client, transport, sdk } = await connect(mode, target);

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
