//! A web server with a few JSON documents, which remembers what it was asked.

use std::{collections::BTreeMap, sync::Arc};

use parking_lot::Mutex;
use serde_json::Value;
use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader},
    net::{TcpListener, TcpStream},
};

/// A server that runs until it is dropped with the runtime.
#[derive(Debug)]
pub struct Documents {
    url: String,
    held: Arc<Mutex<Held>>,
}

#[derive(Debug, Default)]
struct Held {
    /// By path; a path with a query is looked up without it as well.
    documents: BTreeMap<String, String>,
    /// The targets of all requests.
    asked: Vec<String>,
}

impl Documents {
    /// Listens on a loopback address, without a document.
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await;
        let listener = listener.expect("there is a free port");
        let address = listener.local_addr().expect("the socket is bound");
        let held = Arc::<Mutex<Held>>::default();
        let served = Arc::clone(&held);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(answer(stream, Arc::clone(&served)));
            }
        });
        Self {
            url: format!("http://{address}"),
            held,
        }
    }

    /// Returns the address of the server, without a path.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Serves a document at a path.
    pub fn put(&self, path: &str, document: &Value) {
        let mut held = self.held.lock();
        held.documents.insert(path.to_owned(), document.to_string());
    }

    /// Returns the targets of all requests so far.
    pub fn asked(&self) -> Vec<String> {
        self.held.lock().asked.clone()
    }
}

async fn answer(stream: TcpStream, shared: Arc<Mutex<Held>>) -> std::io::Result<()> {
    let mut stream = BufReader::new(stream);
    let mut request = String::new();
    while !request.ends_with("\r\n\r\n") && stream.read_line(&mut request).await? > 0 {}
    let target = request.split(' ').nth(1).unwrap_or_default().to_owned();
    let document = {
        let mut held = shared.lock();
        held.asked.push(target.clone());
        let path = target.split('?').next().unwrap_or_default();
        let found = held
            .documents
            .get(&target)
            .or_else(|| held.documents.get(path));
        found.cloned()
    };
    let (status, body) = match document {
        Some(body) => ("200 OK", body),
        None => (
            "404 Not Found",
            r#"{"error":"Server not found"}"#.to_owned(),
        ),
    };
    let start = format!(
        "HTTP/1.1 {status}\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(start.as_bytes()).await?;
    stream.write_all(body.as_bytes()).await?;
    stream.shutdown().await
}
