//! Servers that refuse requests, and the resulting messages.

use std::{
    fs,
    path::Path,
    process::Command,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
};

use oauth::{Credential, RecordFile};
use secrets::PrivateFiles;
#[cfg(unix)]
use secrets::{Resolver, Store};
use serde_json::{Value, json};
use tokio::time::{advance, pause, resume};
use tokio_util::sync::CancellationToken;
#[cfg(unix)]
use tool::ServerName;

use super::{
    FakeResponse, FakeWebServer, ODD, Opening, SECRET, SeenRequest, answer, check, event, failed,
    fleet, fleet_in, open, play, request,
};
use crate::{
    CallError, CallServers, Lifecycle, ListServers, Ran, Surroundings, TIMEOUT_DEFAULT,
    error::{Denied, RequestError},
    obstacle::Obstacle,
    wire::HandshakeError,
};
#[cfg(unix)]
use crate::{Fleet, Template};

type Play = Box<dyn Fn(&SeenRequest) -> FakeResponse + Send + Sync>;

fn calls(
    reply: impl Fn(&SeenRequest) -> FakeResponse + Send + Sync + 'static,
) -> impl Fn(&SeenRequest) -> FakeResponse {
    move |asked| match asked.what() {
        "tools/call" => reply(asked),
        _ => play(asked),
    }
}

#[tokio::test]
async fn a_refused_call_names_the_status_and_when_to_come_back_and_no_secret() {
    let cases = [
        (
            429,
            "slow down",
            "HTTP 429 Too Many Requests, Retry-After: 7: slow down",
        ),
        (500, "", "HTTP 500 Internal Server Error, Retry-After: 7"),
        (
            503,
            "closed",
            "HTTP 503 Service Unavailable, Retry-After: 7: closed",
        ),
        (
            403,
            "not this tool",
            "HTTP 403 Forbidden, Retry-After: 7: not this tool",
        ),
        (400, SECRET, "HTTP 400 Bad Request, Retry-After: 7: ***"),
    ];
    for (status, body, expected) in cases {
        let refuse =
            move |_: &SeenRequest| FakeResponse::text(status, body).with("retry-after", "7");
        for opening in [Opening::Handshake, Opening::Stateless] {
            let web = FakeWebServer::start(calls(refuse)).await;
            let (remote, _) = open(&web.url("/mcp?key=hidden"), opening).await.unwrap();
            assert_eq!(failed(remote.call(&request("t")).await), expected);
            assert!(
                !remote.has_ended(),
                "a refused call does not end the connection"
            );
        }
    }
}

#[tokio::test]
async fn a_server_that_cannot_be_reached_was_sent_nothing() {
    for opening in [Opening::Handshake, Opening::Stateless] {
        let web = FakeWebServer::start(play).await;
        let (remote, _) = open(&web.url("/mcp?key=hidden"), opening).await.unwrap();
        drop(web);
        // The first call may still use the old connection.
        let _ = remote.call(&request("t")).await;
        match remote.call(&request("t")).await {
            Err(RequestError::Unreached(why)) => assert!(!why.contains("hidden"), "{why}"),
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn an_answer_of_any_shape_ends_the_call() {
    type Make = fn(&SeenRequest) -> FakeResponse;
    let bodies: [(Make, &str); 6] = [
        (
            |_| FakeResponse::json("<html>"),
            "its response is not JSON-RPC: <html>",
        ),
        (|_| FakeResponse::json(""), "its response is not JSON-RPC: "),
        (
            |_| FakeResponse::json(r#"{"jsonrpc":"2.0","id":999,"result":{}}"#),
            "its response is for another request",
        ),
        (|_| FakeResponse::events([]), "its response ended early"),
        (
            |_| FakeResponse::events([event("not JSON"), "data: {\"half\"".to_owned()]),
            "its response ended early",
        ),
        (
            |_| FakeResponse::text(302, "").with("location", "http://127.0.0.2:1/elsewhere?key=x"),
            "HTTP 302 Found, redirect to http://127.0.0.2:1/elsewhere",
        ),
    ];
    for (reply, expected) in bodies {
        let web = FakeWebServer::start(calls(reply)).await;
        let (remote, _) = open(&web.url("/mcp"), Opening::Handshake).await.unwrap();
        assert_eq!(failed(remote.call(&request("t")).await), expected);
    }
}

#[tokio::test]
async fn an_error_of_the_protocol_is_the_servers_own_however_it_comes() {
    let error = r#"{"code":"E_ODD","message":"no","data":{"a": 1.0}}"#;
    let of = move |id: &str| format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{error}}}"#);
    let replies: [Play; 4] = [
        Box::new(move |asked| FakeResponse::json(of(&asked.id().to_string()))),
        Box::new(move |asked| FakeResponse::events([event(&of(&asked.id().to_string()))])),
        Box::new(move |_| FakeResponse::json(of("null"))),
        Box::new(move |_| FakeResponse::text(400, &of("null"))),
    ];
    for reply in replies {
        let web = FakeWebServer::start(calls(reply)).await;
        let (remote, _) = open(&web.url("/mcp"), Opening::Stateless).await.unwrap();
        let Err(RequestError::Protocol(error)) = remote.call(&request("t")).await else {
            panic!("expected a protocol error");
        };
        assert_eq!(
            (error.code.as_str(), error.message.as_str()),
            ("E_ODD", "no")
        );
        assert_eq!(error.data.as_deref(), Some(r#"{"a": 1.0}"#));
    }
}

#[tokio::test]
async fn answers_to_nobody_and_second_answers_harm_no_call() {
    let web = FakeWebServer::start(calls(|asked| {
        let strange = r#"{"jsonrpc":"2.0","id":4711,"result":{}}"#;
        let first = answer(asked, ODD);
        let second = answer(asked, r#"{"second":true}"#);
        FakeResponse::events([event(strange), event(&first), event(&second)])
    }))
    .await;
    let (remote, _) = open(&web.url("/mcp"), Opening::Handshake).await.unwrap();
    for _ in 0..3 {
        check(&remote.call(&request("t")).await, ODD);
    }
}

#[tokio::test]
async fn our_headers_stay_with_the_server_they_are_meant_for() {
    let elsewhere = FakeWebServer::start(play).await;
    let target = elsewhere.url("/mcp");
    let web =
        FakeWebServer::start(move |_| FakeResponse::status(307).with("location", &target)).await;
    let refused = open(&web.url("/mcp"), Opening::Handshake).await;
    let Err(HandshakeError::Unreached { why, obstacle }) = refused else {
        panic!("a redirect to another server was followed");
    };
    assert_eq!(obstacle, Obstacle::Redirected);
    let named = format!(
        "HTTP 307 Temporary Redirect, redirect to {}",
        elsewhere.url("/mcp")
    );
    assert_eq!(why, named);
    assert!(elsewhere.seen().is_empty());

    let web = FakeWebServer::start(|asked| match asked.path.as_str() {
        "/mcp" => FakeResponse::status(308).with("location", "/mcp/"),
        _ => play(asked),
    })
    .await;
    open(&web.url("/mcp"), Opening::Handshake)
        .await
        .expect("a redirect to the same server is followed");
}

#[tokio::test]
async fn a_server_that_wants_to_know_who_asks_says_so_at_once() {
    for status in [401, 403] {
        for opening in [Opening::Handshake, Opening::Stateless] {
            let deny = move |_: &SeenRequest| {
                FakeResponse::text(status, SECRET).with("www-authenticate", "Bearer")
            };
            let web = FakeWebServer::start(deny).await;
            match open(&web.url("/mcp"), opening).await {
                Err(HandshakeError::Denied(Denied { why, is_unknown })) => {
                    assert_eq!(is_unknown, status == 401);
                    assert!(why.starts_with(&format!("HTTP {status}")), "{why}");
                    assert!(why.ends_with(": ***"), "{why}");
                }
                other => panic!("{other:?} is not a denial"),
            }
            assert_eq!(
                web.seen().len(),
                1,
                "more than one request: {:?}",
                web.whats()
            );
        }
    }
}

#[tokio::test]
async fn a_server_that_no_longer_knows_us_is_not_asked_again() {
    let web = FakeWebServer::start(calls(|_| FakeResponse::status(401))).await;
    let (fleet, name) = fleet(&web.url("/mcp"));
    let never = CancellationToken::new();
    let mut whys = Vec::new();
    for _ in 0..3 {
        let error = fleet.call(&name, &request("t"), &never).await.unwrap_err();
        let CallError::Unavailable { failure, .. } = error else {
            panic!("{error} is another error");
        };
        whys.push(failure);
    }
    let asked = web.whats();
    let calls = asked.iter().filter(|what| *what == "tools/call").count();
    assert_eq!(calls, 1, "{asked:?}");
    let last = whys.last().unwrap();
    assert!(last.is_lasting, "{last:?}");
    assert_eq!(last.why, "HTTP 401 Unauthorized");
    assert_eq!(
        last.hint.as_deref(),
        Some("set `headers.Authorization` of this server")
    );
    fleet.stop().await;
}

/// A server that accepts only the newest token, and its authorization server, which issues the
/// token while it works.
async fn guarded(newest: &Arc<AtomicUsize>, works: &Arc<AtomicBool>) -> FakeWebServer {
    let (newest, works) = (Arc::clone(newest), Arc::clone(works));
    FakeWebServer::start(move |asked: &SeenRequest| {
        let newest = format!("t{}", newest.load(Ordering::Relaxed));
        if asked.path == "/token" {
            let given = json!({"access_token": newest, "token_type": "Bearer", "expires_in": 3600});
            return if works.load(Ordering::Relaxed) {
                FakeResponse::json(given.to_string())
            } else {
                FakeResponse::status(503)
            };
        }
        let is_known = asked.header("authorization") == Some(&format!("Bearer {newest}"));
        let is_asked = asked.method == "POST";
        match (is_known, asked.what()) {
            (false, _) if is_asked => FakeResponse::status(401).with("www-authenticate", "Bearer"),
            (_, "tools/call") => FakeResponse::result(asked, "{}"),
            _ => play(asked),
        }
    })
    .await
}

/// Writes a login with this token, which can be refreshed.
async fn log_in(files: &PrivateFiles, state: &Path, web: &FakeWebServer, token: &str) {
    let url = web.url("/mcp");
    let file = RecordFile::of(files, "web", &url);
    let credential = Credential::new(file, oauth::LoginSettings::default());
    credential.note_challenge(oauth::Challenge::default()).await;
    let mut kept = fs::read_dir(state.join("auth")).unwrap();
    let path = kept.find_map(|it| {
        let path = it.unwrap().path();
        (path.extension()? == "json").then_some(path)
    });
    let path = path.unwrap();
    let mut record: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    record["grant"] = json!({
        "id": "1", "issuer": url, "scopes": [], "obtained_at": 0, "access_token": token,
        "refresh_token": "r", "token_endpoint": web.url("/token"),
        "client": {"id": "c", "method": "none"},
    });
    fs::write(&path, record.to_string()).unwrap();
}

#[tokio::test]
async fn a_login_that_cannot_be_renewed_now_has_not_ended() {
    let (newest, works) = (Arc::new(AtomicUsize::new(2)), Arc::default());
    let web = guarded(&newest, &works).await;
    let state = tempfile::tempdir().unwrap();
    let files = PrivateFiles::plain(state.path());
    log_in(&files, state.path(), &web, "t1").await;
    let surroundings = Surroundings {
        private: Some(files),
        ..Surroundings::default()
    };
    let (fleet, name) = fleet_in(&web.url("/mcp"), Vec::new(), surroundings);
    let never = CancellationToken::new();
    // First at the start of the server, then while it runs.
    for round in 3..5 {
        let error = fleet.call(&name, &request("t"), &never).await.unwrap_err();
        let CallError::Unavailable { failure, ran, .. } = error else {
            panic!("{error} is another error");
        };
        assert_eq!(ran, Ran::No);
        assert!(
            failure.login().is_none() && !failure.is_lasting,
            "{failure:?}"
        );
        assert!(
            failure.why.contains("the login was not renewed"),
            "{failure:?}"
        );
        works.store(true, Ordering::Relaxed);
        fleet.call(&name, &request("t"), &never).await.unwrap();
        works.store(false, Ordering::Relaxed);
        newest.store(round, Ordering::Relaxed);
    }
    fleet.stop().await;
}

/// A server that accepts one key, and the command that prints the number of its runs as the key.
#[cfg(unix)]
struct Keyed {
    _state: tempfile::TempDir,
    runs: std::path::PathBuf,
    key: Template,
    valid: Arc<AtomicUsize>,
    secrets: Option<Arc<Resolver>>,
}

#[cfg(unix)]
impl Keyed {
    fn new() -> Self {
        let state = tempfile::tempdir().unwrap();
        let runs = state.path().join("runs");
        let resolver = Resolver::new(Store::in_state(state.path()), Arc::default());
        let key = format!(
            "${{command:sh -c 'echo run >>{0}; wc -l <{0}'}}",
            runs.display()
        );
        Self {
            _state: state,
            runs,
            key: Template::parse(&key).unwrap(),
            valid: Arc::new(AtomicUsize::new(1)),
            secrets: Some(Arc::new(resolver)),
        }
    }

    /// Starts a server that refuses every request without the valid key, before `reply` sees it.
    async fn start(
        &self,
        reply: impl Fn(&SeenRequest) -> FakeResponse + Send + Sync + 'static,
    ) -> FakeWebServer {
        let valid = Arc::clone(&self.valid);
        FakeWebServer::start(move |asked: &SeenRequest| {
            let valid = valid.load(Ordering::Relaxed).to_string();
            if asked.header("x-key").map(str::trim) == Some(&valid) {
                reply(asked)
            } else {
                FakeResponse::status(401)
            }
        })
        .await
    }

    fn fleet(&self, url: &str) -> (Fleet, ServerName) {
        let surroundings = Surroundings {
            secrets: self.secrets.clone(),
            ..Surroundings::default()
        };
        let headers = vec![("X-Key".to_owned(), self.key.clone())];
        fleet_in(url, headers, surroundings)
    }

    fn accept(&self, key: usize) {
        self.valid.store(key, Ordering::Relaxed);
    }

    fn count_runs(&self) -> usize {
        fs::read_to_string(&self.runs).unwrap().lines().count()
    }
}

#[cfg(unix)]
async fn call((fleet, name): &(Fleet, ServerName)) -> Result<String, CallError> {
    let never = CancellationToken::new();
    let answer = fleet.call(name, &request("t"), &never).await;
    answer.map(|answer| answer.as_str().to_owned())
}

#[cfg(unix)]
#[tokio::test]
async fn a_command_that_prints_a_key_runs_again_where_the_key_is_refused_or_the_server_restarted() {
    let keyed = Keyed::new();
    let web = keyed
        .start(calls(|asked| FakeResponse::result(asked, "{}")))
        .await;
    let first = keyed.fleet(&web.url("/mcp"));
    call(&first).await.unwrap();
    // The key is refused when the server starts.
    keyed.accept(2);
    let second = keyed.fleet(&web.url("/mcp"));
    call(&second).await.unwrap();
    // The key is refused while the server runs: the call is sent again with the new key.
    keyed.accept(3);
    call(&second).await.unwrap();
    assert_eq!(second.0.states()[0].starts, 1);
    // Another connection uses the key that was printed by now.
    call(&first).await.unwrap();
    assert_eq!(keyed.count_runs(), 3);
    keyed.accept(4);
    second.0.restart(&second.1, false).await.unwrap();
    call(&second).await.unwrap();
    // The command runs once even if its new key is refused.
    keyed.accept(0);
    assert!(second.0.restart(&second.1, false).await.is_err());
    assert!(call(&second).await.is_err() && call(&second).await.is_err());
    assert_eq!(keyed.count_runs(), 5);
    first.0.stop().await;
    second.0.stop().await;
}

#[cfg(unix)]
#[tokio::test]
async fn a_refused_key_is_replaced_once_for_all_calls_over_each_transport() {
    let old = super::older::Old::default();
    for path in ["/mcp", "/sse"] {
        let keyed = Keyed::new();
        let old = old.clone();
        let web = keyed
            .start(move |asked| match (path, asked.what()) {
                ("/sse", _) => old.play(asked),
                (_, "tools/call") => FakeResponse::result(asked, ODD),
                _ => play(asked),
            })
            .await;
        let open = keyed.fleet(&web.url(path));
        call(&open).await.unwrap();
        keyed.accept(2);
        let (one, two, three) = tokio::join!(call(&open), call(&open), call(&open));
        assert_eq!(
            [one.unwrap(), two.unwrap(), three.unwrap()],
            [ODD; 3],
            "{path}"
        );
        assert_eq!(
            (keyed.count_runs(), open.0.states()[0].starts),
            (2, 1),
            "{path}"
        );
        open.0.stop().await;
    }
}

#[cfg(unix)]
#[tokio::test]
async fn a_command_that_fails_after_a_refusal_is_named_and_runs_again_with_the_next_call() {
    let keyed = Keyed::new();
    let web = keyed
        .start(calls(|asked| FakeResponse::result(asked, "{}")))
        .await;
    let open = keyed.fleet(&web.url("/mcp"));
    call(&open).await.unwrap();
    keyed.accept(2);
    let folder = keyed.runs.with_extension("aside");
    fs::rename(&keyed.runs, &folder).unwrap();
    fs::create_dir(&keyed.runs).unwrap();
    let error = call(&open).await.unwrap_err();
    let CallError::Unavailable { failure, ran, .. } = &error else {
        panic!("{error} is another error");
    };
    assert_eq!(*ran, Ran::No);
    assert!(!failure.is_lasting, "{failure:?}");
    assert!(failure.why.contains("exit status"), "{failure:?}");
    fs::remove_dir(&keyed.runs).unwrap();
    fs::rename(&folder, &keyed.runs).unwrap();
    call(&open).await.unwrap();
    open.0.stop().await;
}

#[tokio::test]
async fn a_server_that_hangs_costs_one_call_its_own_limit_and_no_other_call_anything() {
    let web = FakeWebServer::start(|asked| match asked.what() {
        "tools/call" if asked.body["params"]["name"] == "slow" => FakeResponse::Hang,
        "tools/call" => FakeResponse::result(asked, ODD),
        _ => play(asked),
    })
    .await;
    let (fleet, name) = fleet(&web.url("/mcp"));
    let never = CancellationToken::new();
    let warm = fleet.call(&name, &request("fast"), &never).await;
    assert_eq!(warm.unwrap().as_str(), ODD);
    let slow = request("slow");
    let slow = fleet.call(&name, &slow, &never);
    let fast = async {
        let is_slow = |asked: &SeenRequest| asked.body["params"]["name"] == "slow";
        web.until_one(is_slow).await;
        let answer = fleet.call(&name, &request("fast"), &never).await;
        pause();
        advance(TIMEOUT_DEFAULT).await;
        resume();
        answer
    };
    let (slow, fast) = tokio::join!(slow, fast);
    assert_eq!(fast.unwrap().as_str(), ODD);
    assert!(
        matches!(
            slow,
            Err(CallError::TimedOut {
                ran: Ran::Maybe,
                ..
            })
        ),
        "{slow:?}"
    );
    web.until("notifications/cancelled").await;
    fleet.stop().await;
}

/// Runs in a process of its own, started by the test below, with the proxy in its environment.
#[tokio::test]
#[ignore = "the child process of the test below, which starts it by name"]
async fn child_behind_a_proxy() {
    let (remote, _) = open("http://far.example/mcp", Opening::Handshake)
        .await
        .unwrap();
    check(&remote.call(&request("t")).await, ODD);
    let direct = FakeWebServer::start(play).await;
    open(&direct.url("/mcp"), Opening::Handshake).await.unwrap();
}

#[tokio::test]
async fn the_proxy_of_the_environment_is_used_but_not_to_reach_ourselves() {
    let proxy = FakeWebServer::start(calls(|asked| FakeResponse::result(asked, ODD))).await;
    let mut child = Command::new(std::env::current_exe().unwrap());
    child
        .args(["--ignored", "--exact"])
        .arg("wire::remote::tests::failures::child_behind_a_proxy")
        .env("HTTP_PROXY", proxy.url(""))
        .env("http_proxy", proxy.url(""))
        .env_remove("NO_PROXY")
        .env_remove("no_proxy");
    let run = tokio::task::spawn_blocking(move || child.output().unwrap());
    let output = run.await.unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && text.contains("1 passed"),
        "{text}"
    );
    let seen = proxy.seen();
    assert!(!seen.is_empty());
    for asked in seen {
        assert_eq!(asked.path, "http://far.example/mcp");
    }
}
