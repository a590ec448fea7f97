//! `serve` on a machine without any snapshot of its servers.

use journeys::{
    fake::Step,
    house::{Fake, House, fake},
};
use serde_json::json;

use crate::house;

fn quick() -> Fake {
    fake("quick")
        .tool("run", Step::Echo)
        .tool("walk", Step::Echo)
}

#[journey]
async fn a_server_that_hangs_hides_nobody_else() {
    let hangs = fake("hanging").tool("stand", Step::Echo).script(|it| {
        it.on_initialize = Some(Vec::new());
        it.on_discover = Some(Vec::new());
    });
    let house = house([hangs, quick()]);
    let client = house.serve();
    let greeting = client.initialize("2025-11-25").await;
    assert!(greeting["instructions"].is_string());
    assert_eq!(client.tools_list().await.len(), 3);
    client.until_search_finds("do run", "quick/run(").await;
    // The response has the known tools, and names the server whose survey is in progress.
    for _ in 0..10 {
        let found = client.search("do run").await.good();
        assert!(found.contains("quick/run("), "{found}");
        let last = found.lines().last().unwrap();
        assert!(
            last.starts_with("Being asked for their tools right now: hanging"),
            "{found}"
        );
    }
    let reply = client.execute("quick/run", json!({ "a": 1 })).await;
    assert_eq!(reply.good(), r#"{"a":1}"#);
    house.stops_clean().await;
}

#[journey]
async fn who_asks_too_early_is_told_to_ask_again() {
    let house = house::<Fake>([]);
    house.add(quick().before(Step::UntilExists(gate(&house))));
    let client = house.client().await;
    assert_eq!(client.tools_list().await.len(), 3);
    let early = client
        .until_search_finds("do run", "Being asked for their tools right now: quick")
        .await;
    assert!(early.contains("Search again"), "{early}");
    house.write("gate", "");
    client.until_search_finds("do run", "quick/run(").await;
    house.stops_clean().await;
}

fn gate(house: &House) -> std::path::PathBuf {
    house.path("gate")
}

#[journey]
async fn the_command_line_asks_unknown_servers_itself() {
    let house = house([quick()]);
    let list = house.cli(["search", "*"]).await;
    assert!(list.ended(0).contains("quick/walk - "), "{}", list.stdout);
    assert!(list.stderr.contains("quick"), "{}", list.stderr);
    let again = house.cli(["search", "*"]).await;
    assert_eq!((again.ended(0), &*again.stderr), (&*list.stdout, ""));
    assert_eq!(house.starts("quick"), 1);
    house.stops_clean().await;
}
