use std::sync::Arc;

use excerpt::tokens;
use proptest::prelude::*;
use serde_json::{Value, json};
use tool::ClientId;

use super::{
    BUDGET_MIN, Budget, Fitted, Origin, imitation::NOTICE_TOKENS_MAX,
    parsed_result::OTHERS_TOKENS_MAX,
};
use crate::{settings::ResultSettings, store::ResultStore};

fn store() -> (ResultStore, tempfile::TempDir) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let limits = ResultSettings {
        max_tokens: 4_000,
        keep_hours: 24,
        keep_mib: 64,
    };
    (ResultStore::new(folder.path(), &limits), folder)
}

fn origin() -> Origin {
    Origin {
        client: Some(ClientId {
            connection: None,
            folder: None,
            name: Arc::from("ada"),
            caller: None,
        }),
        reads_on: true,
    }
}

async fn fit(result: &str, budget: Budget, store: &ResultStore) -> Fitted {
    let json = jsonrpc::json(result.to_owned()).expect("the case is JSON");
    super::fit(json, budget, origin(), store).await
}

fn content(reply: &Fitted) -> Vec<Value> {
    let result: Value = serde_json::from_str(reply.result.as_str()).expect("a result is JSON");
    result["content"].as_array().expect("a list").clone()
}

/// Returns the texts that a model sees.
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
        "[a-z ]{0,2000}"
            .prop_map(|data| json!({"type": "image", "data": data, "mimeType": "image/png"})),
        ("[a-z]{1,400}", "[a-z ]{0,3000}").prop_map(|(uri, text)| {
            json!({"type": "resource_link", "uri": uri, "name": "n", "description": text})
        }),
        "(\\[cut: [a-z]{3,9}\n|[a-z ]{20}\n){0,90}".prop_map(text),
    ]
}

/// Generates annotations and `_meta` of any depth and size.
fn beside() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        "[a-z ]{0,900}".prop_map(Value::from),
        any::<u32>().prop_map(Value::from)
    ];
    leaf.prop_recursive(4, 60, 8, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..8).prop_map(Value::from),
            prop::collection::hash_map("[a-z]{1,9}", inner, 0..8)
                .prop_map(|map| map.into_iter().collect::<Value>()),
        ]
    })
}

fn adorned() -> impl Strategy<Value = Value> {
    (
        block(),
        prop::option::weighted(0.3, beside()),
        prop::option::weighted(0.3, beside()),
    )
        .prop_map(|(mut block, annotations, meta)| {
            if let Some(annotations) = annotations {
                block["annotations"] = annotations;
            }
            if let Some(meta) = meta {
                block["_meta"] = meta;
            }
            block
        })
}

/// Returns everything in a result that a client may show a model: all but data of images, and the
/// members that every text block has.
fn all_of(reply: &Fitted) -> Vec<String> {
    let mut result: Value = serde_json::from_str(reply.result.as_str()).expect("a result is JSON");
    let blocks = result["content"].take();
    let mut all = Vec::new();
    for mut block in blocks.as_array().expect("a list").clone() {
        let fields = block.as_object_mut().expect("an object");
        if fields["type"] == "text" {
            fields.remove("type");
        }
        if fields.get("type").is_some_and(|kind| kind == "image") {
            let data = fields["data"].as_str().expect("a text");
            // Invalid base64 may contain text, and counts.
            if data.bytes().all(|it| it.is_ascii_alphanumeric()) {
                fields.remove("data");
            }
        }
        let inner = block.pointer_mut("/resource/text").map(Value::take);
        let text = block
            .as_object_mut()
            .and_then(|fields| fields.remove("text"));
        all.extend(
            [text, inner]
                .into_iter()
                .flatten()
                .map(|it| it.as_str().expect("a text").to_owned()),
        );
        if block != json!({}) {
            all.push(block.to_string());
        }
    }
    let fields = result.as_object_mut().expect("an object");
    fields.remove("content");
    if !fields.is_empty() {
        all.push(result.to_string());
    }
    all
}

/// The tokens that a result may cost beyond its budget: members beside its content that a client
/// may need, a notice about lines that look like ours, and some of the JSON around shown texts.
const BESIDE_TOKENS_MAX: usize = OTHERS_TOKENS_MAX + NOTICE_TOKENS_MAX + 40;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn any_answer_fits_and_its_parts_joined_are_the_whole(
        blocks in prop::collection::vec(adorned(), 0..6),
        meta in beside(),
        max_tokens in 200_u64..1_500,
    ) {
        let runtime = tokio::runtime::Runtime::new().expect("a runtime");
        runtime.block_on(async {
            let (store, _folder) = store();
            let result = json!({"content": blocks, "_meta": {"k": meta}}).to_string();
            let reply = fit(&result, Budget::new(max_tokens), &store).await;
            let sent = content(&reply);
            let shown = texts(&sent);
            let all = all_of(&reply);
            let cost: usize = all.iter().map(|text| tokens::count(text)).sum();
            let max = usize::try_from(max_tokens).expect("the budget fits") + BESIDE_TOKENS_MAX;
            prop_assert!(cost <= max, "{} of {}: {:?}", cost, max, all);
            let is_last = |start| shown.last().is_some_and(|last: &String| last.starts_with(start));
            let is_one = shown.len() == 1 && is_last("[whole: ");
            let has_notice = !is_one && shown.iter().any(|text| text.starts_with("[proxy: "));
            let is_whole = !is_one && (!is_last("[cut: ") || shown.len() == 1);
            if is_whole && !is_last("[kept: ") && !has_notice {
                prop_assert_eq!(reply.result.as_str(), result);
                return Ok(());
            }
            if has_notice && !shown[0].starts_with("[whole: ") {
                prop_assert_eq!(&sent[..sent.len() - 1], blocks.as_slice());
                return Ok(());
            }
            let handle = shown[shown.len() - 1].split("\"handle\":\"").nth(1);
            let handle = handle.and_then(|it| it.split('"').next()).expect("a handle");
            let mut kept = store.open(handle, origin().client.as_ref()).await.expect("the result is kept");
            let mut whole = Vec::new();
            kept.write_json(&mut whole).expect("a vector can be written to");
            let whole: Value = serde_json::from_slice(&whole).expect("a result is JSON");
            prop_assert_eq!(whole, serde_json::from_str::<Value>(&result).expect("JSON"));
            let all = kept.read(0..kept.head.text_bytes()).expect("readable");
            let parts = (1..=kept.count_parts()).map(|number| {
                let range = kept.part(number).expect("the part exists");
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
    assert_eq!(reply.result.as_str(), result);
    assert!(!folder.path().join("results").exists());
    let long = json!({"content": [{"type": "text", "text": "x y ".repeat(5_000)}]}).to_string();
    let raw = Budget {
        is_off: true,
        ..Budget::new(300)
    };
    assert_eq!(fit(&long, raw, &store).await.result.as_str(), long);
}

#[tokio::test]
async fn a_tool_error_that_is_long_stays_one() {
    let (store, _folder) = store();
    let text = "it went wrong because of this and that\n".repeat(500);
    let result = json!({"content": [{"type": "text", "text": text}], "isError": true}).to_string();
    let reply = fit(&result, Budget::new(300), &store).await;
    assert!(reply.is_error);
    assert!(reply.result.as_str().ends_with(r#","isError":true}"#));
}

#[tokio::test]
async fn one_text_stays_one_and_no_content_is_told() {
    let (store, _folder) = store();
    let annotated = json!({"type": "text", "text": "one line\n".repeat(4_000),
        "annotations": {"priority": 1}});
    let result = json!({"content": [annotated]}).to_string();
    let sent = content(&fit(&result, Budget::new(300), &store).await);
    let [block] = sent.as_slice() else {
        panic!("{} blocks", sent.len());
    };
    assert_eq!(block["annotations"]["priority"], 1);
    let text = block["text"].as_str().unwrap();
    assert!(
        text.starts_with("[whole: 12,000 tokens; 4,000 lines]\none line\n"),
        "{text}"
    );
    assert!(text.lines().last().unwrap().starts_with("[cut: "), "{text}");
    for (result, says) in [
        (
            r#"{"content":[]}"#,
            "[proxy: the tool answered with no content]",
        ),
        (
            r#"{"content":[],"isError":true}"#,
            "[proxy: the tool failed and did not say why]",
        ),
    ] {
        let reply = fit(result, Budget::new(300), &store).await;
        assert_eq!(texts(&content(&reply)), [says]);
    }
    let picture = r#"[{"type":"image","data":"QUJD","mimeType":"image/png"}]"#;
    let twice = format!(r#"{{"content":{picture},"structuredContent":{{"content": {picture}}}}}"#);
    let reply = fit(&twice, Budget::new(300), &store).await;
    assert_eq!(content(&reply).len(), 1, "the image is repeated as text");
    let structured = r#"{"content":[],"structuredContent":{"a":1}}"#;
    let reply = fit(structured, Budget::new(300), &store).await;
    assert_eq!(texts(&content(&reply)), [r#"{"a":1}"#]);
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
