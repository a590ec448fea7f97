//! An MCP client over streamable HTTP that sends whatever the test specifies, valid or not.

use std::{
    collections::VecDeque,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::{
    HeaderMap, Request,
    body::Incoming,
    client::conn::http1,
    header::{HeaderName, HeaderValue},
};
use hyper_util::rt::TokioIo;
use rustls::{
    ClientConfig, RootCertStore,
    pki_types::{CertificateDer, ServerName},
};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
    time::timeout,
};
use tokio_rustls::TlsConnector;

use crate::{
    client::{DEADLINE, Reply},
    fake::{META_CAPABILITIES, META_VERSION, MODERN_VERSION},
};

/// A client that opens a connection for each request.
#[derive(Clone)]
pub struct Web {
    address: SocketAddr,
    /// The path of MCP.
    path: String,
    tls: Option<TlsConnector>,
    headers: HeaderMap,
    /// The name that the client sends in each request, in the modern era.
    modern_name: Option<String>,
    next_id: Arc<AtomicU64>,
}

impl std::fmt::Debug for Web {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Web").finish_non_exhaustive()
    }
}

/// A response whose body may still be incomplete.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: HeaderMap,
    body: Incoming,
    text: String,
    events: VecDeque<String>,
    last_event: Option<String>,
}

impl Web {
    /// Creates a client of the proxy at this address, without a session.
    pub fn new(address: SocketAddr) -> Self {
        let web = Self {
            address,
            path: "/mcp".to_owned(),
            tls: None,
            headers: HeaderMap::new(),
            modern_name: None,
            next_id: Arc::new(AtomicU64::new(1)),
        };
        web.with("host", &address.to_string())
            .with("content-type", "application/json")
            .with("accept", "application/json, text/event-stream")
    }

    /// Returns the client with this header, which replaces others of its name.
    #[must_use]
    pub fn with(mut self, name: &str, value: &str) -> Self {
        let name: HeaderName = name.parse().expect("the header name is valid");
        let value = HeaderValue::from_str(value).expect("the header value is valid");
        self.headers.insert(name, value);
        self
    }

    /// Returns the client without headers of this name.
    #[must_use]
    pub fn without(mut self, name: &str) -> Self {
        self.headers.remove(name);
        self
    }

    /// Returns the client with another address of the proxy.
    #[must_use]
    pub fn at(mut self, address: SocketAddr) -> Self {
        self.address = address;
        self.with("host", &address.to_string())
    }

    /// Returns the client with another path of MCP, `/mcp/PROFILE`.
    #[must_use]
    pub fn under(mut self, path: &str) -> Self {
        path.clone_into(&mut self.path);
        self
    }

    /// Returns the id of its session.
    pub fn session(&self) -> &str {
        let id = self.headers.get("mcp-session-id");
        let id = id.expect("the client has a session");
        id.to_str().expect("a session id is text")
    }

    /// Returns the client over TLS with this certificate as its only trust anchor.
    #[must_use]
    pub fn trusting(mut self, certificate: CertificateDer<'static>) -> Self {
        let mut roots = RootCertStore::empty();
        roots.add(certificate).expect("the certificate is valid");
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("the provider supports the default versions")
            .with_root_certificates(roots)
            .with_no_client_auth();
        self.tls = Some(TlsConnector::from(Arc::new(config)));
        self
    }

    /// Returns a client of the modern era with this name.
    #[must_use]
    pub fn modern(mut self, name: &str) -> Self {
        self.modern_name = Some(name.to_owned());
        self.with("mcp-protocol-version", MODERN_VERSION)
    }

    /// Starts a session of the legacy era with this name; returns a client in it.
    pub async fn initialize(&self, name: &str, version: &str) -> Self {
        self.initialize_with(name, version, json!({})).await
    }

    /// Starts a session of the legacy era with this name and these capabilities; returns a client
    /// in it.
    pub async fn initialize_with(&self, name: &str, version: &str, capabilities: Value) -> Self {
        let params = json!({
            "protocolVersion": version,
            "capabilities": capabilities,
            "clientInfo": { "name": name, "version": "1.0.0" },
        });
        let answer = self.send("initialize", params).await.1;
        assert_eq!(answer.status, 200);
        let session = answer.headers.get("mcp-session-id").cloned();
        let result = answer.reply().await.into_result();
        assert_eq!(result["protocolVersion"], version);
        let mut client = self.clone().with("mcp-protocol-version", version);
        if let Some(session) = session {
            client.headers.insert("mcp-session-id", session);
        }
        let accepted = client.notify("notifications/initialized", json!({})).await;
        assert_eq!(accepted.status, 202);
        client
    }

    /// Sends a request; returns its id, and the response as far as it has arrived.
    pub async fn send(&self, method: &str, mut params: Value) -> (u64, Answer) {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let mut web = self.clone();
        if let Some(name) = &self.modern_name {
            params["_meta"][META_VERSION] = json!(MODERN_VERSION);
            if params["_meta"][META_CAPABILITIES].is_null() {
                params["_meta"][META_CAPABILITIES] = json!({});
            }
            params["_meta"]["io.modelcontextprotocol/clientInfo"] =
                json!({ "name": name, "version": "1.0.0" });
            web = web.with("mcp-method", method);
            if method == "tools/call" {
                let tool = params["name"].as_str().unwrap_or_default();
                web = web.with("mcp-name", tool);
            }
        }
        let message = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        (id, web.post(message.to_string()).await)
    }

    /// Sends a notification.
    pub async fn notify(&self, method: &str, params: Value) -> Answer {
        let message = json!({ "jsonrpc": "2.0", "method": method, "params": params });
        self.post(message.to_string()).await
    }

    /// Sends a request and reads the reply to it.
    pub async fn request(&self, method: &str, params: Value) -> Reply {
        self.send(method, params).await.1.reply().await
    }

    /// Calls one of the three tools.
    pub async fn call(&self, tool: &str, arguments: Value) -> Reply {
        let params = json!({ "name": tool, "arguments": arguments });
        self.request("tools/call", params).await
    }

    /// Calls `search_tools`.
    pub async fn search(&self, query: &str) -> Reply {
        self.call("search_tools", json!({ "query": query })).await
    }

    /// Calls a tool through `execute_dynamic_tool`.
    pub async fn execute(&self, tool: &str, input: Value) -> Reply {
        let arguments = json!({ "tool_name": tool, "tool_input": input });
        self.call("execute_dynamic_tool", arguments).await
    }

    /// Posts a body unchanged.
    pub async fn post(&self, body: impl Into<Bytes>) -> Answer {
        self.ask("POST", &self.path, body).await
    }

    /// Sends one request of any kind.
    pub async fn ask(&self, method: &str, path: &str, body: impl Into<Bytes>) -> Answer {
        let answer = timeout(DEADLINE, self.try_ask(method, path, body.into())).await;
        answer
            .expect("a response arrives in time")
            .expect("the response is HTTP")
    }

    /// Sends a request; the error is that of the connection.
    pub async fn try_ask(
        &self,
        method: &str,
        path: &str,
        body: Bytes,
    ) -> Result<Answer, Box<dyn std::error::Error + Send + Sync>> {
        let mut request = Request::builder()
            .method(method)
            .uri(path)
            .body(Full::new(body))?;
        *request.headers_mut() = self.headers.clone();
        let stream = TcpStream::connect(self.address).await?;
        let response = match &self.tls {
            None => exchange(stream, request).await?,
            Some(tls) => {
                let name = ServerName::IpAddress(self.address.ip().into());
                exchange(tls.connect(name, stream).await?, request).await?
            }
        };
        let (head, body) = response.into_parts();
        Ok(Answer {
            status: head.status.as_u16(),
            headers: head.headers,
            body,
            text: String::new(),
            events: VecDeque::new(),
            last_event: None,
        })
    }
}

async fn exchange(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    request: Request<Full<Bytes>>,
) -> Result<hyper::Response<Incoming>, hyper::Error> {
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    tokio::spawn(connection);
    sender.send_request(request).await
}

impl Answer {
    /// Returns true if the answer is a stream of events.
    pub fn is_stream(&self) -> bool {
        self.header("content-type") == "text/event-stream"
    }

    /// Returns the value of a header; empty if it is missing.
    pub fn header(&self, name: &str) -> &str {
        let value = self.headers.get(name);
        value.map_or("", |value| value.to_str().expect("the header is text"))
    }

    /// Returns the id of the last event received.
    pub fn last_event(&self) -> &str {
        self.last_event.as_deref().expect("an event has an id")
    }

    /// Reads the rest of the answer as text.
    pub async fn text(mut self) -> String {
        while self.more().await {}
        self.text
    }

    /// Returns the data of the next event; none at the end of the stream.
    pub async fn event(&mut self) -> Option<String> {
        loop {
            if let Some(event) = self.events.pop_front() {
                return Some(event);
            }
            let more = timeout(DEADLINE, self.more()).await;
            let more = more.expect("an event arrives in time");
            self.split();
            if !more && self.events.is_empty() {
                return None;
            }
        }
    }

    /// Waits for the first event of the stream and returns its id.
    pub async fn first_event_id(&mut self) -> &str {
        while self.last_event.is_none() {
            let more = timeout(DEADLINE, self.more()).await;
            assert!(
                more.expect("an event arrives in time"),
                "the stream ends without an event"
            );
            self.split();
        }
        self.last_event()
    }

    /// Moves complete events from the text to the queue.
    fn split(&mut self) {
        while let Some((event, rest)) = self.text.split_once("\n\n") {
            let data = event.lines().filter_map(|line| line.strip_prefix("data: "));
            let data: Vec<&str> = data.collect();
            let id = event.lines().find_map(|line| line.strip_prefix("id: "));
            self.last_event = id.map(str::to_owned).or_else(|| self.last_event.take());
            // An event with an id and no data only marks a position to resume from.
            if data.iter().any(|line| !line.is_empty()) {
                self.events.push_back(data.join("\n"));
            }
            self.text = String::from(rest);
        }
    }

    /// Returns the next message of the stream.
    pub async fn message(&mut self) -> Value {
        let event = self.event().await.expect("the stream has another event");
        serde_json::from_str(&event).expect("an event is a message")
    }

    /// Returns the reply, from JSON or from the last event of a stream.
    pub async fn reply(mut self) -> Reply {
        if !self.is_stream() {
            let line = timeout(DEADLINE, self.text())
                .await
                .expect("the stream ends in time");
            let message = serde_json::from_str(&line);
            let message = message.unwrap_or_else(|error| panic!("no JSON ({error}): {line:?}"));
            return Reply::new(line, message);
        }
        loop {
            let line = self.event().await.expect("the stream has an answer");
            let message: Value = serde_json::from_str(&line).expect("an event is a message");
            if message.get("method").is_none() {
                return Reply::new(line, message);
            }
        }
    }

    async fn more(&mut self) -> bool {
        match self.body.frame().await {
            Some(Ok(frame)) => {
                if let Ok(data) = frame.into_data() {
                    self.text.push_str(&String::from_utf8_lossy(&data));
                }
                true
            }
            Some(Err(_)) | None => false,
        }
    }
}
