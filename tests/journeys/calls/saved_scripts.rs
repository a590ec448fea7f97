//! Saved scripts: files beside the configuration that become tools.

use std::time::Duration;

use journeys::{
    client::Client,
    fake::Step,
    house::{House, fake},
};
use serde_json::{Value, json};

use crate::house;

const REPORT: &str = "/** Sum up what the zither recorded. */\n\
    export async function main(args: { /** How often. */ times: number; unit?: 'cents' | 'euros' }) {\n\
    \x20 const each = Array.from({ length: args.times }, (_, n) => any.echo({ n }));\n\
    \x20 print('summed');\n\
    \x20 return { sum: (await Promise.all(each)).reduce((sum, it) => sum + it.n, 0), unit: args.unit ?? 'cents' };\n\
    }\n";

async fn served(scripts: &[(&str, &str)]) -> (House, Client) {
    let house = house([fake("any").tool("echo", Step::Echo)]);
    std::fs::create_dir(house.path("scripts")).unwrap();
    for (name, text) in scripts {
        house.write(&format!("scripts/{name}"), text);
    }
    house.indexed().await;
    let client = house.client().await;
    (house, client)
}

async fn says(client: &Client, tool: &str, input: Value, expected: &str) {
    let reply = client.execute(tool, input).await;
    let text = crate::results::long_results::texts(&reply).join("\n");
    assert!(text.contains(expected), "{tool}: {text}");
}

#[journey]
async fn a_file_is_a_tool_like_any_other() {
    let double = "/** Twice the report. */\nexport async function main(args: { times: number }) {\n\
        \x20 const made = await scripts.report({ times: args.times });\n  return made.sum * 2;\n}";
    let deep = "export async function main() { return await scripts.deep({}) }";
    let (house, client) = served(&[
        ("report.ts", REPORT),
        ("double.ts", double),
        ("deep.ts", deep),
    ])
    .await;
    let found = client.search("sum up zither records").await.text();
    let signature = r#"scripts/report(times: number, unit?: "cents"|"euros") - Sum up what the zither recorded"#;
    assert!(found.contains(signature), "{found}");
    let answer = "{\"sum\":6,\"unit\":\"cents\"}\nlog:\nsummed";
    says(&client, "scripts/report", json!({ "times": 4 }), answer).await;
    says(
        &client,
        "scripts/report",
        json!({ "time": 4 }),
        "invalid_input",
    )
    .await;
    // Another script that calls it does not get its printed output.
    says(&client, "scripts/double", json!({ "times": 4 }), "12").await;
    let within = json!({ "script": "(await scripts.report({ times: 3 })).unit" });
    says(&client, "proxy/run_script", within, "cents").await;
    let misspelt = json!({ "script": "await scripts.report({ time: 3 })" });
    says(&client, "proxy/run_script", misspelt, "did you mean times?").await;
    says(
        &client,
        "scripts/deep",
        json!({}),
        "more than 3 scripts within each other",
    )
    .await;
    let dry = json!({ "times": 2, "proxy/dry_run": true });
    says(
        &client,
        "scripts/report",
        dry,
        "would call any/echo {\"n\":0}\nwould call any/echo",
    )
    .await;
    let called = house.cli(["call", "scripts/double", "times=3"]).await;
    assert_eq!(called.ended(0).trim(), "6");
    house.stops_clean().await;
}

#[journey]
async fn changed_files_are_taken_in_at_once_and_mistakes_are_told() {
    let (house, client) = served(&[("report.ts", REPORT)]).await;
    house.write("scripts/greet.ts", "/** Greet the harpsichord. */\n'hello'");
    client
        .until_search_finds("greet the harpsichord", "scripts/greet(")
        .await;
    says(&client, "scripts/greet", json!({}), "hello").await;
    house.write("scripts/greet.ts", "/** Thank the bassoon. */\n'thanks'");
    client
        .until_search_finds("thank the bassoon", "Thank the bassoon")
        .await;
    says(&client, "scripts/greet", json!({}), "thanks").await;
    house.write(
        "scripts/broken.ts",
        "\nexport function main(args: { at: Date }) {}",
    );
    let doctor = house.cli(["doctor", "--offline"]).await;
    let why = "line 2, column 34: the type `Date` is not declared in this file";
    assert!(doctor.ended(1).contains(why), "{}", doctor.stdout);
    if house.has_daemon() {
        house.write("scripts/last.ts", "/** Tune the celesta. */\n1");
        client
            .until_search_finds("tune the celesta", "scripts/last(")
            .await;
        let status = house.cli(["status"]).await;
        let line = format!("scripts/broken.ts: not a tool: {why}");
        assert!(status.ended(0).contains(&line), "{}", status.stdout);
    }
    std::fs::remove_file(house.path("scripts/greet.ts")).unwrap();
    let gone = async {
        while !client
            .execute("scripts/greet", json!({}))
            .await
            .text()
            .contains("unknown_tool")
        {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    client.within("end of the tool", gone).await;
    says(
        &client,
        "scripts/report",
        json!({ "times": 1 }),
        "\"sum\":0",
    )
    .await;
    house.stops_clean().await;
}

#[journey]
async fn a_script_that_says_it_only_reads_changes_nothing() {
    let reads = json!({ "name": "look", "inputSchema": { "type": "object" }, "annotations": { "readOnlyHint": true } });
    let house = house([fake("any")
        .tool("change", Step::Echo)
        .tool_as(reads, Step::Echo)]);
    std::fs::create_dir(house.path("scripts")).unwrap();
    let script =
        |body: &str| format!("/** @readOnly */\nexport async function main() {{ {body} }}");
    house.write("scripts/reads.ts", &script("return await any.look({})"));
    house.write("scripts/lies.ts", &script("return await any.change({})"));
    house.write(
        "scripts/writes.ts",
        &script("await workspace.write('a', 'b')"),
    );
    house.indexed().await;
    let client = house.client().await;
    says(&client, "scripts/reads", json!({}), "{}").await;
    says(
        &client,
        "scripts/lies",
        json!({}),
        "scripts/lies is @readOnly, and any/change",
    )
    .await;
    says(
        &client,
        "scripts/writes",
        json!({}),
        "scripts/writes is @readOnly, and the workspace",
    )
    .await;
    assert_eq!(house.received_method("any", "tools/call").len(), 1);
    house.stops_clean().await;
}
