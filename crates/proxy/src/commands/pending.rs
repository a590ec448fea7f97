//! `proxy review --pending`: calls that wait for a person's permission.

use anyhow::Context as _;
use files::clock::show_time;
use gateway::api::{AnswerAction, ApiReply, ApiRequest, QuestionAnswer, QuestionRow};
use serde_json::{Map, Value, json};

use super::api::{Api, explain_reply};
use crate::{
    cli::global::Global,
    exit::{Exit, refuse},
    report,
};

/// The answer that refuses a call.
const NO: &str = "no";

/// Lists the waiting calls. On a terminal, asks about each; otherwise prints the commands that answer.
pub(super) async fn list_pending(api: &mut Api, global: &Global) -> anyhow::Result<Exit> {
    let answer = read(api).await?;
    if global.json {
        report::print_json(&json!(answer));
    } else if answer.is_empty() {
        report::say("no call waits for a permission");
    } else if report::can_ask() {
        for question in &answer {
            ask_about(api, question).await?;
        }
        return Ok(Exit::Success);
    } else {
        let texts: Vec<String> = answer.iter().map(text_of).collect();
        report::print_data(&texts.join("\n\n"));
        report::say(
            "allow one: proxy review --pending --allow NUMBER\nrefuse it: proxy review --pending --deny NUMBER",
        );
    }
    Ok(Exit::of_hit(answer.is_empty()))
}

/// Answers the call with this number; `choice` is one of its choices.
pub(super) async fn answer_pending(api: &mut Api, id: u64, choice: &str) -> anyhow::Result<Exit> {
    let questions = read(api).await?;
    let question = questions.iter().find(|it| it.id == id).with_context(|| {
        format!("no call with the number {id} waits\nhint: `proxy review --pending` lists them")
    })?;
    if !question.choices.iter().any(|it| it == choice) {
        let choices = question.choices.join("`, `");
        return Err(refuse(format!("this call can be allowed `{choices}`")));
    }
    send(api, question, choice).await
}

async fn read(api: &mut Api) -> anyhow::Result<Vec<QuestionRow>> {
    let reply = api.ask(ApiRequest::Questions, Exit::Usage).await?;
    let ApiReply::Questions(list) = reply else {
        return Err(explain_reply(&reply));
    };
    let mut questions = list.questions;
    questions.retain(|it| !it.choices.is_empty());
    Ok(questions)
}

async fn ask_about(api: &mut Api, question: &QuestionRow) -> anyhow::Result<()> {
    report::print_data(&text_of(question));
    let choices = question.choices.join("], [");
    let said = report::ask(&format!("[{choices}], or nothing to decide later:"));
    if question.choices.contains(&said) {
        send(api, question, &said).await?;
    }
    Ok(())
}

async fn send(api: &mut Api, question: &QuestionRow, choice: &str) -> anyhow::Result<Exit> {
    let answer = if choice == NO {
        QuestionAnswer {
            action: AnswerAction::Decline,
            content: None,
        }
    } else {
        QuestionAnswer {
            action: AnswerAction::Accept,
            content: Some(Map::from_iter([("allow".to_owned(), Value::from(choice))])),
        }
    };
    api.ask(ApiRequest::Answer(question.id, answer), Exit::Nothing)
        .await?;
    let done = if choice == NO { "refused" } else { "allowed" };
    let later = if question.holds_call {
        ""
    } else {
        ": this answers the next call with these arguments"
    };
    report::say(&format!("{done}{later}"));
    Ok(Exit::Success)
}

fn text_of(question: &QuestionRow) -> String {
    let since = show_time(question.since_at * 1_000);
    let client = printable::one_line(&question.client);
    let waits = if question.holds_call {
        "the call waits"
    } else {
        "the call has ended; an answer is for the next one with these arguments"
    };
    let indented = |line: &str| {
        let text = line.trim_start();
        let spaces = &line[..line.len() - text.len()];
        format!("{spaces}{}", printable::one_line(text))
    };
    let message: Vec<String> = question.message.lines().map(indented).collect();
    let message = message.join("\n  ");
    format!(
        "{}. {client}, since {since}, {waits}\n  {message}",
        question.id
    )
}
