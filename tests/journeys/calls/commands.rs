//! Command-line programs that are tools of the server `commands`.

use journeys::{client::Client, fake::Step, house::fake};
use serde_json::{Value, json};

use crate::house;

const GREP: &str = r#"
[commands.grep]
command = ["grep", "--line-number", "{case?}", "--regexp={pattern}", "FILE"]
description = "Search the zither notes for a regular expression."
args.case = { enum = ["--ignore-case"] }
ok_codes = [0, 1]
read_only = true

[commands.wc]
command = ["wc", "-l"]
description = "Count the lines of a bassoon text."
stdin = "{text}"

[commands.lacking]
command = ["no-such-program", "{a}"]
description = "Tune the celesta."

[servers.commands]
max_tokens = 300
"#;

async fn says(client: &Client, tool: &str, input: Value, expected: &str) {
    let reply = client.execute(tool, input).await;
    let text = crate::results::long_results::texts(&reply).join("\n");
    assert!(text.contains(expected), "{tool}: {text}");
}

#[journey]
async fn a_program_is_a_tool_like_any_other() {
    let house = house([fake("any").tool("echo", Step::Echo)]);
    let lines: Vec<String> = (1..2_000).map(|line| format!("note {line}")).collect();
    let file = house.write("notes.txt", &lines.join("\n"));
    let grep = GREP.replace("FILE", &file.display().to_string());
    house.configure_more(&grep);
    house.indexed().await;
    let client = house.client().await;
    let found = client.search("search zither notes").await.text();
    let signature = r#"commands/grep(pattern: string, case?: "--ignore-case")"#;
    assert!(found.contains(signature), "{found}");

    let case = json!({ "pattern": "NOTE 17$", "case": "--ignore-case" });
    let other = json!({ "pattern": "x", "case": "--file=/etc/passwd" });
    let script = json!({ "script": "await commands.wc({ text: 'a\\n' })" });
    for (tool, input, expected) in [
        (
            "commands/grep",
            json!({ "pattern": "note 17$" }),
            "17:note 17",
        ),
        (
            "commands/grep",
            json!({ "pattern": "nowhere" }),
            "answered with no content",
        ),
        (
            "commands/grep",
            json!({ "pattern": "note" }),
            "proxy/read_result",
        ),
        (
            "commands/grep",
            json!({ "pattern": "[" }),
            "it exited with code 2",
        ),
        ("commands/grep", json!({ "patern": "x" }), "invalid_input"),
        ("commands/grep", case, "17:note 17"),
        ("commands/grep", other, "invalid_input"),
        ("commands/wc", json!({ "text": "a\nb\n" }), "2"),
        (
            "commands/lacking",
            json!({ "a": "b" }),
            "install `no-such-program`",
        ),
        (
            "commands/lacking",
            json!({ "a": "--help" }),
            "begins with `-`",
        ),
        ("proxy/run_script", script, "1"),
    ] {
        says(&client, tool, input, expected).await;
    }

    let doctor = house.cli(["doctor", "--offline"]).await;
    assert!(
        doctor.ended(1).contains("`no-such-program` not found"),
        "{}",
        doctor.stdout
    );
    let called = house.cli(["call", "commands/wc", "text=a\n"]).await;
    assert_eq!(called.ended(0).trim(), "1");
    let described = house.cli(["describe", "commands/grep"]).await;
    assert!(
        described.ended(0).contains("Search the zither notes"),
        "{}",
        described.stdout
    );
    house.stops_clean().await;
}

#[journey]
async fn commands_follow_rules_and_the_configuration() {
    let house = house([fake("any").tool("echo", Step::Echo)]);
    house.indexed().await;
    let client = house.client().await;
    let sort = "[commands.sort]\ncommand = [\"sort\"]\ndescription = \"Order harpsichord lines.\"\nstdin = \"{text}\"\n";
    house.configure_more(sort);
    client
        .until_search_finds("order harpsichord lines", "commands/sort(")
        .await;
    says(
        &client,
        "commands/sort",
        json!({ "text": "b\na\n" }),
        "a\nb",
    )
    .await;
    let before = std::fs::read_to_string(house.config()).unwrap();
    let rule = "\n[[rules]]\ndecision = \"deny\"\ntool = \"commands/*\"\nreason = \"no sorting\"\n";
    house.configure(&format!("{before}{rule}"));
    let refused = async {
        loop {
            let reply = client
                .execute("commands/sort", json!({ "text": "b" }))
                .await;
            let text = crate::results::long_results::texts(&reply).join("\n");
            if text.contains("no sorting") {
                return;
            }
        }
    };
    tokio::time::timeout(journeys::client::DEADLINE, refused)
        .await
        .unwrap();
    house.stops_clean().await;
}

#[journey]
async fn a_manifest_becomes_commands() {
    let house = house([fake("any").tool("echo", Step::Echo)]);
    let manifest = r#"[{"id": "uniq", "name": "unique", "description": "Drop repeated glockenspiel lines.",
        "usage": "uniq [OPTION]... [FILE]", "capabilities": ["repeated lines"], "min_version": "8"}]"#;
    let file = house.write("tools.json", manifest);
    let imported = house
        .cli(["add", "--import", &file.display().to_string()])
        .await;
    imported.ended(0);
    let text = std::fs::read_to_string(house.config()).unwrap();
    assert!(text.contains("[commands.uniq]"), "{text}");
    let file = house.write("bad.json", r#"[{"id": "fine"}, {"id": "bad/name"}]"#);
    let refused = house
        .cli(["add", "--import", &file.display().to_string()])
        .await;
    refused.ended(2);
    assert!(
        refused.stderr.contains("a command's name has letters"),
        "{}",
        refused.stderr
    );
    assert_eq!(std::fs::read_to_string(house.config()).unwrap(), text);
    let client = house.client().await;
    client
        .until_search_finds("drop repeated glockenspiel lines", "commands/uniq(")
        .await;
    let described = client.describe("commands/uniq").await.text();
    assert!(
        described.contains("Usage: uniq [OPTION]... [FILE]"),
        "{described}"
    );
    says(
        &client,
        "commands/uniq",
        json!({ "args": ["--version"] }),
        "uniq",
    )
    .await;
    house.stops_clean().await;
}
