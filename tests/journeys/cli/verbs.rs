//! The command line returns the same results as the tools.

use std::fs;

use journeys::{
    fake::{Step, payload},
    house::{House, fake},
};
use serde_json::{Value, json};

use crate::{definition_tokens, handle, house, tokens};

async fn indexed() -> House {
    let tool = json!({
        "name": "search_code",
        "description": "Search the code of all repositories for a text.",
        "inputSchema": { "type": "object", "properties": { "q": { "type": "string" } }, "required": ["q"] }
    });
    let server = fake("github")
        .tool_as(tool, Step::Echo)
        .tool("no", Step::ToolError("never".to_owned()));
    let house = house([server.tool("long", Step::Lines(10_000))]);
    house.indexed().await;
    house
}

#[tokio::test]
async fn verbs_print_what_the_tools_answer() {
    let house = indexed().await;
    let client = house.client().await;
    let search = house.cli(["search", "SEARCH", "CODE"]).await;
    assert_eq!(
        search.ended(0).trim_end(),
        client.search("SEARCH CODE").await.good().trim_end()
    );
    let describe = house.cli(["describe", "github/search_code"]).await;
    let described = describe.ended(0);
    for line in [
        "github/search_code - Search the code of all repositories for a text",
        "Usage: proxy call github/search_code q=Q",
        "  q  string  required",
        "All of its schema: the same with `--json`",
    ] {
        assert!(described.lines().any(|it| it == line), "{described}");
    }
    let call = house
        .cli(["call", "github/search_code", r#"{"q":"x"}"#])
        .await;
    assert_eq!(call.ended(0).trim_end(), r#"{"q":"x"}"#);
    house.stops_clean().await;
}

#[tokio::test]
async fn json_is_all_there_is_on_stdout() {
    let house = indexed().await;
    let search = house.cli(["search", "code", "--json"]).await.json();
    assert_eq!(search["found"], search["tools"].as_array().unwrap().len());
    let hit = &search["tools"][0];
    for key in [
        "name",
        "server",
        "description",
        "signature",
        "category",
        "tags",
        "input_schema",
        "relevance_score",
    ] {
        assert!(hit.get(key).is_some(), "{key} is missing: {hit}");
    }
    let near = house.cli(["search", "frobnicate", "--json"]).await;
    assert_eq!(near.code, Some(1), "no hit is certain");
    let near = near.json();
    assert!(
        near["perhaps"] == true && near["message"].is_string(),
        "{near}"
    );
    let outside = house
        .cli(["search", "code", "--category", "gardening", "--json"])
        .await;
    assert_eq!(outside.code, Some(1), "the filter admits nothing");
    let outside = outside.json();
    assert_eq!(outside["found"], 0);
    assert!(!outside["without_filter"].as_array().unwrap().is_empty());
    assert!(!outside["categories"].as_array().unwrap().is_empty());
    let nothing = house.cli(["search", "+frobnicate", "--json"]).await;
    assert_eq!(nothing.code, Some(1));
    let nothing = nothing.json();
    assert_eq!(nothing["found"], 0);
    assert!(nothing["message"].is_string() && nothing["suggestion"].is_string());
    house
        .cli(["describe", "github/search_code", "--json"])
        .await
        .json();
    house.cli(["search", "*", "--json"]).await.json();
    house.cli(["servers", "--tokens", "--json"]).await.json();
    house.stops_clean().await;
}

#[tokio::test]
async fn exit_codes_tell_hit_miss_and_misuse() {
    let house = indexed().await;
    for (args, code) in [
        (&["search", "code"][..], 0),
        (&["search", "frobnicate"], 1),
        (&["describe", "github/search_code"], 0),
        (&["describe", "github/nothing"], 1),
        (&["call", "github/no", "{}"], 1),
        (&["call", "github/nothing", "{}"], 1),
        (&["call", "github/search_code", "{}"], 1),
        (&["no-such-verb"], 2),
        (&["search", "--no-such-flag"], 2),
        (&["--config", "no/such/file.toml", "search", "*"], 2),
    ] {
        let output = house.cli(args.iter().copied()).await;
        assert_eq!(
            output.code,
            Some(code),
            "{args:?}\n{}\n{}",
            output.stdout,
            output.stderr
        );
    }
    house.stops_clean().await;
}

#[tokio::test]
async fn a_list_has_a_line_a_tool() {
    let house = indexed().await;
    let list = house.cli(["search", "*"]).await;
    let lines: Vec<&str> = list.ended(0).lines().collect();
    assert!(
        lines
            .iter()
            .any(|line| line.starts_with("github/search_code") && line.contains("Search the code"))
    );
    assert_eq!(
        lines
            .iter()
            .filter(|line| line.starts_with("github/"))
            .count(),
        3
    );
    house.stops_clean().await;
}

#[tokio::test]
async fn what_was_cut_can_be_read_from_the_shell() {
    let house = indexed().await;
    let call = house.cli(["call", "github/long", "{}"]).await;
    let read = house.cli(["call", "--handle", handle(call.ended(0))]).await;
    assert_eq!(read.ended(0).trim_end(), payload::lines(10_000));
    assert_eq!(
        house.cli(["call", "--handle", "nothing"]).await.code,
        Some(1)
    );
    house.stops_clean().await;
}

#[tokio::test]
async fn a_former_command_does_what_the_new_one_does() {
    let house = indexed().await;
    let list = ["search", "*", "--server"];
    for (old, new) in [
        (&["list", "--standalone"][..], &list[..2]),
        (
            &["list", "--standalone", "github"],
            &[&list[..], &["github"]].concat(),
        ),
        (
            &["list", "nothing", "--standalone", "--json"],
            &[&list[..], &["nothing", "--json"]].concat(),
        ),
        (&["recipes", "memory"], &["add", "--list", "memory"]),
        (
            &["import", "no/such.json"],
            &["add", "--import", "no/such.json"],
        ),
        (&["log", "github"], &["logs", "github"]),
        (&["read", "nothing"], &["call", "--handle", "nothing"]),
    ] {
        let before = house.cli(old.iter().copied()).await;
        let now = house.cli(new.iter().copied()).await;
        assert_eq!(
            (&before.stdout, before.code),
            (&now.stdout, now.code),
            "{old:?}"
        );
        let (first, rest) = before.stderr.split_once('\n').unwrap();
        assert!(first.starts_with(&format!("`proxy {}", old[0])), "{first}");
        assert_eq!(rest, now.stderr, "{old:?}");
    }
    house.stops_clean().await;
}

#[tokio::test]
async fn help_has_examples() {
    let house = house::<journeys::house::Fake>([]);
    for args in [
        &["--help"][..],
        &["search", "--help"],
        &["describe", "--help"],
        &["call", "--help"],
    ] {
        let help = house.cli(args.iter().copied()).await;
        let help = help.ended(0);
        assert!(
            help.contains("Example") && help.contains("  proxy "),
            "{args:?}"
        );
    }
}

#[tokio::test]
async fn tokens_are_counted_as_a_model_sees_them() {
    let house = indexed().await;
    let client = house.serve();
    let greeting = client.initialize("2025-11-25").await;
    let instructions = greeting["instructions"].as_str().unwrap();
    let ours = client.tools_list().await;
    let ours = ours.iter().map(definition_tokens).sum::<usize>() + tokens(instructions);
    let script: Value =
        serde_json::from_str(&fs::read_to_string(house.path("github.script.json")).unwrap())
            .unwrap();
    let theirs = script["tools"].as_array().unwrap().iter();
    let theirs: usize = theirs.map(|it| definition_tokens(&it["definition"])).sum();

    let counted = house.cli(["servers", "--tokens", "--json"]).await.json();
    assert_eq!(counted["tools"], 3);
    assert_eq!(counted["loaded_up_front"], theirs);
    assert_eq!(counted["through_proxy"], ours);

    let by_tool = house.cli(["servers", "--tokens", "--by-tool"]).await;
    let first = by_tool.ended(0).lines().next().unwrap();
    assert!(first.ends_with("  github/search_code"), "{first}");
    house.stops_clean().await;
}

#[tokio::test]
async fn more_is_said_on_stderr_only_when_asked() {
    let house = indexed().await;
    let quiet = house.cli(["search", "*"]).await;
    assert_eq!(quiet.stderr, "");
    for flag in ["-v", "-vv"] {
        let list = house.cli([flag, "search", "*"]).await;
        assert_eq!(list.ended(0), quiet.stdout);
    }
    let reindex = house.cli(["-v", "reindex"]).await;
    assert!(reindex.ended(0).starts_with("github"), "{}", reindex.stdout);
    assert!(reindex.stderr.contains("github"), "{}", reindex.stderr);
    house.stops_clean().await;
}
