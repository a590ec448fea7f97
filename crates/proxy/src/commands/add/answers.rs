//! The values that a recipe needs: from the arguments, or from the person.

use std::io::IsTerminal as _;

use anyhow::Context as _;
use config::edit::NewServer;
use dialoguer::{Input, Password};
use recipes::{Recipe, RequiredValue};
use setup::{
    add::{self, AddError, read_env},
    known::Answers,
};
use tool::ServerName;

use super::args::AddArgs;

/// A server as it is to be written, with remarks for the person.
pub(super) type Prepared = (ServerName, NewServer, Vec<String>);

/// Returns the server of a recipe, with its proposed name; values that it needs are asked for. `name` is
/// what was typed.
pub(super) fn by_answers<'v>(
    name: &str,
    (recipe, proposed): (&'static Recipe, &str),
    values: impl Iterator<Item = &'v String>,
    given: &AddArgs,
) -> anyhow::Result<Result<Prepared, String>> {
    let mut answers = Answers::new(recipe);
    for value in values {
        if let Err(error) = answers.set(value) {
            return Ok(Err(error.to_string()));
        }
    }
    match read_env(&given.env) {
        Ok(env) => answers.set_env(env),
        Err(error) => return Ok(Err(error.to_string())),
    }
    let questions = answers.questions(|name| std::env::var_os(name).is_some());
    if !questions.is_empty() && !std::io::stdin().is_terminal() {
        return Ok(Err(refuse(name, &questions)));
    }
    for question in &questions {
        answers.answer(question, &ask_person(question)?);
    }
    let chosen = given.alias.as_deref().unwrap_or(proposed);
    let name = match add::read_name(chosen) {
        Ok(name) => name,
        Err(error) => return Ok(Err(error.to_string())),
    };
    let mut server = answers.server();
    server.cwd.clone_from(&given.cwd);
    match add::read_headers(&given.header) {
        Ok(headers) if server.url.is_some() => server.headers.extend(headers),
        Ok(headers) if headers.is_empty() => {}
        Ok(_) => return Ok(Err(AddError::Headers.to_string())),
        Err(error) => return Ok(Err(error.to_string())),
    }
    Ok(Ok((name, server, answers.remarks())))
}

/// Renders the missing parameters and variables of a recipe when no person can be asked.
fn refuse(name: &str, questions: &[RequiredValue]) -> String {
    let mut lines = vec![format!("`{name}` needs more values; nothing was changed")];
    let mut flags = Vec::new();
    for question in questions {
        let RequiredValue { name, what, .. } = question;
        let origin = question.origin.as_ref();
        let origin = origin.map_or_else(String::new, |it| format!(" ({it})"));
        lines.push(format!("  {name}: {what}{origin}"));
        let flag = if question.is_parameter {
            "--set"
        } else {
            "--env"
        };
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
    let origin = question.origin.as_ref();
    let origin = origin.map_or_else(String::new, |it| format!("; {it}"));
    let prompt = format!("{} ({}{origin})", question.name, question.what);
    let answer = if question.is_secret {
        Password::new().with_prompt(prompt).interact()
    } else {
        Input::new().with_prompt(prompt).interact_text()
    };
    answer.context("no answer was given, so nothing was changed")
}
