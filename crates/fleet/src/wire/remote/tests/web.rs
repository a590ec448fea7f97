//! A small HTTP/1.1 server on the loopback, driven by a test.

use std::{collections::BTreeMap, io::ErrorKind, net::SocketAddr, sync::Arc, time::Duration};

use parking_lot::Mutex;
use serde_json::Value;
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader},
    net::{TcpListener, TcpStream},
    sync::{mpsc, watch},
    task::{JoinSet, yield_now},
    time::{sleep, timeout},
};
use tokio_util::task::AbortOnDropHandle;

/// The time for the other end to read that a connection was closed.
const NOTICE_WAIT: Duration = Duration::from_millis(50);

/// The timeout for an expected request.
const UNTIL_MAX: Duration = Duration::from_secs(30);

/// One request as received.
#[derive(Debug, Clone)]
pub(super) struct SeenRequest {
    pub(super) method: String,
    pub(super) path: String,
    pub(super) headers: BTreeMap<String, String>,
    pub(super) body: Value,
    /// The body as received.
    pub(super) text: String,
}

impl SeenRequest {
    /// Returns the JSON-RPC method, or the HTTP method if there is none.
    pub(super) fn what(&self) -> &str {
        self.body["method"].as_str().unwrap_or(&self.method)
    }

    pub(super) fn id(&self) -> &Value {
        &self.body["id"]
    }

    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(String::as_str)
    }
}

/// The server's reply to a request.
pub(super) enum FakeResponse {
    Whole {
        status: u16,
        headers: Vec<(&'static str, String)>,
        body: String,
    },
    /// An event stream: these events, then those of the channel, until the sender is dropped.
    Events(Vec<String>, mpsc::Receiver<String>),
    /// No response, for as long as the client waits.
    Hang,
}

impl FakeResponse {
    pub(super) fn status(status: u16) -> Self {
        Self::text(status, "")
    }

    pub(super) fn text(status: u16, body: &str) -> Self {
        let body = body.to_owned();
        let headers = vec![("content-type", "text/plain".to_owned())];
        Self::Whole {
            status,
            headers,
            body,
        }
    }

    pub(super) fn json(body: impl Into<String>) -> Self {
        Self::Whole {
            status: 200,
            headers: vec![("content-type", "application/json".to_owned())],
            body: body.into(),
        }
    }

    pub(super) fn with(mut self, name: &'static str, value: &str) -> Self {
        if let Self::Whole { headers, .. } = &mut self {
            headers.retain(|(other, _)| *other != name);
            headers.push((name, value.to_owned()));
        }
        self
    }

    /// Responds with the `result` of this request.
    pub(super) fn result(asked: &SeenRequest, result: &str) -> Self {
        Self::json(answer(asked, result))
    }

    /// Responds with these events, then ends the stream.
    pub(super) fn events<const N: usize>(events: [String; N]) -> Self {
        let (_, ended) = mpsc::channel(1);
        Self::Events(events.into(), ended)
    }
}

pub(super) fn answer(asked: &SeenRequest, result: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{},"result":{result}}}"#,
        asked.id()
    )
}

pub(super) fn event(data: &str) -> String {
    format!("data: {data}\n\n")
}

type Play = Arc<dyn Fn(&SeenRequest) -> FakeResponse + Send + Sync>;

/// The running server; dropping it closes every connection.
pub(super) struct FakeWebServer {
    pub(super) address: SocketAddr,
    seen: Arc<Mutex<Vec<SeenRequest>>>,
    count: watch::Receiver<usize>,
    task: AbortOnDropHandle<()>,
}

impl FakeWebServer {
    pub(super) async fn start(
        play: impl Fn(&SeenRequest) -> FakeResponse + Send + Sync + 'static,
    ) -> Self {
        Self::at(SocketAddr::from(([127, 0, 0, 1], 0)), play).await
    }

    /// Ends the server. Returns when each connection is closed and its client had time to notice.
    pub(super) async fn stop(self) {
        let Self { seen, task, .. } = self;
        drop(task);
        // Every connection shares the list.
        while Arc::strong_count(&seen) > 1 {
            yield_now().await;
        }
        sleep(NOTICE_WAIT).await;
    }

    pub(super) async fn at(
        address: SocketAddr,
        play: impl Fn(&SeenRequest) -> FakeResponse + Send + Sync + 'static,
    ) -> Self {
        let listener = loop {
            match TcpListener::bind(address).await {
                // A server that was just dropped may still hold the address.
                Err(error) if error.kind() == ErrorKind::AddrInUse => yield_now().await,
                other => break other.unwrap(),
            }
        };
        let seen = Arc::default();
        let (counter, count) = watch::channel(0);
        let address = listener.local_addr().unwrap();
        let noted = Noted {
            seen: Arc::clone(&seen),
            counter,
        };
        let task = tokio::spawn(accept(listener, Arc::new(noted), Arc::new(play)));
        Self {
            address,
            seen,
            count,
            task: AbortOnDropHandle::new(task),
        }
    }

    pub(super) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub(super) fn seen(&self) -> Vec<SeenRequest> {
        self.seen.lock().clone()
    }

    /// Returns the methods of all requests so far.
    pub(super) fn whats(&self) -> Vec<String> {
        let seen = self.seen();
        seen.iter().map(|asked| asked.what().to_owned()).collect()
    }

    /// Waits for a request of this method.
    pub(super) async fn until(&self, what: &str) -> SeenRequest {
        self.until_one(|asked| asked.what() == what).await
    }

    pub(super) async fn until_one(&self, is_it: impl Fn(&SeenRequest) -> bool) -> SeenRequest {
        let mut count = self.count.clone();
        let waiting = async {
            loop {
                let found = self.seen().into_iter().find(&is_it);
                if let Some(asked) = found {
                    return asked;
                }
                count.changed().await.unwrap();
            }
        };
        let asked = timeout(UNTIL_MAX, waiting).await;
        asked.unwrap_or_else(|_| panic!("received only {:?}", self.whats()))
    }
}

struct Noted {
    seen: Arc<Mutex<Vec<SeenRequest>>>,
    counter: watch::Sender<usize>,
}

async fn accept(listener: TcpListener, noted: Arc<Noted>, play: Play) {
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        connections.spawn(serve(stream, Arc::clone(&noted), Arc::clone(&play)));
    }
}

async fn serve(stream: TcpStream, noted: Arc<Noted>, play: Play) -> Option<()> {
    let mut stream = BufReader::new(stream);
    loop {
        let asked = read(&mut stream).await?;
        noted.seen.lock().push(asked.clone());
        noted.counter.send_modify(|count| *count += 1);
        match play(&asked) {
            FakeResponse::Whole {
                status,
                headers,
                body,
            } => {
                let mut head = format!("HTTP/1.1 {status} S\r\ncontent-length: {}\r\n", body.len());
                for (name, value) in headers {
                    head += &format!("{name}: {value}\r\n");
                }
                let whole = format!("{head}\r\n{body}");
                stream.write_all(whole.as_bytes()).await.ok()?;
            }
            FakeResponse::Events(first, mut later) => {
                let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n";
                stream.write_all(head.as_bytes()).await.ok()?;
                for event in first {
                    stream.write_all(event.as_bytes()).await.ok()?;
                }
                while let Some(event) = later.recv().await {
                    stream.write_all(event.as_bytes()).await.ok()?;
                }
                return None;
            }
            FakeResponse::Hang => {
                // Returns when the client closes the connection.
                let _ = stream.read_u8().await;
                return None;
            }
        }
    }
}

async fn read(stream: &mut BufReader<TcpStream>) -> Option<SeenRequest> {
    let mut line = String::new();
    stream.read_line(&mut line).await.ok()?;
    let mut words = line.split_whitespace().map(str::to_owned);
    let (method, path) = (words.next()?, words.next()?);
    let mut headers = BTreeMap::new();
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).await.ok()?;
        let Some((name, value)) = line.trim_end().split_once(": ") else {
            break;
        };
        headers.insert(name.to_ascii_lowercase(), value.to_owned());
    }
    let length = headers.get("content-length");
    let mut body = vec![0; length.and_then(|text| text.parse().ok()).unwrap_or(0)];
    stream.read_exact(&mut body).await.ok()?;
    Some(SeenRequest {
        method,
        path,
        headers,
        body: serde_json::from_slice(&body).unwrap_or_default(),
        text: String::from_utf8_lossy(&body).into_owned(),
    })
}
