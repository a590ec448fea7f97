//! Questions of servers and approvals of calls, and the answers of a person.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::error::ApiError;
use crate::{gateway::Gateway, person_questions::PersonQuestion};

/// An answer to a question, as MCP has it.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct QuestionAnswer {
    /// The decision.
    pub action: AnswerAction,
    /// The values of the form, if it is accepted.
    pub content: Option<Map<String, Value>>,
}

/// A decision about a question.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum AnswerAction {
    /// The form is filled in.
    Accept,
    /// The person refuses.
    Decline,
    /// The person does not decide.
    Cancel,
}

/// Questions that people can answer in place of a client.
#[derive(Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Questions {
    /// The questions, the oldest first.
    pub questions: Vec<QuestionRow>,
}

/// A question that waits.
#[derive(Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct QuestionRow {
    /// Its number, unique in this daemon.
    pub id: u64,
    /// The server that asks; none for the approval of a call.
    pub server: Option<String>,
    /// The client.
    pub client: String,
    /// The time at which it was asked, in seconds since 1970.
    pub since_at: u64,
    /// False if its call has ended: an answer is for the next call with the same arguments.
    pub holds_call: bool,
    /// The text for the person.
    pub message: String,
    /// The answers `allow` of an approval; empty for any other question.
    pub choices: Vec<String>,
}

impl From<&PersonQuestion> for QuestionRow {
    fn from(question: &PersonQuestion) -> Self {
        let params: Value = serde_json::from_str(question.params()).unwrap_or_default();
        let is_ours = question.server.is_built_in();
        let choices = &params["requestedSchema"]["properties"]["allow"]["enum"];
        let choices = choices.as_array().filter(|_| is_ours);
        let choices = choices.into_iter().flatten().filter_map(Value::as_str);
        Self {
            id: question.id,
            server: (!is_ours).then(|| question.server.to_string()),
            client: question.client.clone(),
            since_at: question.since_ms / 1_000,
            holds_call: !question.has_left(),
            message: params["message"].as_str().unwrap_or_default().to_owned(),
            choices: choices.map(str::to_owned).collect(),
        }
    }
}

/// Lists the questions.
pub fn list_questions(gateway: &Gateway) -> Questions {
    let all = gateway.clients.questions.list();
    Questions {
        questions: all.iter().map(|it| QuestionRow::from(&**it)).collect(),
    }
}

/// Answers the question with this number. Returns a sentence.
pub fn answer_question(
    gateway: &Gateway,
    id: u64,
    QuestionAnswer { action, content }: QuestionAnswer,
) -> Result<String, ApiError> {
    let (word, done) = match action {
        AnswerAction::Accept => ("accept", "the question was answered"),
        AnswerAction::Decline => ("decline", "the question was declined"),
        AnswerAction::Cancel => ("cancel", "the question was cancelled"),
    };
    let content = content.filter(|_| word == "accept");
    if gateway.clients.questions.answer(id, word, content) {
        return Ok(done.to_owned());
    }
    Err(ApiError::not_found(
        "the question was answered or withdrawn already",
    ))
}
