// Uses prompts, resources and servers' requests with the official TypeScript SDK.
//
//     passing.mjs SDK URL
//     passing.mjs SDK COMMAND ARGUMENT...
//
// SDK is a mode of sdk.mjs. Prints the results as one JSON object.

import { connect } from "./sdk.mjs";

const [mode, ...target] = process.argv.slice(2);
const asked = [];
const answers = {
  "elicitation/create": ({ params }) => {
    asked.push(params.message);
    return { action: "accept", content: { text: "Ada" } };
  },
  "sampling/createMessage": ({ params }) => {
    asked.push(params.messages[0].content.text);
    return { role: "assistant", content: { type: "text", text: "tea" }, model: "scene" };
  },
  "roots/list": () => ({ roots: [{ uri: "file:///scene/folder", name: "folder" }] }),
};
const capabilities = { elicitation: {}, sampling: {}, roots: { listChanged: true } };
const { client, transport } = await connect(mode, target, answers, capabilities);

const call = async (tool) => {
  const params = { tool_name: `any/${tool}`, tool_input: {} };
  const result = await client.callTool({ name: "execute_dynamic_tool", arguments: params });
  return JSON.parse(result.content[0].text);
};
const { prompts } = await client.listPrompts();
const prompt = await client.getPrompt({ name: "any__greet", arguments: { name: "Bob" } });
const { resources } = await client.listResources();
const { resourceTemplates } = await client.listResourceTemplates();
const resource = await client.readResource({ uri: "note://one" });
const part = await client.readResource({ uri: "note://two/part" });
const { completion } = await client.complete({
  ref: { type: "ref/prompt", name: "any__greet" },
  argument: { name: "name", value: "b" },
});
const seen = {
  revision: client.getNegotiatedProtocolVersion?.() ?? transport.protocolVersion,
  prompts: prompts.map((it) => it.name),
  prompt: prompt.messages[0].content.text,
  resources: resources.map((it) => it.uri),
  templates: resourceTemplates.map((it) => it.uriTemplate),
  resource: resource.contents[0].text,
  part: part.contents[0].text,
  completion: completion.values,
  elicited: await call("ask"),
  sampled: await call("sample"),
  roots: await call("roots"),
  asked,
};
await transport.terminateSession?.();
await client.close();
console.log(JSON.stringify(seen));
