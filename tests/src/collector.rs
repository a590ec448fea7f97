//! An OpenTelemetry collector: it accepts OTLP over HTTP, as JSON, and stores it.

use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::Value;
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader},
    net::{TcpListener, TcpStream},
    time::{Duration, interval, timeout},
};

use crate::client::DEADLINE;

/// A collector that runs until it is dropped.
#[derive(Debug)]
pub struct Collector {
    url: String,
    came: Arc<Mutex<Came>>,
}

#[derive(Debug, Default)]
struct Came {
    /// Every byte received, including the heads of requests.
    text: String,
    spans: Vec<Value>,
}

impl Collector {
    /// Listens on a loopback address.
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await;
        let listener = listener.expect("there is a free port");
        let address = listener.local_addr().expect("the socket is bound");
        let came = Arc::new(Mutex::new(Came::default()));
        let kept = Arc::clone(&came);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                if let Ok((head, body)) = take(stream).await {
                    kept.lock().add(&head, &body);
                }
            }
        });
        Self {
            url: format!("http://{address}"),
            came,
        }
    }

    /// Returns the address of the collector.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Returns all received text, unchanged.
    pub fn text(&self) -> String {
        self.came.lock().text.clone()
    }

    /// Returns the received spans with this name.
    pub fn spans(&self, name: &str) -> Vec<Value> {
        let came = self.came.lock();
        let named = came.spans.iter().filter(|span| span["name"] == name);
        named.cloned().collect()
    }

    /// Waits for the first span with this name.
    pub async fn until_span(&self, name: &str) -> Value {
        let mut looks = interval(Duration::from_millis(10));
        let found = timeout(DEADLINE, async {
            loop {
                looks.tick().await;
                if let Some(span) = self.spans(name).into_iter().next() {
                    return span;
                }
            }
        });
        let found = found.await;
        found.unwrap_or_else(|_| panic!("no span {name:?} in:\n{}", self.text()))
    }
}

impl Came {
    fn add(&mut self, head: &str, body: &str) {
        self.text.push_str(head);
        self.text.push_str(body);
        let body: Value = serde_json::from_str(body).expect("OTLP is JSON here");
        let all = |value: &Value| value.as_array().cloned().unwrap_or_default();
        let scopes = all(&body["resourceSpans"]).into_iter();
        let scopes = scopes.flat_map(|resource| all(&resource["scopeSpans"]));
        self.spans
            .extend(scopes.flat_map(|scope| all(&scope["spans"])));
    }
}

/// Reads one request and accepts it.
async fn take(stream: TcpStream) -> std::io::Result<(String, String)> {
    let mut stream = BufReader::new(stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") && stream.read_line(&mut head).await? > 0 {}
    let length = head.lines().find_map(|line| {
        let (name, value) = line.split_once(": ")?;
        let is_length = name.eq_ignore_ascii_case("content-length");
        is_length.then(|| value.parse().ok()).flatten()
    });
    let mut body = vec![0; length.unwrap_or(0)];
    stream.read_exact(&mut body).await?;
    let answer = "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-type: application/json\r\n\
                  content-length: 2\r\n\r\n{}";
    stream.write_all(answer.as_bytes()).await?;
    stream.shutdown().await?;
    Ok((head, String::from_utf8_lossy(&body).into_owned()))
}
