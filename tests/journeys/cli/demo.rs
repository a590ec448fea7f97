//! `proxy demo` plays a whole session without any other program, and its servers can be configured
//! like any others.

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
        "[cut: ",
        "error invalid_input: title: missing",
        "error server_unavailable: flaky: it exited with code 1",
    ] {
        assert!(said.contains(word), "`{word}` is missing:\n{said}");
    }
    assert_eq!(house.all_gone().await, Ok(()));
}

#[tokio::test]
async fn the_demo_servers_work_behind_the_three_tools() {
    let house = house(["flaky", "notes"].map(demo_server));
    house.indexed().await;
    let client = house.client().await;
    let calls: [(&str, &str, Value, &str); 2] = [
        (
            "write down a note",
            "notes/add_note",
            json!({ "title": "Tea" }),
            "Added note 1: Tea",
        ),
        (
            "list example notes",
            "notes/list_examples",
            json!({ "count": 2 }),
            "the library",
        ),
    ];
    for (query, tool, input, expected) in calls {
        let found = client.search(query).await.good();
        assert!(found.contains(&format!("{tool}(")), "{query}:\n{found}");
        let answer = client.execute(tool, input).await.good();
        assert!(answer.contains(expected), "{tool}: {answer}");
    }
    let long = client
        .execute("notes/list_examples", json!({ "count": 500 }))
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
