//! Prompts, resources and requests of a fake server.

use journeys::{
    client::Client,
    fake::{Era, FakeItem, LEGACY_VERSION, META_CAPABILITIES, Step},
    house::fake,
};
use serde_json::{Value, json};

use crate::alone;

fn inquire() -> Step {
    let question = |method: &str| json!({ "method": method, "params": {} });
    let both = json!({ "a": question("elicitation/create"), "b": question("roots/list") });
    Step::Inquire {
        rounds: vec![both, json!({ "c": question("sampling/createMessage") })],
        result: json!({ "done": true }),
    }
}

fn librarian(era: Era) -> Client {
    let prompt = json!({ "name": "greet" });
    let filled = json!({ "messages": [{ "text": "Hello $name, \"$name\"!" }] });
    let book = json!({ "uri": "book:1", "name": "one" });
    let page = json!({ "uriTemplate": "page:{n}.txt", "name": "page" });
    let fake = fake("any")
        .era(era)
        .tool("ask", inquire())
        .script(|script| {
            script.prompts = vec![FakeItem::defined(prompt, Step::Filled(filled))];
            script.resources = vec![FakeItem {
                hidden: true,
                ..FakeItem::defined(book, Step::Result(json!({ "contents": [] })))
            }];
            script.templates = vec![FakeItem::defined(
                page,
                Step::Filled(json!({ "at": "$uri $n" })),
            )];
            script.completions = vec!["Ada".to_owned(), "Bob".to_owned()];
        });
    alone(
        &fake
            .tool("reveal", [Step::Reveal, Step::text("")])
            .into_script(),
    )
}

#[tokio::test]
async fn prompts_and_resources_are_listed_filled_and_revealed() {
    let client = librarian(Era::Legacy);
    let opened = client.initialize(LEGACY_VERSION).await;
    assert_eq!(opened["capabilities"]["resources"]["subscribe"], true);
    let ask = async |method: &str, params: Value| client.request(method, params).await;
    let list = ask("prompts/list", json!({})).await.into_result();
    assert_eq!(list["prompts"], json!([{ "name": "greet" }]));
    let params = json!({ "name": "greet", "arguments": { "name": "\"A\"" } });
    let got = ask("prompts/get", params).await.into_result();
    assert_eq!(got["messages"][0]["text"], "Hello \"A\", \"\"A\"\"!");
    let read = ask("resources/read", json!({ "uri": "page:7.txt" })).await;
    assert_eq!(read.into_result()["at"], "page:7.txt 7");
    let hidden = ask("resources/read", json!({ "uri": "book:1" })).await;
    assert_eq!(hidden.error()["code"], -32002);
    client.call("reveal", json!({})).await.good();
    client.next("notifications/resources/list_changed").await;
    let list = ask("resources/list", json!({})).await.into_result();
    assert_eq!(list["resources"][0]["uri"], "book:1");
    let params = json!({ "argument": { "name": "name", "value": "B" } });
    let completed = ask("completion/complete", params).await.into_result();
    assert_eq!(completed["completion"]["values"], json!(["Bob"]));
    client.close().await;
}

#[tokio::test]
async fn it_asks_in_rounds_for_what_was_declared() {
    let client = librarian(Era::Modern);
    client.discover().await;
    let ask = async |can: Value, state: Value, responses: Value| {
        let params = json!({ "name": "ask", "requestState": state, "inputResponses": responses,
            "_meta": { META_CAPABILITIES: can } });
        client.request("tools/call", params).await
    };
    let (all, two) = (
        json!({ "elicitation": {}, "sampling": {}, "roots": {} }),
        json!({ "a": {}, "b": {} }),
    );
    let first = ask(all.clone(), Value::Null, Value::Null)
        .await
        .into_result();
    assert_eq!(first["inputRequests"].as_object().unwrap().len(), 2);
    let same = ask(
        all.clone(),
        first["requestState"].clone(),
        json!({ "a": {} }),
    )
    .await;
    assert_eq!(
        same.into_result()["inputRequests"]
            .as_object()
            .unwrap()
            .len(),
        2
    );
    let second = ask(all.clone(), first["requestState"].clone(), two.clone()).await;
    let second = second.into_result();
    assert!(second["inputRequests"]["c"].is_object(), "{second}");
    let done = ask(
        all.clone(),
        second["requestState"].clone(),
        json!({ "c": {} }),
    )
    .await;
    assert_eq!(done.into_result()["done"], true);
    let tampered = ask(all, json!("round 9"), two.clone()).await;
    assert_eq!(tampered.error()["code"], -32602);
    let undeclared = ask(json!({ "sampling": {} }), Value::Null, Value::Null).await;
    assert_eq!(undeclared.error()["code"], -32021);
    client.close().await;
}
