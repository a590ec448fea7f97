//! Servers of the HTTP+SSE transport.

use std::sync::Arc;

use jsonrpc::mcp::{Revision, Transport};
use parking_lot::Mutex;
use serde_json::json;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::{
    CHANGED, FakeResponse, FakeWebServer, ODD, Opening, SECRET, SeenRequest, answer, check, fleet,
    fleet_that_spoke, open, open_with, play, request,
};
use crate::{
    CallServers, Lifecycle, ListServers, ProgressSink, Request, error::RequestError,
    wire::HandshakeError,
};

/// More events than any test has the server send at once.
const EVENTS_MAX: usize = 16;

/// A server with one stream, on which it responds to every POST.
#[derive(Clone, Default)]
pub(super) struct Old {
    stream: Arc<Mutex<Option<mpsc::Sender<String>>>>,
}

impl Old {
    pub(super) fn play(&self, asked: &SeenRequest) -> FakeResponse {
        match (asked.method.as_str(), asked.path.as_str()) {
            ("GET", _) => {
                let (sender, later) = mpsc::channel(EVENTS_MAX);
                *self.stream.lock() = Some(sender);
                let endpoint = "event: endpoint\r\ndata: /post?session=1\r\n\r\n".to_owned();
                FakeResponse::Events(vec![endpoint], later)
            }
            ("POST", "/post?session=1") => {
                self.answer(asked);
                FakeResponse::text(202, "Accepted")
            }
            _ => FakeResponse::text(404, "Cannot POST /"),
        }
    }

    fn answer(&self, asked: &SeenRequest) {
        match asked.what() {
            "initialize" => {
                if let FakeResponse::Whole { body, .. } = play(asked) {
                    self.say(&body.replace("2025-11-25", requested(asked)));
                }
            }
            "tools/call" | "tools/list" => self.say(&answer(asked, ODD)),
            _ => {}
        }
    }

    fn say(&self, message: &str) {
        let stream = self.stream.lock();
        let text = format!("event: message\r\ndata: {message}\r\n\r\n");
        // The client may have disconnected, which the server ignores.
        let _ = stream.as_ref().unwrap().try_send(text);
    }

    fn hang_up(&self) {
        *self.stream.lock() = None;
    }
}

/// Returns the revision that `initialize` requests.
fn requested(asked: &SeenRequest) -> &str {
    asked.body["params"]["protocolVersion"]
        .as_str()
        .unwrap_or_default()
}

async fn start(old: &Old) -> FakeWebServer {
    let old = old.clone();
    FakeWebServer::start(move |asked| old.play(asked)).await
}

#[tokio::test]
async fn an_older_server_is_found_served_byte_for_byte_and_remembered() {
    let old = Old::default();
    let web = start(&old).await;
    for (path, opening, first) in [
        ("/mcp", Opening::Handshake, ["initialize", "GET"].as_slice()),
        ("/mcp", Opening::Sse, &["GET", "initialize"]),
        ("/v1/sse", Opening::Stateless, &["GET", "initialize"]),
    ] {
        let before = web.seen().len();
        let (remote, about) = open(&web.url(path), opening).await.unwrap();
        assert_eq!(about.name.as_deref(), Some("web"));
        // The next connection can open the server with the recorded transport.
        assert_eq!(about.spoken.transport, Transport::Sse);
        check(&remote.call(&request("t")).await, ODD);
        check(&remote.list("tools/list", None).await, ODD);
        assert_eq!(web.whats()[before..before + 2], *first, "{path}");
        remote.close().await;
        remote.ended().await;
    }
    for asked in web.seen() {
        let authorization = format!("Bearer {SECRET}");
        assert_eq!(asked.header("authorization"), Some(authorization.as_str()));
        assert_eq!(asked.header("x-team"), Some("blue"), "{}", asked.what());
    }
}

#[tokio::test]
async fn a_modern_guess_about_an_older_server_is_a_wrong_revision() {
    let web = start(&Old::default()).await;
    let opened = open(&web.url("/mcp"), Opening::Stateless).await;
    assert!(
        matches!(opened, Err(HandshakeError::WrongRevision(_))),
        "{opened:?}"
    );
}

#[tokio::test]
async fn a_modern_server_that_refuses_the_legacy_opening_is_a_wrong_revision() {
    let error = r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32601,"message":"no initialize"}}"#;
    for status in [200, 400, 404] {
        let web = FakeWebServer::start(move |asked| match asked.what() {
            "initialize" => FakeResponse::text(status, error),
            _ => play(asked),
        })
        .await;
        let opened = open(&web.url("/mcp"), Opening::Handshake).await;
        assert!(
            matches!(opened, Err(HandshakeError::WrongRevision(_))),
            "{opened:?}"
        );
    }
}

#[tokio::test]
async fn a_streamable_server_at_an_address_that_looks_older_is_served() {
    let web = FakeWebServer::start(|asked| match asked.what() {
        "tools/call" => FakeResponse::result(asked, ODD),
        _ => play(asked),
    })
    .await;
    let (remote, _) = open(&web.url("/sse"), Opening::Handshake).await.unwrap();
    check(&remote.call(&request("t")).await, ODD);
}

#[tokio::test]
async fn progress_and_changes_of_the_list_come_through_the_stream() {
    let old = Old::default();
    let web = {
        let old = old.clone();
        FakeWebServer::start(move |asked| {
            if asked.what() == "tools/call" {
                let token = &asked.body["params"]["_meta"]["progressToken"];
                old.say(&format!(
                    r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":{token},"progress":1}}}}"#
                ));
                old.say(CHANGED);
            }
            old.play(asked)
        })
        .await
    };
    let changes = Arc::default();
    let (remote, _) = open_with(&web.url("/sse"), Opening::Handshake, &changes)
        .await
        .unwrap();
    let heard = Arc::new(Mutex::new(0));
    let sink: ProgressSink = {
        let heard = Arc::clone(&heard);
        Arc::new(move |_| *heard.lock() += 1)
    };
    let call = Request {
        progress: Some(sink),
        ..request("t")
    };
    check(&remote.call(&call).await, ODD);
    assert_eq!(*heard.lock(), 1);
    changes.next().await;
}

#[tokio::test]
async fn calls_in_flight_fail_at_once_when_the_stream_ends() {
    let old = Old::default();
    let web = {
        let old = old.clone();
        FakeWebServer::start(move |asked| match asked.what() {
            "tools/call" => FakeResponse::status(202),
            _ => old.play(asked),
        })
        .await
    };
    let (remote, _) = open(&web.url("/sse"), Opening::Handshake).await.unwrap();
    let call = request("t");
    let hang_up = async {
        web.until("tools/call").await;
        old.hang_up();
    };
    let (answer, ()) = tokio::join!(remote.call(&call), hang_up);
    assert!(matches!(answer, Err(RequestError::Lost(_))), "{answer:?}");
    remote.ended().await;
}

#[tokio::test]
async fn a_server_that_hung_up_between_two_calls_answers_the_next() {
    let old = Old::default();
    let web = start(&old).await;
    let (fleet, name) = fleet(&web.url("/sse"));
    let never = CancellationToken::new();
    for starts in 1..=2 {
        let answer = fleet.call(&name, &request("t"), &never).await;
        assert_eq!(answer.unwrap().as_str(), ODD);
        assert_eq!(fleet.states()[0].starts, starts);
        old.hang_up();
        while fleet.states()[0].starts == starts {
            tokio::task::yield_now().await;
        }
    }
    fleet.stop().await;
}

#[tokio::test]
async fn a_call_that_is_given_up_is_cancelled_though_its_post_hangs() {
    let old = Old::default();
    let web = FakeWebServer::start(move |asked| match asked.what() {
        "tools/call" => FakeResponse::Hang,
        _ => old.play(asked),
    })
    .await;
    let (remote, _) = open(&web.url("/sse"), Opening::Handshake).await.unwrap();
    let remote = Arc::new(remote);
    let call = tokio::spawn({
        let remote = Arc::clone(&remote);
        async move { remote.call(&request("t")).await }
    });
    let asked = web.until("tools/call").await;
    call.abort();
    let cancelled = web.until("notifications/cancelled").await;
    assert_eq!(cancelled.body["params"]["requestId"], *asked.id());
}

#[tokio::test]
async fn a_refused_post_fails_its_call_and_a_denied_one_the_connection() {
    let old = Old::default();
    let web = FakeWebServer::start(move |asked| match asked.what() {
        "tools/call" => FakeResponse::text(500, SECRET),
        "tools/list" => FakeResponse::status(401),
        _ => old.play(asked),
    })
    .await;
    let (remote, _) = open(&web.url("/sse"), Opening::Handshake).await.unwrap();
    let Err(RequestError::Protocol(error)) = remote.call(&request("t")).await else {
        panic!("expected a protocol error");
    };
    assert_eq!(error.message, "HTTP 500 Internal Server Error: ***");
    assert!(!remote.has_ended());

    let listed = remote.list("tools/list", None).await;
    assert!(matches!(listed, Err(RequestError::Lost(_))), "{listed:?}");
    remote.ended().await;
    let denied = remote.denied().expect("the server denied access");
    assert_eq!(denied.why, "HTTP 401 Unauthorized");
    assert!(denied.is_unknown);
}

#[tokio::test]
async fn an_older_server_is_refused_where_it_points_elsewhere_or_denies_us() {
    let elsewhere = FakeWebServer::start(play).await;
    let endpoint = format!("event: endpoint\ndata: {}\n\n", elsewhere.url("/post"));
    let web = FakeWebServer::start(move |_| FakeResponse::events([endpoint.clone()])).await;
    let opened = open(&web.url("/sse"), Opening::Handshake).await;
    let Err(HandshakeError::Other(why)) = opened else {
        panic!("{opened:?} must not be followed");
    };
    let other = elsewhere.url("");
    assert_eq!(why, format!("its `endpoint` is at another origin, {other}"));
    assert!(elsewhere.seen().is_empty());

    let web = FakeWebServer::start(|_| FakeResponse::text(401, SECRET)).await;
    let opened = open(&web.url("/sse"), Opening::Handshake).await;
    assert!(
        matches!(&opened, Err(HandshakeError::Denied(denied)) if denied.why == "HTTP 401 Unauthorized: ***"),
        "{opened:?}"
    );
    assert_eq!(web.seen().len(), 1);
}

/// A server, over streamable HTTP or HTTP+SSE, that refuses every revision but one with a bare HTTP 400.
async fn start_strict(old: &Old, is_sse: bool, revision: Revision) -> FakeWebServer {
    let old = old.clone();
    FakeWebServer::start(move |asked| {
        let is_other = requested(asked) != revision.as_str();
        match asked.what() {
            "initialize" if is_other => FakeResponse::text(400, "Unsupported protocol version"),
            "initialize" if !is_sse => {
                let result = json!({"protocolVersion": revision.as_str(), "capabilities": {},
                    "serverInfo": {"name": "web", "version": "1"}});
                FakeResponse::result(asked, &result.to_string())
            }
            "tools/call" if !is_sse => FakeResponse::result(asked, ODD),
            "server/discover" => FakeResponse::status(400),
            _ if is_sse => old.play(asked),
            _ => play(asked),
        }
    })
    .await
}

#[tokio::test]
async fn a_server_that_refuses_a_newer_revision_with_http_400_is_opened_in_an_older_one() {
    for (is_sse, path) in [(false, "/mcp"), (true, "/mcp"), (true, "/sse")] {
        for revision in Revision::KNOWN.iter().filter(|it| !it.is_stateless()) {
            let web = start_strict(&Old::default(), is_sse, revision.clone()).await;
            for spoken in [None, Some(Opening::Handshake), Some(Opening::Stateless)] {
                let spoken = spoken.map(Opening::guess);
                let (fleet, name) = fleet_that_spoke(&web.url(path), spoken.clone());
                let never = CancellationToken::new();
                let answer = fleet.call(&name, &request("t"), &never).await;
                let answer =
                    answer.unwrap_or_else(|error| panic!("{revision} {spoken:?}: {error}"));
                assert_eq!(answer.as_str(), ODD, "{revision} {path} {spoken:?}");
                fleet.stop().await;
            }
        }
    }
}

#[tokio::test]
async fn a_server_that_refuses_every_revision_says_why_and_is_asked_for_each_once() {
    let refuse = |_: &SeenRequest| FakeResponse::text(400, "no tenant");
    let web = FakeWebServer::start(refuse).await;
    let (fleet, name) = fleet(&web.url("/mcp"));
    let never = CancellationToken::new();
    let error = fleet.call(&name, &request("t"), &never).await.unwrap_err();
    let said = error.to_string();
    assert!(said.contains("HTTP 400 Bad Request: no tenant"), "{said}");
    let initializes = web
        .seen()
        .into_iter()
        .filter(|it| it.what() == "initialize");
    let revisions: Vec<_> = initializes.map(|it| requested(&it).to_owned()).collect();
    assert_eq!(
        revisions,
        ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"]
    );
    fleet.stop().await;
}

#[tokio::test]
async fn events_before_the_endpoint_do_not_hide_it() {
    let old = Old::default();
    let web = FakeWebServer::start(move |asked| match old.play(asked) {
        FakeResponse::Events(mut first, later) => {
            first.insert(0, "event: ping\ndata: 1\n\n".to_owned());
            FakeResponse::Events(first, later)
        }
        other => other,
    })
    .await;
    let (remote, _) = open(&web.url("/sse"), Opening::Sse).await.unwrap();
    check(&remote.call(&request("t")).await, ODD);
}
