//! The daemon is killed while a question to a client is open, or a resource is subscribed.

use journeys::{
    client::Client,
    fake::{Era, FakeItem, LEGACY_VERSION, Step},
    house::{House, fake},
    processes::kill,
};
use serde_json::{Value, json};

use crate::{house_with_daemon, until};

const ELICIT: &str = "elicitation/create";

async fn asking() -> House {
    asking_in(Era::Legacy).await
}

async fn asking_in(era: Era) -> House {
    let book = json!({"uri": "book:1", "name": "one"});
    let updated = Step::Notify {
        method: "notifications/resources/updated".to_owned(),
        params: json!({"uri": "book:1"}),
    };
    let server = fake("library")
        .tool("ask", Step::elicit("Sure?"))
        .tool("change", [updated, Step::text("changed")])
        .script(|script| {
            script.era = era;
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
    // The question is unknown to this daemon and to the next one.
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
    // The client's next message starts another daemon.
    client.request("tools/list", json!({})).await.into_result();
    let told = client.next("notifications/resources/updated").await;
    let why = &told["params"]["_meta"]["proxy/may-have-changed"];
    assert!(
        why.is_string() && told["params"]["uri"] == "book:1",
        "{told}"
    );
    // The record has the subscription of the first daemon as well.
    let subscribed = || house.received_method("library", "resources/subscribe");
    until("the second subscription", || subscribed().len() == 2).await;
    client.execute("library/change", json!({})).await.good();
    let told = client.next("notifications/resources/updated").await;
    assert_eq!(told["params"], params);
    client.request("tools/list", json!({})).await.into_result();
    assert_eq!(client.heard().await, Vec::<Value>::new());
    house.stops_clean().await;
}

#[tokio::test]
async fn each_of_two_who_watch_a_resource_hears_once_of_each_change() {
    for era in [Era::Legacy, Era::Modern, Era::Both] {
        let house = asking_in(era).await;
        let (one, two, modern) = (house.client().await, house.client().await, house.serve());
        modern.discover().await;
        let params = json!({"uri": "book:1"});
        for client in [&one, &two] {
            let subscribed = client.request("resources/subscribe", params.clone());
            subscribed.await.into_result();
        }
        let wanted = json!({"notifications": {"resourceSubscriptions": ["book:1"]}});
        let _listening = modern.begin("subscriptions/listen", wanted).await;
        modern
            .next("notifications/subscriptions/acknowledged")
            .await;
        // A server that supports both eras has a process for each, and each process notifies its
        // own clients.
        if era == Era::Both {
            modern.execute("library/change", json!({})).await.good();
            is_told_once(&modern).await;
            assert_eq!(one.heard().await, Vec::<Value>::new());
        }
        one.execute("library/change", json!({})).await.good();
        is_told_once(&one).await;
        is_told_once(&two).await;
        if era != Era::Both {
            is_told_once(&modern).await;
        }
        // One client unsubscribes, and the other stays subscribed.
        one.request("resources/unsubscribe", params)
            .await
            .into_result();
        two.execute("library/change", json!({})).await.good();
        two.next(UPDATED).await;
        house.stops_clean().await;
    }
}

const UPDATED: &str = "notifications/resources/updated";

async fn is_told_once(client: &Client) {
    client.next(UPDATED).await;
    client.request("tools/list", json!({})).await.into_result();
    let heard = client.heard().await.into_iter();
    let more: Vec<Value> = heard.filter(|it| it["method"] == UPDATED).collect();
    assert!(more.is_empty(), "{more:?}");
}
