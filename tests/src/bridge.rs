//! A bridge for a client that calls tools by names of its own choice: a call of `NAME` goes on as
//! `execute_dynamic_tool` with `SERVER/NAME`. Everything else passes as it is.

use std::{convert::Infallible, net::SocketAddr, sync::Arc};

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::{
    Request, Response,
    body::Incoming,
    client,
    header::{CONTENT_LENGTH, HOST, HeaderValue, TRANSFER_ENCODING},
    server,
    service::service_fn,
};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::{
    net::{TcpListener, TcpStream},
    task::JoinHandle,
};

/// It listens until it is dropped.
#[derive(Debug)]
pub struct Bridge {
    address: SocketAddr,
    listening: JoinHandle<()>,
}

impl Bridge {
    /// To the tools of `server` behind the proxy at `address`.
    pub async fn to(address: SocketAddr, server: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await;
        let listener = listener.expect("some port is free");
        let server: Arc<str> = server.into();
        Self {
            address: listener.local_addr().expect("it is bound"),
            listening: tokio::spawn(listen(listener, address, server)),
        }
    }

    /// The address of the bridge.
    pub fn url(&self) -> String {
        format!("http://{}/mcp", self.address)
    }
}

impl Drop for Bridge {
    fn drop(&mut self) {
        self.listening.abort();
    }
}

async fn listen(listener: TcpListener, address: SocketAddr, server: Arc<str>) {
    while let Ok((stream, _)) = listener.accept().await {
        let server = Arc::clone(&server);
        let pass = service_fn(move |request| {
            let server = Arc::clone(&server);
            async move { Ok::<_, Infallible>(pass(request, address, &server).await) }
        });
        let connection =
            server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), pass);
        tokio::spawn(connection);
    }
}

async fn pass(request: Request<Incoming>, to: SocketAddr, server: &str) -> Response<Incoming> {
    let (mut head, body) = request.into_parts();
    let body = body.collect().await.expect("the client sends its body");
    let body = translated(body.to_bytes(), server);
    let host = HeaderValue::from_str(&to.to_string()).expect("an address is a value");
    head.headers.insert(HOST, host);
    head.headers.remove(TRANSFER_ENCODING);
    head.headers.insert(CONTENT_LENGTH, body.len().into());
    let stream = TcpStream::connect(to).await.expect("the proxy listens");
    let (mut sender, connection) = client::conn::http1::handshake(TokioIo::new(stream))
        .await
        .expect("it speaks HTTP");
    tokio::spawn(connection);
    let request = Request::from_parts(head, Full::new(body));
    sender.send_request(request).await.expect("it answers")
}

fn translated(body: Bytes, server: &str) -> Bytes {
    let Ok(mut message) = serde_json::from_slice::<Value>(&body) else {
        return body;
    };
    if message["method"] != "tools/call" {
        return body;
    }
    let params = &mut message["params"];
    let tool = params["name"].as_str().unwrap_or_default();
    let input = match params["arguments"].clone() {
        Value::Null => json!({}),
        given => given,
    };
    params["arguments"] = json!({ "tool_name": format!("{server}/{tool}"), "tool_input": input });
    params["name"] = json!("execute_dynamic_tool");
    message.to_string().into()
}
