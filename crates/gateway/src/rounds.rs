//! Servers that ask in rounds (from 2026-07-28 on): the result asks for more, the client is asked, and
//! the request is sent again with its answers, until the result is one.

use fleet::{Answer, CallError, Question, QuestionKind, Request};
use futures::future::join_all;
use jsonrpc::{Fields, Json, text_of};
use serde_json::Value;
use tokio_util::sync::CancellationToken;
use tool::ServerName;

use crate::{asks::ServerAsker, gateway::Gateway};

/// Rounds of one call: a server that asks for ever is not asked for ever.
const ROUNDS_MAX: usize = 10;

/// Questions in one round.
const QUESTIONS_MAX: usize = 32;

const RESPONSES: &str = "inputResponses";
const STATE: &str = "requestState";

/// Why a request that went in rounds has no result.
#[derive(Debug)]
pub(crate) enum RoundError {
    Call(CallError),
    /// What the server asked for cannot be had; why.
    Unanswered(String),
}

impl From<CallError> for RoundError {
    fn from(error: CallError) -> Self {
        Self::Call(error)
    }
}

impl Gateway {
    /// Sends a request to a server, and again with what it asks for meanwhile. Each round has the
    /// limit of the request; the time in which a person is asked counts for none.
    pub(crate) async fn request_in_rounds(
        &self,
        server: &ServerName,
        mut request: Request,
        asker: Option<&ServerAsker>,
        cancel: &CancellationToken,
    ) -> Result<Json, RoundError> {
        for _ in 0..ROUNDS_MAX {
            let result = self.servers.call(server, &request, cancel).await?;
            let Some(wanted) = Wanted::read(&result) else {
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
}

/// What a result asks for.
struct Wanted {
    questions: Vec<(String, String, Json)>,
    /// As it came: it goes back as it is.
    state: Option<Json>,
}

impl Wanted {
    /// `None` for a result that is one.
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
        let json = |text: &str| jsonrpc::json(text.to_owned()).ok();
        let requests = fields
            .filled("inputRequests")
            .and_then(|it| Fields::of(it.get()));
        let requests = requests.map(|requests| requests.0).unwrap_or_default();
        let question =
            |(key, request): (std::borrow::Cow<'_, str>, &serde_json::value::RawValue)| {
                let fields = Fields::of(request.get());
                let get = |name| fields.as_ref().and_then(|fields| fields.filled(name));
                let method = get("method").and_then(text_of).unwrap_or_default();
                let params = get("params").map_or("{}", |params| params.get());
                Some((key.into_owned(), method.into_owned(), json(params)?))
            };
        Some(Self {
            questions: requests.into_iter().filter_map(question).collect(),
            state: fields.filled("requestState").and_then(|it| json(it.get())),
        })
    }

    /// The answers of the client by the names of the questions; the error says what cannot be had.
    async fn ask(&self, asker: Option<&ServerAsker>) -> Result<Json, String> {
        if self.questions.len() > QUESTIONS_MAX {
            return Err(format!(
                "it asked for more than {QUESTIONS_MAX} things at once"
            ));
        }
        let asking = self.questions.iter().map(async |(key, method, params)| {
            let shown = printable::one_line_of(method, 60);
            let kind = QuestionKind::of(method).ok_or_else(|| format!("it asked for {shown}"))?;
            let asker = asker
                .ok_or_else(|| format!("it asked for {shown}, and nobody is there to be asked"))?;
            let question = Question {
                kind,
                params: params.clone(),
            };
            match asker.ask_named(question, Some(key.clone())).await {
                Answer::Result(answer) => {
                    Ok(format!("{}:{}", Value::from(key.as_str()), answer.as_str()))
                }
                Answer::Error(error) => {
                    Err(format!("it asked for {shown}: {}", message_of(&error)))
                }
            }
        });
        let answers: Result<Vec<String>, String> = join_all(asking).await.into_iter().collect();
        Ok(Json::of_built(format!("{{{}}}", answers?.join(","))))
    }
}

fn message_of(error: &Json) -> String {
    let message = Fields::of(error.as_str()).and_then(|it| text_of(it.get("message")?));
    printable::one_line_of(message.as_deref().unwrap_or("an error"), 300)
}
