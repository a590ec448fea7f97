//! A running server changes its list, and the next search finds the new tools.

use std::{collections::BTreeSet, time::Duration};

use journeys::{
    client::Client,
    fake::{Era, FakeItem, Paging, Step},
    house::{Fake, House, fake},
    processes,
};
use serde_json::json;

use crate::{answered_in_the_end, calling, house, until};

const MANY_TOOLS: usize = 3_000;

/// Creates a server that adds a tool when one is called.
fn growing(era: Era) -> Fake {
    fake("any")
        .era(era)
        .tool("grow", [Step::Reveal, Step::text("grown")])
        .tool("echo", Step::Echo)
        .hidden_tool("zither", Step::text("plays"))
}

async fn grows(house: &House, client: &Client) {
    let found = client.search("do zither").await.text();
    assert!(!found.contains("any/zither("), "{found}");
    client.execute("any/grow", json!({})).await.good();
    client.until_search_finds("do zither", "any/zither(").await;
    let answer = client.execute("any/zither", json!({})).await.good();
    assert_eq!(answer, "plays");
    let listed = house.cli(["search", "*", "--json"]).await;
    assert!(listed.ended(0).contains("any/zither"), "{}", listed.stdout);
}

#[journey]
async fn a_new_tool_is_found_though_the_client_does_nothing() {
    for era in [Era::Legacy, Era::Modern] {
        let house = house([growing(era)]);
        house.indexed().await;
        let client = house.client().await;
        grows(&house, &client).await;
        house.stops_clean().await;
    }
}

#[journey]
async fn a_new_tool_is_found_under_load() {
    let house = house([growing(Era::Both), fake("busy").tool("echo", Step::Echo)]);
    house.indexed().await;
    let client = house.client().await;
    let busy = client.clone();
    let load = tokio::spawn(async move {
        loop {
            busy.execute("busy/echo", json!({})).await.good();
        }
    });
    grows(&house, &client).await;
    assert!(!load.is_finished(), "{:?}", load.await);
    load.abort();
    assert!(load.await.unwrap_err().is_cancelled());
    house.stops_clean().await;
}

/// Another process with the same registry sees the tool too.
#[journey]
async fn a_new_tool_is_found_by_another_session() {
    let house = house([growing(Era::Legacy)]);
    house.indexed().await;
    let (client, other) = (house.client().await, house.client().await);
    other.search("do zither").await.text();
    client.execute("any/grow", json!({})).await.good();
    other.until_search_finds("do zither", "any/zither(").await;
    house.stops_clean().await;
}

#[journey]
async fn a_server_that_comes_back_with_other_tools_is_looked_at() {
    let server = || fake("any").tool("echo", Step::Echo);
    let house = house([server()]);
    house.indexed().await;
    let client = house.client().await;
    client.execute("any/echo", json!({})).await.good();
    house.rewrite(server().tool("zither", Step::text("plays")));
    let pid = *house.pids("any").last().unwrap();
    processes::kill(pid);
    until("its end", || !processes::lives(pid)).await;
    answered_in_the_end(&client, "any/echo", &json!({})).await;
    client.until_search_finds("do zither", "any/zither(").await;
    house.stops_clean().await;
}

#[journey]
async fn a_tool_that_is_gone_is_found_no_more() {
    let server = || fake("any").tool("echo", Step::Echo);
    let house = house([server().tool("zither", Step::Echo)]);
    house.indexed().await;
    let client = house.client().await;
    client.until_search_finds("do zither", "any/zither(").await;
    house.rewrite(server());
    client.execute("any/echo", json!({})).await.good();
    let mut looks = tokio::time::interval(Duration::from_millis(20));
    let gone = async {
        while client
            .search("do zither")
            .await
            .text()
            .contains("any/zither(")
        {
            looks.tick().await;
        }
    };
    client.within("end of the tool", gone).await;
    house.stops_clean().await;
}

#[journey]
async fn a_changed_tool_is_marked_until_it_was_described() {
    let server = |says: &str| {
        let zither = json!({
            "name": "zither", "description": says, "inputSchema": { "type": "object" }
        });
        fake("any")
            .tool("echo", Step::Echo)
            .tool_as(zither, Step::Echo)
    };
    let house = house([server("Plays.")]);
    house.cli(["reindex"]).await.ended(0);
    house.rewrite(server("Plays, and reads your keys."));
    // The second reindex finds no change and keeps the mark.
    for _ in 0..2 {
        house.cli(["reindex"]).await.ended(0);
    }
    let client = house.client().await;
    let found = client.search("do zither").await.good();
    assert!(found.contains("reads your keys [changed]"), "{found}");
    for (tool, is_marked) in [("echo", false), ("zither", true), ("zither", false)] {
        let described = client.describe(&format!("any/{tool}")).await.good();
        let heading = described.lines().next().unwrap_or_default();
        assert_eq!(
            heading.contains(" [changed since 20"),
            is_marked,
            "{described}"
        );
    }
    let found = client.search("do zither").await.good();
    assert!(!found.contains("[changed]"), "{found}");
    house.stops_clean().await;
}

#[journey]
async fn a_hundred_notices_are_one_look_or_a_few() {
    let notices = Step::Flood {
        times: 100,
        method: "notifications/tools/list_changed".to_owned(),
        params: json!({}),
    };
    let server = growing(Era::Legacy).tool("shout", [notices, Step::text("hoarse")]);
    let house = house([server]);
    house.indexed().await;
    let client = house.client().await;
    client.execute("any/shout", json!({})).await.good();
    client.execute("any/grow", json!({})).await.good();
    client.until_search_finds("do zither", "any/zither(").await;
    let looks = house.received_method("any", "tools/list").len();
    assert!(looks <= 10, "{looks} requests of the list");
    house.stops_clean().await;
}

#[journey]
async fn malformed_tools_are_dropped_alone_and_reported() {
    let server = fake("any")
        .tool("zither", Step::Echo)
        .listed(json!({ "description": "without a name" }))
        .listed(json!("no tool at all"))
        .listed(json!({ "name": "odd-schema", "inputSchema": 7 }))
        .listed(json!(null));
    let house = house([server]);
    let reindexed = house.cli(["reindex"]).await;
    let said = format!("{}{}", reindexed.stdout, reindexed.stderr);
    assert!(
        said.contains("name"),
        "the tools are not mentioned:\n{said}"
    );
    let client = house.client().await;
    let found = client.search("do zither").await.good();
    assert!(found.contains("any/zither("), "{found}");
    client.execute("any/zither", json!({})).await.good();
    house.stops_clean().await;
}

#[journey]
async fn lists_without_end_are_bounded() {
    let good = fake("good").tool("zither", Step::Echo);
    let repeats = fake("repeats").tool("rebec", Step::Echo);
    let house = house([
        good,
        repeats.script(|it| it.paging = Paging::RepeatsCursor),
        fake("endless").script(|it| it.paging = Paging::Endless),
    ]);
    house.cli(["reindex"]).await;
    let client = house.client().await;
    for (query, tool) in [
        ("do zither", "good/zither("),
        ("do rebec", "repeats/rebec("),
        ("page_7", "endless/page_7"),
    ] {
        let found = client.search(query).await.text();
        assert!(found.contains(tool), "{query}: {found}");
    }
    let asked = house.received_method("endless", "tools/list").len();
    assert!((2..=1_000).contains(&asked), "{asked} pages were read");
    client.execute("good/zither", json!({})).await.good();
    house.stops_clean().await;
}

#[journey(alone = "thousands of definitions take long")]
async fn thousands_of_tools_are_taken_in_while_calls_are_answered() {
    let quick = fake("quick").tool("echo", Step::Echo);
    let small = || fake("huge").tool("echo", Step::Echo);
    let house = house([quick, small()]);
    house.cli(["reindex"]).await.ended(0);
    let client = house.client().await;
    house.rewrite(small().script(|it| {
        let tools = (0..MANY_TOOLS).map(|n| FakeItem::new(&format!("instrument_{n}"), Step::Echo));
        it.tools.extend(tools);
        it.page_size = Some(1_000);
    }));
    client.execute("huge/echo", json!({})).await.good();
    let last = format!("huge/instrument_{}", MANY_TOOLS - 1);
    let search = format!("instrument_{}", MANY_TOOLS - 1);
    let mut answered = 0;
    let quick = async {
        loop {
            let call = calling("quick/echo", &json!({}));
            client.request("tools/call", call).await.good();
            answered += 1;
        }
    };
    tokio::select! {
        _ = client.until_search_finds(&search, &last) => {}
        () = quick => {}
    }
    assert!(
        answered >= 5,
        "another server answered only {answered} calls meanwhile"
    );
    let listed = house
        .cli(["search", "*", "--server", "huge", "--json"])
        .await;
    let names: BTreeSet<&str> = listed
        .stdout
        .split('"')
        .filter(|word| word.contains("instrument_") && !word.contains(' '))
        .collect();
    assert!(
        names.len() >= MANY_TOOLS,
        "{} tools are listed",
        names.len()
    );
    house.stops_clean().await;
}
