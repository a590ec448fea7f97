//! What servers ask of our client: put to it, answered once, and taken back when nobody waits.

mod capabilities;

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use bytes::Bytes;
use dashmap::DashMap;
use fleet::{Answer, Asks, Question, QuestionKind};
use futures::{FutureExt as _, future::BoxFuture};
use jsonrpc::{Fields, Json, Message, canonical_id, frame, text_of};
use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::oneshot;
use tool::ServerName;
use tracing::debug;

pub(crate) use self::capabilities::Capabilities;
use crate::out::Out;

/// The questions that one session has open.
#[derive(Debug)]
pub(crate) struct SessionQuestions {
    /// Tells sessions apart.
    session: u64,
    /// Where what belongs to no request goes.
    home: Out,
    /// What the client announced when the session began.
    capabilities: Mutex<Arc<Capabilities>>,
    /// An id begins with it: one that answers a question of an earlier process answers none of ours.
    prefix: String,
    next: AtomicU64,
    /// By id, as JSON text.
    open: DashMap<String, oneshot::Sender<Answer>>,
    /// The ways to the client of the calls under way, the newest last.
    calls: Mutex<Vec<(u64, Out)>>,
}

impl SessionQuestions {
    pub(crate) fn new(session: u64, home: Out) -> Arc<Self> {
        let mut random = [0; 8];
        // Without randomness an answer that comes late could be taken for another.
        let _ = getrandom::fill(&mut random);
        Arc::new(Self {
            session,
            home,
            capabilities: Mutex::default(),
            prefix: format!("proxy-{:016x}", u64::from_ne_bytes(random)),
            next: AtomicU64::new(0),
            open: DashMap::new(),
            calls: Mutex::default(),
        })
    }

    /// Takes what the client says of itself in `initialize`.
    pub(crate) fn know_client(&self, message: &Message<'_>) {
        if message.method.as_deref() != Some("initialize") {
            return;
        }
        let params = message.params.and_then(|it| Fields::of(it.get()));
        let announced = params.and_then(|params| params.get("capabilities"));
        if let Some(announced) = announced.and_then(|it| jsonrpc::json(it.get().to_owned()).ok()) {
            *self.capabilities.lock() = Arc::new(Capabilities::read(announced));
        }
    }

    /// Takes the client's answer to a question; one that nobody waits for is dropped.
    pub(crate) fn take_answer(&self, line: &Bytes, message: &Message<'_>) {
        let id = message.id.and_then(|id| canonical_id(id.get()));
        let Some((_, answer)) = id.and_then(|id| self.open.remove(&id)) else {
            debug!("an answer of the client answers no question");
            return;
        };
        let _ = answer.send(match (message.result, message.error) {
            (_, Some(error)) => Answer::Error(Json::part_of(line, error)),
            (Some(result), None) => Answer::Result(Json::part_of(line, result)),
            (None, None) => Answer::refuse("the client's answer has neither a result nor an error"),
        });
    }

    /// Takes note of a call under way, until what is returned is dropped.
    pub(crate) fn begin_call(self: &Arc<Self>, out: &Out) -> impl Drop + use<> {
        let call = self.next.fetch_add(1, Ordering::Relaxed);
        self.calls.lock().push((call, out.clone()));
        CallUnderWay {
            questions: Arc::clone(self),
            call,
        }
    }

    /// The way to a client for which no call is named.
    fn way_home(&self) -> Option<Out> {
        match &self.home {
            Out::Router(router) => {
                let stream = router.stream().map(Out::Reply);
                stream.or_else(|| self.calls.lock().last().map(|(_, out)| out.clone()))
            }
            other => Some(other.clone()),
        }
    }

    async fn ask(self: &Arc<Self>, out: Option<Out>, kind: QuestionKind, params: Bytes) -> Answer {
        const GONE: &str = "the client is gone, or takes no requests";
        let Some(out) = out else {
            return Answer::refuse(GONE);
        };
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let id = Value::from(format!("{}-{number}", self.prefix)).to_string();
        let (answer, answered) = oneshot::channel();
        let key = canonical_id(&id).unwrap_or_else(|| id.clone());
        self.open.insert(key.clone(), answer);
        let request = frame::request(&id, kind.method(), [params]);
        let _open = OpenQuestion {
            questions: Arc::clone(self),
            key,
            id,
            out: out.clone(),
        };
        if out.tell(request).await.is_err() {
            return Answer::refuse(GONE);
        }
        tokio::select! {
            biased;
            answer = answered => answer.unwrap_or_else(|_| Answer::refuse(GONE)),
            () = out.gone() => Answer::refuse(GONE),
        }
    }
}

struct CallUnderWay {
    questions: Arc<SessionQuestions>,
    call: u64,
}

impl Drop for CallUnderWay {
    fn drop(&mut self) {
        let mut calls = self.questions.calls.lock();
        calls.retain(|(call, _)| *call != self.call);
    }
}

/// A question until its answer; dropped before, it is taken back.
struct OpenQuestion {
    questions: Arc<SessionQuestions>,
    key: String,
    id: String,
    out: Out,
}

impl Drop for OpenQuestion {
    fn drop(&mut self) {
        if self.questions.open.remove(&self.key).is_some() {
            let why = "nobody waits for the answer any more";
            let params = format!(r#"{{"requestId":{},"reason":"{why}"}}"#, self.id);
            let cancelled = frame::notification("notifications/cancelled", &params);
            self.out.offer(vec![cancelled]);
        }
    }
}

/// The client of one call, for whichever server asks.
#[derive(Clone)]
pub struct CallAsker {
    questions: Arc<SessionQuestions>,
    capabilities: Arc<Capabilities>,
    /// The way on which the call came; none where requests of ours cannot go to the client.
    out: Option<Out>,
}

impl fmt::Debug for CallAsker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallAsker").finish_non_exhaustive()
    }
}

impl CallAsker {
    /// Of a call in a session that began with `initialize`.
    pub(crate) fn in_session(questions: &Arc<SessionQuestions>, out: &Out) -> Self {
        Self {
            questions: Arc::clone(questions),
            capabilities: questions.capabilities.lock().clone(),
            out: Some(out.clone()),
        }
    }

    /// Of a request that says itself what its client can.
    pub(crate) fn of_request(questions: &Arc<SessionQuestions>, announced: Json) -> Self {
        Self {
            questions: Arc::clone(questions),
            capabilities: Arc::new(Capabilities::read(announced)),
            out: None,
        }
    }

    /// The client as one server asks it.
    pub(crate) fn for_server(&self, server: &ServerName) -> Arc<ServerAsker> {
        Arc::new(ServerAsker {
            client: self.clone(),
            server: server.clone(),
            untaken: Mutex::default(),
        })
    }
}

/// The client of one call, as one server asks it.
pub(crate) struct ServerAsker {
    client: CallAsker,
    server: ServerName,
    /// What was asked that the client cannot take.
    untaken: Mutex<Vec<QuestionKind>>,
}

impl ServerAsker {
    /// A line for the model where its client could not take what was asked.
    pub(crate) fn explain_untaken(&self) -> Option<String> {
        let untaken = self.untaken.lock();
        let methods: Vec<&str> = untaken.iter().map(|kind| kind.method()).collect();
        if methods.is_empty() {
            return None;
        }
        let (server, methods) = (&self.server, methods.join(", "));
        Some(format!(
            "[proxy: {server} asked for {methods}, which this client does not offer]"
        ))
    }
}

impl Asks for ServerAsker {
    fn session(&self) -> u64 {
        self.client.questions.session
    }

    fn capabilities(&self) -> Json {
        self.client.capabilities.announced()
    }

    fn ask(&self, question: Question) -> BoxFuture<'_, Answer> {
        async move {
            let kind = question.kind;
            if let Some(lacking) = self.client.capabilities.find_lacking(&question) {
                let mut untaken = self.untaken.lock();
                if !untaken.contains(&kind) {
                    untaken.push(kind);
                }
                let why = format!("{}: the client does not offer {lacking}", kind.method());
                return Answer::refuse(&why);
            }
            let params = match kind {
                QuestionKind::Elicitation => name_server(&question.params, &self.server),
                QuestionKind::Sampling | QuestionKind::Roots => question.params,
            };
            let out = self.client.out.clone();
            self.client.questions.ask(out, kind, params.bytes()).await
        }
        .boxed()
    }

    fn tell(&self, method: &str, params: &str) {
        if let Some(out) = self.client.questions.way_home() {
            out.offer(vec![frame::notification(method, params)]);
        }
    }

    fn without_call(&self) -> Arc<dyn Asks> {
        Arc::new(ClientAtHome {
            client: self.client.clone(),
            server: self.server.clone(),
        })
    }
}

/// The same client where no call is under way: it is asked over what is open then.
struct ClientAtHome {
    client: CallAsker,
    server: ServerName,
}

impl Asks for ClientAtHome {
    fn session(&self) -> u64 {
        self.client.questions.session
    }

    fn capabilities(&self) -> Json {
        self.client.capabilities.announced()
    }

    fn ask(&self, question: Question) -> BoxFuture<'_, Answer> {
        async move {
            let mut client = self.client.clone();
            client.out = client.out.and_then(|_| client.questions.way_home());
            client.for_server(&self.server).ask(question).await
        }
        .boxed()
    }

    fn tell(&self, method: &str, params: &str) {
        self.client.for_server(&self.server).tell(method, params);
    }

    fn without_call(&self) -> Arc<dyn Asks> {
        Arc::new(Self {
            client: self.client.clone(),
            server: self.server.clone(),
        })
    }
}

/// The person sees which server asks.
fn name_server(params: &Json, server: &ServerName) -> Json {
    let Some(fields) = Fields::of(params.as_str()) else {
        return params.clone();
    };
    let members = fields.0.iter().map(|(key, value)| {
        let named = (key == "message").then(|| text_of(value)).flatten();
        let value = match named {
            Some(text) => Value::from(format!("[{server}] {text}")).to_string(),
            None => value.get().to_owned(),
        };
        format!("{}:{value}", Value::from(key.as_ref()))
    });
    let members: Vec<String> = members.collect();
    Json::of_built(format!("{{{}}}", members.join(",")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_message_names_its_server_and_the_rest_stays_as_it_is() {
        let params = r#"{"mode": "form", "message":"Sure?", "requestedSchema":{"n": 1.0}}"#;
        let params = jsonrpc::json(params.to_owned()).expect("it is JSON");
        let named = name_server(&params, &"git".parse().expect("a name"));
        assert_eq!(
            named.as_str(),
            r#"{"mode":"form","message":"[git] Sure?","requestedSchema":{"n": 1.0}}"#
        );
    }
}
