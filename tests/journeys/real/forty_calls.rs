//! A task of forty calls over three real servers: the tokens of a model with a script and without.
//!
//! `cargo test --workspace --test journeys -- forty_calls --nocapture` prints the figures of
//! `docs/guide.md`.

use std::{io::Write as _, path::Path, process::Stdio};

use journeys::{
    client::Client,
    house::{Fake, House, Program},
    real::RealServers,
};
use serde_json::{Value, json};

use crate::{definition_tokens, house, real_servers, tokens};

/// The number of commits in the repository, each with a file of notes.
const CHANGES: usize = 12;
/// One list of each kind, three calls per commit, two for the graph.
const CALLS: usize = 4 + 3 * CHANGES;

const SCRIPT: &str = r#"
const text = (it) => it.content ?? it;
const log = text(await git.git_log({ repo_path: args.repo, max_count: args.changes }));
const files = text(await filesystem.list_directory({ path: args.notes })).match(/note-\d+\.txt/g).sort();
const read = await Promise.all(log.match(/\b[0-9a-f]{40}\b/g).reverse().map(async (revision, n) => {
  const shown = text(await git.git_show({ repo_path: args.repo, revision }));
  const notes = text(await filesystem.read_text_file({ path: `${args.notes}/${files[n]}` }));
  return { name: /Change \d+/.exec(shown)[0], lines: notes.trim().split("\n").length };
}));
for (const { name, lines } of read)
  await memory.create_entities({ entities: [{ name, entityType: "change", observations: [`${lines} lines of notes`] }] });
await memory.create_relations({ relations: read.slice(1).map((it, n) => ({ from: read[n].name, to: it.name, relationType: "precedes" })) });
const graph = await memory.read_graph({});
({ entities: graph.entities.length, relations: graph.relations.length, last: graph.entities.at(-1).observations[0] })
"#;

const ANSWER: &str = r#"{"entities":12,"relations":11,"last":"23 lines of notes"}"#;

/// The traffic of a model: all text that it writes and reads, counted once.
struct Model {
    client: Client,
    tokens: usize,
    turns: usize,
}

impl Model {
    async fn call(&mut self, tool: &str, arguments: Value) -> String {
        let written = json!({ "name": tool, "arguments": arguments }).to_string();
        let answer = self.client.call(tool, arguments).await.good();
        self.tokens += tokens(&written) + tokens(&answer);
        self.turns += 1;
        answer
    }

    async fn execute(&mut self, tool: &str, input: Value) -> String {
        let arguments = json!({ "tool_name": tool, "tool_input": input });
        self.call("execute_dynamic_tool", arguments).await
    }

    async fn find_tools(&mut self) {
        let wanted = [
            ("log of commits", "git/git_log("),
            ("show a commit", "git/git_show("),
            ("list a directory", "filesystem/list_directory("),
            ("read a text file", "filesystem/read_text_file("),
            ("create entities", "memory/create_entities("),
            ("create relations", "memory/create_relations("),
            ("read the graph", "memory/read_graph("),
        ];
        let query: Vec<&str> = wanted.iter().map(|(query, _)| *query).collect();
        let arguments = json!({ "query": query, "max_results": 1 });
        let found = self.call("search_tools", arguments).await;
        for (query, tool) in wanted {
            assert!(found.contains(tool), "{query}: {found}");
        }
    }
}

fn servers(real: &RealServers, house: &House) -> [Program; 3] {
    [
        real.git(&house.path("repository")),
        real.filesystem(&house.path("notes")),
        real.memory(&house.path("memory.jsonl")),
    ]
}

/// Creates a house with the three servers, and a model with the definitions and instructions of a
/// session.
async fn opened(real: &RealServers) -> (House, Model) {
    let house = house::<Fake>([]);
    fill(&house);
    for server in servers(real, &house) {
        house.add(server);
    }
    house.indexed().await;
    let client = house.serve();
    let greeting = client.initialize("2025-11-25").await;
    let definitions = client.tools_list().await;
    let definitions: usize = definitions.iter().map(definition_tokens).sum();
    let model = Model {
        client,
        tokens: definitions + tokens(greeting["instructions"].as_str().unwrap()),
        turns: 0,
    };
    (house, model)
}

/// Creates commits that each change a file, and notes on each.
fn fill(house: &House) {
    std::fs::create_dir(house.path("notes")).unwrap();
    let line = |n: usize| format!("Line {n} of what was changed and why it had to be.\n");
    let mut stream = String::new();
    for change in 0..CHANGES {
        let text: String = (0..20).map(line).collect();
        let parent = if change == 0 {
            "from refs/heads/master^0\n"
        } else {
            ""
        };
        let (time, name) = (1_700_000_000 + change * 60, format!("Change {change}\n"));
        let (bytes, said) = (text.len(), name.len());
        stream.push_str(&format!(
            "commit refs/heads/master\ncommitter Ada <ada@example.com> {time} +0000\ndata {said}\n{name}\
             {parent}M 100644 inline file-{change}.txt\ndata {bytes}\n{text}\n"
        ));
        let notes: String = (0..change + 12).map(line).collect();
        house.write(&format!("notes/note-{change:02}.txt"), &notes);
    }
    import(&house.repository(), &stream);
}

fn import(repository: &Path, stream: &str) {
    let mut git = std::process::Command::new("git");
    git.arg("-C").arg(repository);
    git.args(["fast-import", "--quiet", "--force"]);
    let mut git = git.stdin(Stdio::piped()).spawn().unwrap();
    let mut stdin = git.stdin.take().unwrap();
    stdin.write_all(stream.as_bytes()).unwrap();
    drop(stdin);
    assert!(git.wait().unwrap().success());
}

/// Makes the forty calls one by one, as a model does that reads each result.
async fn call_by_call(model: &mut Model, house: &House) -> String {
    let (repo, notes) = (house.path("repository"), house.path("notes"));
    let log = json!({ "repo_path": repo, "max_count": CHANGES });
    let log = model.execute("git/git_log", log).await;
    let is_hash = |word: &&str| word.len() == 40 && word.chars().all(|c| c.is_ascii_hexdigit());
    let words = log.split(|c: char| !c.is_ascii_alphanumeric());
    let hashes: Vec<&str> = words.filter(is_hash).collect();
    assert_eq!(hashes.len(), CHANGES, "{log}");
    model
        .execute("filesystem/list_directory", json!({ "path": notes }))
        .await;
    for (change, hash) in hashes.iter().rev().enumerate() {
        let shown = json!({ "repo_path": repo, "revision": hash });
        let shown = model.execute("git/git_show", shown).await;
        assert!(shown.contains(&format!("Change {change}\n")), "{shown}");
        let file = json!({ "path": notes.join(format!("note-{change:02}.txt")) });
        let read = model.execute("filesystem/read_text_file", file).await;
        let lines = read
            .lines()
            .filter(|line| line.starts_with("Line "))
            .count();
        let entity = json!({ "name": format!("Change {change}"), "entityType": "change",
            "observations": [format!("{lines} lines of notes")] });
        let entities = json!({ "entities": [entity] });
        model.execute("memory/create_entities", entities).await;
    }
    let relation = |n: usize| json!({ "from": format!("Change {}", n - 1), "to": format!("Change {n}"), "relationType": "precedes" });
    let relations: Vec<Value> = (1..CHANGES).map(relation).collect();
    let relations = json!({ "relations": relations });
    model.execute("memory/create_relations", relations).await;
    model.execute("memory/read_graph", json!({})).await
}

#[tokio::test]
#[cfg_attr(offline, ignore = "calls real programs")]
async fn forty_calls_are_two_turns_and_a_tenth_of_the_tokens_with_a_script() {
    let real = real_servers();
    let (house, mut alone) = opened(&real).await;
    let up_front = alone.tokens;
    let mut definitions = 0;
    for server in servers(&real, &house) {
        let direct = house.keep(Client::start(server.to_command()));
        direct.initialize("2025-11-25").await;
        let tools = direct.tools_list().await;
        definitions += tools.iter().map(definition_tokens).sum::<usize>();
    }
    // The same calls and results, with every definition loaded and without any search.
    let graph = call_by_call(&mut alone, &house).await;
    assert_eq!(alone.turns, CALLS);
    let direct = definitions + alone.tokens - up_front;
    alone.find_tools().await;
    assert!(graph.contains("23 lines of notes"), "{graph}");
    house.stops_clean().await;

    let (house, mut scripted) = opened(&real).await;
    scripted.find_tools().await;
    let args = json!({ "repo": house.path("repository"), "notes": house.path("notes"), "changes": CHANGES });
    let work = json!({ "script": SCRIPT, "args": args });
    let answer = scripted.execute("proxy/run_script", work).await;
    assert_eq!(answer, ANSWER);
    house.stops_clean().await;

    let mut said = std::io::stderr();
    for (how, tokens, turns) in [
        ("servers listed in the client", direct, CALLS),
        ("through the proxy, call by call", alone.tokens, alone.turns),
        (
            "through the proxy, a script",
            scripted.tokens,
            scripted.turns,
        ),
    ] {
        writeln!(said, "{CALLS} calls, {how}: {tokens} tokens, {turns} turns").unwrap();
    }
    assert_eq!((alone.turns, scripted.turns), (CALLS + 1, 2));
    assert!(scripted.tokens * 10 < alone.tokens, "{}", scripted.tokens);
}
