//! Every call is answered, and so is the next one, whatever output a server writes.

use std::fs;

use journeys::{
    client::Client,
    fake::Step,
    house::{Fake, House, fake},
};
use serde_json::{Value, json};

use crate::{calling, house, until};

/// Lines that a server may write before it answers.
const LINES: [(&str, &str); 18] = [
    ("garbage", "no JSON, and {\"half\": "),
    ("blank", ""),
    ("blanks", " \t \r"),
    ("scalar", "42"),
    ("null", "null"),
    ("batch", r#"[{"jsonrpc":"2.0","id":1,"result":{}}]"#),
    ("empty", "{}"),
    ("nobody", r#"{"jsonrpc":"2.0","id":987654321,"result":{}}"#),
    (
        "nobodys_error",
        r#"{"jsonrpc":"2.0","id":987654321,"error":{"code":1,"message":"x"}}"#,
    ),
    (
        "null_id",
        r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"parse"}}"#,
    ),
    ("object_id", r#"{"jsonrpc":"2.0","id":{"a":1},"result":{}}"#),
    ("fraction_id", r#"{"jsonrpc":"2.0","id":1.5,"result":{}}"#),
    ("huge_id", r#"{"jsonrpc":"2.0","id":1e400,"result":{}}"#),
    (
        "unknown_notice",
        r#"{"jsonrpc":"2.0","method":"notifications/of/nothing"}"#,
    ),
    (
        "odd_notice",
        r#"{"jsonrpc":"2.0","method":"notifications/progress","params":[1]}"#,
    ),
    ("odd_method", r#"{"jsonrpc":"2.0","method":5,"params":{}}"#),
    (
        "unknown_request",
        r#"{"jsonrpc":"2.0","id":"q1","method":"of/nothing","params":{}}"#,
    ),
    ("escape", "\u{1b}[31mred\u{1b}[0m"),
];

/// Messages that a server may send before it answers a call.
fn oddities() -> Vec<(&'static str, Vec<Step>)> {
    let bytes = |bytes: &[u8]| vec![Step::Bytes(bytes.to_vec())];
    let lines = LINES.map(|(name, line)| (name, vec![Step::line(line)]));
    let others = [
        ("not_utf8", bytes(b"\xff\xfe\x80 noise\n")),
        (
            "not_utf8_in_json",
            bytes(b"{\"jsonrpc\":\"2.0\",\"method\":\"\xff\"}\n"),
        ),
        ("nul", bytes(b"\0\0\0\n")),
        ("carriage_return", bytes(b"\r\n\r\n")),
        ("deep", vec![Step::line("[".repeat(100_000))]),
        ("long_noise", vec![Step::line("x".repeat(1_000_000))]),
        (
            "two_pieces",
            vec![
                Step::Bytes(b"{\"jsonrpc\":\"2.0\",\"met".to_vec()),
                Step::WaitMs(20),
                Step::Bytes(b"hod\":\"notifications/of/nothing\"}\n".to_vec()),
            ],
        ),
    ];
    lines.into_iter().chain(others).collect()
}

fn odd() -> Fake {
    let wait = [Step::remark("waits"), Step::UntilCancelled];
    let server = fake("odd").tool("echo", Step::Echo).tool("stuck", wait);
    oddities()
        .into_iter()
        .fold(server, |server, (name, steps)| {
            let steps: Vec<Step> = steps.into_iter().chain([Step::text("right")]).collect();
            server.tool(name, steps)
        })
}

async fn echoes(client: &Client) {
    let answer = client.execute("odd/echo", json!({ "a": 1 })).await.good();
    assert_eq!(answer, r#"{"a":1}"#);
}

#[journey]
async fn odd_lines_lose_no_call() {
    let house = house::<Fake>([]);
    let wait = [Step::UntilExists(house.path("gate")), Step::text("waited")];
    house.add(odd().tool("wait", wait));
    house.cli(["reindex"]).await.ended(0);
    let client = house.client().await;
    let (_, waits) = client
        .begin("tools/call", calling("odd/wait", &json!({})))
        .await;
    house.until_calls("odd", 1).await;
    for (name, _) in oddities() {
        let answer = client.execute(&format!("odd/{name}"), json!({})).await;
        assert_eq!(answer.good(), "right", "{name}");
        echoes(&client).await;
    }
    house.write("gate", "");
    assert_eq!(waits.await.good(), "waited");
    assert_eq!(house.starts("odd"), 2, "the server was never restarted");
    house.stops_clean().await;
}

/// Makes all odd calls concurrently with calls that must succeed.
#[journey]
async fn odd_lines_at_once_lose_no_call() {
    let house = house::<Fake>([]);
    let wait = [Step::UntilExists(house.path("gate")), Step::text("waited")];
    house.add(odd().tool("wait", wait));
    house.indexed().await;
    let client = house.client().await;
    // A response without a valid id ends the only call that waits, so another call waits until the end.
    let (_, waits) = client
        .begin("tools/call", calling("odd/wait", &json!({})))
        .await;
    let mut replies = Vec::new();
    // Other output would interrupt a line in two pieces here.
    let whole = |(name, _): &(&str, Vec<Step>)| *name != "two_pieces";
    for (name, _) in oddities().into_iter().filter(whole) {
        let odd = calling(&format!("odd/{name}"), &json!({}));
        let echo = calling("odd/echo", &json!({ "of": name }));
        let odd = client.begin("tools/call", odd).await.1;
        replies.push((name, odd, client.begin("tools/call", echo).await.1));
    }
    for (name, odd, echo) in replies {
        assert_eq!(echo.await.good(), json!({ "of": name }).to_string());
        assert_eq!(odd.await.good(), "right", "{name}");
    }
    house.write("gate", "");
    assert_eq!(waits.await.good(), "waited");
    house.stops_clean().await;
}

#[journey]
async fn malformed_answers_are_errors_of_their_call() {
    let errors = [
        json!("a text"),
        json!({}),
        json!({ "code": "E", "message": 7 }),
        json!({ "message": "no code" }),
        json!([1, 2]),
        json!({ "code": 1.5, "message": "half", "data": { "deep": [[[]]] } }),
    ];
    let mut server = odd();
    for (number, error) in errors.iter().enumerate() {
        server = server.tool(&format!("error_{number}"), Step::Error(error.clone()));
    }
    let results = [
        "7",
        "\"text\"",
        "null",
        "[]",
        r#"{"content":7}"#,
        r#"{"content":[7,null]}"#,
    ];
    for (number, result) in results.iter().enumerate() {
        let step = Step::RawResult((*result).to_owned());
        server = server.tool(&format!("result_{number}"), step);
    }
    let neither = Step::line(r#"{"jsonrpc":"2.0","id":$ID}"#);
    let short = "[servers.odd.overlay.neither]\ntimeout_s = 1";
    let house = house([server.tool("neither", neither).setting(short)]);
    house.cli(["reindex"]).await.ended(0);
    let client = house.client().await;
    for number in 0..errors.len() {
        let tool = format!("odd/error_{number}");
        let answer = client.execute(&tool, json!({})).await.bad();
        assert!(answer.starts_with("error "), "{tool}: {answer}");
        assert!(!answer.starts_with("error timeout"), "{tool}: {answer}");
        echoes(&client).await;
    }
    for number in 0..results.len() {
        // The response must be valid for a client.
        let reply = client
            .execute(&format!("odd/result_{number}"), json!({}))
            .await;
        assert!(reply.result()["content"].is_array(), "{}", reply.raw());
        echoes(&client).await;
    }
    let answer = client.execute("odd/neither", json!({})).await.bad();
    assert!(answer.starts_with("error "), "{answer}");
    echoes(&client).await;
    assert_eq!(house.starts("odd"), 2, "the server was never restarted");
    house.stops_clean().await;
}

#[journey]
async fn unknown_blocks_come_through() {
    let blocks: Value = json!([
        { "type": "hologram", "layers": [1, 2], "_meta": { "k": null } },
        { "type": "text", "text": "plain" },
        { "no": "type" },
        { "type": "resource", "resource": { "uri": "x://y", "blob": "AAAA", "odd": 1 } }
    ]);
    let server = odd().tool("blocks", Step::Result(json!({ "content": blocks })));
    let house = house([server]);
    house.indexed().await;
    let client = house.client().await;
    let reply = client.execute("odd/blocks", json!({})).await;
    assert_eq!(reply.result()["content"], blocks);
    house.stops_clean().await;
}

#[journey]
async fn half_a_line_at_the_end_is_no_answer_and_the_next_call_starts_anew() {
    let half = |text: &[u8]| vec![Step::Bytes(text.to_vec()), Step::Exit(0)];
    let server = odd()
        .tool("half", half(b"{\"jsonrpc\":\"2.0\",\"id\":"))
        .tool("half_a_letter", half(b"{\"jsonrpc\":\"2.0\",\"x\":\"\xc3"));
    let house = house([server.setting("timeout_s = 3600")]);
    house.indexed().await;
    let client = house.client().await;
    for tool in ["odd/half", "odd/half_a_letter"] {
        let (_, beside) = client
            .begin("tools/call", calling("odd/stuck", &json!({})))
            .await;
        until("the concurrent call", || {
            let remarks = house.remarks("odd");
            remarks.last().is_some_and(|last| last == "waits")
        })
        .await;
        for answer in [client.execute(tool, json!({})).await, beside.await] {
            let answer = answer.bad();
            assert!(answer.starts_with("error server_unavailable: "), "{answer}");
            assert!(answer.contains("may have run"), "{answer}");
        }
        echoes(&client).await;
    }
    house.stops_clean().await;
}

async fn log_of(house: &House, server: &str) -> String {
    house.cli(["logs", server]).await.ended(0).to_owned()
}

#[journey]
async fn the_log_of_a_server_holds_its_stderr_and_no_secret() {
    const SECRET: &str = "sk-live-0d7c41aa93";
    let speaks = [
        Step::stderr(format!("token {SECRET} accepted\n")),
        Step::stderr("half a line, "),
        Step::stderr("and the rest\nnot \u{1b}[31mred\n"),
        Step::text("said"),
    ];
    let server = fake("talker").tool("speak", speaks).env("TOKEN", SECRET);
    let house = house([server, odd()]);
    house.indexed().await;
    let client = house.client().await;
    client.execute("talker/speak", json!({})).await.good();
    client.close().await;
    let log = log_of(&house, "talker").await;
    for words in ["accepted", "half a line, and the rest"] {
        assert!(log.contains(words), "`{words}` is missing:\n{log}");
    }
    assert!(!log.contains(SECRET), "{log}");
    assert!(!log.contains('\u{1b}'), "{log:?}");
    // The server's stderr is never mixed into ours.
    assert!(
        !client.stderr().contains("half a line"),
        "{}",
        client.stderr()
    );
    let missing = house.cli(["logs", "nobody"]).await;
    assert_ne!(missing.code, Some(0));
    house.stops_clean().await;
}

#[journey]
async fn a_log_that_is_flooded_stays_small() {
    let flood = vec![Step::StderrOfBytes(8 * 1024 * 1024), Step::text("wrote")];
    let house = house([fake("talker").tool("flood", flood)]);
    house.indexed().await;
    let client = house.client().await;
    client.execute("talker/flood", json!({})).await.good();
    client.close().await;
    let log = log_of(&house, "talker").await;
    assert!(log.contains("of no importance"), "{log}");
    let bytes = bytes_below(&house.path("xdg-state"), "talker");
    assert!(bytes < 4 * 1024 * 1024, "{bytes} bytes of log");
    house.stops_clean().await;
}

/// Returns the size of all files below the folder whose name has this prefix.
fn bytes_below(folder: &std::path::Path, start: &str) -> u64 {
    let entries = fs::read_dir(folder).unwrap().map(Result::unwrap);
    let sizes = entries.map(|entry| {
        let name = entry.file_name();
        match entry.file_type().unwrap().is_dir() {
            true => bytes_below(&entry.path(), start),
            false if name.to_string_lossy().starts_with(start) => entry.metadata().unwrap().len(),
            false => 0,
        }
    });
    sizes.sum()
}
