// Makes many concurrent calls in one session, some of which ask the user, with the official
// TypeScript SDK.
//
//     asking.mjs SDK CALLS URL
//     asking.mjs SDK CALLS COMMAND ARGUMENT...
//
// SDK is a mode of sdk.mjs. Every fifth call is one of `any/ask`, the others are of `any/echo`.
// Prints one JSON object: the text of each result, and the number of questions.

import { connect } from "./sdk.mjs";

const [mode, calls, ...target] = process.argv.slice(2);
let asked = 0;
const answers = {
  "elicitation/create": async () => {
    asked += 1;
    // A user answers late; meanwhile other calls end, and so do their streams.
    await new Promise((resolve) => setTimeout(resolve, 20));
    return { action: "accept", content: { text: "Ada" } };
  },
};
const { client, transport } = await connect(mode, target, answers, { elicitation: {} });

const call = async (n) => {
  const tool = n % 5 === 0 ? "any/ask" : "any/echo";
  const params = { tool_name: tool, tool_input: { n } };
  const result = await client.callTool({ name: "execute_dynamic_tool", arguments: params });
  return result.content.map((block) => block.text).join("\n");
};
const texts = await Promise.all(Array.from({ length: Number(calls) }, (_, n) => call(n)));
await transport.terminateSession?.();
await client.close();
console.log(JSON.stringify({ texts, asked }));
