//! The input that a server asks for, in a result or in the state of a task.

use fleet::{CallError, ClientAnswer, QuestionKind, ServerQuestion};
use jsonrpc::{Fields, Json, KnownString, text_of};
use serde_json::value::RawValue;

use crate::{
    elicitation::ServerAsker,
    error::code_of_call,
    json_text::{list_member, write_object},
};

/// The most questions in one round.
const QUESTIONS_MAX: usize = 32;

/// The reason why a request in rounds has no result.
#[derive(Debug)]
pub(crate) enum RoundError {
    Call(CallError),
    /// The input that the server requested cannot be provided; the reason.
    Unanswered(String),
}

impl RoundError {
    /// Returns the code of the error that a caller gets.
    pub(crate) fn code(&self) -> &'static str {
        match self {
            Self::Call(error) => code_of_call(error),
            Self::Unanswered(_) => "input_required",
        }
    }
}

impl From<CallError> for RoundError {
    fn from(error: CallError) -> Self {
        Self::Call(error)
    }
}

/// The questions in a result that asks for input.
pub(super) struct RequestedInput {
    questions: Vec<(String, String, Json)>,
    /// The state as it came: it is sent back unchanged.
    pub(super) state: Option<Json>,
}

impl RequestedInput {
    /// `None` for a final result.
    pub(super) fn read(result: &Json) -> Option<Self> {
        if !result.may_contain(KnownString::InputRequired) {
            return None;
        }
        let fields = Fields::of(result.as_str())?;
        let kind = fields.get("resultType").and_then(text_of)?;
        (kind == "input_required").then(|| Self::of_fields(&fields))
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
        let requests = fields.filled("inputRequests");
        let requests = requests.and_then(|it| Fields::of(it.get()));
        let requests = requests.map(|it| it.0).unwrap_or_default();
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
    pub(super) fn read_addresses(data: &str) -> Option<Self> {
        let list = list_member(data, "elicitations")?;
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
            ClientAnswer::Result(answer) => Ok((key, answer)),
            ClientAnswer::Error(error) => {
                let (method, why) = (shown(method), message_of(&error));
                Err(format!("it asked for {method}: {why}"))
            }
        });
        let members: Vec<(&String, Json)> = members.collect::<Result<_, String>>()?;
        let members = members.iter().map(|(key, answer)| (key, answer.as_str()));
        Ok(Json::of_built(write_object(members)))
    }
}

fn shown(method: &str) -> String {
    printable::one_line_of(method, 60)
}

fn message_of(error: &Json) -> String {
    let message = Fields::of(error.as_str()).and_then(|it| text_of(it.get("message")?));
    printable::one_line_of(message.as_deref().unwrap_or("an error"), 300)
}
