mod failures;
mod older;
mod web;

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use jsonrpc::mcp::{Revision, Transport};
use jsonrpc::{Json, Message, json as text};
use parking_lot::Mutex;
use serde_json::{Value, json, value::RawValue};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use self::web::{FakeResponse, FakeWebServer, SeenRequest, answer, event};
use super::{Site, open_remote};
use crate::{
    CallServers, Fleet, Launch, Lifecycle, ListServers, LogSink, ProgressSink, Request, ServerInfo,
    ServerSpec, Spoken, Surroundings, Template,
    asking::Asking,
    changes::Changes,
    connection::Connection,
    error::RequestError,
    limits::LIST_BYTES_MAX,
    question::fake::client,
    roots::Roots,
    wire::{AddressSource, HandshakeError},
};

const SECRET: &str = "s3cr3t-t0k3n";

/// A result with members unknown to rmcp, unusual numbers, and white space.
const ODD: &str = r#"{ "content":[{"type":"hologram","n":1.0,"big":1e400}], "zeta": 1, "alpha":{"x" : []},"resultType":"complete" }"#;

/// The assumption about a server's protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Opening {
    Sse,
    Handshake,
    Stateless,
}

impl Opening {
    fn guess(self) -> Spoken {
        let (revision, transport) = match self {
            Self::Sse => (Revision::LAST_WITH_HANDSHAKE, Transport::Sse),
            Self::Handshake => (Revision::LAST_WITH_HANDSHAKE, Transport::StreamableHttp),
            Self::Stateless => (Revision::FIRST_STATELESS, Transport::StreamableHttp),
        };
        Spoken {
            revision,
            transport,
        }
    }
}

async fn open(
    url: &str,
    opening: Opening,
) -> Result<(Box<dyn Connection>, ServerInfo), HandshakeError> {
    open_with(url, opening, &Arc::default()).await
}

async fn open_with(
    url: &str,
    opening: Opening,
    changes: &Arc<Changes>,
) -> Result<(Box<dyn Connection>, ServerInfo), HandshakeError> {
    let headers = [
        ("Authorization", format!("Bearer {SECRET}")),
        ("X-Team", "blue".to_owned()),
    ];
    let headers = headers.iter();
    let headers =
        headers.map(|(name, value)| ((*name).to_owned(), Template::parse(value).unwrap()));
    let source = AddressSource {
        url: Template::parse(url).unwrap(),
        headers: headers.collect(),
        variables: crate::Variables::default(),
        resolver: None,
        has_printed: false,
    };
    let site = Site::read(source, None, None);
    let site = site.map_err(HandshakeError::Other)?;
    let name = "web".parse().unwrap();
    let asking = Asking::new(&name, Arc::clone(changes), Roots::default(), Arc::default());
    open_remote(site, &opening.guess(), &Arc::new(asking)).await
}

fn request(tool: &str) -> Request {
    request_with(tool, r#"{"n":1.0}"#)
}

fn request_with(tool: &str, arguments: &str) -> Request {
    Request {
        meta: vec![(
            "traceparent".to_owned(),
            text(r#""00-ab-01""#.to_owned()).unwrap(),
        )],
        ..Request::call_tool(tool, text(arguments.to_owned()).unwrap())
    }
}

/// Creates a fleet of one remote server.
fn fleet(url: &str) -> (Fleet, tool::ServerName) {
    fleet_in(url, Vec::new(), Surroundings::default())
}

fn fleet_in(
    url: &str,
    headers: Vec<(String, Template)>,
    surroundings: Surroundings,
) -> (Fleet, tool::ServerName) {
    let spoken = Some(Opening::Handshake.guess());
    fleet_with(url, headers, surroundings, spoken)
}

/// Creates a fleet of one remote server whose last connection spoke this protocol.
fn fleet_that_spoke(url: &str, spoken: Option<Spoken>) -> (Fleet, tool::ServerName) {
    fleet_with(url, Vec::new(), Surroundings::default(), spoken)
}

fn fleet_with(
    url: &str,
    headers: Vec<(String, Template)>,
    surroundings: Surroundings,
    spoken: Option<Spoken>,
) -> (Fleet, tool::ServerName) {
    let name: tool::ServerName = "web".parse().unwrap();
    let launch = Launch::Remote {
        url: Template::parse(url).unwrap(),
        headers,
    };
    let spec = ServerSpec {
        spoken,
        ..ServerSpec::new(name.clone(), launch)
    };
    (Fleet::new(vec![spec], surroundings), name)
}

/// Responds to every request that is not about tools.
fn play(asked: &SeenRequest) -> FakeResponse {
    match asked.what() {
        "initialize" => {
            let result = json!({
                "protocolVersion": "2025-11-25",
                "capabilities": {"tools": {"listChanged": true}},
                "serverInfo": {"name": "web", "version": "1"},
            });
            FakeResponse::result(asked, &result.to_string()).with("mcp-session-id", "one")
        }
        "server/discover" => {
            let result = json!({
                "resultType": "complete",
                "supportedVersions": ["2026-07-28"],
                "capabilities": {"tools": {"listChanged": true}},
                "ttlMs": 0,
                "cacheScope": "private",
            });
            FakeResponse::result(asked, &result.to_string())
        }
        "GET" | "subscriptions/listen" => FakeResponse::status(405),
        "DELETE" => FakeResponse::status(200),
        _ => FakeResponse::status(202),
    }
}

fn check(answer: &Result<Json, RequestError>, expected: &str) {
    assert_eq!(
        answer.as_ref().expect("the call succeeds").as_str(),
        expected
    );
}

fn failed(answer: Result<Json, RequestError>) -> String {
    match answer {
        Err(RequestError::Failed(why)) => why,
        other => panic!("{other:?} is not an HTTP failure"),
    }
}

#[tokio::test]
async fn answers_come_back_byte_for_byte_in_both_revisions_and_both_forms() {
    for opening in [Opening::Handshake, Opening::Stateless] {
        for is_stream in [false, true] {
            let web = FakeWebServer::start(move |asked| match asked.what() {
                "tools/call" | "tools/list" if is_stream => {
                    FakeResponse::events([": ping\n\n".to_owned(), event(&answer(asked, ODD))])
                }
                "tools/call" | "tools/list" => FakeResponse::result(asked, ODD),
                _ => play(asked),
            })
            .await;
            let (remote, about) = open(&web.url("/mcp"), opening).await.unwrap();
            assert_eq!(about.spoken, opening.guess());
            check(&remote.call(&request("t")).await, ODD);
            check(&remote.list("tools/list", Some("c")).await, ODD);

            let call = web.until("tools/call").await;
            assert_eq!(call.body["params"]["arguments"]["n"], json!(1.0));
            assert_eq!(call.body["params"]["_meta"]["traceparent"], "00-ab-01");
            assert_eq!(web.until("tools/list").await.body["params"]["cursor"], "c");
            remote.close().await;
            for asked in web.seen() {
                let authorization = format!("Bearer {SECRET}");
                assert_eq!(asked.header("authorization"), Some(authorization.as_str()));
                assert_eq!(asked.header("x-team"), Some("blue"), "{}", asked.what());
            }
        }
    }
}

#[tokio::test]
async fn an_argument_marked_so_travels_as_a_header_as_well() {
    let list = r#"{"tools":[{"name":"t","description":"d","inputSchema":{"type":"object","properties":{"n":{"type":"string","x-mcp-header":"Region"}}}},{"name":"plain","inputSchema":{"type":"object"}}]}"#;
    let mismatch = r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32020,"message":"no Region"}}"#;
    let web = FakeWebServer::start(move |asked| match asked.what() {
        "tools/list" => FakeResponse::result(asked, list),
        "tools/call" if asked.header("mcp-param-region").is_none() => {
            FakeResponse::text(400, mismatch)
        }
        "tools/call" => FakeResponse::result(asked, "{}"),
        _ => play(asked),
    })
    .await;
    let (remote, _) = open(&web.url("/mcp"), Opening::Stateless).await.unwrap();
    let call = request_with("t", r#"{"n":"eu"}"#);
    check(&remote.call(&call).await, "{}");
    check(&remote.list("tools/list", None).await, list);
    let is_right = |asked: &SeenRequest| asked.header("mcp-param-region") == Some("eu");
    let call = web.until_one(is_right).await;
    assert_eq!(call.header("mcp-name"), Some("t"));
    let plain = remote.call(&request("plain")).await;
    assert!(matches!(plain, Err(RequestError::Protocol(_))), "{plain:?}");
    let whats = web.whats();
    let lists = whats.iter().filter(|what| *what == "tools/list").count();
    assert_eq!(lists, 2, "read once for the headers, once for the caller");
}

#[tokio::test]
async fn a_tool_that_is_known_to_take_headers_gets_them_with_its_first_call() {
    let list = r#"{"tools":[{"name":"t","inputSchema":{"type":"object","properties":{"n":{"type":"string","x-mcp-header":"Region"}}}}]}"#;
    let web = FakeWebServer::start(move |asked| match asked.what() {
        "tools/list" => FakeResponse::result(asked, list),
        "tools/call" => FakeResponse::result(asked, "{}"),
        _ => play(asked),
    })
    .await;
    let (remote, _) = open(&web.url("/mcp"), Opening::Stateless).await.unwrap();
    for _ in 0..2 {
        let call = Request {
            header_arguments: vec![("Region".to_owned(), "eu".to_owned())],
            ..request_with("t", r#"{"n":"eu"}"#)
        };
        check(&remote.call(&call).await, "{}");
    }
    let calls = web
        .seen()
        .into_iter()
        .filter(|it| it.what() == "tools/call");
    let headers: Vec<_> = calls
        .map(|it| it.header("mcp-param-region").map(str::to_owned))
        .collect();
    assert_eq!(headers, [Some("eu".to_owned()), Some("eu".to_owned())]);
    let lists = web
        .whats()
        .iter()
        .filter(|what| *what == "tools/list")
        .count();
    assert_eq!(lists, 0, "a known list is not requested");
}

#[tokio::test]
async fn progress_and_log_are_in_order_complete_and_end_with_the_answer() {
    let web = FakeWebServer::start(|asked| match asked.what() {
        "tools/call" => {
            let token = &asked.body["params"]["_meta"]["progressToken"];
            let progress = |n: usize| {
                event(&format!(
                    r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":{token},"progress":{n},"own":[1.0]}}}}"#
                ))
            };
            let log = event(r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"odd", "data":1.0}}"#);
            let answer = event(&answer(asked, "{}"));
            FakeResponse::events([progress(1), progress(2), log, progress(3), answer, progress(4)])
        }
        _ => play(asked),
    })
    .await;
    let (remote, _) = open(&web.url("/mcp"), Opening::Handshake).await.unwrap();
    let heard = Arc::new(Mutex::new(Vec::new()));
    let note = |heard: &Arc<Mutex<Vec<String>>>| -> ProgressSink {
        let heard = Arc::clone(heard);
        Arc::new(move |params: &RawValue| heard.lock().push(params.get().to_owned()))
    };
    let call = Request {
        progress: Some(note(&heard)),
        log: Some(LogSink {
            level: "info",
            session: 1,
            send: note(&heard),
        }),
        ..request("t")
    };
    check(&remote.call(&call).await, "{}");
    let token = web.until("tools/call").await.body["params"]["_meta"]["progressToken"].clone();
    let progress = |n| format!(r#"{{"progressToken":{token},"progress":{n},"own":[1.0]}}"#);
    let log = r#"{"level":"odd", "data":1.0}"#.to_owned();
    let expected = [progress(1), progress(2), log, progress(3)];
    assert_eq!(*heard.lock(), expected);
}

#[tokio::test]
async fn clients_of_both_eras_have_a_connection_each_and_hear_their_own_progress() {
    let web = FakeWebServer::start(|asked| match asked.what() {
        "tools/call" => {
            let token = &asked.body["params"]["_meta"]["progressToken"];
            let era = asked.header("mcp-session-id").map_or("new", |_| "old");
            let progress = json!({
                "jsonrpc": "2.0",
                "method": "notifications/progress",
                "params": {"progressToken": token, "progress": 1, "message": era},
            });
            let result = json!({"resultType": "complete", "era": era}).to_string();
            FakeResponse::events([event(&progress.to_string()), event(&answer(asked, &result))])
        }
        "tools/list" => FakeResponse::result(asked, r#"{"resultType":"complete","tools":[]}"#),
        _ => play(asked),
    })
    .await;
    let name: tool::ServerName = "web".parse().unwrap();
    let launch = Launch::Remote {
        url: Template::parse(&web.url("/mcp")).unwrap(),
        headers: Vec::new(),
    };
    let spec = ServerSpec::new(name.clone(), launch);
    let fleet = Fleet::new(vec![spec], Surroundings::default());
    // The survey determines the eras that the server speaks.
    let survey = fleet.survey(&name).await.unwrap();
    assert!(survey.about.spoken.revision.is_stateless());
    let call = async |takes_rounds: bool, era: &str| {
        let heard = Arc::new(Mutex::new(Vec::new()));
        let note = Arc::clone(&heard);
        let hear = move |params: &RawValue| note.lock().push(params.get().to_owned());
        let call = Request {
            asks: Some(client(takes_rounds)),
            progress: Some(Arc::new(hear)),
            ..request("t")
        };
        for times in 1..=3 {
            let never = CancellationToken::new();
            let answer = fleet.call(&name, &call, &never).await.unwrap();
            assert!(answer.as_str().contains(era), "{}", answer.as_str());
            let heard = heard.lock();
            let is_own = |it: &String| it.contains(era);
            assert!(
                heard.len() == times && heard.iter().all(is_own),
                "{heard:?}"
            );
        }
    };
    tokio::join!(call(false, "\"old\""), call(true, "\"new\""));
    let shakes = web.whats().into_iter().filter(|it| it == "initialize");
    assert_eq!((shakes.count(), fleet.states().len()), (1, 2));
    fleet.stop().await;
}

const CHANGED: &str = r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#;

#[tokio::test]
async fn a_changed_list_is_told_on_the_stream_of_the_session() {
    let web = FakeWebServer::start(|asked| match asked.what() {
        "GET" => FakeResponse::events([event(CHANGED)]),
        _ => play(asked),
    })
    .await;
    let changes = Arc::default();
    let _open = open_with(&web.url("/mcp"), Opening::Handshake, &changes)
        .await
        .unwrap();
    changes.next().await;
}

/// Returns the acknowledgement of a subscription, and a change notification on it.
fn subscribed(id: &Value) -> [String; 2] {
    let meta = json!({"io.modelcontextprotocol/subscriptionId": id});
    let message = |method: &str, params: Value| {
        json!({"jsonrpc": "2.0", "method": method, "params": params}).to_string()
    };
    let filter = json!({"toolsListChanged": true});
    [
        message(
            "notifications/subscriptions/acknowledged",
            json!({"_meta": meta, "notifications": filter}),
        ),
        message("notifications/tools/list_changed", json!({"_meta": meta})),
    ]
}

#[tokio::test]
async fn a_modern_server_is_asked_to_tell_of_a_changed_list_and_again_after_a_break() {
    let web = FakeWebServer::start(|asked| match asked.what() {
        "subscriptions/listen" => {
            FakeResponse::events(subscribed(asked.id()).map(|text| event(&text)))
        }
        _ => play(asked),
    })
    .await;
    let changes = Arc::default();
    let _open = open_with(&web.url("/mcp"), Opening::Stateless, &changes)
        .await
        .unwrap();
    changes.next().await;
    let listens = |web: &FakeWebServer| {
        let whats = web.whats();
        whats
            .iter()
            .filter(|what| *what == "subscriptions/listen")
            .count()
    };
    // The stream ended after its first change, and is opened again.
    while listens(&web) < 2 {
        changes.next().await;
    }
}

#[tokio::test]
async fn a_stream_that_breaks_under_a_call_is_taken_up_again() {
    let asked_twice = Arc::new(Mutex::new(None));
    let web = FakeWebServer::start(move |asked| match asked.what() {
        "tools/call" => {
            *asked_twice.lock() = Some(asked.clone());
            FakeResponse::events(["id: 7\nretry: 1\ndata: \n\n".to_owned()])
        }
        "GET" if asked.header("last-event-id") == Some("7") => {
            let call = asked_twice.lock().clone().unwrap();
            FakeResponse::events([event(&answer(&call, ODD))])
        }
        _ => play(asked),
    })
    .await;
    let (remote, _) = open(&web.url("/mcp"), Opening::Handshake).await.unwrap();
    check(&remote.call(&request("t")).await, ODD);
}

#[tokio::test]
async fn a_response_over_the_limit_ends_its_request_on_its_first_stream_and_on_a_resumed_one() {
    let long = || format!(r#"{{"x":"{}"}}"#, "x".repeat(LIST_BYTES_MAX));
    for is_resumed in [false, true] {
        let first = Arc::new(Mutex::new(None));
        let web = FakeWebServer::start(move |asked| match asked.what() {
            "tools/list" | "tools/call" => {
                *first.lock() = Some(asked.clone());
                let whole = event(&answer(asked, &long()));
                let data = if is_resumed { "data: \n\n" } else { &whole };
                FakeResponse::events([format!("id: 7\nretry: 1\n{data}")])
            }
            "GET" if asked.header("last-event-id") == Some("7") => {
                let asked = first.lock().clone().unwrap();
                FakeResponse::events([format!("id: 8\n{}", event(&answer(&asked, &long())))])
            }
            _ => play(asked),
        })
        .await;
        let (remote, _) = open(&web.url("/mcp"), Opening::Handshake).await.unwrap();
        assert_eq!(
            failed(remote.list("tools/list", None).await),
            format!("its response is one event of more than {LIST_BYTES_MAX} bytes")
        );
        // The limit of a call is higher.
        check(&remote.call(&request("t")).await, &long());
        let seen = web.seen();
        let is_resuming = |asked: &&SeenRequest| asked.header("last-event-id").is_some();
        let resumed = seen.iter().filter(is_resuming).count();
        assert_eq!(resumed, if is_resumed { 2 } else { 0 });
    }
}

#[tokio::test]
async fn a_call_that_is_given_up_is_cancelled_at_the_server() {
    for opening in [Opening::Handshake, Opening::Stateless] {
        let open_streams = Arc::new(Mutex::new(Vec::new()));
        let streams = Arc::clone(&open_streams);
        let web = FakeWebServer::start(move |asked| match asked.what() {
            "tools/call" if opening == Opening::Handshake => FakeResponse::Hang,
            "tools/call" => {
                let (sender, later) = mpsc::channel(1);
                streams.lock().push(sender);
                FakeResponse::Events(vec![": open\n\n".to_owned()], later)
            }
            _ => play(asked),
        })
        .await;
        let (remote, _) = open(&web.url("/mcp"), opening).await.unwrap();
        let call = tokio::spawn({
            let remote = Arc::new(remote);
            let held = Arc::clone(&remote);
            async move { (held.call(&request("t")).await, remote) }
        });
        let asked = web.until("tools/call").await;
        call.abort();
        match opening {
            Opening::Sse | Opening::Handshake => {
                let cancelled = web.until("notifications/cancelled").await;
                assert_eq!(cancelled.body["params"]["requestId"], *asked.id());
            }
            // The closed stream has the same meaning.
            Opening::Stateless => {
                let stream = open_streams.lock().remove(0);
                while stream.send(": are you there\n\n".to_owned()).await.is_ok() {}
            }
        }
    }
}

#[tokio::test]
async fn a_server_that_lost_its_sessions_gets_a_new_one_and_the_same_call() {
    let forgets = [
        (404, ""),
        (400, "Bad Request: No valid session ID provided"),
    ];
    for (status, text) in forgets {
        let calls = AtomicUsize::new(0);
        let web = FakeWebServer::start(move |asked| match asked.what() {
            "tools/call" if calls.fetch_add(1, Ordering::SeqCst) == 0 => {
                FakeResponse::text(status, text)
            }
            "tools/call" => FakeResponse::result(asked, ODD),
            _ => play(asked),
        })
        .await;
        let (remote, _) = open(&web.url("/mcp"), Opening::Handshake).await.unwrap();
        check(&remote.call(&request("t")).await, ODD);
        let whats = web.whats();
        let handshakes = whats.iter().filter(|what| *what == "initialize").count();
        assert_eq!(handshakes, 2, "{whats:?}");
    }
}

#[tokio::test]
async fn a_server_that_restarts_between_two_calls_answers_the_next() {
    let cases =
        [Opening::Handshake, Opening::Stateless].map(|opening| [(opening, false), (opening, true)]);
    for (opening, is_called_meanwhile) in cases.into_iter().flatten() {
        let life = |name: &'static str| {
            move |asked: &SeenRequest| match asked.what() {
                "initialize" => play(asked).with("mcp-session-id", name),
                "tools/call"
                    if opening == Opening::Handshake
                        && asked.header("mcp-session-id") != Some(name) =>
                {
                    FakeResponse::status(404)
                }
                "tools/call" => FakeResponse::result(asked, ODD),
                _ => play(asked),
            }
        };
        let first = FakeWebServer::start(life("first")).await;
        let (remote, _) = open(&first.url("/mcp"), opening).await.unwrap();
        check(&remote.call(&request("t")).await, ODD);
        let address = first.address;
        first.stop().await;
        if is_called_meanwhile {
            match remote.call(&request("t")).await {
                Err(RequestError::Unreached(why)) => assert!(why.contains("refused"), "{why}"),
                other => panic!("{other:?}"),
            }
        }
        let _second = FakeWebServer::at(address, life("second")).await;
        check(&remote.call(&request("t")).await, ODD);
    }
}

#[tokio::test]
async fn arguments_reach_a_server_as_the_client_spelled_them() {
    // No member of these can be a `serde_json::Value` without a change.
    const SPELLED: &str = r#"{ "big":18446744073709551617123, "deep":{"huge":[1e400],"tail":"a \ud83d"},"one":1.0,"zero":-0, "n":1E2 }"#;
    for opening in [Opening::Sse, Opening::Handshake, Opening::Stateless] {
        let (sender, events) = mpsc::channel(4);
        let (sender, events) = (Mutex::new(sender), Mutex::new(Some(events)));
        let web = FakeWebServer::start(move |asked| {
            if asked.method == "GET" && opening == Opening::Sse {
                let endpoint = "event: endpoint\ndata: /messages\n\n".to_owned();
                let events = events.lock().take().unwrap();
                return FakeResponse::Events(vec![endpoint], events);
            }
            let message = Message::parse(asked.text.as_bytes());
            let Some(id) = message.and_then(|message| message.id) else {
                return FakeResponse::status(202);
            };
            let reply = if asked.text.contains("tools/call") {
                FakeResponse::json(format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{ODD}}}"#))
            } else {
                play(asked)
            };
            match (opening, reply) {
                (Opening::Sse, FakeResponse::Whole { body, .. }) => {
                    let _ = sender.lock().try_send(event(&body));
                    FakeResponse::status(202)
                }
                (_, reply) => reply,
            }
        })
        .await;
        let (remote, _) = open(&web.url("/mcp"), opening).await.unwrap();
        let mut request = request_with("t", SPELLED);
        request
            .meta
            .push(("of/client".to_owned(), text("[1e400]".to_owned()).unwrap()));
        check(&remote.call(&request).await, ODD);

        let seen = web.seen();
        let call = seen.iter().find(|asked| asked.text.contains("tools/call"));
        let call = &call.unwrap().text;
        assert!(
            call.contains(&format!(r#""arguments":{SPELLED}"#)),
            "{call}"
        );
        assert!(call.contains(r#""of/client":[1e400]"#), "{call}");
    }
}

#[tokio::test]
async fn a_request_of_any_method_travels_as_it_is_with_its_headers() {
    let web = FakeWebServer::start(move |asked| match asked.what() {
        "prompts/get" => FakeResponse::result(asked, ODD),
        _ => play(asked),
    })
    .await;
    for opening in [Opening::Handshake, Opening::Stateless] {
        let (remote, _) = open(&web.url("/mcp"), opening).await.unwrap();
        let raw = |value: &str| text(value.to_owned()).unwrap();
        let params = vec![
            ("name".into(), raw(r#""é b""#)),
            ("arguments".into(), raw(r#"{"a":"1"}"#)),
        ];
        let request = Request {
            meta: request("t").meta,
            ..Request::new("prompts/get", params)
        };
        check(&remote.call(&request).await, ODD);
    }
    let name = Some("=?base64?w6kgYg==?=");
    let of_handshake = |asked: &SeenRequest| asked.header("mcp-session-id").is_some();
    web.until_one(|asked| of_handshake(asked) && asked.header("mcp-name") == name)
        .await;
    let is_modern = |asked: &SeenRequest| !of_handshake(asked) && asked.header("mcp-name") == name;
    let modern = web.until_one(is_modern).await;
    let params = &modern.body["params"];
    assert_eq!(
        (&params["name"], &params["arguments"]),
        (&json!("é b"), &json!({"a": "1"}))
    );
    let meta = &params["_meta"];
    assert_eq!(meta["traceparent"], "00-ab-01");
    assert_eq!(
        meta["io.modelcontextprotocol/protocolVersion"],
        "2026-07-28"
    );
}

/// Events that are no messages, and messages that are no answers: a client reads past all of them.
const NOISE: [&str; 5] = [
    "event: ping\ndata: 2026-07-28T00:00:00Z\n\n",
    "event: heartbeat\ndata: {\"alive\":true}\n\n",
    "data: not JSON\n\n",
    "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/of/its/own\",\"params\":{}}\n\n",
    "id: 1\ndata:\n\n",
];

#[tokio::test]
async fn events_before_the_answer_to_the_first_request_end_nothing() {
    for opening in [Opening::Handshake, Opening::Stateless] {
        for noise in NOISE {
            let web = FakeWebServer::start(move |asked| match (asked.what(), play(asked)) {
                (
                    "initialize" | "server/discover" | "tools/call",
                    FakeResponse::Whole { body, .. },
                ) => {
                    let body = match asked.what() {
                        "tools/call" => answer(asked, ODD),
                        _ => body,
                    };
                    FakeResponse::events([noise.to_owned(), event(&body)])
                }
                (_, reply) => reply,
            })
            .await;
            let opened = open(&web.url("/mcp"), opening).await;
            let (remote, _) = opened.unwrap_or_else(|error| panic!("{noise:?}: {error:?}"));
            check(&remote.call(&request("t")).await, ODD);
        }
    }
}

#[tokio::test]
async fn a_notification_is_accepted_with_any_success() {
    type Make = fn(&SeenRequest) -> FakeResponse;
    let replies: [Make; 5] = [
        |_| FakeResponse::events([]),
        |_| FakeResponse::events([event(CHANGED)]),
        |_| FakeResponse::status(200),
        |_| FakeResponse::json("{}"),
        |_| FakeResponse::text(204, ""),
    ];
    for reply in replies {
        let web = FakeWebServer::start(move |asked| match asked.what() {
            what if what.starts_with("notifications/") => reply(asked),
            "tools/call" => FakeResponse::result(asked, ODD),
            _ => play(asked),
        })
        .await;
        let (remote, _) = open(&web.url("/mcp"), Opening::Handshake).await.unwrap();
        check(&remote.call(&request("t")).await, ODD);
        remote.tell_roots_changed().await;
        check(&remote.call(&request("t")).await, ODD);
        assert!(!remote.has_ended());
    }
}
