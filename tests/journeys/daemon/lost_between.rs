//! The daemon is killed while a client is asked something, or watches a resource.

use journeys::{
    fake::{FakeItem, LEGACY_VERSION, Step},
    house::{House, fake},
    processes::kill,
};
use serde_json::{Value, json};

use crate::house_with_daemon;

const ELICIT: &str = "elicitation/create";

async fn asking() -> House {
    let book = json!({"uri": "book:1", "name": "one"});
    let updated = Step::Notify {
        method: "notifications/resources/updated".to_owned(),
        params: json!({"uri": "book:1"}),
    };
    let server = fake("library")
        .tool("ask", Step::elicit("Sure?"))
        .tool("change", [updated, Step::text("changed")])
        .script(|script| {
            script.resources = vec![FakeItem::defined(book, Step::text("a book"))];
        });
    let house = house_with_daemon([server]);
    house.indexed().await;
    house
}

#[tokio::test]
async fn its_question_is_taken_back_and_its_call_answered() {
    let house = asking().await;
    let client = house.serve();
    let can = json!({"elicitation": {}});
    client.initialize_with(LEGACY_VERSION, can).await;
    client.holds_back(ELICIT);
    let call = json!({"name": "execute_dynamic_tool", "arguments": {"tool_name": "library/ask"}});
    let (_, reply) = client.begin("tools/call", call).await;
    let question = client.next(ELICIT).await;
    kill(house.daemon().await);
    let why = reply.await.bad();
    assert!(why.contains("so it may have run"), "{why}");
    let taken_back = client.next("notifications/cancelled").await;
    assert_eq!(taken_back["params"]["requestId"], question["id"]);
    let yes = json!({"action": "accept", "content": {"text": "yes"}});
    // It is nobody's any more, of this daemon or the next.
    client.answer(&question, yes.clone()).await;
    client.answers(ELICIT, yes.clone());
    let told = client.execute("library/ask", json!({})).await.good();
    assert_eq!(serde_json::from_str::<Value>(&told).unwrap(), yes);
    house.stops_clean().await;
}

#[tokio::test]
async fn its_subscriptions_are_made_anew_by_the_next() {
    let house = asking().await;
    let client = house.client().await;
    let params = json!({"uri": "book:1"});
    client
        .request("resources/subscribe", params.clone())
        .await
        .into_result();
    kill(house.daemon().await);
    // Whatever the client says next starts another daemon.
    client.request("tools/list", json!({})).await.into_result();
    let told = client.next("notifications/resources/updated").await;
    assert_eq!(told["params"], params, "it may have changed meanwhile");
    house
        .until_received("library", |line| line.contains("resources/subscribe"))
        .await;
    client.execute("library/change", json!({})).await.good();
    let told = client.next("notifications/resources/updated").await;
    assert_eq!(told["params"]["uri"], "book:1");
    house.stops_clean().await;
}
