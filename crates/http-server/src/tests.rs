//! The limits of an endpoint that listens, with a gateway without servers.

use std::{sync::Arc, time::Duration};

use gateway::Gateway;
use http_core::{Guard, OwnNames};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    task::{JoinHandle, JoinSet},
    time::timeout,
};
use tokio_util::sync::CancellationToken;

use crate::{Bound, Endpoint, Limits, Listen, gate::Gate, tokens::Tokens};

/// The longest time of a step; no limit in these tests but the tested one ends before it.
const DEADLINE: Duration = Duration::from_mins(1);

/// A time limit that a test wants to pass.
const SHORT: Duration = Duration::from_millis(100);

const PING: &str = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;

struct Site {
    _state: tempfile::TempDir,
    address: std::net::SocketAddr,
    stop: CancellationToken,
    serving: JoinHandle<()>,
}

impl Site {
    /// Serves with these limits; the timeouts are longer than a test unless it sets them.
    async fn open(set: impl FnOnce(&mut Limits)) -> Self {
        let mut limits = Limits {
            receive_timeout: 10 * DEADLINE,
            stall_timeout: 10 * DEADLINE,
            ..Limits::default()
        };
        set(&mut limits);
        let state = tempfile::tempdir().unwrap();
        let settings = gateway::Settings::in_folder(state.path().join("state"));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let bound = Bound {
            listener,
            address,
            settings: Endpoint {
                listen: Listen {
                    ip: address.ip(),
                    port: address.port(),
                },
                gate: Gate {
                    guard: Guard {
                        names: OwnNames::AddressAnd(Vec::new()),
                        scheme: "http://",
                        origins: Vec::new(),
                        public_origin: None,
                    },
                    tokens: Tokens::default(),
                    guarding: None,
                },
                tls: None,
                session_key: None,
                metrics: false,
                limits,
            },
        };
        let stop = CancellationToken::new();
        let gateway: Arc<Gateway> = Gateway::new(settings).unwrap();
        Self {
            _state: state,
            address,
            serving: tokio::spawn(bound.serve(gateway, stop.clone())),
            stop,
        }
    }

    async fn connect(&self, text: &str) -> TcpStream {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        stream.write_all(text.as_bytes()).await.unwrap();
        stream
    }

    /// Returns a request that announces a body of this length.
    fn request(&self, connection: &str, bytes: usize, body: &str) -> String {
        let address = self.address;
        format!(
            "POST /mcp HTTP/1.1\r\nhost: {address}\r\ncontent-type: application/json\r\naccept: \
             application/json\r\nconnection: {connection}\r\ncontent-length: {bytes}\r\n\r\n{body}"
        )
    }

    /// Checks that a valid request is answered.
    async fn serves(&self) {
        let request = self.request("close", PING.len(), PING);
        let answer = read(self.connect(&request).await).await;
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    }

    async fn end(self) {
        self.stop.cancel();
        self.serving.await.unwrap();
    }
}

async fn read(mut stream: TcpStream) -> String {
    let mut answer = String::new();
    let reading = timeout(DEADLINE, stream.read_to_string(&mut answer)).await;
    reading.expect("the connection ends").unwrap();
    answer
}

#[tokio::test]
async fn heads_that_do_not_come_keep_nobody_out() {
    let site = Site::open(|limits| limits.connections_max = 8).await;
    let mut slow = Vec::new();
    for _ in 0..20 {
        slow.push(site.connect("POST /mcp HTT").await);
        site.serves().await;
    }
    site.end().await;
}

#[tokio::test]
async fn connections_that_say_nothing_close_one_another() {
    let site = Site::open(|limits| limits.connections_max = 10).await;
    let mut silent = JoinSet::new();
    // One after the other, so that the endpoint has at most this many as well.
    for number in 0..100 {
        let mut stream = TcpStream::connect(site.address).await.unwrap();
        if number % 2 == 0 {
            drop(stream.write_all(b"POST /mcp HTT").await);
        }
        silent.spawn(async move { drop(stream.read_to_end(&mut Vec::new()).await) });
    }
    for closed in 0..100 - 10 {
        let ended = timeout(DEADLINE, silent.join_next()).await;
        let ended = ended.unwrap_or_else(|_| panic!("only {closed} connections were closed"));
        ended.unwrap().unwrap();
    }
    site.serves().await;
    site.end().await;
}

#[tokio::test]
async fn bodies_that_do_not_come_keep_nobody_out() {
    let site = Site::open(|limits| limits.requests_max = 4).await;
    let part = site.request("close", 100, "");
    let mut slow = Vec::new();
    for _ in 0..12 {
        slow.push(site.connect(&part).await);
        site.serves().await;
    }
    // The oldest of them were closed with a response.
    let answer = read(slow.remove(0)).await;
    assert!(answer.starts_with("HTTP/1.1 408"), "{answer}");
    site.end().await;
}

#[tokio::test]
async fn a_body_has_a_time_limit() {
    let site = Site::open(|limits| {
        limits.requests_max = 1;
        limits.receive_timeout = SHORT;
    })
    .await;
    let part = site.request("close", PING.len() + 1, PING);
    let answer = read(site.connect(&part).await).await;
    assert!(answer.starts_with("HTTP/1.1 408"), "{answer}");
    site.end().await;
}

#[tokio::test]
async fn a_head_has_a_size_limit() {
    let site = Site::open(|limits| limits.header_bytes_max = 8 << 10).await;
    let huge = format!("x-huge: {}\r\ncontent-length", "x".repeat(9_000));
    let request = site.request("close", PING.len(), PING);
    let request = request.replace("content-length", &huge);
    let answer = read(site.connect(&request).await).await;
    assert!(answer.starts_with("HTTP/1.1 431"), "{answer}");
    site.serves().await;
    site.end().await;
}

#[tokio::test]
async fn a_client_that_reads_no_response_is_disconnected() {
    let site = Site::open(|limits| limits.stall_timeout = SHORT).await;
    // Each response repeats the id, until it finds no room in the buffers of the connection.
    let ping = PING.replace('1', &format!("\"{}\"", "x".repeat(100_000)));
    let request = site.request("keep-alive", ping.len(), &ping);
    let mut stream = site.connect(&request).await;
    let sending = async { while stream.write_all(request.as_bytes()).await.is_ok() {} };
    let sent = timeout(DEADLINE, sending).await;
    sent.expect("the connection is closed");
    site.serves().await;
    site.end().await;
}
