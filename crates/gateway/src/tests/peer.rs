//! A client that sends lines to a session, in either era.

use std::sync::Arc;

use jsonrpc::Sink;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, Lines, duplex},
    task::JoinHandle,
};
use tokio_util::sync::CancellationToken;

use super::memory::TestGateway;
use crate::{Connection, session};

/// One client.
pub(super) struct TestClient {
    input: Option<DuplexStream>,
    lines: Lines<BufReader<DuplexStream>>,
    session: JoinHandle<()>,
    stop: CancellationToken,
    meta: Option<Value>,
    last_id: u64,
    /// Notifications received before a response.
    pub(super) heard: Vec<Value>,
}

impl TestClient {
    /// A client of revision 2025-11-25; with what `initialize` was answered.
    pub(super) async fn open(scene: &TestGateway, name: &str) -> (Self, Value) {
        Self::open_with(scene, name, &json!({})).await
    }

    /// The same of a client that can be asked something.
    pub(super) async fn open_with(scene: &TestGateway, name: &str, can: &Value) -> (Self, Value) {
        let mut peer = Self::connect(scene, None);
        let params = json!({"protocolVersion": "2025-11-25", "capabilities": can,
            "clientInfo": {"name": name, "version": "1"}});
        let answer = peer.ask("initialize", params).await;
        peer.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}))
            .await;
        (peer, answer["result"].clone())
    }

    /// A client of revision 2026-07-28.
    pub(super) fn modern(scene: &TestGateway) -> Self {
        Self::modern_with(scene, &json!({}))
    }

    /// The same of a client that can be asked something.
    pub(super) fn modern_with(scene: &TestGateway, can: &Value) -> Self {
        let meta = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": can,
            "io.modelcontextprotocol/clientInfo": {"name": "modern", "version": "1"},
        });
        Self::connect(scene, Some(meta))
    }

    fn connect(scene: &TestGateway, meta: Option<Value>) -> Self {
        let (input, theirs) = duplex(1 << 20);
        let (output, lines) = duplex(1 << 20);
        let stop = CancellationToken::new();
        let gateway = Arc::clone(&scene.gateway);
        let connection = Connection {
            is_here: true,
            variables: Some(Arc::default()),
            ..Connection::default()
        };
        let serving = session::serve(
            gateway,
            connection,
            theirs,
            Sink::stream(output),
            stop.clone(),
        );
        Self {
            input: Some(input),
            lines: BufReader::new(lines).lines(),
            session: tokio::spawn(async move {
                serving.await;
            }),
            stop,
            meta,
            last_id: 0,
            heard: Vec::new(),
        }
    }

    pub(super) async fn send(&mut self, message: &Value) {
        let line = format!("{message}\n");
        let input = self.input.as_mut().unwrap();
        input.write_all(line.as_bytes()).await.unwrap();
    }

    /// Sends a request; returns its id.
    pub(super) async fn begin(&mut self, method: &str, mut params: Value) -> u64 {
        if let Some(meta) = &self.meta {
            params["_meta"] = meta.clone();
        }
        self.last_id += 1;
        let id = self.last_id;
        let request = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        self.send(&request).await;
        id
    }

    /// Reads the next line.
    pub(super) async fn next(&mut self) -> Value {
        let line = self.lines.next_line().await.unwrap().expect("a line");
        serde_json::from_str(&line).unwrap()
    }

    /// Sends a request and returns its response; stores other messages.
    pub(super) async fn ask(&mut self, method: &str, params: Value) -> Value {
        let id = self.begin(method, params).await;
        loop {
            let said = self.next().await;
            if said["id"] == id {
                return said;
            }
            self.heard.push(said);
        }
    }

    /// Returns the next notification of this method.
    pub(super) async fn hear(&mut self, method: &str) -> Value {
        loop {
            let kept = self.heard.iter().position(|it| it["method"] == method);
            if let Some(at) = kept {
                return self.heard.remove(at);
            }
            let said = self.next().await;
            self.heard.push(said);
        }
    }

    /// Stops the session; returns the remaining messages.
    pub(super) async fn stop(mut self) -> Vec<Value> {
        self.stop.cancel();
        let mut said = std::mem::take(&mut self.heard);
        while let Some(line) = self.lines.next_line().await.unwrap() {
            said.push(serde_json::from_str(&line).unwrap());
        }
        self.session.await.unwrap();
        said
    }
}
