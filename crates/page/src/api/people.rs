//! The work of a person: answers to questions, and proposals that a person accepts in a terminal.

use gateway::PersonQuestion;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::answer::Done;
use crate::{
    error::ApiError,
    proposals::Proposal,
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

/// A server that is a program.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ProposedServer {
    /// The name; without it, one made from the command.
    name: Option<String>,
    /// The command, quoted as for a shell. Nothing in it is expanded.
    command: String,
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

pub(crate) fn propose(call: Call<Nothing, ProposedServer>) -> Result<Proposal, ApiError> {
    let ProposedServer { name, command } = call.body;
    let words = printable::split_words(&command);
    let words = words.ok_or_else(|| ApiError::invalid("a quote is not closed").at("command"))?;
    if words.is_empty() {
        return Err(ApiError::invalid("a program is missing").at("command"));
    }
    if words.iter().any(|it| it.chars().any(printable::is_hidden)) {
        let why = "the command has characters that nobody sees";
        return Err(ApiError::invalid(why).at("command"));
    }
    let name = name.filter(|it| !it.is_empty());
    let name = call.page.configure.check_program(name.as_deref(), &words)?;
    Ok(call.page.proposals.add(name, words))
}

pub(crate) async fn take(call: Call<Nothing, Nothing>) -> Result<Proposal, ApiError> {
    let taken = call.page.proposals.take(&call.path[0]);
    taken.ok_or_else(|| {
        let why = "there is no such proposal: it was used, has expired, or ended with its daemon";
        ApiError::not_found(why).next("propose it again on the page, or: proxy add NAME -- COMMAND")
    })
}
