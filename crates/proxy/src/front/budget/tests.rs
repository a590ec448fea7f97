use std::sync::Arc;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::{BUDGET_MIN, Budget, Origin};
use crate::{
    config,
    front::Reply,
    results::{Caller, ResultStore},
    tokens,
};

fn store() -> (ResultStore, tempfile::TempDir) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let limits = config::Results {
        max_tokens: 4_000,
        keep_hours: 24,
        keep_mib: 64,
    };
    (ResultStore::new(folder.path(), &limits), folder)
}

fn origin() -> Origin {
    Origin {
        caller: Caller::Client(Arc::from("ada")),
        tool: "files/read".to_owned(),
    }
}

async fn fit(result: &str, budget: Budget, store: &ResultStore) -> Reply {
    let json = fleet::json(result.to_owned()).expect("the case is JSON");
    budget.fit(json, origin(), store).await
}

fn content(reply: &Reply) -> Vec<Value> {
    let result: Value = serde_json::from_str(reply.json().as_str()).expect("a result is JSON");
    result["content"].as_array().expect("a list").clone()
}

/// What a model sees as text.
fn texts(blocks: &[Value]) -> Vec<String> {
    let text = |block: &Value| {
        let text = block["text"].as_str();
        let text = text.or_else(|| block["resource"]["text"].as_str());
        text.map(str::to_owned)
    };
    blocks.iter().filter_map(text).collect()
}

fn block() -> impl Strategy<Value = Value> {
    let text = |text: String| json!({"type": "text", "text": text});
    prop_oneof![
        "(\\PC{0,60}\n){0,60}".prop_map(text),
        "(2026-01-02 (INFO|ERROR) [a-z ]{5,40}\n){3,80}".prop_map(text),
        "[A-Za-z0-9+/]{300,3000}".prop_map(text),
        "([a-z]{1,9},[0-9]{1,9}\n){3,200}".prop_map(text),
        prop::collection::vec("[a-z\"\\\\ é\n]{0,90}", 0..90)
            .prop_map(move |items| text(json!({"rows": items}).to_string())),
        "[a-z ]{0,2000}"
            .prop_map(|text| json!({"type": "resource", "resource": {"uri": "x:y", "text": text}})),
        "[a-z]{0,900}"
            .prop_map(|data| json!({"type": "image", "data": data, "mimeType": "image/png"})),
        "[a-z]{0,2000}".prop_map(|data| json!({"type": "later", "data": data})),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn any_answer_fits_and_its_parts_joined_are_the_whole(
        blocks in prop::collection::vec(block(), 1..5),
        max_tokens in 200_u64..1_500,
    ) {
        let runtime = tokio::runtime::Runtime::new().expect("a runtime");
        runtime.block_on(async {
            let (store, _folder) = store();
            let result = json!({"content": blocks, "_meta": {"k": 1}}).to_string();
            let reply = fit(&result, Budget::new(max_tokens), &store).await;
            let sent = content(&reply);
            let shown = texts(&sent);
            let cost: usize = shown.iter().map(|text| tokens::count(text)).sum();
            let max = usize::try_from(max_tokens).expect("it is small");
            prop_assert!(cost <= max, "{} of {}: {:?}", cost, max, shown);
            let is_cut = shown.last().is_some_and(|last| last.starts_with("[cut: "));
            if !is_cut {
                prop_assert_eq!(reply.json().as_str(), result);
                return Ok(());
            }
            let handle = shown[shown.len() - 1].split("\"handle\":\"").nth(1);
            let handle = handle.and_then(|it| it.split('"').next()).expect("a handle");
            let mut kept = store.open(handle, &origin().caller).await.expect("it is kept");
            let mut whole = Vec::new();
            kept.write_json(&mut whole).expect("memory takes all");
            let whole: Value = serde_json::from_slice(&whole).expect("a result is JSON");
            prop_assert_eq!(whole, serde_json::from_str::<Value>(&result).expect("JSON"));
            let all = kept.read(0..kept.head.text_bytes()).expect("readable");
            let parts = (1..=kept.head.parts.len()).map(|number| {
                let range = kept.part(number).expect("it is there");
                kept.read(range).expect("readable")
            });
            prop_assert_eq!(parts.collect::<String>(), all);
            Ok(())
        })?;
    }
}

#[tokio::test]
async fn below_the_budget_not_one_byte_changes() {
    let (store, folder) = store();
    let result = r#"{"content":[{"type":"text","text":"short \u00e9","annotations":{"z":1.0}}]}"#;
    let reply = fit(result, Budget::new(300), &store).await;
    assert_eq!(reply.json().as_str(), result);
    assert!(!folder.path().join("results").exists());
    let long = json!({"content": [{"type": "text", "text": "x y ".repeat(5_000)}]}).to_string();
    let raw = Budget {
        is_off: true,
        ..Budget::new(300)
    };
    assert_eq!(fit(&long, raw, &store).await.json().as_str(), long);
}

#[tokio::test]
async fn a_tool_error_that_is_long_stays_one() {
    let (store, _folder) = store();
    let text = "it went wrong because of this and that\n".repeat(500);
    let result = json!({"content": [{"type": "text", "text": text}], "isError": true}).to_string();
    let reply = fit(&result, Budget::new(300), &store).await;
    assert!(reply.is_error());
    assert!(reply.json().as_str().ends_with(r#","isError":true}"#));
}

#[tokio::test]
async fn a_share_that_shows_nothing_names_its_handle() {
    let (store, _folder) = store();
    let result = json!({"content": [{"type": "text", "text": "one line\n".repeat(4_000)}]});
    let budget = Budget::new(4_000).share(BUDGET_MIN - 150);
    let sent = content(&fit(&result.to_string(), budget, &store).await);
    let [note] = texts(&sent).try_into().expect("one text");
    assert!(
        note.starts_with("[kept: 12,000 tokens. proxy/read_result {"),
        "{note}"
    );
    assert!(
        tokens::count(&note) <= BUDGET_MIN - 150,
        "{}",
        tokens::count(&note)
    );
}
