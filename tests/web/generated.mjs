// Scenes of generated servers: none, three, or a hundred with 5,000 tools. One of each set fails, one has changed tools, one has
// hostile texts, and one is disabled.

import { Scene, serverOf } from "./scene.mjs";

const NAMES = ["archive", "billing", "calendar", "crm", "deploy", "files", "forum", "gitea", "images", "inventory", "ledger", "mail", "maps",
  "metrics", "orders", "payments", "search", "tickets", "warehouse", "wiki"];
const TOOLS = 5_000;

const RULES = `[audit]
arguments = "full"

[[rules]]
decision = "ask"
annotation = "destructive"
reason = "a person decides about deletions"

[[rules]]
decision = "deny"
client = "cursor"
tool = "hostile/*"

[[quotas]]
calls = 200
per = "hour"
each = "client"

[[quotas]]
tokens = 50000
per = "day"
server = "notes"
`;

// Returns a scene with this number of servers, surveyed, with calls of two clients; `call` is the first client.
export async function generate(program, folder, count) {
  const special = count ? { notes: serverOf("notes", folder), broken: serverOf("broken", folder), hostile: serverOf("hostile") } : {};
  const left = Math.max(0, count - Object.keys(special).length);
  const others = Array.from({ length: left }, (_, i) => {
    const name = `${NAMES[i % NAMES.length]}${i < NAMES.length ? "" : `-${Math.floor(i / NAMES.length) + 1}`}`;
    return [name, serverOf("tools", String(Math.floor(TOOLS / left) + (i < TOOLS % left ? 1 : 0)))];
  });
  const scene = new Scene(program, folder, { ...special, ...Object.fromEntries(others) }, count ? RULES : "");
  if (!count) return { scene, call: async () => {} };
  scene.run("reindex");
  scene.make("changed");
  scene.run("reindex", "notes");
  if (others.length) scene.run("servers", "disable", others.at(-1)[0]);
  const call = await scene.connect("claude-code", [["notes/add_note", { title: "Milk" }], ["notes/search_notes", { query: "milk" }],
    ["broken/query", { sql: "select 1" }], ["hostile/markup", {}],
    ...others.slice(0, 12).map(([name], i) => [`${name}/do_thing_${i}`, { thing: `number ${i}` }])]);
  await scene.connect("cursor", [["hostile/markup", {}], ["notes/list_notes", {}]]);
  await call("proxy/run_script", { script: "await notes.add_note({ title: 'of a script' }); await notes.list_notes({}); 1" });
  return { scene, call };
}
