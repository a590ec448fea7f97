//! Decisions about definitions, which hold on every node.

use std::time::Duration;

use journeys::{
    fake::Step,
    house::{House, fake},
};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::{connected, nats, node, until_found, until_owned};

const SHARED: Duration = Duration::from_mins(1);

/// Waits until `proxy review` shows exactly these names and states, and returns the digests.
async fn until_reviewed(node: &House, expected: &[(&str, &str)]) -> Vec<String> {
    let until = Instant::now() + SHARED;
    loop {
        let told = node.cli(["review", "--json"]).await;
        let told: Value = serde_json::from_str(&told.stdout).unwrap_or_default();
        let list = told.as_array().cloned().unwrap_or_default();
        let text = |it: &Value, key: &str| it[key].as_str().unwrap_or_default().to_owned();
        let found: Vec<_> = list
            .iter()
            .map(|it| (text(it, "name"), text(it, "state")))
            .collect();
        let is_same = |((name, state), expected): (&(String, String), &(&str, &str))| {
            (name.as_str(), state.as_str()) == *expected
        };
        if found.len() == expected.len() && found.iter().zip(expected).all(is_same) {
            return list.iter().map(|it| text(it, "digest")).collect();
        }
        assert!(Instant::now() < until, "{told:#}");
        sleep(Duration::from_millis(200)).await;
    }
}

#[tokio::test]
async fn what_a_person_decides_on_one_node_holds_on_all_and_on_those_that_come_later() {
    let nats = nats(1);
    let sole = || {
        fake("sole")
            .tool("grow", vec![Step::Reveal, Step::text("grown")])
            .hidden_tool("late", Step::text("late"))
            .setting("pin = \"hold\"")
    };
    let (one, two) = (node(&nats, "one", [sole()]), node(&nats, "two", [sole()]));
    connected(&[&one, &two]).await;
    until_owned(&one, "sole").await;
    let client = two.client().await;
    until_found(&client, "sole/grow").await;
    client.execute("sole/grow", json!({})).await.good();
    let waiting = [("sole/late", "new")];
    let digest = until_reviewed(&one, &waiting).await.remove(0);
    until_reviewed(&two, &waiting).await;

    // A node that knows nothing of the server does not accept what others wait for.
    let three = node(&nats, "three", [sole()]);
    connected(&[&three, &one, &two]).await;
    until_reviewed(&three, &waiting).await;
    client.execute("sole/late", json!({})).await.bad();
    let refuse = ["review", "sole/late", "--refuse", &digest];
    one.cli(refuse).await.ended(0);
    for other in [&two, &three] {
        until_reviewed(other, &[("sole/late", "refused")]).await;
    }
    let accept = ["review", "sole", "late", "--accept", &digest];
    three.cli(accept).await.ended(0);
    for other in [&one, &two] {
        until_reviewed(other, &[]).await;
    }
    until_found(&client, "sole/late").await;
    let told = client.execute("sole/late", json!({})).await.good();
    assert_eq!(told, "late");
    for node in [one, two, three] {
        node.stops_clean().await;
    }
}
