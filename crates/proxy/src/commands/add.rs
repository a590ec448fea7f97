//! `proxy add`: adds a server to the configuration and asks it for its tools.

use std::{io::IsTerminal as _, sync::Arc, time::Instant};

use anyhow::Context as _;
use clap::Args;
use clap_complete::ArgValueCompleter;
use config::{Environment, edit::NewServer};
use dialoguer::{Input, Password};
use gateway::{Gateway, policy::ClientPolicy};
use recipes::{Recipe, RequiredValue};
use registry::Query;
use setup::{
    add::{self, AddArguments, AddError, read_env},
    advise_typed,
    known::Answers,
};
use tool::ServerName;

mod cards;
mod listed;

use super::{edit, reindex};
use crate::{
    cli::{complete::complete_recipes, global::Global},
    event_loop::run_async,
    exit::Exit,
    logging::start_log,
    report::{self, print_reindex},
};

const EXAMPLES: &str = "\
Examples:
  proxy add memory                                           from a recipe; `proxy recipes` lists them
  proxy add filesystem ~/projects                            with the value that the recipe needs
  proxy add registry:io.github.upstash/context7              from a registry; `proxy recipes --registry`
  proxy add notes -- npx -y notes-mcp --folder ~/notes
  proxy add issues --env ISSUES_TOKEN -- uvx issues-mcp      with a token from the environment
  proxy add https://docs.example.com                         by the card of the host
  proxy add docs https://docs.example.com/mcp --header 'Authorization: Bearer ${DOCS_TOKEN}'";

/// Add a server to the configuration, and ask it for its tools
#[derive(Debug, Default, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct AddArgs {
    /// Name: lower-case letters, digits and `-` [default: derived from the command or address]; or
    /// `registry:NAME`, `registry:NAME@VERSION`
    #[arg(add = ArgValueCompleter::new(complete_recipes))]
    name: Option<String>,
    /// Address of a remote server; or, for a recipe, the value that it needs
    #[arg(value_name = "URL|VALUE")]
    url: Option<String>,
    /// Command that starts the server, after `--`
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
    /// Variable of the server: NAME=VALUE, or NAME to read it from the environment at each start
    #[arg(long, short = 'e', value_name = "NAME[=VALUE]")]
    env: Vec<String>,
    /// Value that the recipe needs; may be repeated
    #[arg(long, value_name = "NAME=VALUE")]
    set: Vec<String>,
    /// Name for a server that is added by its recipe
    #[arg(long = "as", value_name = "NAME")]
    alias: Option<String>,
    #[arg(long, value_name = "URL|FILE")]
    #[arg(
        help = "Registry of `registry:NAME`: an address with the API v0.1, or a file [default: the official one] [env: PROXY_REGISTRY]"
    )]
    from: Option<String>,
    /// How to start or reach a server of a registry: npm, pypi, docker or remote [default: the first]
    #[arg(long, value_name = "KIND")]
    via: Option<String>,
    /// Server of a host that names several: `NAME` of its card
    #[arg(long, value_name = "NAME")]
    card: Option<String>,
    /// Add a server of a registry or of another host without asking
    #[arg(long, short)]
    yes: bool,
    /// Header for the address; `${VAR}` in it is replaced at each start
    #[arg(long, short = 'H', value_name = "NAME: VALUE")]
    header: Vec<String>,
    /// Working folder of the server
    #[arg(long, value_name = "FOLDER")]
    cwd: Option<String>,
    /// Category of its tools, for searches
    #[arg(long)]
    category: Option<String>,
    /// Tag of its tools, for searches; may be repeated
    #[arg(long = "tag", value_name = "TAG")]
    tags: Vec<String>,
    /// Start one process per client, in the client's folder
    #[arg(long)]
    per_client: bool,
    /// Add the server disabled, and do not ask it for its tools
    #[arg(long)]
    disabled: bool,
}

impl AddArgs {
    /// A program by this name.
    pub(super) fn of_program(name: String, command: Vec<String>) -> Self {
        Self {
            name: Some(name),
            command,
            ..Self::default()
        }
    }

    pub(crate) fn run(self, global: &Global) -> anyhow::Result<Exit> {
        add(global, self)
    }
}

fn add(global: &Global, given: AddArgs) -> anyhow::Result<Exit> {
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
        report::say(&format!("note: {rule} already names `{name}`"));
    }
    for remark in remarks {
        report::say(&format!("note: {remark}"));
    }
    if is_disabled {
        report::say(&format!(
            "it is disabled; to enable it: proxy servers enable {name}"
        ));
        return Ok(Exit::Success);
    }
    run_async(ask(global, &name))?
}

type Prepared = (ServerName, NewServer, Vec<String>);

/// Returns the server as it is to be written, with remarks for the user; or the reason why there is
/// none.
fn prepare(given: AddArgs) -> anyhow::Result<Result<Prepared, String>> {
    let wanted = AddArguments {
        name: given.name.clone(),
        url: given.url.clone(),
        command: given.command.clone(),
        env: given.env.clone(),
        headers: given.header.clone(),
        cwd: given.cwd.clone(),
    };
    let listed = given
        .name
        .as_deref()
        .and_then(|it| it.strip_prefix("registry:"));
    let prepared = match (listed, wanted.name_alone()) {
        (Some(name), _) => listed::prepare(name, &given)?,
        (None, Some(name)) => by_recipe(name, &given)?,
        (None, None) => match cards::prepare(&wanted, &given)? {
            Some(prepared) => prepared,
            None => read(&wanted, &given).map_err(|error| error.to_string()),
        },
    };
    Ok(prepared.map(|(name, mut server, remarks)| {
        server.category = given.category.or(server.category);
        server.tags.extend(given.tags);
        server.is_per_client |= given.per_client;
        server.is_disabled = given.disabled;
        (name, server, remarks)
    }))
}

fn read(wanted: &AddArguments, given: &AddArgs) -> Result<Prepared, AddError> {
    if let Some(set) = given.set.first() {
        return Err(AddError::Form {
            given: set.clone(),
            what: "value for a recipe, and this server has none",
            form: "--env NAME=VALUE",
        });
    }
    let (name, mut server) = add::read(wanted)?;
    let alias = given.alias.as_ref().map(|alias| add::read_name(alias));
    let remarks = advise_typed(&mut server);
    Ok((alias.transpose()?.unwrap_or(name), server, remarks))
}

fn by_recipe(name: &str, given: &AddArgs) -> anyhow::Result<Result<Prepared, String>> {
    let Some(recipe) = recipes::find(name) else {
        return Ok(Err(add::no_start(name, given.url.as_deref()).to_string()));
    };
    let values = given.set.iter().chain(&given.url);
    by_answers(name, (recipe, recipe.name()), values, given)
}

/// Returns the server of a recipe, with its proposed name; values that it needs are asked for. `name` is
/// what was typed.
fn by_answers<'v>(
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

/// Asks the new server for its tools and shows what a search finds of them.
async fn ask(global: &Global, name: &ServerName) -> anyhow::Result<Exit> {
    start_log("error");
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
            "hint: `proxy log {name}` prints its stderr; correct its table in the configuration, or: \
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
