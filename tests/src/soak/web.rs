//! A client over HTTP: one session, and connections that are kept.

use std::{
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
    client::conn::http1::{self, SendRequest},
};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::{net::TcpStream, sync::Mutex, time::timeout};

use super::{
    heard::{ANSWER_WITHIN, Heard},
    tally::{Fate, Tally},
};
use crate::fake::LEGACY_VERSION;

#[derive(Debug)]
pub(super) struct WebLoad {
    address: SocketAddr,
    /// None until the session begins, and again once the daemon has lost it.
    session: Mutex<Option<Arc<str>>>,
    next_id: AtomicU64,
    tally: Arc<Tally>,
}

/// One connection of a client, for one request after the other.
#[derive(Debug)]
pub(super) struct WebConnection {
    web: Arc<WebLoad>,
    sender: Option<SendRequest<Full<Bytes>>>,
}

/// A whole response.
struct Response {
    status: u16,
    headers: HeaderMap,
    body: Bytes,
}

impl WebLoad {
    pub(super) fn new(address: SocketAddr, tally: &Arc<Tally>) -> Arc<Self> {
        Arc::new(Self {
            address,
            session: Mutex::default(),
            next_id: AtomicU64::new(1),
            tally: Arc::clone(tally),
        })
    }

    async fn forget(&self, session: &str) {
        let mut known = self.session.lock().await;
        if known.as_deref() == Some(session) {
            *known = None;
        }
    }
}

impl WebConnection {
    pub(super) fn new(web: &Arc<WebLoad>) -> Self {
        Self {
            web: Arc::clone(web),
            sender: None,
        }
    }

    /// Sends a request. Dropping the future closes the connection.
    pub(super) async fn ask(&mut self, method: &str, params: Value) -> Heard {
        match self.try_ask(method, params).await {
            Ok(answer) => Heard::Answer(answer),
            Err(heard) => heard,
        }
    }

    pub(super) fn close(&mut self) {
        self.sender = None;
    }

    async fn try_ask(&mut self, method: &str, params: Value) -> Result<Value, Heard> {
        let session = self.session().await?;
        let id = self.web.next_id.fetch_add(1, Ordering::SeqCst);
        let request = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        let response = self.exchange(&request, Some(&session)).await?;
        if response.status == 404 {
            self.web.forget(&session).await;
            return Err(Heard::Broken(
                "the session is not known any more".to_owned(),
            ));
        }
        self.answer_in(&response, id)
    }

    /// Returns the client's session; starts one if there is none.
    async fn session(&mut self) -> Result<Arc<str>, Heard> {
        let web = Arc::clone(&self.web);
        let mut known = web.session.lock().await;
        if let Some(session) = &*known {
            return Ok(Arc::clone(session));
        }
        let id = web.next_id.fetch_add(1, Ordering::SeqCst);
        let greeting = json!({
            "protocolVersion": LEGACY_VERSION,
            "capabilities": {},
            "clientInfo": { "name": "soak-web", "version": "1.0.0" },
        });
        let request =
            json!({ "jsonrpc": "2.0", "id": id, "method": "initialize", "params": greeting });
        let response = self.exchange(&request, None).await?;
        self.answer_in(&response, id)?;
        let session = response.headers.get("mcp-session-id");
        let session = session.and_then(|session| session.to_str().ok());
        let session: Arc<str> = session
            .ok_or_else(|| Heard::Odd("an answer to initialize without a session".to_owned()))?
            .into();
        let ready = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        self.exchange(&ready, Some(&session)).await?;
        *known = Some(Arc::clone(&session));
        Ok(session)
    }

    /// Returns the only response message of a response.
    fn answer_in(&self, response: &Response, id: u64) -> Result<Value, Heard> {
        let text = String::from_utf8_lossy(&response.body);
        match response.status {
            200 => {}
            202 => return Err(Heard::Unanswered),
            503 => return Err(Heard::Broken(text.into_owned())),
            status => return Err(Heard::Odd(format!("status {status}: {text}"))),
        }
        let mut answers = messages(&response.headers, &text)?;
        answers.retain(|message| message.get("method").is_none());
        if answers.len() > 1 {
            self.web.tally.note(Fate::AnsweredTwice, &text);
        }
        match answers.into_iter().next() {
            None => Err(Heard::Unanswered),
            Some(answer) if answer["id"] == id => Ok(answer),
            Some(answer) => Err(Heard::Anothers(format!("{id} asked, {answer}"))),
        }
    }

    /// Sends one message and reads the whole response.
    async fn exchange(
        &mut self,
        message: &Value,
        session: Option<&str>,
    ) -> Result<Response, Heard> {
        let exchange = self.try_exchange(message, session);
        let answered = timeout(ANSWER_WITHIN, exchange).await;
        let answered = answered.map_err(|_| Heard::Unanswered);
        match answered {
            Ok(Ok(response)) => Ok(response),
            Ok(Err(error)) => {
                self.sender = None;
                Err(Heard::Broken(error.to_string()))
            }
            Err(heard) => {
                self.sender = None;
                Err(heard)
            }
        }
    }

    async fn try_exchange(
        &mut self,
        message: &Value,
        session: Option<&str>,
    ) -> Result<Response, Box<dyn std::error::Error + Send + Sync>> {
        let mut request = Request::builder()
            .method("POST")
            .uri("/mcp")
            .header("host", self.web.address.to_string())
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream");
        if let Some(session) = session {
            request = request
                .header("mcp-session-id", session)
                .header("mcp-protocol-version", LEGACY_VERSION);
        }
        let request = request.body(Full::new(message.to_string().into()))?;
        let response = self.sender().await?.send_request(request).await?;
        let (head, body) = response.into_parts();
        Ok(Response {
            status: head.status.as_u16(),
            headers: head.headers,
            body: body.collect().await?.to_bytes(),
        })
    }

    /// Returns the connection to the daemon; connects if needed.
    async fn sender(
        &mut self,
    ) -> Result<&mut SendRequest<Full<Bytes>>, Box<dyn std::error::Error + Send + Sync>> {
        let is_open = match &mut self.sender {
            Some(sender) => sender.ready().await.is_ok(),
            None => false,
        };
        if !is_open {
            let stream = TcpStream::connect(self.web.address).await?;
            let (sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
            tokio::spawn(connection);
            self.sender = Some(sender);
        }
        Ok(self.sender.as_mut().expect("the connection was just made"))
    }
}

/// Returns the messages of a response, which may be JSON or an event stream.
fn messages(headers: &HeaderMap, text: &str) -> Result<Vec<Value>, Heard> {
    let kind = headers.get("content-type");
    let is_stream = kind.is_some_and(|kind| kind.as_bytes().starts_with(b"text/event-stream"));
    let parse = |json: &str| {
        serde_json::from_str(json).map_err(|error| Heard::Odd(format!("{error} in {json}")))
    };
    if !is_stream {
        return Ok(vec![parse(text)?]);
    }
    // The first event of a stream has an id and no data: a client may resume from it.
    let data = text.lines().filter_map(|line| line.strip_prefix("data: "));
    data.filter(|json| !json.is_empty()).map(parse).collect()
}

#[cfg(test)]
mod tests {
    use hyper::header::HeaderValue;

    use super::*;

    fn answer(status: u16, kind: &'static str, body: &'static str) -> Result<Value, Heard> {
        let web = WebLoad::new(([127, 0, 0, 1], 1).into(), &Arc::default());
        let mut headers = HeaderMap::new();
        headers.insert("content-type", HeaderValue::from_static(kind));
        let response = Response {
            status,
            headers,
            body: Bytes::from_static(body.as_bytes()),
        };
        let heard = WebConnection::new(&web).answer_in(&response, 5);
        match web.tally.of(Fate::AnsweredTwice) {
            0 => heard,
            _ => Err(Heard::Odd("twice".to_owned())),
        }
    }

    #[test]
    fn a_response_holds_one_answer_or_says_what_is_wrong() {
        const JSON: &str = "application/json";
        const EVENTS: &str = "text/event-stream";
        assert!(answer(200, JSON, r#"{"id":5,"result":{}}"#).is_ok());
        let noted = "data: {\"method\":\"x\"}\n\n: alive\n\ndata: {\"id\":5,\"result\":{}}\n\n";
        assert!(answer(200, EVENTS, noted).is_ok());
        for (status, kind, body) in [
            (202, JSON, ""),
            (200, EVENTS, "data: {\"method\":\"x\"}\n\n"),
        ] {
            assert!(matches!(answer(status, kind, body), Err(Heard::Unanswered)));
        }
        let other = answer(200, JSON, r#"{"id":6,"result":{}}"#);
        assert!(matches!(other, Err(Heard::Anothers(_))));
        let twice = "data: {\"id\":5,\"result\":{}}\n\ndata: {\"id\":5,\"result\":{}}\n\n";
        for (status, body) in [(200, twice), (200, "data: no JSON\n\n"), (500, "")] {
            assert!(matches!(answer(status, EVENTS, body), Err(Heard::Odd(_))));
        }
    }
}
