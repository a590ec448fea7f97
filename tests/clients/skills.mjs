// Uses skills as a host does: the skills client of the official TypeScript SDK, which compares every file with its entry.
//
//     skills.mjs SDK URL | skills.mjs SDK COMMAND ARGUMENT...
//
// SDK is `v2` or `v2-auto`. Prints what it found as one JSON object.

import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

import { connect } from "./sdk.mjs";

const require = createRequire(join(process.cwd(), "here.js"));
const { SkillsClient } = await import(pathToFileURL(require.resolve("@modelcontextprotocol/client/ext/skills")).href);

const [mode, ...target] = process.argv.slice(2);
const { client, transport } = await connect(mode, target);
const skills = new SkillsClient(client);
const { skills: entries } = await skills.list();
const found = [];
for (const entry of entries) {
  const { skill } = await skills.get(entry.uri);
  const main = await skills.read(skill);
  const others = [];
  for (const file of Array.isArray(entry.resources) ? entry.resources : []) {
    const read = await skills.read(skill, file.uri).catch((error) => ({ text: error.reason ?? error.message, verified: false }));
    others.push([file.uri, read.verified, read.text]);
  }
  const relative = await skills.read(skill, "references/FORMS.md").catch((error) => ({ text: error.reason ?? error.message }));
  found.push({ uri: entry.uri, name: main.frontmatter?.name, verified: main.verified, others, relative: relative.text });
}
const unknown = await skills.get("skill://none/SKILL.md").then(() => "found", (error) => error.code ?? error.message);
const seen = { supported: skills.supported, directoryRead: skills.directoryRead, found, unknown };
await transport.terminateSession?.();
await client.close();
console.log(JSON.stringify(seen));
