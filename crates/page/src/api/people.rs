//! The answers of a person to questions.

use gateway::PersonQuestion;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::answer::Done;
use crate::{
    error::ApiError,
    routes::{Call, Nothing},
};

/// An answer to a question, as MCP has it.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct QuestionAnswer {
    action: AnswerAction,
    /// The values of the form, if it is accepted.
    content: Option<Map<String, Value>>,
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum AnswerAction {
    Accept,
    Decline,
    Cancel,
}

/// Questions that people can answer in place of a client.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct Questions {
    /// The questions, the oldest first.
    pub questions: Vec<QuestionRow>,
}

/// A question that waits.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
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

pub(crate) async fn list(call: Call<Nothing, Nothing>) -> Result<Questions, ApiError> {
    let all = call.page.daemon.gateway.clients.questions.list();
    Ok(Questions {
        questions: all.iter().map(|it| QuestionRow::from(&**it)).collect(),
    })
}

pub(crate) async fn answer(call: Call<Nothing, QuestionAnswer>) -> Result<Done, ApiError> {
    let QuestionAnswer { action, content } = call.body;
    let (word, done) = match action {
        AnswerAction::Accept => ("accept", "the question was answered"),
        AnswerAction::Decline => ("decline", "the question was declined"),
        AnswerAction::Cancel => ("cancel", "the question was cancelled"),
    };
    let content = content.filter(|_| word == "accept");
    let questions = &call.page.daemon.gateway.clients.questions;
    let id = call.path[0].parse().ok();
    let is_answered = id.is_some_and(|id| questions.answer(id, word, content));
    if is_answered {
        return Ok(Done::new(done));
    }
    Err(ApiError::not_found(
        "the question was answered or withdrawn already",
    ))
}
