//! The client of one call, as servers ask it.

use std::{fmt, sync::Arc};

use fleet::{Answer, Asks, Question, QuestionKind};
use futures::{FutureExt as _, future::BoxFuture};
use jsonrpc::{Fields, Json, frame, text_of};
use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};
use tool::ServerName;

use super::{
    capabilities::Capabilities,
    session_questions::{GONE, SessionQuestions},
};
use crate::{out::Out, parked::RoundQuestion};

/// The client of one call, for whichever server asks.
#[derive(Clone)]
pub struct CallAsker {
    questions: Arc<SessionQuestions>,
    capabilities: Arc<Capabilities>,
    way: Way,
}

/// The way of a question to a client.
#[derive(Clone)]
enum Way {
    /// A request of ours, on the way on which the call came.
    Requests(Out),
    /// The answer to the call, which the client then makes again.
    Rounds(mpsc::Sender<RoundQuestion>),
    None,
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
            way: Way::Requests(out.clone()),
        }
    }

    /// Of a request that says itself what its client can.
    pub(crate) fn of_request(
        questions: &Arc<SessionQuestions>,
        announced: Json,
        rounds: mpsc::Sender<RoundQuestion>,
    ) -> Self {
        Self {
            questions: Arc::clone(questions),
            capabilities: Arc::new(Capabilities::read(announced)),
            way: Way::Rounds(rounds),
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
    /// Whether the client is asked by requests of ours.
    pub(crate) fn takes_requests(&self) -> bool {
        matches!(self.client.way, Way::Requests(_))
    }

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
        self.ask_named(question, None).boxed()
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

impl ServerAsker {
    /// Asks under the name that the server gave the question, where it did.
    pub(crate) async fn ask_named(&self, question: Question, key: Option<String>) -> Answer {
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
        let questions = &self.client.questions;
        match &self.client.way {
            Way::Requests(out) => questions.ask(out, kind, params.bytes()).await,
            Way::None => Answer::refuse(GONE),
            Way::Rounds(rounds) => {
                let (answer, answered) = oneshot::channel();
                let question = RoundQuestion {
                    key,
                    method: kind.method(),
                    params,
                    answer,
                };
                if rounds.try_send(question).is_err() {
                    return Answer::refuse(GONE);
                }
                answered.await.unwrap_or_else(|_| Answer::refuse(GONE))
            }
        }
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
            client.way = match &client.way {
                Way::Requests(_) => client.questions.way_home().map_or(Way::None, Way::Requests),
                Way::Rounds(_) | Way::None => Way::None,
            };
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
