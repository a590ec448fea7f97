//! Servers that ask in rounds (from 2026-07-28 on): a result asks for input, the client is asked,
//! and the request is sent again with the answers, until the result is final.

use std::sync::Arc;

use fleet::{Asks as _, CallError, ClientAnswer, QuestionKind, Request, ServerQuestion, Servers};
use jsonrpc::mcp::ADDRESSES_FIRST;
use jsonrpc::{Fields, Json, text_of};
use serde_json::{Value, value::RawValue};
use tokio_util::sync::CancellationToken;
use tool::ServerName;

use super::server_tasks::{ServerTask, follow};
use crate::elicitation::ServerAsker;

/// The most rounds of one call, so that no server asks without end.
const ROUNDS_MAX: usize = 10;

/// The most questions in one round.
const QUESTIONS_MAX: usize = 32;

const RESPONSES: &str = "inputResponses";
const STATE: &str = "requestState";

/// The reason why a request in rounds has no result.
#[derive(Debug)]
pub(crate) enum RoundError {
    Call(CallError),
    /// The input that the server requested cannot be provided; the reason.
    Unanswered(String),
}

impl From<CallError> for RoundError {
    fn from(error: CallError) -> Self {
        Self::Call(error)
    }
}

/// Sends a request to a server, and again with the input that the server asks for. Each round has
/// the timeout of the request; the time in which a person is asked does not count. A task that answers
/// the request is followed, after `on_task`.
pub(crate) async fn request_in_rounds(
    servers: &Arc<dyn Servers>,
    server: &ServerName,
    mut request: Request,
    asker: Option<&ServerAsker>,
    cancel: &CancellationToken,
    on_task: &(dyn Fn(&ServerTask) + Sync),
) -> Result<Json, RoundError> {
    for _ in 0..ROUNDS_MAX {
        let result = match servers.call(server, &request, cancel).await {
            Err(error) => {
                visit_addresses(error, asker).await?;
                continue;
            }
            Ok(result) => result,
        };
        let is_asked_for = request.param("task").is_some();
        if let Some(task) = ServerTask::of_answer(&result, is_asked_for) {
            on_task(&task);
            return follow(servers, server, &request, task, asker, cancel).await;
        }
        let Some(wanted) = RequestedInput::read(&result) else {
            return Ok(result);
        };
        let responses = wanted.ask(asker).await.map_err(RoundError::Unanswered)?;
        let params = &mut request.params;
        params.retain(|(key, _)| *key != RESPONSES && *key != STATE);
        params.push((RESPONSES.to_owned(), responses));
        params.extend(wanted.state.map(|state| (STATE.to_owned(), state)));
    }
    let why = format!("it asked for more {ROUNDS_MAX} times");
    Err(RoundError::Unanswered(why))
}

/// Has a client that supports rounds visit the addresses that a server of an earlier revision wants
/// visited first; the request is then made again. Any other error is returned unchanged.
async fn visit_addresses(error: CallError, asker: Option<&ServerAsker>) -> Result<(), RoundError> {
    let CallError::Protocol { error: said, .. } = &error else {
        return Err(error.into());
    };
    let asker = asker.filter(|it| it.takes_rounds() && said.code.parse() == Ok(ADDRESSES_FIRST));
    let wanted = said
        .data
        .as_deref()
        .and_then(RequestedInput::read_addresses);
    let (Some(asker), Some(wanted)) = (asker, wanted) else {
        return Err(error.into());
    };
    let answers = wanted.ask(Some(asker)).await;
    let answers = answers.map_err(RoundError::Unanswered)?;
    let fields = Fields::of(answers.as_str());
    let is_done = |answer: &RawValue| {
        let action = Fields::of(answer.get()).and_then(|it| text_of(it.get("action")?));
        action.as_deref() == Some("accept")
    };
    if fields.is_some_and(|it| it.0.iter().all(|(_, answer)| is_done(answer))) {
        return Ok(());
    }
    Err(error.into())
}

/// The questions in a result that asks for input.
pub(super) struct RequestedInput {
    questions: Vec<(String, String, Json)>,
    /// The state as it came: it is sent back unchanged.
    state: Option<Json>,
}

impl RequestedInput {
    /// `None` for a final result.
    fn read(result: &Json) -> Option<Self> {
        const INPUT_REQUIRED: &str = "input_required";
        if !result.as_str().contains(INPUT_REQUIRED) {
            return None;
        }
        let fields = Fields::of(result.as_str())?;
        let kind = fields.get("resultType").and_then(text_of)?;
        if kind != INPUT_REQUIRED {
            return None;
        }
        Some(Self::of_fields(&fields))
    }

    /// Reads the state of a task that asks for input.
    pub(super) fn of_task(state: &Json) -> Option<Self> {
        Some(Self::of_fields(&Fields::of(state.as_str())?))
    }

    /// Removes questions that were answered before.
    pub(super) fn without(&mut self, answered: &[String]) {
        self.questions.retain(|(key, ..)| !answered.contains(key));
    }

    pub(super) fn is_empty(&self) -> bool {
        self.questions.is_empty()
    }

    pub(super) fn keys(&self) -> impl Iterator<Item = String> {
        self.questions.iter().map(|(key, ..)| key.clone())
    }

    fn of_fields(fields: &Fields<'_>) -> Self {
        let json = |text: &str| jsonrpc::json(text.to_owned()).ok();
        let requests = fields
            .filled("inputRequests")
            .and_then(|it| Fields::of(it.get()));
        let requests = requests.map(|requests| requests.0).unwrap_or_default();
        let question = |(key, request): (std::borrow::Cow<'_, str>, &RawValue)| {
            let fields = Fields::of(request.get());
            let get = |name| fields.as_ref().and_then(|fields| fields.filled(name));
            let method = get("method").and_then(text_of).unwrap_or_default();
            let params = get("params").map_or("{}", |params| params.get());
            Some((key.into_owned(), method.into_owned(), json(params)?))
        };
        Self {
            questions: requests.into_iter().filter_map(question).collect(),
            state: fields.filled("requestState").and_then(|it| json(it.get())),
        }
    }

    /// Reads the addresses to visit from the data of an error.
    fn read_addresses(data: &str) -> Option<Self> {
        let fields = Fields::of(data)?;
        let list: Vec<&RawValue> = serde_json::from_str(fields.get("elicitations")?.get()).ok()?;
        let question = |(at, params): (usize, &RawValue)| {
            let params = jsonrpc::json(params.get().to_owned()).ok()?;
            let method = QuestionKind::Elicitation.method().to_owned();
            Some((format!("address-{}", at + 1), method, params))
        };
        let questions: Vec<_> = list.into_iter().enumerate().filter_map(question).collect();
        (!questions.is_empty()).then_some(Self {
            questions,
            state: None,
        })
    }

    /// The answers of the client by the names of the questions; the error says what cannot be
    /// provided.
    pub(super) async fn ask(&self, asker: Option<&ServerAsker>) -> Result<Json, String> {
        if self.questions.len() > QUESTIONS_MAX {
            return Err(format!(
                "it asked for more than {QUESTIONS_MAX} things at once"
            ));
        }
        let mut round = Vec::new();
        for (key, method, params) in &self.questions {
            let kind = QuestionKind::of(method)
                .ok_or_else(|| format!("it asked for {}", shown(method)))?;
            let params = params.clone();
            round.push((Some(key.clone()), ServerQuestion { kind, params }));
        }
        let answers = match (asker, self.questions.first()) {
            (Some(asker), _) => asker.ask_all(round).await,
            (None, None) => Vec::new(),
            (None, Some((_, method, _))) => {
                let method = shown(method);
                return Err(format!("it asked for {method}, but no client can be asked"));
            }
        };
        let members = self.questions.iter().zip(answers);
        let members = members.map(|((key, method, _), answer)| match answer {
            ClientAnswer::Result(answer) => {
                Ok(format!("{}:{}", Value::from(key.as_str()), answer.as_str()))
            }
            ClientAnswer::Error(error) => {
                let (method, why) = (shown(method), message_of(&error));
                Err(format!("it asked for {method}: {why}"))
            }
        });
        let members: Result<Vec<String>, String> = members.collect();
        Ok(Json::of_built(format!("{{{}}}", members?.join(","))))
    }
}

fn shown(method: &str) -> String {
    printable::one_line_of(method, 60)
}

fn message_of(error: &Json) -> String {
    let message = Fields::of(error.as_str()).and_then(|it| text_of(it.get("message")?));
    printable::one_line_of(message.as_deref().unwrap_or("an error"), 300)
}
