//! Servers: their list and detail, actions on them, and recipes.

use std::{
    collections::BTreeMap,
    fs::File,
    io::{Read as _, Seek as _, SeekFrom},
    path::Path,
    sync::Arc,
};

use fleet::{Launch, Sandbox};
use gateway::{
    Gateway,
    api::{RestartError, ServerRow, list_servers},
    survey,
};
use recipes::{Auth, Recipe, RequiredValue};
use serde::Serialize;
use tool::ServerName;

use super::answer::Done;
use crate::{
    configure::{ConfigChange, NewServerRequest},
    error::ApiError,
    limits::{HISTORY_MAX, LOG_BYTES_MAX, LOG_LINES_MAX},
    page_state::PageState,
    routes::{Call, Nothing},
};

/// All servers.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct Servers {
    /// The servers, by name.
    servers: Vec<ServerRow>,
}

/// One server in detail.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct Detail {
    server: ServerRow,
    launch: LaunchRow,
    /// The folders and addresses that its sandbox allows; absent without one.
    sandbox: Option<String>,
    /// The last lines of its stderr.
    log: Vec<String>,
    /// The changes of its definitions, the newest first.
    history: Vec<HistoryRow>,
    tools: Vec<ToolRow>,
    prompts: usize,
    resources: usize,
    server_version: Option<String>,
    instructions: Option<String>,
}

/// The way to a server.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct LaunchRow {
    /// `command`, `address` or `commands`.
    kind: &'static str,
    /// With secrets masked.
    text: String,
}

/// The changes that one survey found.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct HistoryRow {
    at: u64,
    added: Vec<String>,
    changed: Vec<String>,
    removed: Vec<String>,
    /// The version before and after, if it changed.
    version: Option<(String, String)>,
}

/// A tool of a server.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct ToolRow {
    /// `SERVER/TOOL`.
    name: String,
    purpose: String,
    /// An estimate.
    tokens: usize,
}

/// Recipes.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct Recipes {
    recipes: Vec<RecipeRow>,
}

/// A recipe.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct RecipeRow {
    name: String,
    what: String,
    /// It needs a login.
    login: bool,
    needs: Vec<RequiredValue>,
    /// Its replacement.
    deprecated: Option<String>,
}

pub(crate) fn list(call: &Call<Nothing, Nothing>) -> Servers {
    Servers {
        servers: rows(&call.page),
    }
}

/// Lists the servers, with the logins that pages began.
fn rows(page: &PageState) -> Vec<ServerRow> {
    let mut rows = list_servers(&page.daemon.gateway);
    for row in &mut rows {
        page.logins.add_to(row);
    }
    rows
}

pub(crate) async fn detail(call: Call<Nothing, Nothing>) -> Result<Detail, ApiError> {
    let gateway = Arc::clone(&call.page.daemon.gateway);
    let name = known_name(&gateway, &call.path[0])?;
    let generation = gateway.catalog.generation().await;
    let generation = generation.map_err(|error| anyhow::anyhow!("{error}"))?;
    let reading = tokio::task::spawn_blocking(move || {
        let mut rows = rows(&call.page).into_iter();
        let row = rows.find(|it| it.name == name.as_str());
        let settings = gateway.settings();
        let (Some(server), Some(of)) = (row, settings.server(&name)) else {
            return Err(unknown(&gateway, name.as_str()));
        };
        let known = generation.server(&name);
        let entries = generation.entries().filter(|it| it.at.server == name);
        let history = gateway.catalog.registry.list_history(Some(name.as_str()));
        let history = history.into_iter().rev().take(HISTORY_MAX);
        Ok(Detail {
            launch: describe_launch(&of.spec.launch),
            sandbox: of.spec.sandbox.as_ref().map(describe_sandbox),
            log: read_log(&fleet::log_path(&gateway::logs(&settings.state_dir), &name)),
            history: history.map(HistoryRow::from).collect(),
            tools: entries
                .map(|it| ToolRow {
                    name: it.at.to_string(),
                    purpose: it.purpose().to_owned(),
                    tokens: gateway::estimate_definition(it.tool.json()),
                })
                .collect(),
            prompts: known.map_or(0, |it| it.offer.prompts.len()),
            resources: known.map_or(0, |it| it.offer.resources.len()),
            server_version: known.map(|it| it.server_version.clone()),
            instructions: known.and_then(|it| it.instructions.clone()),
            server,
        })
    });
    reading.await.map_err(anyhow::Error::from)?
}

impl From<registry::HistoryEntry> for HistoryRow {
    fn from(entry: registry::HistoryEntry) -> Self {
        Self {
            at: entry.at,
            added: entry.added,
            changed: entry.changed,
            removed: entry.removed,
            version: entry.version,
        }
    }
}

/// Describes the way to a server as it is written, with secrets masked.
fn describe_launch(launch: &Launch) -> LaunchRow {
    match launch {
        Launch::Child { command, args, .. } => {
            let words = std::iter::once(command)
                .chain(args)
                .map(ToString::to_string);
            let words: Vec<String> = words.collect();
            let words = printable::mask_arguments(words.iter().map(String::as_str));
            let words: Vec<String> = words.iter().map(|it| printable::quote_word(it)).collect();
            LaunchRow {
                kind: "command",
                text: words.join(" "),
            }
        }
        Launch::Remote { url, .. } => LaunchRow {
            kind: "address",
            text: printable::mask_address(&url.to_string()),
        },
        Launch::Commands(_) => LaunchRow {
            kind: "commands",
            text: String::new(),
        },
    }
}

fn describe_sandbox(sandbox: &Sandbox) -> String {
    let folders: Vec<String> = sandbox.write.iter().map(ToString::to_string).collect();
    let network = if sandbox.network { "" } else { ", no network" };
    match folders.as_slice() {
        [] => format!("writes nowhere{network}"),
        folders => format!("writes to {}{network}", folders.join(", ")),
    }
}

/// Reads the last lines of a log; the end of it is enough.
fn read_log(path: &Path) -> Vec<String> {
    let read = || {
        let mut file = File::open(path)?;
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(LOG_BYTES_MAX)))?;
        let mut bytes = Vec::new();
        file.take(LOG_BYTES_MAX).read_to_end(&mut bytes)?;
        Ok::<_, std::io::Error>(String::from_utf8_lossy(&bytes).into_owned())
    };
    let text = read().unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    let shown = &lines[lines.len().saturating_sub(LOG_LINES_MAX)..];
    shown.iter().map(ToString::to_string).collect()
}

pub(crate) async fn act(call: Call<Nothing, Nothing>) -> Result<Done, ApiError> {
    let gateway = &call.page.daemon.gateway;
    let name = known_name(gateway, &call.path[0])?;
    match call.path[1].as_str() {
        action @ ("enable" | "disable") => {
            let change = ConfigChange::SetEnabled {
                server: name.to_string(),
                enabled: action == "enable",
            };
            change_in(call.page, change).await
        }
        "restart" => restart(gateway, &name).await,
        "reindex" => reindex(gateway, name).await,
        "login" => {
            let settings = gateway.settings();
            let server = settings.server(&name);
            let server = server.ok_or_else(|| unknown(gateway, name.as_str()))?;
            let address = call.page.logins.begin(gateway, server).await?;
            Ok(Done {
                address: Some(address),
                ..Done::new(format!("{name} waits for you at the address of its login"))
            })
        }
        other => {
            let why = format!("there is no action `{other}`");
            Err(ApiError::not_found(why).next("enable, disable, restart, reindex or login"))
        }
    }
}

fn check_enabled(gateway: &Gateway, name: &ServerName) -> Result<(), ApiError> {
    let settings = gateway.settings();
    if settings.server(name).is_some_and(|it| it.enabled) {
        return Ok(());
    }
    let why = format!("{name} is disabled");
    Err(ApiError::conflict(why).next(format!("proxy servers enable {name}")))
}

async fn restart(gateway: &Gateway, name: &ServerName) -> Result<Done, ApiError> {
    check_enabled(gateway, name)?;
    match gateway.restart(name.as_str(), false).await {
        Ok(took) => Ok(Done::new(format!(
            "{name}: ready in {} ms",
            took.as_millis()
        ))),
        Err(RestartError { why, hint }) => {
            let status = hyper::StatusCode::BAD_GATEWAY;
            Err(ApiError::new(status, "server_failed", why).next(hint))
        }
    }
}

async fn reindex(gateway: &Arc<Gateway>, name: ServerName) -> Result<Done, ApiError> {
    check_enabled(gateway, &name)?;
    survey::get_to_know(Arc::clone(&gateway.catalog), vec![name.clone()]).await;
    let catalog = gateway.catalog.registry.catalog();
    let known = catalog.servers.iter().find(|it| it.name == name);
    match known.map(|it| (&it.stale, it.tools)) {
        Some((None, tools)) => {
            let tools = printable::count_of(tools, "tool");
            Ok(Done::new(format!("{name} has {tools}")))
        }
        Some((Some(failure), _)) => {
            let status = hyper::StatusCode::BAD_GATEWAY;
            let error = ApiError::new(status, "server_failed", failure.to_string());
            let hint = failure.hint.clone();
            Err(error.next(hint.unwrap_or_else(|| format!("proxy logs {name}"))))
        }
        None => Err(unknown(gateway, name.as_str())),
    }
}

pub(crate) async fn add(call: Call<Nothing, NewServerRequest>) -> Result<Done, ApiError> {
    let request = call.body;
    if request.command.is_some() {
        let why = "a web page may not name a program to run";
        let error = ApiError::forbidden("command_refused", why).at("command");
        return Err(error.next("proxy add NAME -- COMMAND"));
    }
    change_in(call.page, ConfigChange::AddServer(request)).await
}

async fn change_in(page: Arc<PageState>, change: ConfigChange) -> Result<Done, ApiError> {
    let changing = tokio::task::spawn_blocking(move || page.change(&change, false));
    changing.await.map_err(anyhow::Error::from)?
}

pub(crate) async fn recipes(_: Call<Nothing, Nothing>) -> Result<Recipes, ApiError> {
    let recipes = recipes::all().iter().map(RecipeRow::from).collect();
    Ok(Recipes { recipes })
}

impl From<&Recipe> for RecipeRow {
    fn from(recipe: &Recipe) -> Self {
        Self {
            name: recipe.name().to_owned(),
            what: recipe.what.clone(),
            login: recipe.auth == Auth::OAuth,
            needs: recipe.required_values(&BTreeMap::new()),
            deprecated: recipe.deprecated.clone(),
        }
    }
}

/// Returns the server of this name in the configuration.
pub(crate) fn known_name(gateway: &Gateway, name: &str) -> Result<ServerName, ApiError> {
    let parsed = name.parse::<ServerName>().ok();
    let known = parsed.filter(|it| gateway.settings().server(it).is_some());
    known.ok_or_else(|| unknown(gateway, name))
}

fn unknown(gateway: &Gateway, name: &str) -> ApiError {
    let settings = gateway.settings();
    let names = settings.servers.iter().map(|it| it.spec.name.as_str());
    let near = tool::near(name, names, 3);
    let error = ApiError::not_found(format!("there is no server `{name}`"));
    if near.is_empty() {
        return error.next("proxy servers");
    }
    error.next(format!("did you mean {}?", near.join(", ")))
}
