//! What each command does.

use std::{
    collections::BTreeMap,
    io::Read as _,
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Context as _, bail};
use futures::StreamExt as _;
use serde_json::{Map, Value, json, value::RawValue};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tracing_subscriber::EnvFilter;

use crate::{
    cli::{Arguments, Call, Command, Config as ConfigCommand, Exit, Global, Search},
    config::{self, Config, Environment},
    demo,
    front::{self, CallContext, DESCRIBE, EXECUTE, Front, SEARCH, grouped, instructions, stdio},
    report::{self, Reindexed},
    survey, tokens,
};

/// The whole shutdown of `serve`: servers that do not go by then were killed.
const STOP_WAIT: Duration = Duration::from_millis(1_800);

/// How often what was counted is written down.
const FLUSH_EVERY: Duration = Duration::from_secs(30);

pub(crate) fn run(arguments: Arguments) -> Exit {
    match dispatch(arguments) {
        Ok(exit) => exit,
        Err(error) => {
            report::fail(&error);
            Exit::Nothing
        }
    }
}

fn dispatch(Arguments { global, command }: Arguments) -> anyhow::Result<Exit> {
    match command {
        Command::Config(ConfigCommand::Docs) => {
            report::data(&config::docs());
            return Ok(Exit::Success);
        }
        Command::Config(ConfigCommand::Path) => return Ok(config_path(&global)),
        Command::Guard => {
            fleet::guard(std::io::stdin().lock());
            return Ok(Exit::Success);
        }
        Command::DemoServer { name } => {
            runtime()?.block_on(demo::servers::run(&name))?;
            return Ok(Exit::Success);
        }
        Command::Demo => {
            log("error");
            return runtime()?.block_on(demo::play());
        }
        _ => {}
    }
    let config = match config::load(&global.overrides(), &Environment::of_process()) {
        Ok(config) => config,
        Err(error) => {
            report::say(&error.to_string());
            return Ok(Exit::Usage);
        }
    };
    log(&match &command {
        Command::Serve => config.log.clone(),
        // These say themselves what a server failed of.
        _ if global.says_nothing_of_logs() => format!("{},fleet=error", config.log),
        _ => config.log.clone(),
    });
    runtime()?.block_on(async {
        match command {
            Command::Serve => serve(config).await,
            Command::Config(_) => Ok(config_check(&config, global.json)),
            Command::Log { server, lines } => Ok(server_log(&config, &server, lines)),
            other => with_front(config, &global, other).await,
        }
    })
}

fn runtime() -> anyhow::Result<tokio::runtime::Runtime> {
    let cores = std::thread::available_parallelism().map_or(2, usize::from);
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(cores.min(4))
        .enable_all()
        .build()
        .context("cannot start the event loop")
}

/// Logs go to stderr, always: stdout is data, or the protocol.
fn log(filter: &str) {
    // The protocol engine logs whole messages, and so secrets; it speaks only when asked to.
    let quiet = if filter.contains("rmcp") {
        ""
    } else {
        ",rmcp=off"
    };
    let filter = EnvFilter::try_new(format!("{filter}{quiet}"));
    let filter = filter.unwrap_or_else(|_| EnvFilter::new("warn,rmcp=off"));
    let has_colour = std::env::var_os("NO_COLOR").is_none()
        && std::io::IsTerminal::is_terminal(&std::io::stderr());
    let _ = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(has_colour)
        .try_init();
}

async fn serve(config: Config) -> anyhow::Result<Exit> {
    let stop = CancellationToken::new();
    watch_signals(&stop)?;
    sweep(&config);
    let front = Front::new(config)?;
    front.fleet.start_eager();
    let unknown = survey::unknown(&front.registry.catalog());
    let background = tokio::spawn(survey::get_to_know(Arc::clone(&front), unknown));
    let refreshing = tokio::spawn(survey::keep_fresh(Arc::clone(&front)));
    let flushing = tokio::spawn(flush(Arc::clone(&front)));
    front::serve(Arc::clone(&front), stdio::input(), stdio::output(), stop).await;
    background.abort();
    refreshing.abort();
    flushing.abort();
    if timeout(STOP_WAIT, front.stop()).await.is_err() {
        tracing::warn!("some servers did not end in time and were killed");
    }
    Ok(Exit::Success)
}

/// Ends what a predecessor that crashed left behind. Nobody waits for it.
fn sweep(config: &Config) {
    let marker = front::marker(config);
    tokio::task::spawn_blocking(move || {
        let ended = fleet::sweep(&marker);
        if ended > 0 {
            tracing::warn!(ended, "ended servers that a crashed proxy had left");
        }
    });
}

/// What a server wrote to stderr, as far as it is kept.
fn server_log(config: &Config, server: &str, lines: Option<usize>) -> Exit {
    let Some(known) = config
        .servers
        .iter()
        .find(|it| it.spec.name.as_str() == server)
    else {
        let names = config.servers.iter();
        let names: Vec<&str> = names.map(|server| server.spec.name.as_str()).collect();
        report::say(&format!(
            "error: no server `{server}`\nhint: there are {}",
            names.join(", ")
        ));
        return Exit::Usage;
    };
    let newest = fleet::log_path(&front::logs(config), &known.spec.name);
    let older = newest.with_extension("log.1");
    let texts = [older, newest].map(|path| std::fs::read_to_string(path).unwrap_or_default());
    let text = texts.concat();
    let all: Vec<&str> = text.lines().collect();
    let shown = &all[all.len().saturating_sub(lines.unwrap_or(usize::MAX))..];
    if shown.is_empty() {
        report::say(&format!("`{server}` has written nothing to stderr"));
        return Exit::Nothing;
    }
    report::data(&shown.join("\n"));
    Exit::Success
}

fn watch_signals(stop: &CancellationToken) -> anyhow::Result<()> {
    use tokio::signal::unix::{SignalKind, signal};
    for kind in [
        SignalKind::terminate(),
        SignalKind::interrupt(),
        SignalKind::hangup(),
    ] {
        let mut signals = signal(kind).context("cannot watch signals")?;
        let stop = stop.clone();
        tokio::spawn(async move {
            signals.recv().await;
            stop.cancel();
        });
    }
    Ok(())
}

async fn flush(front: Arc<Front>) {
    loop {
        tokio::time::sleep(FLUSH_EVERY).await;
        let front = Arc::clone(&front);
        let _ = tokio::task::spawn_blocking(move || front.flush()).await;
    }
}

/// Commands that ask the same front as a client does. Servers that were started are ended.
async fn with_front(config: Config, global: &Global, command: Command) -> anyhow::Result<Exit> {
    let front = Front::new(config)?;
    let stop = CancellationToken::new();
    watch_signals(&stop)?;
    let done = stop.run_until_cancelled(ask(&front, global, command)).await;
    front.stop().await;
    done.unwrap_or_else(|| bail!("interrupted"))
}

async fn ask(front: &Arc<Front>, global: &Global, command: Command) -> anyhow::Result<Exit> {
    if let Command::Reindex { servers } = command {
        return reindex(front, global, &servers).await;
    }
    if let Command::Read { handle } = command {
        return Ok(read(front, global, &handle));
    }
    get_to_know(front).await;
    match command {
        Command::Search(search) => self::search(front, global, search).await,
        Command::Describe { names } => describe(front, global, &names).await,
        Command::Call(call) => self::call(front, global, call).await,
        Command::List { of } => list(front, global, of.as_deref()).await,
        Command::Tokens { by_tool } => count_tokens(front, global, by_tool).await,
        other => bail!("{other:?} has no front to ask"),
    }
}

/// Servers that were never asked for their tools are asked now. One that failed before is left
/// to `reindex`: a search does not wait for it again.
async fn get_to_know(front: &Arc<Front>) {
    let catalog = front.registry.catalog();
    let servers = catalog.servers.iter();
    let new = servers.filter(|it| it.surveyed_at.is_none() && it.stale.is_none());
    let new: Vec<_> = new.map(|server| server.name.clone()).collect();
    if !new.is_empty() {
        let names: Vec<&str> = new.iter().map(tool::ServerName::as_str).collect();
        let names = names.join(", ");
        report::say(&format!(
            "asking for their tools for the first time: {names}"
        ));
        survey::get_to_know(Arc::clone(front), new).await;
    }
}

async fn reindex(front: &Arc<Front>, global: &Global, servers: &[String]) -> anyhow::Result<Exit> {
    let chosen = match survey::choose(front, servers) {
        Ok(chosen) => chosen,
        Err(missing) => {
            let known: Vec<String> = front
                .config
                .enabled()
                .map(|server| server.spec.name.to_string())
                .collect();
            let missing = missing.join(", ");
            report::say(&format!(
                "error: no server `{missing}`\nhint: there are {}",
                known.join(", ")
            ));
            return Ok(Exit::Usage);
        }
    };
    if chosen.is_empty() {
        report::say("no servers to ask: add a `[servers.NAME]` table to the configuration");
    }
    let began = Instant::now();
    let bar = report::progress(chosen.len(), global.quiet || global.json);
    let mut news = Vec::new();
    let mut asked = BTreeMap::new();
    let mut answers = std::pin::pin!(survey::survey(front, chosen, tokens::of_definition));
    while let Some(answer) = answers.next().await {
        bar.inc(1);
        bar.set_message(answer.news.server.to_string());
        news.push(answer.news.clone());
        asked.insert(answer.news.server.clone(), answer);
    }
    bar.finish_and_clear();
    let planned = survey::commit(front, news, !servers.is_empty()).await?;
    let mut lines: Vec<Reindexed> = planned
        .iter()
        .map(|planned| Reindexed::new(planned, asked.get(&planned.server)))
        .collect();
    lines.sort_by(|a, b| a.server.cmp(&b.server));
    Ok(report::reindexed(
        &lines,
        began.elapsed().as_secs_f64(),
        global.json,
    ))
}

async fn search(front: &Arc<Front>, global: &Global, search: Search) -> anyhow::Result<Exit> {
    let mut arguments = json!({
        "query": search.query.join(" "),
        "category": search.category,
        "tags": search.tags,
        "max_results": search.max_results,
        "offset": search.offset,
    });
    if global.json {
        arguments["format"] = json!("json");
    }
    let reply = ask_tool(front, SEARCH, &arguments).await?;
    let text = reply.printable();
    let found = front.has_hits(&arguments).await?;
    if global.json {
        report::json(&serde_json::from_str(&text)?);
    } else {
        report::data(&text);
    }
    Ok(if found { Exit::Success } else { Exit::Nothing })
}

async fn describe(front: &Arc<Front>, global: &Global, names: &[String]) -> anyhow::Result<Exit> {
    if !global.json {
        let reply = ask_tool(front, DESCRIBE, &json!({"name": names})).await?;
        return Ok(print_reply(&reply));
    }
    let generation = front.generation().await?;
    let names = names.iter().flat_map(|name| name.split(','));
    let found: Result<Vec<Value>, _> = names
        .map(|name| front.find(&generation, name))
        .map(|entry| entry.map(|entry| front.describe_json(&generation, entry)))
        .collect();
    match found {
        Ok(mut tools) => {
            let one = if tools.len() == 1 { tools.pop() } else { None };
            report::json(&one.unwrap_or(Value::Array(tools)));
            Ok(Exit::Success)
        }
        Err(error) => {
            report::say(&error.to_string());
            Ok(Exit::Nothing)
        }
    }
}

async fn call(front: &Arc<Front>, global: &Global, call: Call) -> anyhow::Result<Exit> {
    let input = match read_arguments(&call.arguments) {
        Ok(input) => input,
        Err(error) => {
            report::fail(&error);
            return Ok(Exit::Usage);
        }
    };
    let mut members = vec![
        format!("\"tool_name\":{}", Value::from(call.name.as_str())),
        format!("\"tool_input\":{input}"),
        format!("\"raw\":{}", call.raw),
        format!("\"dry_run\":{}", call.dry_run),
    ];
    members.extend(call.timeout_ms.map(|ms| format!("\"timeout_ms\":{ms}")));
    members.extend(
        call.max_tokens
            .map(|count| format!("\"max_tokens\":{count}")),
    );
    let arguments = RawValue::from_string(format!("{{{}}}", members.join(",")))?;
    let reply = front
        .call_tool(EXECUTE, Some(&arguments), CallContext::default())
        .await;
    let reply = reply.context("one of our own tools is missing")?;
    if global.json {
        report::data(reply.json().as_str());
        return Ok(if reply.is_error() {
            Exit::Nothing
        } else {
            Exit::Success
        });
    }
    Ok(print_reply(&reply))
}

/// The arguments of `call`: one JSON object (its text is kept as it is), or pairs.
fn read_arguments(given: &[String]) -> anyhow::Result<String> {
    let text = match given {
        [] => return Ok("{}".to_owned()),
        [one] if one == "-" => {
            let mut text = String::new();
            std::io::stdin()
                .read_to_string(&mut text)
                .context("cannot read stdin")?;
            text
        }
        [one] if one.trim_start().starts_with('{') => one.clone(),
        pairs => return Ok(Value::Object(read_pairs(pairs)?).to_string()),
    };
    let _: Map<String, Value> =
        serde_json::from_str(&text).context("the arguments are no JSON object")?;
    Ok(text)
}

fn read_pairs(pairs: &[String]) -> anyhow::Result<Map<String, Value>> {
    let pair = |pair: &String| {
        let (key, value) = pair
            .split_once('=')
            .with_context(|| format!("`{pair}` is neither KEY=VALUE nor a JSON object"))?;
        let value = serde_json::from_str(value).unwrap_or_else(|_| Value::from(value));
        Ok((key.to_owned(), value))
    };
    pairs.iter().map(pair).collect()
}

async fn list(front: &Arc<Front>, global: &Global, of: Option<&str>) -> anyhow::Result<Exit> {
    let generation = front.generation().await?;
    let wanted = of.map(tool::fold);
    let is_wanted = |entry: &&registry::Entry| match &wanted {
        None => true,
        Some(of) => {
            tool::fold(entry.at.server.as_str()) == *of || tool::fold(&entry.category) == *of
        }
    };
    let entries: Vec<&registry::Entry> = generation.entries().filter(is_wanted).collect();
    if global.json {
        let tools: Vec<Value> = entries
            .iter()
            .map(|it| json!({"name": it.at.to_string(), "purpose": it.purpose(), "category": it.category}))
            .collect();
        report::json(&Value::Array(tools));
    } else {
        let lines: Vec<String> = entries
            .iter()
            .map(|entry| format!("{} - {}", entry.at, entry.purpose()))
            .collect();
        if !lines.is_empty() {
            report::data(&lines.join("\n"));
        }
    }
    if entries.is_empty() {
        report::say(&match of {
            Some(of) => format!("no tools in `{of}`"),
            None => "no tools".to_owned(),
        });
        return Ok(Exit::Nothing);
    }
    Ok(Exit::Success)
}

fn read(front: &Front, global: &Global, handle: &str) -> Exit {
    let Some(kept) = front.results.read(handle) else {
        let error = front::ToolError::HandleExpired {
            handle: handle.to_owned(),
        };
        report::say(&error.to_string());
        return Exit::Nothing;
    };
    if global.json {
        report::data(&kept);
    } else {
        match fleet::json(kept) {
            Ok(json) => report::data(&front::Reply::of_server(json, false).printable()),
            Err(error) => {
                report::say(&format!("error: the kept result is damaged: {error}"));
                return Exit::Nothing;
            }
        }
    }
    Exit::Success
}

async fn count_tokens(front: &Arc<Front>, global: &Global, by_tool: bool) -> anyhow::Result<Exit> {
    let generation = front.generation().await?;
    if by_tool {
        return Ok(tokens_by_tool(&generation, global.json));
    }
    let catalog = front.registry.catalog();
    let counts: Vec<usize> = generation
        .entries()
        .map(|entry| tokens::of_definition(entry.tool.json()))
        .collect();
    let theirs: usize = counts.iter().sum();
    let servers = catalog.servers.iter().filter(|it| it.tools > 0).count();
    let ours = tokens::of_ours() + tokens::count(&instructions(&catalog));
    let saved = theirs.saturating_sub(ours);
    let percent = (saved * 100).checked_div(theirs).unwrap_or(0);
    if global.json {
        report::json(&json!({
            "servers": servers,
            "tools": counts.len(),
            "loaded_up_front": theirs,
            "through_proxy": ours,
            "saved": saved,
            "saved_percent": percent,
            "encoding": "o200k",
        }));
    } else {
        report::data(&format!(
            "{} tools of {servers} servers, loaded up front  {:>9} tokens\n\
             three tools and instructions of proxy{}  {:>9} tokens\n\
             saved in every session{}  {:>9} tokens ({percent} %)",
            grouped(counts.len()),
            grouped(theirs),
            " ".repeat(4),
            grouped(ours),
            " ".repeat(19),
            grouped(saved),
        ));
    }
    Ok(Exit::Success)
}

fn tokens_by_tool(generation: &registry::Generation, as_json: bool) -> Exit {
    let mut counts: Vec<(usize, String)> = generation
        .entries()
        .map(|entry| {
            (
                tokens::of_definition(entry.tool.json()),
                entry.at.to_string(),
            )
        })
        .collect();
    counts.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
    if as_json {
        let list = counts
            .iter()
            .map(|(count, name)| json!({"name": name, "tokens": count}));
        report::json(&Value::Array(list.collect()));
    } else {
        let lines: Vec<String> = counts
            .iter()
            .map(|(count, name)| format!("{:>9}  {name}", grouped(*count)))
            .collect();
        report::data(&lines.join("\n"));
    }
    Exit::Success
}

fn config_path(global: &Global) -> Exit {
    let asked = global.overrides().config;
    let of_variable = std::env::var_os("PROXY_CONFIG").filter(|path| !path.is_empty());
    let asked = asked.or(of_variable.map(PathBuf::from));
    match asked.or_else(|| config::default_path(&Environment::of_process())) {
        Some(path) => {
            report::data(&path.display().to_string());
            Exit::Success
        }
        None => {
            report::say("no home folder is known: set HOME, or name a file with --config");
            Exit::Usage
        }
    }
}

fn config_check(config: &Config, as_json: bool) -> Exit {
    let notes = config.notes();
    let enabled = config.enabled().count();
    if as_json {
        report::json(&json!({
            "file": config.file,
            "state_dir": config.state_dir,
            "servers": config.servers.len(),
            "enabled": enabled,
            "notes": notes,
        }));
        return Exit::Success;
    }
    let mut lines = vec![
        format!("{}: no mistakes", config.file.display()),
        format!("servers: {} ({enabled} enabled)", config.servers.len()),
        format!("state: {}", config.state_dir.display()),
    ];
    lines.extend(notes.iter().map(|note| format!("note: {note}")));
    report::data(&lines.join("\n"));
    Exit::Success
}

async fn ask_tool(front: &Front, name: &str, arguments: &Value) -> anyhow::Result<front::Reply> {
    let arguments = RawValue::from_string(arguments.to_string())?;
    let reply = front
        .call_tool(name, Some(&arguments), CallContext::default())
        .await;
    reply.context("one of our own tools is missing")
}

/// Success goes to stdout; an error is for people.
fn print_reply(reply: &front::Reply) -> Exit {
    if reply.is_error() {
        report::say(&reply.printable());
        return Exit::Nothing;
    }
    report::data(&reply.printable());
    Exit::Success
}
