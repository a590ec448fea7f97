//! Requests of clients without access are refused, limited, and logged once.

use bytes::Bytes;
use journeys::{
    client::DEADLINE,
    fake::{LEGACY_VERSION, Step},
    house::{House, fake},
    site::Site,
    web::Web,
};
use serde_json::json;
use tokio::{io::AsyncWriteExt as _, net::TcpStream, task::JoinSet, time::timeout};

use crate::{calling, house, until};

const TOKEN: &str = "0123456789abcdef0123456789abcdef";

async fn site_with(settings: &str) -> (House, Site) {
    let house = house([fake("any").tool("echo", Step::Echo)]);
    house.configure_more(settings);
    house.indexed().await;
    let site = house.site().await;
    (house, site)
}

fn ping(number: usize) -> String {
    json!({ "jsonrpc": "2.0", "id": number, "method": "ping" }).to_string()
}

/// Sends many requests of one kind: each response has this status, and the log has one line with
/// `logged`.
async fn refused(site: &Site, web: &Web, status: u16, logged: &str) {
    for number in 0..40 {
        let answer = web.post(ping(number)).await;
        assert_eq!(answer.status, status);
        let text = answer.text().await;
        assert!(!text.contains(TOKEN), "{text}");
    }
    until("a line in the log", || site.logged(logged) > 0).await;
    assert_eq!(site.logged(logged), 1, "{}", site.stderr());
}

#[tokio::test]
async fn wrong_names_and_wrong_tokens_are_refused_and_logged_once() {
    let settings = format!(
        "[http]\ntokens = {{ laptop = \"{TOKEN}\" }}\nallowed_origins = [\"https://chat.example.com\"]\n\
         allowed_hosts = [\"tools.example.com\"]"
    );
    let (house, site) = site_with(&settings).await;
    let good = site.web().with("authorization", &format!("Bearer {TOKEN}"));
    assert_eq!(good.post(ping(1)).await.status, 200);
    let page = good.clone().with("origin", "https://evil.example");
    refused(&site, &page, 403, "about=\"origin\"").await;
    let rebound = good.clone().with("host", "evil.example:80");
    refused(&site, &rebound, 403, "about=\"host\"").await;
    refused(&site, &site.web(), 401, "about=\"no token\"").await;
    let wrong = site.web().with("authorization", "Bearer 0123456789abcdef");
    refused(&site, &wrong, 401, "about=\"wrong token\"").await;
    assert!(
        site.web()
            .post(ping(1))
            .await
            .header("www-authenticate")
            .starts_with("Bearer")
    );

    let named = good.clone().with("host", "tools.example.com");
    let listed = named.with("origin", "https://chat.example.com");
    let answer = listed.post(ping(1)).await;
    assert_eq!(answer.status, 200);
    assert_eq!(
        answer.header("access-control-allow-origin"),
        "https://chat.example.com"
    );
    let preflight = listed
        .without("authorization")
        .ask("OPTIONS", "/mcp", "")
        .await;
    assert_eq!(preflight.status, 204);
    assert!(
        preflight
            .header("access-control-allow-headers")
            .contains("Authorization")
    );

    // A monitoring client needs no token, but must use one of our host names.
    assert_eq!(
        site.web().ask("GET", "/healthz", "").await.text().await,
        "ok\n"
    );
    assert_eq!(site.web().ask("GET", "/readyz", "").await.status, 200);
    assert_eq!(rebound.ask("GET", "/healthz", "").await.status, 403);
    assert!(!site.stderr().contains(TOKEN));
    site.stop().await;
    house.stops_clean().await;
}

#[tokio::test]
async fn a_request_in_the_wrong_form_is_told_the_right_one() {
    let (house, site) = site_with("").await;
    let web = site.web();
    let status =
        async |web: &Web, method: &str, path: &str| web.ask(method, path, ping(1)).await.status;
    assert_eq!(status(&web, "POST", "/").await, 404);
    assert_eq!(status(&web, "PUT", "/mcp").await, 405);
    assert_eq!(status(&web, "POST", "/healthz").await, 405);
    assert_eq!(
        status(
            &web.clone().with("content-type", "text/plain"),
            "POST",
            "/mcp"
        )
        .await,
        415
    );
    assert_eq!(
        status(&web.clone().with("accept", "text/html"), "POST", "/mcp").await,
        406
    );
    assert_eq!(
        status(
            &web.clone().with("mcp-protocol-version", "1"),
            "POST",
            "/mcp"
        )
        .await,
        400
    );
    let huge = web.clone().with("x-huge", &"x".repeat(33_000));
    assert_eq!(status(&huge, "POST", "/mcp").await, 431);
    for (body, code) in [
        ("no JSON", -32_700),
        ("[1]", -32_600),
        ("{\"id\":", -32_700),
    ] {
        let answer = web.post(body).await;
        assert_eq!(answer.status, 400, "{body}");
        assert_eq!(answer.reply().await.error()["code"], code, "{body}");
    }
    site.stop().await;
    house.stops_clean().await;
}

/// Returns the peak memory of the process in bytes.
fn peak_memory(pid: u32) -> usize {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:"));
    let kib = line
        .and_then(|line| line.split_whitespace().nth(1))
        .unwrap();
    kib.parse::<usize>().unwrap() * 1_024
}

const HUGE: usize = 100 << 20;

#[tokio::test]
async fn a_body_of_a_hundred_megabytes_is_refused_unread() {
    let (house, site) = site_with("").await;
    let before = peak_memory(site.pid());
    for _ in 0..2 {
        let answer = site.web().post(Bytes::from(vec![b' '; HUGE])).await;
        assert_eq!(answer.status, 413);
        assert!(answer.text().await.contains("http.max_body_kib"));
    }
    // A chunked body, whose length is unknown in advance, is refused too.
    let mut stream = TcpStream::connect(site.address()).await.unwrap();
    let head = format!(
        "POST /mcp HTTP/1.1\r\nhost: {}\r\ncontent-type: application/json\r\ntransfer-encoding: \
         chunked\r\n\r\n",
        site.address()
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    let chunk = [b"10000\r\n".as_slice(), &vec![b' '; 0x1_0000], b"\r\n"].concat();
    let sending = async {
        for _ in 0..HUGE / 0x1_0000 {
            if stream.write_all(&chunk).await.is_err() {
                return;
            }
        }
        panic!("the whole body was accepted");
    };
    timeout(DEADLINE, sending)
        .await
        .expect("the body is refused in time");
    assert_eq!(site.logged("about=\"body\""), 1, "{}", site.stderr());
    let grown = peak_memory(site.pid()) - before;
    assert!(grown < HUGE / 4, "memory grew by {grown} bytes");
    site.stop().await;
    house.stops_clean().await;
}

#[tokio::test]
async fn a_thousand_sessions_that_nobody_uses_shut_nobody_out() {
    let (house, site) = site_with("[http]\nmax_sessions = 100").await;
    let used = site.web().initialize("journeys", LEGACY_VERSION).await;
    let params = json!({ "protocolVersion": LEGACY_VERSION, "capabilities": {},
        "clientInfo": { "name": "stranger", "version": "1" } });
    for _ in 0..1_000 {
        let (_, answer) = site.web().send("initialize", params.clone()).await;
        assert_eq!(answer.status, 200);
    }
    until("a line in the log", || {
        site.logged("about=\"sessions\"") > 0
    })
    .await;
    assert_eq!(site.logged("about=\"sessions\""), 1, "{}", site.stderr());
    assert_eq!(site.web().ask("GET", "/readyz", "").await.status, 200);
    // A client with a session keeps it, and clients with and without one are served.
    used.execute("any/echo", json!({})).await.good();
    let mut clients = vec![site.web().modern("journeys")];
    for _ in 0..99 {
        clients.push(site.web().initialize("journeys", LEGACY_VERSION).await);
    }
    for client in clients {
        client.execute("any/echo", json!({})).await.good();
    }
    // All sessions are in use now.
    let (_, answer) = site.web().send("initialize", params).await;
    assert_eq!((answer.status, answer.header("retry-after")), (503, "5"));
    assert_eq!(site.web().ask("GET", "/readyz", "").await.status, 503);
    site.stop().await;
    house.stops_clean().await;
}

/// The most requests of one session in flight: half of those of all clients.
const CALLS_OF_A_SESSION_MAX: usize = 128;

#[tokio::test]
async fn a_session_that_floods_leaves_room_and_can_still_cancel() {
    let server = fake("any")
        .tool("stuck", Step::UntilCancelled)
        .tool("echo", Step::Echo);
    let house = house([server]);
    house.indexed().await;
    let site = house.site().await;
    let flood = site.web().initialize("flood", LEGACY_VERSION).await;
    let mut stuck = JoinSet::new();
    for _ in 0..=CALLS_OF_A_SESSION_MAX {
        let flood = flood.clone();
        stuck.spawn(async move {
            flood
                .send("tools/call", calling("any/stuck", &json!({})))
                .await
                .1
        });
    }
    let mut streams = Vec::new();
    let refused = timeout(DEADLINE, async {
        while let Some(answer) = stuck.join_next().await {
            match answer.unwrap() {
                refused if refused.status == 503 => return,
                stream => streams.push(stream),
            }
        }
        panic!("no call is refused");
    });
    refused.await.expect("one call too many is refused at once");
    assert_eq!(site.logged("about=\"requests\""), 1, "{}", site.stderr());
    site.web().execute("any/echo", json!({})).await.good();
    // `initialize` has id 1.
    for id in 2..CALLS_OF_A_SESSION_MAX + 3 {
        let taken = flood
            .notify("notifications/cancelled", json!({ "requestId": id }))
            .await;
        assert_eq!(taken.status, 202);
    }
    while let Some(stream) = stuck.join_next().await {
        streams.push(stream.unwrap());
    }
    assert_eq!(streams.len(), CALLS_OF_A_SESSION_MAX);
    for mut stream in streams {
        assert!(stream.is_stream() && stream.event().await.is_none());
    }
    flood.execute("any/echo", json!({})).await.good();
    site.stop().await;
    house.stops_clean().await;
}
