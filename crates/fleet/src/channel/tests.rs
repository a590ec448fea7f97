use jsonrpc::Sink;
use parking_lot::Mutex;
use serde_json::value::RawValue;
use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines, ReadHalf, WriteHalf, split},
    net::UnixStream,
};

use crate::request::ProgressSink;

use super::*;

fn hears(progress: ProgressSink) -> Listeners {
    Listeners {
        progress: Some(progress),
        ..Listeners::default()
    }
}

/// Records the messages that the channel does not handle.
#[derive(Clone, Default)]
struct Left(Arc<Mutex<Vec<String>>>);

impl MessageSink for Left {
    fn take(&mut self, line: &Bytes, _: &Message<'_>) {
        let text = String::from_utf8_lossy(line).into_owned();
        self.0.lock().push(text);
    }
}

/// The server's side of a channel, driven by the test.
struct FakeServer {
    channel: Arc<CallChannel>,
    left: Left,
    requests: Lines<BufReader<ReadHalf<UnixStream>>>,
    answers: WriteHalf<UnixStream>,
}

impl FakeServer {
    fn new() -> Self {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let (input, output) = ours.into_split();
        let outbox = Outbox::new(Sink::stream(output));
        let left = Left::default();
        let channel = CallChannel::start(
            Arc::default(),
            LineReader::new(input),
            outbox,
            left.clone(),
            mask(),
            &Arc::default(),
        );
        let (requests, answers) = split(theirs);
        let requests = BufReader::new(requests).lines();
        Self {
            channel: Arc::new(channel),
            left,
            requests,
            answers,
        }
    }

    fn call(&self) -> tokio::task::JoinHandle<Result<Json, RequestError>> {
        let channel = Arc::clone(&self.channel);
        let params = |_| vec![Bytes::from_static(b"{}")];
        tokio::spawn(async move {
            channel
                .request("tools/call", params, Listeners::default())
                .await
        })
    }

    async fn read(&mut self) -> serde_json::Value {
        let line = self.requests.next_line().await.unwrap().unwrap();
        serde_json::from_str(&line).unwrap()
    }

    async fn read_id(&mut self) -> u64 {
        self.read().await["id"].as_u64().unwrap()
    }

    async fn write(&mut self, bytes: &[u8]) {
        self.answers.write_all(bytes).await.unwrap();
    }
}

/// Returns the result of the call after the server wrote these bytes; `ID` is replaced by its id.
async fn answered(written: &[u8]) -> Result<Json, RequestError> {
    let mut peer = FakeServer::new();
    let call = peer.call();
    let id = peer.read_id().await.to_string();
    let text: Vec<u8> = match String::from_utf8(written.to_vec()) {
        Ok(text) => text.replace("ID", &id).into_bytes(),
        Err(_) => [
            written,
            format!("{{\"id\":{id},\"result\":1}}\n").as_bytes(),
        ]
        .concat(),
    };
    peer.write(&text).await;
    call.await.unwrap()
}

#[track_caller]
fn check(answer: &Result<Json, RequestError>, expected: &str) {
    assert_eq!(
        answer.as_ref().expect("the call succeeds").as_str(),
        expected
    );
}

#[tokio::test]
async fn a_result_comes_back_byte_for_byte() {
    let answer =
        answered(b"{\"jsonrpc\":\"2.0\",\"id\":ID,\"result\":{\"n\": 1.0, \"x\":1e400}}\n").await;
    check(&answer, r#"{"n": 1.0, "x":1e400}"#);
    check(&answered(b"{\"result\":[2],\"id\":\"ID\"}\n").await, "[2]");
}

#[tokio::test]
async fn a_list_may_not_be_as_long_as_a_result() {
    let body = "x".repeat(LIST_BYTES_MAX);
    // The limit applies wherever the id is in the message, and even if a call in progress may have
    // a response of this length.
    for (is_early, has_call) in [(true, false), (false, false), (true, true)] {
        let mut peer = FakeServer::new();
        let channel = Arc::clone(&peer.channel);
        let params = |_| vec![Bytes::from_static(b"{}")];
        let list = tokio::spawn(async move {
            let nobody = Listeners::default();
            channel.request("tools/list", params, nobody).await
        });
        let id = peer.read_id().await;
        let call = has_call.then(|| peer.call());
        let written = if is_early {
            format!("{{\"id\":{id},\"result\":\"{body}\"}}\n")
        } else {
            format!("{{\"result\":\"{body}\",\"id\":{id}}}\n")
        };
        peer.write(written.as_bytes()).await;
        let Err(RequestError::Failed(why)) = list.await.unwrap() else {
            panic!("a list of {} bytes was accepted", body.len());
        };
        assert!(why.ends_with("bytes, which is over the limit"), "{why}");
        let call = call.unwrap_or_else(|| peer.call());
        let id = peer.read_id().await;
        let written = format!("{{\"id\":{id},\"result\":\"{body}\"}}\n");
        peer.write(written.as_bytes()).await;
        assert!(call.await.unwrap().unwrap().len() > LIST_BYTES_MAX);
    }
}

#[tokio::test]
async fn garbage_before_an_answer_is_passed_over() {
    let noise = "\u{1b}[32mstarting\u{1b}[0m\n\n{\n  half: 1\n}\n[1]\n[INFO] {\"a\n{\"level\":30}\n\
        {\"id\":999,\"result\":0}\n{'a': 1}\ngot {\"jsonrpc\":\"2.0\",\"id\":ID,\"method\":\"tools/call\"}\n\
        {\"jsonrpc\":\"2.0\",\"id\":ID,\"method\":\"tools/call\",\"par\n\
        {'jsonrpc': '2.0', 'id': ID, 'method': 'tools/call'}\n{ jsonrpc: '2.0', id: ID, method: 'x' }\n\
        {\"level\":\"warn\",\"error\":\"a first try failed\"}\n{\"level\":\"info\",\"result\":1}\n";
    let written = format!("{noise}{{\"id\":ID,\"result\":1}}\n");
    check(&answered(written.as_bytes()).await, "1");
    check(&answered(b"\xff\xfe not UTF-8\n").await, "1");
}

/// Returns the reason why a call has no result, after these bytes.
async fn refused(written: &str) -> String {
    match answered(written.as_bytes()).await {
        Err(RequestError::Failed(why)) => why,
        other => panic!("{written:?}: {other:?}"),
    }
}

#[tokio::test]
async fn a_line_that_is_no_message_ends_the_only_call_and_is_quoted() {
    for (line, why) in [
        (
            r#"{"jsonrpc":"2.0","id":ID,"result":{"v":NaN}}"#,
            "it is not JSON",
        ),
        (
            r#"{"jsonrpc":"2.0","id":ID,"result":{"v":Infinity}}"#,
            "it is not JSON",
        ),
        (r#"{"result":{"v":-Infinity},"id":ID}"#, "it is not JSON"),
        (
            "{\"jsonrpc\":\"2.0\",\"id\":ID,\"result\":\"a\tb\"}",
            "control character",
        ),
        (
            "{\"jsonrpc\":\"2.0\",\"id\":ID,\"result\":\"a\rb\"}",
            "control character",
        ),
        (
            r#"{"jsonrpc":"2.0","id":ID,"result":{"#,
            "does not end on its line",
        ),
        (
            r#"{"jsonrpc":"2.0","id":ID,"result":{}} done"#,
            "trailing characters",
        ),
        (
            r#"{"id":ID,"id":ID,"result":{}}"#,
            "it is JSON, but no JSON-RPC response",
        ),
        (
            r#"[{"jsonrpc":"2.0","id":ID,"result":NaN}]"#,
            "it is not JSON",
        ),
        (
            r"{'jsonrpc': '2.0', 'id': 1, 'result': {}}",
            "it is not JSON",
        ),
        (r#"{"half":"#, "does not end on its line"),
    ] {
        let error = refused(&format!("Server started\n{line}\n")).await;
        assert!(error.contains(why), "{line}: {error}");
        assert!(error.contains(&line[..5]), "{line}: {error}");
    }
    let error = refused(
        r#"{"jsonrpc":"2.0","id":null,"result":{}}
"#,
    )
    .await;
    assert!(error.contains("no valid `id`"), "{error}");
    let error = refused(&format!(
        "{{\"id\":ID,\"result\":\"{SECRET}\",\"x\":NaN}}\n"
    ))
    .await;
    assert!(!error.contains(SECRET) && error.contains("***"), "{error}");
}

/// Requests and foreign messages that servers log over several lines.
const PRINTED_LOG: [&str; 8] = [
    "{\n  \"jsonrpc\": \"2.0\",\n  \"id\": ID,\n  \"method\": \"tools/call\",\n  \"params\": {\n    \"error\": 1\n  }\n}",
    "{\n  \"method\": \"tools/call\",\n  \"params\": {\n    \"result\": {}\n  },\n  \"jsonrpc\": \"2.0\",\n  \"id\": ID\n}",
    "{\n  \"params\": {\n    \"result\": [\n      {\"a\": 1},\n      {}\n    ]\n  },\n  \"id\": ID,\n  \"jsonrpc\": \"2.0\",\n  \"method\": \"x\"\n}",
    "{\n\"jsonrpc\": \"2.0\",\n\"id\": ID,\n\"method\": \"x\",\n\"params\": {\n\"result\": 1\n}\n}",
    "{'jsonrpc': '2.0',\n 'id': ID,\n 'method': 'tools/call',\n 'params': {'name': 'result'}}",
    "{\"jsonrpc\": \"2.0\", \"id\": ID,\n \"method\": \"tools/call\",\n \"params\": {}}",
    "{\n  \"jsonrpc\": \"2.0\",\n  \"id\": 7,\n  \"result\": {}\n}",
    "{\n  \"status\": 200,\n  \"result\": {\n    \"id\": ID\n  }\n}",
];

#[tokio::test]
async fn a_log_over_several_lines_ends_no_call() {
    for log in PRINTED_LOG {
        let written = format!("{log}\n{{\"id\":ID,\"result\":1}}\n");
        check(&answered(written.as_bytes()).await, "1");
    }
}

#[tokio::test]
async fn an_answer_over_several_lines_ends_its_call() {
    for answer in [
        "{\n  \"jsonrpc\": \"2.0\",\n  \"id\": ID,\n  \"result\": {",
        "{\n  \"id\": ID,\n  \"result\": {}\n}",
        "{\n  \"result\": {\n    \"content\": []\n  },\n  \"jsonrpc\": \"2.0\",\n  \"id\": ID",
        "{\n  \"error\": {\n    \"code\": 1\n  },\n  \"id\": \"ID\",",
        "{\n\"jsonrpc\": \"2.0\",\n\"id\": ID,\n\"result\": {",
        "{\"jsonrpc\": \"2.0\",\n \"id\": ID,\n \"result\": {}}",
        "{'id': ID,\n 'jsonrpc': '2.0',\n 'result': {'content': []}}",
        "[\n\t{\n\t\t\"jsonrpc\": \"2.0\",\n\t\t\"id\": ID,\r\n\t\t\"result\": 1\r",
        // Without an id that is ours it is the only call's, at the end of the message.
        "{\n  \"jsonrpc\": \"2.0\",\n  \"id\": null,\n  \"error\": {\n    \"code\": 1\n  }\n}",
    ] {
        // A request that the server logged before it answered is another message.
        for log in ["", PRINTED_LOG[0], PRINTED_LOG[3]] {
            let error = refused(&format!("{log}\n{answer}\n")).await;
            assert!(
                error.contains("part of a message of several lines"),
                "{answer}: {error}"
            );
            let is_shown = ["result", "error"]
                .iter()
                .any(|name| error.ends_with(&shown_member(answer, name)));
            assert!(is_shown, "{answer}: {error}");
        }
    }
}

#[tokio::test]
async fn an_answer_whose_id_and_result_share_a_line_of_several_ends_its_call() {
    for answer in [
        "{\n \"id\":ID, \"result\":{\"content\":[]}\n}",
        "{\n \"jsonrpc\":\"2.0\",\"id\":ID,\"result\":{\"content\":[\n  1]}\n}",
        "{\n  'jsonrpc': '2.0', 'id': ID, 'error': {'code': 1}\n}",
    ] {
        let error = refused(&format!("{answer}\n")).await;
        assert!(
            error.contains("part of a message of several lines"),
            "{answer}: {error}"
        );
    }
}

/// Returns the line of a member, as an error quotes it.
fn shown_member(printed: &str, name: &str) -> String {
    let lines = printed.lines().map(str::trim);
    let mut members = lines.filter(|line| line[1..].starts_with(name));
    members.next().unwrap_or("no such member").to_owned()
}

#[tokio::test]
async fn a_line_that_is_not_utf_8_ends_its_call() {
    let mut peer = FakeServer::new();
    let call = peer.call();
    let id = peer.read_id().await;
    let line = format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":\"caf");
    peer.write(line.as_bytes()).await;
    peer.write(b"\xe9\"}\n").await;
    let Err(RequestError::Failed(why)) = call.await.unwrap() else {
        panic!("it is no message");
    };
    assert!(why.contains("it is not UTF-8 from byte"), "{why}");
}

#[tokio::test]
async fn an_error_without_an_id_ends_the_only_call() {
    for id in ["null", "[]"] {
        let line =
            format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":-32700,"message":"no"}}}}"#);
        let Err(RequestError::Protocol(error)) = answered(format!("{line}\n").as_bytes()).await
        else {
            panic!("it is an error");
        };
        assert_eq!((&*error.code, &*error.message), ("-32700", "no"));
    }
}

#[tokio::test]
async fn of_several_calls_a_line_ends_the_one_that_it_names() {
    let mut peer = FakeServer::new();
    let (first, second) = (peer.call(), peer.call());
    let (one, two) = (peer.read_id().await, peer.read_id().await);
    let (broken, good) = (one.max(two), one.min(two));
    let (broken_call, good_call) = if broken == one {
        (first, second)
    } else {
        (second, first)
    };
    let lines = format!(
        "{{\"jsonrpc\":\"2.0\",\"res\n{{\"jsonrpc\":\"2.0\",\"result\":NaN,\"id\":{broken}.0}}\n\
         {{\"jsonrpc\":\"2.0\",\"id\":{good},\"result\":1}}\n"
    );
    peer.write(lines.as_bytes()).await;
    let (one, two) = (broken_call.await.unwrap(), good_call.await.unwrap());
    // The calls may have reached the server in either order.
    let (failed, answered) = if one.is_err() { (one, two) } else { (two, one) };
    assert!(matches!(failed, Err(RequestError::Failed(_))), "{failed:?}");
    check(&answered, "1");
}

#[tokio::test]
async fn a_message_is_read_where_its_meaning_is_certain() {
    for line in [
        "\u{feff}{\"jsonrpc\":\"2.0\",\"id\":ID,\"result\":1}",
        "loading 50 %\r{\"jsonrpc\":\"2.0\",\"id\":ID,\"result\":1}",
        r#"loading {"jsonrpc":"2.0","id":ID,"result":1}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/x"}{"jsonrpc":"2.0","id":ID,"result":1}"#,
        r#"{"jsonrpc":"2.0","id":ID,"result":1} {"jsonrpc":"2.0","id":ID,"result":2}"#,
        r#"[{"jsonrpc":"2.0","id":ID,"result":1}]"#,
        r#"{"jsonrpc":"2.0","id":ID.0,"result":1}"#,
        r#"{"jsonrpc":"2.0","id":IDe0,"result":1}"#,
        r#"{"jsonrpc":"2.0","id":"ID","result":1}"#,
        "{\r\"id\":ID,\r\"result\":1}",
    ] {
        check(&answered(format!("{line}\n").as_bytes()).await, "1");
    }
}

#[tokio::test]
async fn an_error_of_any_shape_ends_the_call() {
    let cases = [
        (
            r#"{"code":-32000,"message":"no","data":{"a":1}}"#,
            "-32000",
            "no",
        ),
        (r#"{"code":"E_NO","message":"no"}"#, "E_NO", "no"),
        (
            r#"{"code":99999999999999999999,"message":5}"#,
            "99999999999999999999",
            "5",
        ),
        (r#""just text""#, "none", r#""just text""#),
        (
            "null",
            "none",
            "the response has neither a result nor an error",
        ),
    ];
    for (error, code, message) in cases {
        let written = format!("{{\"id\":ID,\"error\":{error}}}\n");
        let Err(RequestError::Protocol(read)) = answered(written.as_bytes()).await else {
            panic!("{error} is an error");
        };
        assert_eq!((read.code.as_str(), read.message.as_str()), (code, message));
    }
}

/// A secret that the server may have been given.
const SECRET: &str = "sk-live-5f1e9c0b7a";

fn mask() -> Arc<Redactor> {
    Arc::new(Redactor::new([SECRET.to_owned()]))
}

#[tokio::test]
async fn an_error_tells_no_secret_and_a_result_is_left_alone() {
    let error = format!(
        "{{\"id\":ID,\"error\":{{\"code\":\"{SECRET}\",\"message\":\"no {SECRET}\",\"data\":{{\"is\":\"{SECRET}\"}}}}}}\n"
    );
    let Err(RequestError::Protocol(read)) = answered(error.as_bytes()).await else {
        panic!("the call fails");
    };
    assert_eq!(
        (read.code.as_str(), read.message.as_str()),
        ("***", "no ***")
    );
    assert_eq!(read.data.as_deref(), Some(r#"{"is":"***"}"#));
    let result = format!("{{\"id\":ID,\"result\":\"{SECRET}\"}}\n");
    check(&answered(result.as_bytes()).await, &format!("\"{SECRET}\""));
}

#[tokio::test]
async fn calls_in_flight_fail_at_once_when_the_server_ends() {
    let mut peer = FakeServer::new();
    let calls = [peer.call(), peer.call()];
    peer.read_id().await;
    peer.read_id().await;
    peer.write(b"{\"id\":1000000000,\"resu").await;
    peer.answers.shutdown().await.unwrap();
    for call in calls {
        assert!(matches!(call.await.unwrap(), Err(RequestError::Lost(_))));
    }
    assert!(matches!(
        peer.call().await.unwrap(),
        Err(RequestError::Unsent)
    ));
}

#[tokio::test]
async fn a_dropped_call_is_cancelled_and_its_late_answer_harms_nobody() {
    let mut peer = FakeServer::new();
    let dropped = peer.call();
    let id = peer.read_id().await;
    dropped.abort();
    let notice = peer.read().await;
    assert_eq!(notice["method"], "notifications/cancelled");
    assert_eq!(notice["params"]["requestId"], id);

    let call = peer.call();
    let next = peer.read_id().await;
    let both = format!("{{\"id\":{id},\"result\":\"late\"}}\n{{\"id\":{next},\"result\":1}}\n");
    peer.write(both.as_bytes()).await;
    check(&call.await.unwrap(), "1");
    assert_eq!(peer.channel.pending.by_id.len(), 0);
}

#[tokio::test]
async fn progress_goes_to_its_call_and_the_rest_to_rmcp() {
    let mut peer = FakeServer::new();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let sink: ProgressSink = {
        let seen = Arc::clone(&seen);
        Arc::new(move |params: &RawValue| seen.lock().push(params.get().to_owned()))
    };
    let channel = Arc::clone(&peer.channel);
    let params = |_| vec![Bytes::from_static(b"{}")];
    let call = tokio::spawn(async move { channel.request("x", params, hears(sink)).await });
    let id = peer.read_id().await;
    let ours = format!(r#"{{"progressToken":{id},"progress":1}}"#);
    let ping = r#"{"jsonrpc":"2.0","id":0,"method":"ping"}"#;
    let lines = format!(
        "{{\"method\":\"notifications/progress\",\"params\":{ours}}}\n{ping}\n{{\"id\":{id},\"result\":1}}\n"
    );
    peer.write(lines.as_bytes()).await;
    check(&call.await.unwrap(), "1");
    assert_eq!(*seen.lock(), [ours]);
    assert_eq!(*peer.left.0.lock(), [ping]);
}
