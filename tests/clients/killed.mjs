// Makes a call during which the daemon is killed, with the official TypeScript SDK.
//
//     killed.mjs SDK GATE URL
//
// SDK is a mode of sdk.mjs. On progress of the call it creates the file GATE; once the file
// GATE.killed exists, it makes three calls of another tool. Prints the results as one JSON object.

import { existsSync, writeFileSync } from "node:fs";

import { connect } from "./sdk.mjs";

const [mode, gate, url] = process.argv.slice(2);
const { client, sdk } = await connect(mode, [url]);

const call = async (tool, number, options) => {
  const tool_input = { number };
  const params = {
    name: "execute_dynamic_tool",
    arguments: { tool_name: `any/${tool}`, tool_input },
  };
  const result = await (sdk === "v1"
    ? client.callTool(params, undefined, options)
    : client.callTool(params, options));
  return [result.isError === true, result.content[0].text];
};

const long = call("slow", 0, { onprogress: () => writeFileSync(gate, "") });
while (!existsSync(`${gate}.killed`)) {
  await new Promise((resolve) => setTimeout(resolve, 50));
}
const quick = [];
for (const number of [1, 2, 3]) {
  quick.push(await call("quick", number));
}
console.log(JSON.stringify({ quick, long: await long }));
process.exit(0);
