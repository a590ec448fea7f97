// A server of skills on the official TypeScript SDK. Its packages are resolved from the current folder.
//
//     skills.mjs NAME

import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const require = createRequire(join(process.cwd(), "here.js"));
const load = (name) => import(pathToFileURL(require.resolve(name)).href);
const { McpServer } = await load("@modelcontextprotocol/server");
const { StdioServerTransport } = await load("@modelcontextprotocol/server/stdio");
const { SkillsExtension, memorySkillFiles } = await load("@modelcontextprotocol/server/ext/skills");

const [name] = process.argv.slice(2);
const files = memorySkillFiles({
  "invoices/SKILL.md": `---\nname: invoices\ndescription: Invoices of ${name}.\n---\n# Steps\n\nSee references/FORMS.md.\n`,
  "invoices/references/FORMS.md": name,
});
const server = new McpServer({ name, version: "1.0.0" });
const catalog = await SkillsExtension.load(files);
catalog.attach(server);
await server.connect(new StdioServerTransport());
