//! `proxy demo` plays a whole session with nothing but the binary, and its
//! servers can be had like any others.

use journeys::house::{Fake, House, Program, program};
use serde_json::{Value, json};

use crate::{house, programs};

fn demo_server(name: &str) -> Program {
    program(
        name,
        programs().proxy.display().to_string(),
        ["demo-server", name],
    )
}

#[tokio::test]
async fn the_demo_needs_no_configuration_and_leaves_nothing() {
    let house = House::without_config(&programs());
    let mut command = house.command(["demo"]);
    command.env_remove("PROXY_CONFIG").env("PATH", "");
    let output = command.output().await.unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(0), "{said}\n{stderr}");
    for word in [
        "search_tools",
        "describe_tool",
        "execute_dynamic_tool",
        "unknown_tool",
        "tokens",
    ] {
        assert!(said.contains(word), "`{word}` is missing:\n{said}");
    }
    assert_eq!(house.all_gone().await, Ok(()));
}

#[tokio::test]
async fn the_demo_servers_work_behind_the_three_tools() {
    let house = house(["archive", "clock", "flaky", "notes", "text"].map(demo_server));
    house.indexed().await;
    let client = house.client().await;
    let calls: [(&str, &str, Value, &str); 4] = [
        (
            "write down a note",
            "notes/add_note",
            json!({ "title": "Tea" }),
            "Added note 1: Tea",
        ),
        (
            "count words",
            "text/word_count",
            json!({ "text": "a b c" }),
            r#""words":3"#,
        ),
        (
            "convert a time to another offset",
            "clock/convert_time",
            json!({ "time": "2026-07-28T12:00", "to": "+09:00" }),
            "2026-07-28T21:00:00+09:00",
        ),
        (
            "order records",
            "archive/list_records",
            json!({ "count": 2 }),
            "Harbour Road",
        ),
    ];
    for (query, tool, input, expected) in calls {
        let found = client.search(query).await.good();
        assert!(found.contains(&format!("{tool}(")), "{query}:\n{found}");
        let answer = client.execute(tool, input).await.good();
        assert!(answer.contains(expected), "{tool}: {answer}");
    }
    let long = client
        .execute("archive/list_records", json!({ "count": 500 }))
        .await
        .good();
    assert!(long.contains("[cut: "), "a long answer is cut");
    let failed = client.execute("flaky/always_fails", json!({})).await.bad();
    assert!(failed.contains("the printer is on fire"), "{failed}");
    let crashed = client.execute("flaky/crash", json!({})).await.bad();
    assert!(
        crashed.starts_with("error server_unavailable: "),
        "{crashed}"
    );
    house.stops_clean().await;
}

#[tokio::test]
async fn an_unknown_demo_server_is_refused() {
    let output = house::<Fake>([]).cli(["demo-server", "nothing"]).await;
    assert!(output.code.is_some_and(|code| code > 0));
    assert!(output.stderr.contains("notes"), "{}", output.stderr);
}
