//! `proxy add`: adds a server to the configuration and asks it for its tools.

use std::{io::IsTerminal as _, sync::Arc, time::Instant};

use anyhow::Context as _;
use config::{Environment, edit::NewServer};
use dialoguer::{Input, Password};
use gateway::{Gateway, policy::ClientPolicy};
use registry::Query;
use setup::{
    add::{self, Given, Refused, read_env},
    advise_typed,
    known::{Answers, Question},
};
use tool::ServerName;

use super::{edit, event_loop::run_async, logging::log, reindex};
use crate::{
    cli::{Add, Global},
    exit::Exit,
    report::{self, print_reindex},
};

pub(super) fn add(global: &Global, given: Add) -> anyhow::Result<Exit> {
    let is_disabled = given.disabled;
    let (name, server, remarks) = match prepare(given)? {
        Ok(prepared) => prepared,
        Err(why) => {
            report::say(&format!("error: {why}"));
            return Ok(Exit::Usage);
        }
    };
    let added = edit::change_with(
        global,
        |document| {
            let rules = document.list_rules_of(name.as_str());
            document.add_server(&name, &server).map(|()| rules)
        },
        |_, _, write| write(),
    )?;
    let Some(added) = added else {
        return Ok(Exit::Usage);
    };
    report::say(&format!("added `{name}` to {}", added.path.display()));
    for rule in added.value {
        report::say(&format!("note: `{name}` is named already by {rule}"));
    }
    for remark in remarks {
        report::say(&format!("note: {remark}"));
    }
    if is_disabled {
        report::say(&format!("it is switched off; on: proxy enable {name}"));
        return Ok(Exit::Success);
    }
    run_async(ask(global, &name))?
}

type Prepared = (ServerName, NewServer, Vec<String>);

/// Returns the server as it is to be written, with remarks for the user; or the reason why there is
/// none.
fn prepare(given: Add) -> anyhow::Result<Result<Prepared, String>> {
    let wanted = Given {
        name: given.name.clone(),
        url: given.url.clone(),
        command: given.command.clone(),
        env: given.env.clone(),
        headers: given.header.clone(),
        cwd: given.cwd.clone(),
    };
    let prepared = match wanted.name_alone() {
        Some(name) => by_recipe(name, &given)?,
        None => read(&wanted, &given).map_err(|error| error.to_string()),
    };
    Ok(prepared.map(|(name, mut server, remarks)| {
        server.category = given.category.or(server.category);
        server.tags.extend(given.tags);
        server.is_per_client |= given.per_client;
        server.is_disabled = given.disabled;
        (name, server, remarks)
    }))
}

fn read(wanted: &Given, given: &Add) -> Result<Prepared, Refused> {
    if let Some(set) = given.set.first() {
        return Err(Refused::Form {
            given: set.clone(),
            what: "value of a recipe: this server is added without one",
            form: "--env NAME=VALUE",
        });
    }
    let (name, mut server) = add::read(wanted)?;
    let alias = given.alias.as_ref().map(|alias| add::read_name(alias));
    let remarks = advise_typed(&mut server);
    Ok((alias.transpose()?.unwrap_or(name), server, remarks))
}

fn by_recipe(name: &str, given: &Add) -> anyhow::Result<Result<Prepared, String>> {
    let Some(recipe) = recipes::find(name) else {
        return Ok(Err(add::no_start(name, given.url.as_deref()).to_string()));
    };
    let mut answers = Answers::new(recipe);
    for value in given.set.iter().chain(&given.url) {
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
    let chosen = given.alias.as_deref().unwrap_or(recipe.name());
    let name = match add::read_name(chosen) {
        Ok(name) => name,
        Err(error) => return Ok(Err(error.to_string())),
    };
    let mut server = answers.server();
    server.cwd.clone_from(&given.cwd);
    Ok(Ok((name, server, answers.remarks())))
}

/// Renders the missing parameters and variables of a recipe when no person can be asked.
fn refuse(name: &str, questions: &[Question]) -> String {
    let mut lines = vec![format!("`{name}` needs more; nothing was changed")];
    let mut flags = Vec::new();
    for question in questions {
        let Question { name, what, .. } = question;
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

fn ask_person(question: &Question) -> anyhow::Result<String> {
    let origin = question.origin.as_ref();
    let origin = origin.map_or_else(String::new, |it| format!("; {it}"));
    let prompt = format!("{} ({}{origin})", question.name, question.what);
    let answer = if question.is_secret {
        Password::new().with_prompt(prompt).interact()
    } else {
        Input::new().with_prompt(prompt).interact_text()
    };
    answer.context("nothing was answered, and nothing changed")
}

/// Asks the new server for its tools and shows what a search finds of them.
async fn ask(global: &Global, name: &ServerName) -> anyhow::Result<Exit> {
    log("error");
    let config = config::load(&global.overrides(), &Environment::of_process())?;
    let gateway = Gateway::new(config.gateway)?;
    let asked = ask_and_show(&gateway, global, name).await;
    gateway.stop().await;
    asked
}

async fn ask_and_show(
    gateway: &Arc<Gateway>,
    global: &Global,
    name: &ServerName,
) -> anyhow::Result<Exit> {
    let began = Instant::now();
    let lines = reindex::survey(gateway, vec![name.clone()], global, true).await?;
    let exit = print_reindex(&lines, began.elapsed().as_secs_f64(), global.json);
    if exit != Exit::Success {
        report::say(&format!(
            "hint: `proxy log {name}` has what it wrote; mend its table in the configuration, or: \
             proxy remove {name}"
        ));
        return Ok(exit);
    }
    if global.json {
        return Ok(exit);
    }
    let query = Query {
        category: Some(name.to_string()),
        ..Query::words("*")
    };
    let answer = gateway.catalog.search(query, None).await?;
    let text = gateway::search_text(&gateway.catalog, &answer, &ClientPolicy::default()).await?;
    report::print_data(&format!("\nproxy search --category {name} '*'\n{text}"));
    Ok(exit)
}
