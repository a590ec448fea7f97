//! Servers that send messages too early, twice, or without end: their calls are answered once, and
//! the next ones too.

use journeys::{
    fake::Step,
    house::{Fake, fake},
};
use serde_json::{Value, json};

use crate::{calling, house};

/// Many more than any queue between the proxy and a server holds.
const FLOOD: usize = 10_000;
/// The number of blocks of one result.
const BLOCKS: usize = 50_000;

fn notification(method: &str, params: Value) -> Step {
    Step::Flood {
        times: FLOOD,
        method: method.to_owned(),
        params,
    }
}

fn lines(line: &str, times: usize) -> Step {
    Step::Bytes(format!("{line}\n").repeat(times).into_bytes())
}

/// Returns the actions of a server before it answers a call; each row is a tool.
fn deeds() -> Vec<(&'static str, Vec<Step>)> {
    let right = || Step::text("right");
    let twice =
        r#"{"jsonrpc":"2.0","id":$ID,"result":{"content":[{"type":"text","text":"right"}]}}"#;
    let text_id =
        r#"{"jsonrpc":"2.0","id":"$ID","result":{"content":[{"type":"text","text":"right"}]}}"#;
    let ping = r#"{"jsonrpc":"2.0","id":"p","method":"ping"}"#;
    let progress = json!({ "progressToken": "$PROGRESS", "progress": 1 });
    let nobodys = json!({ "progressToken": "nobody", "progress": 1 });
    let log = json!({ "level": "emergency", "data": "x".repeat(100) });
    let stray = r#"{"jsonrpc":"2.0","id":4294967295,"result":{}}"#;
    vec![
        ("twice", vec![Step::line(twice), Step::line(twice), right()]),
        (
            "thrice_and_error",
            vec![
                right(),
                right(),
                Step::Error(json!({ "code": 1, "message": "late" })),
            ],
        ),
        ("id_as_text", vec![Step::line(text_id), right()]),
        ("strays", vec![lines(stray, FLOOD), right()]),
        ("pings", vec![lines(ping, FLOOD / 10), right()]),
        (
            "batches",
            vec![lines(&format!("[{ping},{ping}]"), 1_000), right()],
        ),
        ("blank_lines", vec![lines("", FLOOD), right()]),
        (
            "log",
            vec![notification("notifications/message", log), right()],
        ),
        (
            "progress",
            vec![notification("notifications/progress", progress), right()],
        ),
        (
            "progress_of_nobody",
            vec![notification("notifications/progress", nobodys), right()],
        ),
        (
            "cancels_us",
            vec![
                notification("notifications/cancelled", json!({ "requestId": 1 })),
                right(),
            ],
        ),
        (
            "list_changed",
            vec![
                notification("notifications/tools/list_changed", json!({})),
                right(),
            ],
        ),
        ("stderr", vec![Step::StderrOfBytes(4 << 20), right()]),
    ]
}

fn odd() -> Fake {
    let server = fake("odd").tool("echo", Step::Echo);
    deeds()
        .into_iter()
        .fold(server, |server, (name, steps)| server.tool(name, steps))
}

/// Calls run concurrently, so that extra messages of a server arrive among other responses.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whatever_a_server_says_beside_an_answer_each_call_has_its_own() {
    let house = house([odd()]);
    house.cli(["reindex"]).await.ended(0);
    let client = house.client().await;
    let mut wrong = Vec::new();
    for (name, _) in deeds() {
        let odd = calling(&format!("odd/{name}"), &json!({}));
        let echo = calling("odd/echo", &json!({ "of": name }));
        let (_, odd) = client.begin("tools/call", odd).await;
        let (_, echo) = client.begin("tools/call", echo).await;
        let (odd, echo) = (odd.await, echo.await);
        if odd.is_error() || odd.text() != "right" {
            wrong.push(format!("{name}: {}", odd.raw()));
        }
        assert_eq!(echo.good(), json!({ "of": name }).to_string(), "{name}");
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    house.stops_clean().await;
}

#[tokio::test]
async fn answers_that_come_before_any_question_answer_none() {
    let answer = |id: usize| {
        let result = json!({ "content": [{ "type": "text", "text": "too early" }] });
        json!({ "jsonrpc": "2.0", "id": id, "result": result }).to_string()
    };
    // The ids of our requests are among these.
    let early: String = (0..1_000).map(|id| answer(id) + "\n").collect();
    let server = fake("early")
        .tool("echo", Step::Echo)
        .script(|script| script.on_initialized = vec![Step::Bytes(early.into_bytes())]);
    let house = house([server]);
    house.cli(["reindex"]).await;
    let client = house.client().await;
    // The first call may get a response that was sent in advance; the next calls must not.
    drop(client.execute("early/echo", json!({ "a": 0 })).await.text());
    for number in 1..20 {
        let input = json!({ "a": number });
        let answer = client.execute("early/echo", input.clone()).await.good();
        assert_eq!(answer, input.to_string());
    }
    house.stops_clean().await;
}

#[tokio::test]
async fn a_result_of_very_many_blocks_is_cut_like_any_other() {
    let block = r#"{"type":"text","text":"x"}"#;
    let blocks = format!("{block},").repeat(BLOCKS - 1) + block;
    let result = Step::RawResult(format!(r#"{{"content":[{blocks}]}}"#));
    let house = house([odd().tool("blocks", result)]);
    house.cli(["reindex"]).await.ended(0);
    let client = house.client().await;
    let answer = client.execute("odd/blocks", json!({})).await;
    let text = answer.good();
    assert!(answer.raw().len() < 100_000, "{} bytes", answer.raw().len());
    assert!(
        text.contains("[cut"),
        "{}",
        &text[text.len().saturating_sub(500)..]
    );
    client.execute("odd/echo", json!({})).await.good();
    house.stops_clean().await;
}
