//! The blocks of a server's result arrive unchanged; those that are too long are cut and kept.

use journeys::{
    fake::{Step, payload},
    house::fake,
};
use serde_json::json;

use crate::{handle, house, results::long_results::ends};

#[journey]
async fn blocks_come_through_unchanged_and_in_order() {
    let blocks = r#"[{"type":"text","text":"one","annotations":{"audience":["user"]},"_meta":{"k":1}},{"type":"hologram","z":1.50,"a":"\u00e9"},{"type":"image","data":"AAAA","mimeType":"image/png"},{"type":"resource_link","uri":"file:///x","name":"x","future":null}]"#;
    let result = format!(r#"{{"content":{blocks},"_meta":{{"vendor/trace":"t-1"}}}}"#);
    let house = house([fake("odd").tool("blocks", Step::RawResult(result))]);
    house.indexed().await;
    let client = house.client().await;
    let reply = client.execute("odd/blocks", json!({})).await;
    assert!(reply.raw().contains(blocks), "{}", reply.raw());
    assert_eq!(reply.result()["_meta"]["vendor/trace"], "t-1");
    house.stops_clean().await;
}

#[journey]
async fn structured_content_becomes_text_where_no_text_says_it() {
    let structured = json!({ "b": 1, "a": [true] });
    let text = |text: &str| json!([{ "type": "text", "text": text }]);
    let with =
        |content| Step::Result(json!({ "content": content, "structuredContent": structured }));
    let server = fake("data")
        .tool("same", with(text(r#"{"a": [true], "b": 1}"#)))
        .tool("alone", with(json!([])))
        .tool("beside", with(text("a summary")));
    let house = house([server]);
    house.indexed().await;
    let client = house.client().await;
    for (tool, expected) in [
        ("same", vec![r#"{"a": [true], "b": 1}"#]),
        ("alone", vec![r#"{"b":1,"a":[true]}"#]),
        ("beside", vec!["a summary", r#"{"b":1,"a":[true]}"#]),
    ] {
        let reply = client.execute(&format!("data/{tool}"), json!({})).await;
        assert!(reply.result().get("structuredContent").is_none(), "{tool}");
        let texts: Vec<_> = reply
            .content()
            .iter()
            .filter_map(|it| it["text"].as_str())
            .collect();
        assert_eq!(texts, expected, "{tool}");
    }
    house.stops_clean().await;
}

#[journey]
async fn a_tool_error_is_passed_on_as_one() {
    let house = house([fake("strict").tool("no", Step::ToolError("quota used up".to_owned()))]);
    house.indexed().await;
    let answer = house
        .client()
        .await
        .execute("strict/no", json!({}))
        .await
        .bad();
    assert!(answer.contains("quota used up"), "{answer}");
    house.stops_clean().await;
}

#[journey]
async fn a_long_result_is_cut_and_can_be_read_to_the_end() {
    let house = house([fake("files").tool("read", Step::Lines(10_000))]);
    house.indexed().await;
    let client = house.client().await;
    let text = client.execute("files/read", json!({})).await.good();
    let (told, rest) = text.split_once('\n').unwrap();
    assert!(
        told.starts_with("[whole: ") && told.ends_with("; 10,000 lines]"),
        "{told}"
    );
    let (shown, _) = rest.rsplit_once("\n[cut: ").unwrap();
    assert!(shown.len() < 20_000, "{} bytes are shown", shown.len());
    let (head, tail) = ends(shown);
    let whole = payload::lines(10_000);
    assert!(
        whole.starts_with(head.trim_end()) && whole.ends_with(tail) && !tail.is_empty(),
        "not whole lines from the start and the end"
    );

    let read = house.cli(["call", "--handle", handle(&text)]).await;
    assert_eq!(read.ended(0), payload::lines(10_000));
    house.stops_clean().await;
}

#[journey]
async fn results_of_any_size_arrive_or_are_kept() {
    let server = fake("big")
        .tool("text", Step::TextOfBytes(8 << 20))
        .tool("data", Step::StructuredOfBytes(1 << 20));
    let house = house([server.setting("timeout_s = 50")]);
    house.indexed().await;
    let client = house.client().await;
    for tool in ["big/text", "big/data"] {
        let reply = client.execute(tool, json!({})).await;
        assert!(reply.good().contains("[cut: "), "{tool}");
        assert!(
            reply.raw().len() < 100_000,
            "{tool}: {} bytes",
            reply.raw().len()
        );
    }
    house.stops_clean().await;
}

#[journey]
async fn arguments_arrive_byte_for_byte() {
    let house = house([fake("files").tool("echo", Step::Echo)]);
    house.indexed().await;
    let client = house.client().await;
    let input = r#"{"n":1.50,"big":12345678901234567890123,"u":"\u00e9","z":{"b":1,"a":null}}"#;
    client.send_line(&format!(
        r#"{{"jsonrpc":"2.0","id":"own","method":"tools/call","params":{{"name":"execute_dynamic_tool","arguments":{{"tool_name":"files/echo","tool_input":{input}}}}}}}"#
    )).await;
    client.next_stray().await;
    house
        .until_received("files", |line| {
            line.contains(&format!(r#""arguments":{input}"#))
        })
        .await;
    house.stops_clean().await;
}
