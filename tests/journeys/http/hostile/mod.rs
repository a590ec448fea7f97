//! A table of hostile HTTP requests: each gets the expected error, and changes nothing.

mod rows;

use std::net::SocketAddr;

use journeys::{
    client::DEADLINE,
    fake::{LEGACY_VERSION, Step},
    house::{House, fake},
    site::Site,
    web::Web,
};
use serde_json::json;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    task::JoinSet,
    time::timeout,
};

use self::rows::{BODIES, FRAMINGS, HEADS, HIDING, HOSTS, LINES, ORIGINS, PING, Statuses, TOKENS};
use crate::{handle, house};

const TOKEN: &str = "0123456789abcdef0123456789abcdef";
const OTHER_TOKEN: &str = "fedcba9876543210fedcba9876543210";

struct Door {
    site: Site,
    address: SocketAddr,
}

impl Door {
    /// Replaces the placeholders of the address, its port and the token in a text.
    fn filled(&self, text: &str) -> String {
        text.replace("ADDR", &self.address.to_string())
            .replace("PORT", &self.address.port().to_string())
            .replace("TOKEN", TOKEN)
            .replace("PING", PING)
    }

    /// Sends these bytes and reads until the connection ends.
    async fn send(&self, request: &[u8]) -> String {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        // The proxy may close the connection before everything is sent.
        drop(stream.write_all(request).await);
        let mut answer = Vec::new();
        let read = timeout(DEADLINE, stream.read_to_end(&mut answer)).await;
        assert!(
            read.is_ok(),
            "the connection stays open: {:?}",
            String::from_utf8_lossy(request)
        );
        let answer = String::from_utf8_lossy(&answer).into_owned();
        assert!(!answer.contains(TOKEN), "{answer}");
        answer
    }

    /// Sends a valid request in which one of the usual headers is replaced.
    async fn ask(&self, asked: HostileRequest<'_>) -> String {
        let usual = [
            "Host: ADDR",
            "Authorization: Bearer TOKEN",
            "Content-Type: application/json",
            "Accept: application/json",
        ];
        let HostileRequest {
            line,
            without,
            row,
            framing,
            body,
        } = asked;
        let usual = usual.iter().filter(|header| !header.starts_with(without));
        let usual = usual.fold(String::new(), |head, header| head + header + "\r\n");
        let head = format!("{line}\r\n{usual}{row}\r\n{framing}\r\nConnection: close\r\n\r\n");
        let request = self.filled(&head) + &self.filled(body);
        self.send(request.as_bytes()).await
    }

    /// Checks that valid requests are served as before.
    async fn serves(&self) {
        let web = self.web(TOKEN).initialize("journeys", LEGACY_VERSION).await;
        let echo = web.execute("any/echo", json!({ "a": 1 })).await.good();
        assert_eq!(echo, r#"{"a":1}"#);
    }

    /// Checks that the requests changed nothing.
    async fn end(self, house: House) {
        self.serves().await;
        assert!(!self.site.stderr().contains(TOKEN));
        self.site.stop().await;
        house.stops_clean().await;
    }

    fn web(&self, token: &str) -> Web {
        let bearer = format!("Bearer {token}");
        self.site.web().with("authorization", &bearer)
    }
}

/// The differences of a request from a valid one.
#[derive(Debug, Clone, Copy)]
struct HostileRequest<'a> {
    line: &'a str,
    /// The usual header that is left out.
    without: &'a str,
    row: &'a str,
    framing: &'a str,
    body: &'a str,
}

const GOOD: HostileRequest<'_> = HostileRequest {
    line: "POST /mcp HTTP/1.1",
    without: "None:",
    row: "X-None: 1",
    framing: "Content-Length: 40",
    body: PING,
};

async fn door() -> (House, Door) {
    let long = "a line of a long answer\n".repeat(2_000);
    let server = fake("any")
        .tool("echo", Step::Echo)
        .tool("long", Step::text(long));
    let house = house([server]);
    house.configure_more(&format!(
        "[http]\nallowed_origins = [\"https://chat.example.com\"]\n\
         tokens = {{ one = \"{TOKEN}\", two = \"{OTHER_TOKEN}\" }}"
    ));
    house.cli(["reindex"]).await.ended(0);
    let site = house.site().await;
    let address = site.address();
    (house, Door { site, address })
}

/// Sends every row, proves that valid clients are served as before, and ends the house.
async fn check(rows: impl IntoIterator<Item = (HostileRequest<'_>, Statuses)>) {
    let (house, door) = door().await;
    let mut wrong = Vec::new();
    for (asked, statuses) in rows {
        let answer = door.ask(asked).await;
        wrong.extend(complaint(&format!("{asked:?}"), &answer, statuses));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    door.end(house).await;
}

/// Returns the reason why a response, which must be the only one, is wrong.
fn complaint(asked: &str, answer: &str, statuses: Statuses) -> Option<String> {
    let status = answer
        .strip_prefix("HTTP/1.1 ")
        .or(answer.strip_prefix("HTTP/1.0 "));
    let status = status.map_or(0, |rest| rest[..3].parse().unwrap());
    let answers = answer.matches("HTTP/1.").count();
    let is_right = statuses.contains(&status) && answers <= 1;
    (!is_right).then(|| format!("{asked}: {status}, not {statuses:?}; {answers} answers"))
}

#[tokio::test]
async fn names_of_strangers_open_nothing() {
    let hosts = HOSTS.map(|(row, statuses)| {
        let asked = HostileRequest {
            row,
            without: "Host",
            ..GOOD
        };
        (asked, statuses)
    });
    let origins = ORIGINS.map(|(row, statuses)| (HostileRequest { row, ..GOOD }, statuses));
    check(hosts.into_iter().chain(origins)).await;
}

#[tokio::test]
async fn only_a_whole_token_in_its_header_opens() {
    check(TOKENS.map(|(row, statuses)| {
        let asked = HostileRequest {
            row,
            without: "Authorization",
            ..GOOD
        };
        (asked, statuses)
    }))
    .await;
}

#[tokio::test]
async fn odd_lines_and_heads_are_refused() {
    let lines = LINES.map(|(line, statuses)| (HostileRequest { line, ..GOOD }, statuses));
    let heads = HEADS.map(|(row, statuses)| {
        let without = row.split(':').next().unwrap();
        (
            HostileRequest {
                without,
                row,
                ..GOOD
            },
            statuses,
        )
    });
    check(lines.into_iter().chain(heads)).await;
}

#[tokio::test]
async fn a_body_has_one_length_and_comes_in_time() {
    check(FRAMINGS.map(|(framing, body, statuses)| {
        let asked = HostileRequest {
            framing,
            body,
            ..GOOD
        };
        (asked, statuses)
    }))
    .await;
}

#[tokio::test]
async fn a_body_that_is_no_message_is_told_so() {
    let (house, door) = door().await;
    let web = door.web(TOKEN);
    let deep = format!(
        "{{\"id\":1,\"method\":\"ping\",\"params\":{}",
        "[".repeat(100_000)
    );
    let bodies = BODIES.iter().map(|(body, code)| (body.as_bytes(), *code));
    let bytes: [(&[u8], i64); 4] = [
        (deep.as_bytes(), -32_700),
        (
            b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xff\"}",
            -32_600,
        ),
        (b"\xff\xfe{\0}\0", -32_700),
        (b"\x1f\x8b\x08\0\0", -32_700),
    ];
    let mut wrong = Vec::new();
    for (body, code) in bodies.chain(bytes) {
        let answer = web.post(body.to_vec()).await;
        let (status, text) = (answer.status, answer.text().await);
        let answer: serde_json::Value = serde_json::from_str(&text).unwrap_or_default();
        let found = answer["error"]["code"].as_i64().unwrap_or_default();
        if found != code || answer.is_null() {
            let body = String::from_utf8_lossy(&body[..body.len().min(80)]);
            wrong.push(format!("{body:?}: {code} expected; {status} {text}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    door.end(house).await;
}

/// A second request is smuggled in the first: two peers that disagree about its length would let it
/// pass.
#[tokio::test]
async fn no_request_hides_in_another() {
    let (house, door) = door().await;
    let hidden = "DELETE /mcp HTTP/1.1\r\nHost: ADDR\r\nAuthorization: Bearer TOKEN\r\n\r\n";
    let mut wrong = Vec::new();
    for (framing, body, statuses) in HIDING {
        let body = &format!("{body}{hidden}");
        let answer = door
            .ask(HostileRequest {
                framing,
                body,
                ..GOOD
            })
            .await;
        // With `Connection: close`, it is the last response in any case.
        wrong.extend(complaint(framing, &answer, statuses));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    door.end(house).await;
}

#[tokio::test]
async fn a_session_serves_the_token_that_began_it_alone() {
    let (house, door) = door().await;
    let mine = door.web(TOKEN).initialize("same", LEGACY_VERSION).await;
    let bearer = format!("Bearer {OTHER_TOKEN}");
    let theirs = mine.clone().with("authorization", &bearer);
    for (method, body) in [("POST", PING), ("GET", ""), ("DELETE", "")] {
        let web = theirs.clone().with("accept", "*/*");
        assert_eq!(web.ask(method, "/mcp", body).await.status, 404, "{method}");
    }
    let own = theirs.without("mcp-session-id");
    let own = own.initialize("same", LEGACY_VERSION).await;
    let answer = mine.execute("any/long", json!({})).await.good();
    let read = json!({ "handle": handle(&answer), "offset": 0, "limit": 1 });
    let refused = own.execute("proxy/read_result", read.clone()).await.bad();
    assert!(refused.starts_with("error handle_expired"), "{refused}");
    mine.execute("proxy/read_result", read).await.good();
    door.end(house).await;
}

/// A client with a session is served while ten thousand more sessions are requested, and the next
/// client gets one: the oldest unused sessions are removed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_thousand_initializes_are_answered_and_keep_nobody_out() {
    const CONNECTIONS: usize = 10;
    const EACH: usize = 1_000;
    let (house, door) = door().await;
    let used = door.web(TOKEN).initialize("journeys", LEGACY_VERSION).await;
    let params = json!({ "protocolVersion": LEGACY_VERSION, "capabilities": {},
        "clientInfo": { "name": "stranger", "version": "1" } });
    let body =
        json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params }).to_string();
    let head = door.filled(&format!(
        "POST /mcp HTTP/1.1\r\nHost: ADDR\r\nAuthorization: Bearer TOKEN\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n",
        body.len()
    ));
    let mut crowd = JoinSet::new();
    for _ in 0..CONNECTIONS {
        let one = format!("{head}\r\n{body}");
        let last = format!("{head}Connection: close\r\n\r\n{body}");
        let address = door.address;
        crowd.spawn(async move {
            let stream = TcpStream::connect(address).await.unwrap();
            let (mut answers, mut requests) = stream.into_split();
            let all = one.repeat(EACH - 1) + &last;
            let sending = async { requests.write_all(all.as_bytes()).await };
            let mut read = Vec::new();
            let reading = answers.read_to_end(&mut read);
            let (_, end) = timeout(DEADLINE, async { tokio::join!(sending, reading) })
                .await
                .unwrap();
            end.unwrap();
            String::from_utf8(read).unwrap()
        });
    }
    used.execute("any/echo", json!({})).await.good();
    let (mut given, mut refused) = (0, 0);
    while let Some(answers) = crowd.join_next().await {
        let answers = answers.unwrap();
        given += answers.matches("HTTP/1.1 200").count();
        refused +=
            answers.matches("HTTP/1.1 503").count() + answers.matches("HTTP/1.1 429").count();
    }
    assert_eq!(
        given + refused,
        CONNECTIONS * EACH,
        "{given} sessions were created"
    );
    assert!(given > 0, "{refused} sessions were refused");
    assert_eq!(house.starts("any"), 2, "no server was started for them");
    used.execute("any/echo", json!({})).await.good();
    let late = door.web(TOKEN).initialize("journeys", LEGACY_VERSION).await;
    late.execute("any/echo", json!({})).await.good();
    door.site.stop().await;
    house.stops_clean().await;
}
