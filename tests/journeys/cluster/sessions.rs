//! HTTP sessions that move between nodes, kept results, and subscriptions.

use std::time::Duration;

use async_nats::jetstream;
use journeys::{
    fake::{FakeItem, LEGACY_VERSION, Step},
    house::{Fake, fake},
    web::Web,
};
use serde_json::json;
use tokio::time::sleep;

use super::{connected, nats, node, until_found, until_owned};

fn server() -> Fake {
    fake("sole")
        .tool("lines", Step::Lines(300_000))
        .tool("echo", Step::Echo)
}

/// Keeps a result, and returns its handle.
async fn keep_lines(client: &Web) -> String {
    let cut = client.execute("sole/lines", json!({})).await.good();
    let after = cut.split("handle").nth(1);
    let handle = after.and_then(|it| it.split('"').find(|it| it.starts_with('r')));
    let end = &cut[cut.len().saturating_sub(400)..];
    handle
        .unwrap_or_else(|| panic!("a handle: {end}"))
        .to_owned()
}

#[tokio::test]
async fn a_session_goes_on_at_another_node_and_reads_what_the_first_one_kept() {
    const COPIES: &str = "OBJ_px-home-results";
    let nats = nats(1);
    let (one, two) = (
        node(&nats, "one", [server()]),
        node(&nats, "two", [server()]),
    );
    connected(&[&one, &two]).await;
    let watching = two.client().await;
    until_found(&watching, "sole/lines").await;
    until_owned(&one, "sole").await;
    let (first, second) = (one.site().await, two.site().await);
    let client = first.web().initialize("mover", LEGACY_VERSION).await;
    let uncopied = keep_lines(&client).await;
    let moved = client.clone().at(second.address());
    assert_eq!(
        moved.execute("sole/echo", json!({"n": 1})).await.good(),
        "{\"n\":1}"
    );
    let jetstream = jetstream::new(async_nats::connect(&nats.urls()[0]).await.unwrap());
    // The copy is made behind the answer; the last message of an object is its description.
    let until_copied = async || {
        loop {
            if let Ok(stream) = jetstream.get_stream(COPIES).await
                && stream.cached_info().state.messages >= 2
            {
                return stream;
            }
            sleep(Duration::from_millis(20)).await;
        }
    };
    let reads_the_same = async |handle: &str| {
        let read = json!({"handle": handle, "part": 2});
        let there = moved.execute("proxy/read_result", read.clone());
        let there = there.await.good();
        let here = client.execute("proxy/read_result", read);
        assert_eq!(there, here.await.good());
    };
    // A result without a copy comes from the node that kept it.
    until_copied().await.purge().await.unwrap();
    reads_the_same(&uncopied).await;
    let handle = keep_lines(&client).await;
    until_copied().await;
    reads_the_same(&handle).await;

    // The node with the result dies; the session and the result are at the other.
    first.kill().await;
    one.cli(["daemon", "stop"]).await.ended(0);
    let read = json!({"handle": handle, "part": 3});
    let there = moved.execute("proxy/read_result", read).await.good();
    assert!(!there.is_empty());
    second.stop().await;
    one.stops_clean().await;
    two.stops_clean().await;
}

#[tokio::test]
async fn a_change_of_a_resource_is_told_to_subscribers_at_other_nodes() {
    let nats = nats(1);
    let update = Step::Notify {
        method: "notifications/resources/updated".to_owned(),
        params: json!({"uri": "far://one"}),
    };
    let far = || {
        fake("far")
            .tool("change", vec![update.clone(), Step::text("changed")])
            .setting("on = \"two\"")
            .script(|script| {
                let one = json!({"uri": "far://one", "name": "one"});
                script.resources = vec![FakeItem::defined(one, Step::text("one"))];
            })
    };
    let (one, two) = (node(&nats, "one", [far()]), node(&nats, "two", [far()]));
    connected(&[&one, &two]).await;
    let client = one.client().await;
    until_found(&client, "far/change").await;
    client
        .request("resources/subscribe", json!({"uri": "far://one"}))
        .await
        .into_result();
    client.execute("far/change", json!({})).await.good();
    let updated = client.next("notifications/resources/updated").await;
    assert_eq!(updated["params"]["uri"], "far://one");
    one.stops_clean().await;
    two.stops_clean().await;
}
