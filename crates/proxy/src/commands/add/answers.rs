//! The values that a recipe needs: from the arguments, or from the person.

use std::io::IsTerminal as _;

use anyhow::Context as _;
use config::edit::NewServer;
use dialoguer::{Input, Password};
use recipes::{Recipe, RequiredValue};
use setup::{
    add::{self, AddError, read_env, read_headers},
    known::Answers,
};
use tool::ServerName;

use super::args::AddArgs;
use crate::exit::refuse;

/// A server as it is to be written, with remarks for the person.
pub(super) type Prepared = (ServerName, NewServer, Vec<String>);

/// Returns the server of a recipe, with its proposed name; values that it needs are asked for. `name` is
/// what was typed.
pub(super) fn by_answers<'v>(
    name: &str,
    (recipe, proposed): (&'static Recipe, &str),
    values: impl Iterator<Item = &'v String>,
    given: &AddArgs,
) -> anyhow::Result<Prepared> {
    let mut answers = Answers::new(recipe);
    for value in values {
        answers.set(value).map_err(refuse)?;
    }
    answers.set_env(read_env(&given.env).map_err(refuse)?);
    let questions = answers.questions(|name| std::env::var_os(name).is_some());
    if !questions.is_empty() && !std::io::stdin().is_terminal() {
        return Err(refuse(list_missing(name, &questions)));
    }
    for question in &questions {
        answers.answer(question, &ask_person(question)?);
    }
    let chosen = given.alias.as_deref().unwrap_or(proposed);
    let name = add::read_name(chosen).map_err(refuse)?;
    let mut server = answers.server();
    server.cwd.clone_from(&given.cwd);
    let headers = read_headers(&given.header).map_err(refuse)?;
    if server.url.is_none() && !headers.is_empty() {
        return Err(refuse(AddError::Headers));
    }
    server.headers.extend(headers);
    Ok((name, server, answers.remarks()))
}

/// Renders the missing parameters and variables of a recipe when no person can be asked.
fn list_missing(name: &str, questions: &[RequiredValue]) -> String {
    let mut lines = vec![format!("`{name}` needs more values; nothing was changed")];
    let mut flags = Vec::new();
    for RequiredValue {
        name,
        what,
        origin,
        is_parameter,
        ..
    } in questions
    {
        let origin = origin.as_ref().map(|it| format!(" ({it})"));
        lines.push(format!("  {name}: {what}{}", origin.unwrap_or_default()));
        let flag = if *is_parameter { "--set" } else { "--env" };
        flags.push(format!("{flag} {name}=VALUE"));
    }
    let flags = flags.join(" ");
    lines.push(format!("hint: proxy add {name} {flags}"));
    if questions.iter().any(|it| !it.is_parameter) {
        lines.push("      or set the variable in your environment first".to_owned());
    }
    lines.join("\n")
}

fn ask_person(question: &RequiredValue) -> anyhow::Result<String> {
    let RequiredValue { name, what, .. } = question;
    let origin = question.origin.as_ref().map(|it| format!("; {it}"));
    let prompt = format!("{name} ({what}{})", origin.unwrap_or_default());
    let answer = if question.is_secret {
        Password::new().with_prompt(prompt).interact()
    } else {
        Input::new().with_prompt(prompt).interact_text()
    };
    answer.context("no answer was given, so nothing was changed")
}
