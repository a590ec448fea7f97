//! The fake server speaks both eras as specified.

use journeys::{
    client::Client,
    fake::{Era, LEGACY_VERSION, LEGACY_VERSIONS, META_SUBSCRIPTION, Step},
    house::fake,
};
use serde_json::json;

use crate::alone;

fn speaking(era: Era) -> Client {
    let server = fake("any").era(era).tool("echo", Step::Echo);
    alone(
        &server
            .hidden_tool("late", Step::Echo)
            .tool("reveal", [Step::Reveal, Step::text("ok")])
            .into_script(),
    )
}

#[tokio::test]
async fn a_legacy_session_lists_and_calls() {
    for era in [Era::Legacy, Era::Both] {
        for version in LEGACY_VERSIONS {
            let client = speaking(era);
            let greeting = client.initialize(version).await;
            assert_eq!(greeting["protocolVersion"], version);
            let tools = client.tools_list().await;
            assert_eq!(tools[0]["name"], "echo");
            let reply = client.call("echo", json!({ "b": 1, "a": "é" })).await;
            assert_eq!(reply.good(), r#"{"b":1,"a":"é"}"#);
            assert!(reply.result().get("resultType").is_none());
            assert_eq!(client.close().await.code(), Some(0));
        }
    }
}

#[tokio::test]
async fn an_unknown_version_is_answered_with_the_newest() {
    let client = speaking(Era::Legacy);
    let greeting = client.initialize("1999-01-01").await;
    assert_eq!(greeting["protocolVersion"], LEGACY_VERSION);
}

#[tokio::test]
async fn a_modern_session_lists_and_calls() {
    for era in [Era::Modern, Era::Both] {
        let client = speaking(era);
        let found = client.discover().await;
        assert_eq!(found["supportedVersions"][0], "2026-07-28");
        assert_eq!(found["resultType"], "complete");
        assert_eq!(client.tools_list().await.len(), 2);
        let reply = client.call("echo", json!({})).await;
        assert_eq!(reply.result()["resultType"], "complete");
        assert_eq!(client.close().await.code(), Some(0));
    }
}

#[tokio::test]
async fn the_other_era_is_refused() {
    let legacy = speaking(Era::Legacy);
    assert_eq!(
        legacy.request("server/discover", json!({})).await.error()["code"],
        -32601
    );
    assert_eq!(
        legacy.request("tools/list", json!({})).await.error()["code"],
        -32600
    );

    let stubborn = fake("any")
        .era(Era::Legacy)
        .script(|it| it.discover_refusal = Some(-32602));
    let stubborn = alone(&stubborn.into_script());
    assert_eq!(
        stubborn.request("server/discover", json!({})).await.error()["code"],
        -32602
    );

    let modern = speaking(Era::Modern);
    assert_eq!(
        modern.request("initialize", json!({})).await.error()["code"],
        -32601
    );
    assert_eq!(
        modern.request("tools/list", json!({})).await.error()["code"],
        -32602
    );
}

#[tokio::test]
async fn new_tools_are_announced_in_either_era() {
    let legacy = speaking(Era::Legacy);
    legacy.initialize(LEGACY_VERSION).await;
    legacy.call("reveal", json!({})).await.good();
    legacy.next("notifications/tools/list_changed").await;
    assert_eq!(legacy.tools_list().await.len(), 3);

    let modern = speaking(Era::Modern);
    modern.discover().await;
    let wanted = json!({ "notifications": { "toolsListChanged": true } });
    let (id, _never) = modern.begin("subscriptions/listen", wanted).await;
    let acknowledged = modern
        .next("notifications/subscriptions/acknowledged")
        .await;
    assert_eq!(acknowledged["params"]["_meta"][META_SUBSCRIPTION], id);
    modern.call("reveal", json!({})).await.good();
    let changed = modern.next("notifications/tools/list_changed").await;
    assert_eq!(changed["params"]["_meta"][META_SUBSCRIPTION], id);
}
