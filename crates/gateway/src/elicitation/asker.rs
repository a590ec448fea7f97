//! The client of one call, as the target of questions from servers.

use std::{fmt, sync::Arc};

use fleet::{Asks, ClientAnswer, ClockStop, QuestionKind, ServerQuestion};
use futures::{
    FutureExt as _,
    future::{BoxFuture, join_all},
};
use jsonrpc::{Fields, Json, frame, quote, text_of};
use parking_lot::Mutex;
use script::Clock;
use tokio::sync::{mpsc, oneshot};
use tool::ServerName;

use super::{
    capabilities::Capabilities,
    session_questions::{GONE, SessionQuestions},
};
use crate::{
    elicitation::parked_calls::{RoundQuestion, RoundQuestions},
    json_text::write_object,
    out::Out,
    person_questions::PersonQuestions,
};

/// The client of one call, for any server that asks.
#[derive(Clone)]
pub struct CallAsker {
    questions: Arc<SessionQuestions>,
    capabilities: Arc<Capabilities>,
    route: QuestionRoute,
    /// The clocks of the scripts that make the call: they stop while the client is asked.
    clocks: Vec<Arc<Clock>>,
}

/// The transport of a question to a client.
#[derive(Clone)]
enum QuestionRoute {
    /// A request of ours, on the connection or stream of the call.
    Requests(Out),
    /// The response to the call, which the client then repeats.
    Rounds(mpsc::Sender<RoundQuestions>),
    None,
}

impl fmt::Debug for CallAsker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallAsker").finish_non_exhaustive()
    }
}

impl CallAsker {
    /// The client of a call in a session that began with `initialize`.
    pub(crate) fn in_session(questions: &Arc<SessionQuestions>, out: &Out) -> Self {
        Self {
            questions: Arc::clone(questions),
            capabilities: questions.capabilities.lock().clone(),
            route: QuestionRoute::Requests(out.clone()),
            clocks: Vec::new(),
        }
    }

    /// The client of a request that carries the client's capabilities itself.
    pub(crate) fn of_request(
        questions: &Arc<SessionQuestions>,
        announced: Json,
        rounds: mpsc::Sender<RoundQuestions>,
    ) -> Self {
        questions.add_rounds(&rounds);
        Self {
            questions: Arc::clone(questions),
            capabilities: Arc::new(Capabilities::read(announced)),
            route: QuestionRoute::Rounds(rounds),
            clocks: Vec::new(),
        }
    }

    /// Returns true if questions to the client are sent as the response to its request (from
    /// 2026-07-28 on).
    pub(crate) fn uses_rounds(&self) -> bool {
        matches!(self.route, QuestionRoute::Rounds(_))
    }

    /// Returns true if the client can have its person visit an address.
    pub(crate) fn opens_addresses(&self) -> bool {
        self.capabilities.has_part("elicitation", "url")
    }

    pub(crate) fn shows_apps(&self) -> bool {
        self.capabilities.shows_apps()
    }

    /// The client of the calls that a script makes.
    pub(crate) fn stopping(mut self, clock: &Arc<Clock>) -> Self {
        self.clocks.push(Arc::clone(clock));
        self
    }

    /// The name of the client, for the person who decides for it.
    pub(crate) fn client_name(&self) -> String {
        self.questions.client_name()
    }

    /// The questions to all clients that wait.
    pub(crate) fn people(&self) -> &PersonQuestions {
        self.questions.people()
    }

    /// Stops the clocks of the scripts that make the call, until the returned guard is dropped.
    pub(crate) fn stop_clocks(&self) -> impl Drop + Send + use<> {
        self.clocks.iter().map(Clock::stop).collect::<Vec<_>>()
    }

    /// The client as the target of questions from one server.
    pub(crate) fn for_server(&self, server: &ServerName) -> Arc<ServerAsker> {
        Arc::new(ServerAsker {
            client: self.clone(),
            server: server.clone(),
            untaken: Arc::default(),
        })
    }
}

/// The client of one call, as the target of questions from one server.
pub(crate) struct ServerAsker {
    client: CallAsker,
    server: ServerName,
    /// The kinds of questions that the client does not support, of those that were asked.
    untaken: Arc<Mutex<Vec<QuestionKind>>>,
}

impl ServerAsker {
    /// A line for the model if its client does not support a question of the server.
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
        self.client.questions.session()
    }

    fn client(&self) -> String {
        self.client.questions.client_name()
    }

    fn capabilities(&self) -> Json {
        self.client.capabilities.announced()
    }

    fn takes_rounds(&self) -> bool {
        self.client.uses_rounds()
    }

    fn until_away(&self) -> BoxFuture<'_, ()> {
        match self.client.route {
            QuestionRoute::Requests(_) => self.client.questions.until_away().boxed(),
            QuestionRoute::Rounds(_) | QuestionRoute::None => std::future::pending().boxed(),
        }
    }

    fn stop_clock(&self) -> ClockStop {
        ClockStop::default().and(self.client.stop_clocks())
    }

    fn in_session(&self) -> Option<Arc<dyn Asks>> {
        let QuestionRoute::Requests(_) = &self.client.route else {
            return None;
        };
        let home = self.client.questions.home_output()?;
        Some(Arc::new(Self {
            client: CallAsker {
                route: QuestionRoute::Requests(home),
                ..self.client.clone()
            },
            server: self.server.clone(),
            untaken: Arc::clone(&self.untaken),
        }))
    }

    fn ask(&self, question: ServerQuestion) -> BoxFuture<'_, ClientAnswer> {
        async move {
            let mut answers = self.ask_all(vec![(None, question)]).await;
            answers.pop().unwrap_or_else(|| ClientAnswer::refuse(GONE))
        }
        .boxed()
    }

    fn tell(&self, method: &str, params: &str) {
        if let Some(out) = self.client.questions.home_output() {
            out.offer(vec![frame::notification(method, params)]);
        }
    }

    fn without_call(&self) -> Arc<dyn Asks> {
        Arc::new(IdleClient {
            client: self.client.clone(),
            server: self.server.clone(),
        })
    }
}

impl ServerAsker {
    /// Asks several questions at once, each under the name that the server gave it, if any. The
    /// answers are in the order of the questions.
    pub(crate) async fn ask_all(
        &self,
        asked: Vec<(Option<String>, ServerQuestion)>,
    ) -> Vec<ClientAnswer> {
        let _stopped = self.client.stop_clocks();
        let mut round = Vec::new();
        let asking = asked.into_iter().map(|(key, question)| {
            let question = self.prepare(question)?;
            let for_people = question.kind == QuestionKind::Elicitation;
            let for_people = for_people.then(|| question.params.clone());
            let asked = match &self.client.route {
                QuestionRoute::Requests(out) => PendingQuestion::Request(out, question),
                QuestionRoute::None => PendingQuestion::Nowhere,
                QuestionRoute::Rounds(_) => {
                    // One with a name is of the call that goes in rounds with its server.
                    let moves_on = key.is_none().then(|| question.clone());
                    let (question, answered) = RoundQuestion::new(key, question);
                    round.push(question);
                    PendingQuestion::Told(answered, moves_on)
                }
            };
            Ok((asked, for_people))
        });
        let asking: Vec<Result<_, ClientAnswer>> = asking.collect();
        if let QuestionRoute::Rounds(rounds) = &self.client.route
            && !round.is_empty()
        {
            // A round that cannot be sent is dropped, which answers it.
            let _ = rounds.try_send(round);
        }
        let asking = asking.into_iter().map(async |asked| match asked {
            Err(refusal) => refusal,
            Ok((asked, None)) => self.answer_to(asked).await,
            Ok((asked, Some(params))) => {
                let questions = &self.client.questions;
                let shown = (&self.server, questions.client_name(), params);
                questions.people().race(shown, self.answer_to(asked)).await
            }
        });
        join_all(asking).await
    }

    async fn answer_to(&self, asked: PendingQuestion<'_>) -> ClientAnswer {
        match asked {
            PendingQuestion::Request(out, ServerQuestion { kind, params }) => {
                let questions = &self.client.questions;
                questions.ask(out, kind, params.bytes()).await
            }
            PendingQuestion::Told(answered, moves_on) => match (answered.await, moves_on) {
                (Ok(answer), _) => answer,
                (Err(_), Some(question)) => self.client.questions.ask_in_rounds(question).await,
                (Err(_), None) => ClientAnswer::refuse(GONE),
            },
            PendingQuestion::Nowhere => ClientAnswer::refuse(GONE),
        }
    }

    /// The question in the form for the client; an unsupported question is refused with the error.
    fn prepare(&self, question: ServerQuestion) -> Result<ServerQuestion, ClientAnswer> {
        let kind = question.kind;
        if let Some(lacking) = self.client.capabilities.find_lacking(&question) {
            let mut untaken = self.untaken.lock();
            if !untaken.contains(&kind) {
                untaken.push(kind);
            }
            let why = format!("{}: the client does not offer {lacking}", kind.method());
            return Err(ClientAnswer::refuse(&why));
        }
        let params = match kind {
            QuestionKind::Elicitation => name_server(&question.params, &self.server),
            QuestionKind::Sampling | QuestionKind::Roots => question.params,
        };
        Ok(ServerQuestion { kind, params })
    }
}

/// A question on its way to the client.
enum PendingQuestion<'a> {
    Request(&'a Out, ServerQuestion),
    /// Queued with the others of its round. If the call ends before the round is sent, the question
    /// may be sent with another call of the session.
    Told(oneshot::Receiver<ClientAnswer>, Option<ServerQuestion>),
    /// The client cannot be reached.
    Nowhere,
}

/// The same client when no call is in progress: it is asked over any stream that is open then.
struct IdleClient {
    client: CallAsker,
    server: ServerName,
}

impl Asks for IdleClient {
    fn session(&self) -> u64 {
        self.client.questions.session()
    }

    fn capabilities(&self) -> Json {
        self.client.capabilities.announced()
    }

    fn takes_rounds(&self) -> bool {
        self.client.uses_rounds()
    }

    fn ask(&self, question: ServerQuestion) -> BoxFuture<'_, ClientAnswer> {
        async move {
            let home = match &self.client.route {
                QuestionRoute::Requests(_) => self.client.questions.home_output(),
                QuestionRoute::Rounds(_) | QuestionRoute::None => None,
            };
            let client = CallAsker {
                route: home.map_or(QuestionRoute::None, QuestionRoute::Requests),
                ..self.client.clone()
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

/// Adds the server's name, so that the person sees which server asks.
fn name_server(params: &Json, server: &ServerName) -> Json {
    let Some(fields) = Fields::of(params.as_str()) else {
        return params.clone();
    };
    let members = fields.0.iter().map(|(key, value)| {
        let text = (key == "message").then(|| text_of(value)).flatten();
        let named = text.map(|text| quote(&format!("[{server}] {text}")));
        (key, named.unwrap_or_else(|| value.get().to_owned()))
    });
    Json::of_built(write_object(members))
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
