//! A bridge for a client that calls tools by names of its own choice: a call of `NAME` is forwarded
//! as `execute_dynamic_tool` with `SERVER/NAME`. Everything else is forwarded unchanged, in both
//! directions and without buffering.

use std::{convert::Infallible, net::SocketAddr, sync::Arc};

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::{
    Request, Response,
    body::Incoming,
    client,
    header::{CONTENT_LENGTH, HOST, HeaderMap, HeaderValue, ORIGIN, TRANSFER_ENCODING},
    server,
    service::service_fn,
};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::{
    net::{TcpListener, TcpStream},
    task::JoinHandle,
};

const EXECUTE: &str = "execute_dynamic_tool";
/// Tools that are called under their own names.
const OURS: [&str; 3] = ["search_tools", "describe_tool", EXECUTE];

/// A bridge, which listens until it is dropped.
#[derive(Debug)]
pub struct Bridge {
    address: SocketAddr,
    listening: JoinHandle<()>,
}

impl Bridge {
    /// Starts a bridge to the tools of `server` behind the proxy at `address`.
    pub async fn to(address: SocketAddr, server: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await;
        let listener = listener.expect("there is a free port");
        let own = listener.local_addr().expect("the socket is bound");
        let way = Arc::new(BridgePath {
            own,
            to: address,
            server: server.to_owned(),
        });
        Self {
            address: own,
            listening: tokio::spawn(listen(listener, way)),
        }
    }

    /// Returns the address of the bridge.
    pub fn url(&self) -> String {
        format!("http://{}/mcp", self.address)
    }
}

impl Drop for Bridge {
    fn drop(&mut self) {
        self.listening.abort();
    }
}

struct BridgePath {
    own: SocketAddr,
    to: SocketAddr,
    server: String,
}

async fn listen(listener: TcpListener, way: Arc<BridgePath>) {
    while let Ok((stream, _)) = listener.accept().await {
        let way = Arc::clone(&way);
        let pass = service_fn(move |request| {
            let way = Arc::clone(&way);
            async move { Ok::<_, Infallible>(way.pass(request).await) }
        });
        let connection =
            server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), pass);
        tokio::spawn(connection);
    }
}

impl BridgePath {
    async fn pass(&self, request: Request<Incoming>) -> Response<Incoming> {
        let (mut head, body) = request.into_parts();
        let body = body.collect().await.expect("the client sends its body");
        let body = self.translate(body.to_bytes(), &mut head.headers);
        // Only the bridge's own address is replaced; the proxy checks any other name of the client.
        for name in [HOST, ORIGIN] {
            let said = head.headers.get(&name).and_then(|it| it.to_str().ok());
            let meant = said.map(|it| it.replace(&self.own.to_string(), &self.to.to_string()));
            if let Some(meant) = meant {
                let meant =
                    HeaderValue::from_str(&meant).expect("an address is a valid header value");
                head.headers.insert(name, meant);
            }
        }
        head.headers.remove(TRANSFER_ENCODING);
        head.headers.insert(CONTENT_LENGTH, body.len().into());
        let stream = TcpStream::connect(self.to)
            .await
            .expect("the proxy listens");
        let (mut sender, connection) = client::conn::http1::handshake(TokioIo::new(stream))
            .await
            .expect("the proxy speaks HTTP");
        tokio::spawn(connection);
        let request = Request::from_parts(head, Full::new(body));
        sender
            .send_request(request)
            .await
            .expect("the proxy answers")
    }

    fn translate(&self, body: Bytes, headers: &mut HeaderMap) -> Bytes {
        const NAME: &str = "mcp-name";
        let Ok(mut message) = serde_json::from_slice::<Value>(&body) else {
            return body;
        };
        let tool = message["params"]["name"].as_str().unwrap_or_default();
        if message["method"] != "tools/call" || OURS.contains(&tool) {
            return body;
        }
        let tool = format!("{}/{tool}", self.server);
        let params = &mut message["params"];
        let input = match params["arguments"].clone() {
            Value::Null => json!({}),
            given => given,
        };
        params["arguments"] = json!({ "tool_name": tool, "tool_input": input });
        params["name"] = json!(EXECUTE);
        if headers.contains_key(NAME) {
            headers.insert(NAME, HeaderValue::from_static(EXECUTE));
        }
        message.to_string().into()
    }
}
