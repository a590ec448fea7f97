//! A fake remote server: streamable HTTP, legacy era, on a loopback address.

use std::{
    collections::BTreeSet,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use parking_lot::{Mutex, MutexGuard};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader},
    net::{TcpListener, TcpStream},
    task::{JoinHandle, JoinSet},
};

use super::LEGACY_VERSION;

/// The behaviour of the server for the next requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mood {
    #[default]
    Good,
    /// Responds with an event stream.
    Streams,
    /// Responds to calls with this status.
    Refuses(u16),
    /// Responds to every request with this status.
    RefusesAll(u16),
    /// Never responds to calls.
    Hangs,
    /// Closes the stream of a response before the response.
    DropsStreams,
    /// Responds to calls with this text as JSON, in which `$ID` is the request's id.
    Json(&'static str),
    /// Responds to calls with this text as an event stream, in which `$ID` is the request's id.
    Events(&'static str),
}

/// A server whose only tool `echo` returns its arguments.
#[derive(Debug)]
pub struct Far {
    port: u16,
    ear: Arc<Ear>,
    listening: JoinHandle<()>,
}

#[derive(Debug, Default)]
struct Ear {
    mood: Mutex<Mood>,
    sessions: Mutex<BTreeSet<String>>,
    sessions_made: AtomicUsize,
    requests: Mutex<Vec<String>>,
    calls: AtomicUsize,
}

impl Far {
    /// Starts a server on a free port.
    pub async fn listen() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await;
        let listener = listener.expect("there is a free port");
        let port = listener.local_addr().expect("the socket is bound").port();
        let ear = Arc::new(Ear::default());
        let listening = tokio::spawn(Arc::clone(&ear).hear_all(listener));
        Self {
            port,
            ear,
            listening,
        }
    }

    /// Returns the address of the server.
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}/mcp", self.port)
    }

    /// Changes the behaviour of the server.
    pub fn be(&self, mood: Mood) {
        *lock(&self.ear.mood) = mood;
    }

    /// Closes every connection and stops listening.
    pub async fn stop(&mut self) {
        self.listening.abort();
        drop((&mut self.listening).await);
    }

    /// Listens on the same port again, without any session.
    pub async fn start(&mut self) {
        lock(&self.ear.sessions).clear();
        let listener = TcpListener::bind(("127.0.0.1", self.port)).await;
        let ear = Arc::clone(&self.ear);
        self.listening = tokio::spawn(ear.hear_all(listener.expect("the port was ours")));
    }

    /// Removes all sessions, like a restarted server behind a load balancer that kept its
    /// connections.
    pub fn forget_sessions(&self) {
        lock(&self.ear.sessions).clear();
    }

    /// Returns the number of `initialize` requests that were answered.
    pub fn sessions_made(&self) -> usize {
        self.ear.sessions_made.load(Ordering::SeqCst)
    }

    /// Returns the requests so far, in order: the HTTP method, then the method of the message.
    pub fn requests(&self) -> Vec<String> {
        lock(&self.ear.requests).clone()
    }

    /// Returns the number of calls received.
    pub fn calls(&self) -> usize {
        self.ear.calls.load(Ordering::SeqCst)
    }
}

impl Drop for Far {
    fn drop(&mut self) {
        self.listening.abort();
    }
}

struct Heard {
    method: String,
    session: Option<String>,
    body: Value,
}

impl Ear {
    /// Accepts connections. Dropping the future closes them all.
    async fn hear_all(self: Arc<Self>, listener: TcpListener) {
        let mut connections = JoinSet::new();
        while let Ok((stream, _)) = listener.accept().await {
            connections.spawn(Arc::clone(&self).hear(stream));
            while connections.try_join_next().is_some() {}
        }
    }

    /// Reads requests until the client closes the connection.
    async fn hear(self: Arc<Self>, stream: TcpStream) {
        let mut stream = BufReader::new(stream);
        while let Some(heard) = read(&mut stream).await {
            let asked = heard.body["method"].as_str().unwrap_or_default();
            lock(&self.requests).push(format!("{} {asked}", heard.method));
            let Some(answer) = self.answer(&heard).await else {
                return;
            };
            if stream.write_all(answer.as_bytes()).await.is_err() || !answer.contains("-length: ") {
                return;
            }
        }
    }

    /// Returns the whole response; none closes the connection.
    async fn answer(&self, heard: &Heard) -> Option<String> {
        let mood = *lock(&self.mood);
        let is_call = heard.body["method"] == "tools/call";
        if is_call {
            self.calls.fetch_add(1, Ordering::SeqCst);
        }
        match mood {
            Mood::RefusesAll(status) => return Some(with_status(status, "", "")),
            Mood::Refuses(status) if is_call => return Some(with_status(status, "", "")),
            Mood::Hangs if is_call => std::future::pending().await,
            Mood::Json(text) if is_call => {
                let body = text.replace("$ID", &heard.body["id"].to_string());
                return Some(with_status(
                    200,
                    "content-type: application/json\r\n",
                    &body,
                ));
            }
            Mood::Events(text) if is_call => {
                return Some(streamed(
                    &text.replace("$ID", &heard.body["id"].to_string()),
                ));
            }
            _ => {}
        }
        if heard.method != "POST" {
            return Some(with_status(405, "", ""));
        }
        let result = match heard.body["method"].as_str().unwrap_or_default() {
            "initialize" => return Some(self.greet(heard)),
            "server/discover" => return Some(reply(heard, Err(-32601), "")),
            _ if !self.knows(heard) => return Some(with_status(404, "", "")),
            "tools/list" => Ok(json!({ "tools": [{
                "name": "echo",
                "description": "Say it again.",
                "inputSchema": { "type": "object" }
            }] })),
            "tools/call" => {
                let text = heard.body["params"]["arguments"].to_string();
                Ok(json!({ "content": [{ "type": "text", "text": text }] }))
            }
            "ping" => Ok(json!({})),
            _ if heard.body.get("id").is_none() => return Some(with_status(202, "", "")),
            _ => Err(-32601),
        };
        Some(match mood {
            Mood::DropsStreams if is_call => streamed(": it breaks off\n\n"),
            Mood::Streams | Mood::DropsStreams => {
                let message = message(heard, result);
                streamed(&format!("event: message\ndata: {message}\n\n"))
            }
            _ => reply(heard, result, ""),
        })
    }

    fn greet(&self, heard: &Heard) -> String {
        let number = self.sessions_made.fetch_add(1, Ordering::SeqCst);
        let session = format!("session-{number}");
        lock(&self.sessions).insert(session.clone());
        let result = json!({
            "protocolVersion": LEGACY_VERSION,
            "capabilities": { "tools": {} },
            "serverInfo": { "name": "far", "version": "1.0.0" }
        });
        reply(heard, Ok(result), &format!("mcp-session-id: {session}\r\n"))
    }

    fn knows(&self, heard: &Heard) -> bool {
        let sessions = lock(&self.sessions);
        heard
            .session
            .as_ref()
            .is_some_and(|session| sessions.contains(session))
    }
}

/// Reads one request; none at the end of the connection.
async fn read(stream: &mut BufReader<TcpStream>) -> Option<Heard> {
    let mut line = String::new();
    stream.read_line(&mut line).await.ok()?;
    let method = line.split(' ').next()?.to_owned();
    let (mut session, mut length) = (None, 0);
    loop {
        line.clear();
        if stream.read_line(&mut line).await.ok()? == 0 {
            return None;
        }
        let Some((name, value)) = line.trim().split_once(": ") else {
            break;
        };
        match name.to_ascii_lowercase().as_str() {
            "mcp-session-id" => session = Some(value.to_owned()),
            "content-length" => length = value.parse().ok()?,
            _ => {}
        }
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await.ok()?;
    Some(Heard {
        method,
        session,
        body: serde_json::from_slice(&body).unwrap_or_default(),
    })
}

fn message(heard: &Heard, result: Result<Value, i64>) -> Value {
    let id = &heard.body["id"];
    match result {
        Ok(result) => json!({ "jsonrpc": "2.0", "id": id, "result": result }),
        Err(code) => {
            json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code, "message": "no" } })
        }
    }
}

fn reply(heard: &Heard, result: Result<Value, i64>, headers: &str) -> String {
    let body = message(heard, result).to_string();
    let headers = format!("content-type: application/json\r\n{headers}");
    with_status(200, &headers, &body)
}

fn with_status(status: u16, headers: &str, body: &str) -> String {
    let length = body.len();
    format!("HTTP/1.1 {status} So\r\n{headers}content-length: {length}\r\n\r\n{body}")
}

/// Formats an event stream that ends with its connection.
fn streamed(events: &str) -> String {
    let headers = "content-type: text/event-stream\r\nconnection: close\r\n";
    format!("HTTP/1.1 200 So\r\n{headers}\r\n{events}")
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock()
}
