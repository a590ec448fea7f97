//! Requests of the command line to the daemon's gateway, or to one of its own.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use fleet::CallError;
use futures::future::join_all;
use jsonrpc::{Fields, text_of};
use registry::{Entry, Generation, Query};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json, value::RawValue};
use tokio_util::sync::CancellationToken;
use tool::{ClientId, ServerName};

use crate::{
    built_in::declare_all,
    call_context::CallContext,
    catalog::Catalog,
    clients::Connection,
    definitions::EXECUTE,
    error::Audience,
    gateway::Gateway,
    has_log,
    policy::ClientPolicy,
    render::hit::marks_of_definition,
    survey,
    tools::{
        describe_tool::describe_json,
        search_tools::{search_json, search_text},
    },
};

mod cluster;
mod describe;
mod reply;

pub use cluster::ClusterVerb;
pub use reply::ShellReply;

/// One command.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub struct ShellRequest {
    /// The request.
    pub verb: Verb,
    /// True for JSON output, for a script.
    pub json: bool,
}

/// The requests of a command line to a gateway.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verb {
    /// `proxy search`.
    Search {
        /// The words.
        words: String,
        /// Only this category or server.
        category: Option<String>,
        /// Only tools with all of these tags.
        tags: Vec<String>,
        /// The number of hits to return.
        limit: usize,
        /// The number of hits to skip.
        offset: usize,
        /// Explain each hit.
        why: bool,
    },
    /// `proxy describe`.
    Describe {
        /// Names of tools.
        names: Vec<String>,
    },
    /// `proxy call`: the arguments of `execute_dynamic_tool`.
    Call(Box<RawValue>),
    /// `proxy servers restart`.
    Restart {
        /// Names of servers.
        servers: Vec<String>,
        /// Let running calls finish.
        waits: bool,
    },
    /// `proxy search '*'`: the tools of a server or category, or all.
    List(Option<String>),
    /// `proxy cluster`.
    Cluster(ClusterVerb),
    /// `proxy run --types`: the declarations for scripts, of one server or of all.
    Types(Option<String>),
}

impl Gateway {
    /// Answers a command. Servers that were never asked for their tools are asked first; a call
    /// ends when `gone` is cancelled.
    pub async fn run_shell(
        self: &Arc<Self>,
        connection: Connection,
        request: ShellRequest,
        gone: CancellationToken,
    ) -> ShellReply {
        let new = self.never_asked();
        self.survey_new().await;
        let lists = match &request.verb {
            Verb::List(of) => Some(of.clone()),
            _ => None,
        };
        let client = self.admit(connection);
        let id = ClientId {
            connection: Some(client.number),
            folder: client.connection.cwd.clone(),
            name: "".into(),
            caller: None,
        };
        let answered = self.answer(id, request, gone).await;
        self.clients.remove(&client);
        self.servers.forget_client(client.number);
        let reply =
            answered.unwrap_or_else(|error| ShellReply::nothing(format!("error: {error:#}")));
        let is_told = |name: &ServerName| match &lists {
            Some(of) => of.as_ref().is_none_or(|of| tool::fold(of) == name.as_str()),
            None => new.contains(name),
        };
        let failures = list_failures(&self.catalog).into_iter();
        let failures = failures.filter_map(|(name, why)| is_told(&name).then_some(why));
        let told: Vec<String> = [reply.told].into_iter().chain(failures).collect();
        ShellReply {
            told: told.join("\n").trim().to_owned(),
            ..reply
        }
    }

    /// Servers that were never asked for their tools. One that failed before is left to `reindex`:
    /// a search does not wait for it again.
    pub fn never_asked(&self) -> Vec<ServerName> {
        let catalog = self.catalog.registry.catalog();
        let servers = catalog.servers.iter();
        let new = servers.filter(|it| it.surveyed_at.is_none() && it.stale.is_none());
        new.map(|server| server.name.clone()).collect()
    }

    /// Asks servers that were never asked for their tools or whose snapshots are damaged, and reads the
    /// saved scripts.
    pub async fn survey_new(self: &Arc<Self>) {
        survey::take_in_scripts(&self.catalog).await;
        let mut new = self.never_asked();
        // A loaded generation has seen the damages.
        if self.catalog.registry.loaded().is_none() {
            let registry = self.catalog.registry.clone();
            let damaged = tokio::task::spawn_blocking(move || registry.list_damaged()).await;
            let damaged = damaged.unwrap_or_default().into_iter();
            new.extend(damaged.map(|(name, _)| name));
        }
        if !new.is_empty() {
            survey::get_to_know(Arc::clone(&self.catalog), new).await;
        }
    }

    async fn answer(
        &self,
        client: ClientId,
        ShellRequest { verb, json }: ShellRequest,
        gone: CancellationToken,
    ) -> anyhow::Result<ShellReply> {
        match verb {
            Verb::Search {
                words,
                category,
                tags,
                limit,
                offset,
                why,
            } => {
                let query = Query {
                    category,
                    tags,
                    limit,
                    offset,
                    why,
                    ..Query::words(&words)
                };
                self.shell_search(query, json).await
            }
            Verb::Describe { names } => self.shell_describe(&names, json).await,
            Verb::Call(arguments) => Ok(self.shell_call(client, &arguments, json, gone).await),
            Verb::Restart { servers, waits } => Ok(self.shell_restart(&servers, waits, json).await),
            Verb::List(of) => self.shell_list(of.as_deref(), json).await,
            Verb::Cluster(verb) => Ok(cluster::answer(&self.servers, verb).await),
            Verb::Types(server) => print_types(&self.catalog, server.as_deref(), json).await,
        }
    }

    async fn shell_search(&self, query: Query, json: bool) -> anyhow::Result<ShellReply> {
        let answer = self.catalog.search(query, None).await?;
        Ok(ShellReply {
            data: if json {
                pretty(&search_json(&self.catalog, &answer))
            } else {
                search_text(&self.catalog, &answer, &ClientPolicy::default()).await?
            },
            is_hit: answer.has_hits(),
            ..ShellReply::default()
        })
    }

    async fn shell_describe(&self, names: &[String], json: bool) -> anyhow::Result<ShellReply> {
        let generation = self.catalog.generation().await?;
        let mut entries = Vec::new();
        for name in names.iter().flat_map(|name| name.split(',')) {
            match self.catalog.find(&generation, name).await {
                Ok(entry) => entries.push(entry),
                Err(error) => match generation.servers_named(name).first() {
                    Some(server) => return self.shell_list(Some(server.name.as_str()), json).await,
                    None => return Ok(ShellReply::nothing(error.text_for(Audience::Person))),
                },
            }
        }
        let described = entries.iter();
        let described = described.map(|entry| describe_json(&self.catalog, entry));
        let mut described: Vec<Value> = described.collect();
        Ok(ShellReply::hit(if !json {
            let pages = entries.iter().zip(&described);
            let pages = pages.map(|(entry, described)| describe::page(entry, described));
            pages.collect::<Vec<_>>().join("\n\n")
        } else if described.len() == 1 {
            pretty(&described.remove(0))
        } else {
            pretty(&Value::Array(described))
        }))
    }

    async fn shell_call(
        &self,
        client: ClientId,
        arguments: &RawValue,
        json: bool,
        gone: CancellationToken,
    ) -> ShellReply {
        let context = CallContext {
            client: Some(client),
            ..CallContext::of_person("shell", gone)
        };
        let began = Instant::now();
        let reply = self.call_tool(EXECUTE, Some(arguments), context).await;
        let reply = reply.expect("it is one of our own tools");
        let is_hit = !reply.is_error();
        let data = if json {
            let called = Fields::of(arguments.get());
            let called = called.and_then(|it| text_of(it.get("tool_name")?));
            let took = began.elapsed();
            reply.json_with_meta(called.as_deref(), took).await
        } else {
            reply.printable()
        };
        if is_hit || json {
            let told = String::new();
            return ShellReply { data, told, is_hit };
        }
        ShellReply::nothing(data)
    }

    /// Restarts all of them at once; the reply has a line for each.
    async fn shell_restart(&self, names: &[String], waits: bool, json: bool) -> ShellReply {
        let restarts = names.iter().map(|name| self.restart(name, waits));
        let outcomes = join_all(restarts).await;
        let is_hit = outcomes.iter().all(Result::is_ok);
        if json {
            let outcome = |(name, outcome): (&String, _)| match outcome {
                Ok(took) => json!({"server": name, "ready_ms": to_whole_ms(took)}),
                Err(RestartError { why, hint }) => {
                    json!({"server": name, "error": why, "next_step": hint})
                }
            };
            let outcomes: Vec<Value> = names.iter().zip(outcomes).map(outcome).collect();
            let data = pretty(&Value::Array(outcomes));
            return ShellReply {
                data,
                is_hit,
                ..ShellReply::default()
            };
        }
        let line = |(name, outcome): (&String, _)| match outcome {
            Ok(took) => format!("{name}: ready in {} ms", to_whole_ms(took)),
            Err(RestartError { why, hint }) => format!("error: {why}\nhint: {hint}"),
        };
        let lines: Vec<String> = names.iter().zip(outcomes).map(line).collect();
        ShellReply {
            is_hit,
            told: lines.join("\n"),
            ..ShellReply::default()
        }
    }

    /// Restarts a server now. Returns the time until it was ready. Its running calls have a grace of
    /// 3 s, or, with `waits`, all the time that they need.
    pub async fn restart(&self, name: &str, waits: bool) -> Result<Duration, RestartError> {
        let unknown = || RestartError {
            why: format!("no server `{name}`"),
            hint: "`proxy servers` lists them; one that is switched off is switched on by `proxy \
                   servers enable`"
                .to_owned(),
        };
        let server = name.parse::<ServerName>().map_err(|_| unknown())?;
        let restarted = self.servers.restart(&server, waits).await;
        restarted.map_err(|error| match error {
            CallError::UnknownServer(_) => unknown(),
            CallError::Unavailable { failure, .. } => RestartError {
                why: format!("{server} did not start: {failure}"),
                hint: failure
                    .hint
                    .unwrap_or_else(|| format!("`proxy logs {server}` prints what it wrote")),
            },
            error => RestartError {
                why: error.to_string(),
                hint: "`proxy status` shows the servers".to_owned(),
            },
        })
    }

    async fn shell_list(&self, of: Option<&str>, json: bool) -> anyhow::Result<ShellReply> {
        let generation = self.catalog.generation().await?;
        let entries = list_entries(&generation, of);
        let data = if json {
            let tool = |it: &&Entry| json!({"name": it.at.to_string(), "purpose": it.purpose(), "category": it.category});
            pretty(&entries.iter().map(tool).collect())
        } else {
            list_text(&entries)
        };
        let told = match of {
            _ if !entries.is_empty() => String::new(),
            Some(of) => format!("no tools in `{of}`"),
            None => "no tools".to_owned(),
        };
        let is_hit = !entries.is_empty();
        Ok(ShellReply { data, told, is_hit })
    }
}

/// The reason why a server is not ready after its restart.
#[derive(Debug)]
pub struct RestartError {
    /// A sentence without a full stop.
    pub why: String,
    /// The next step.
    pub hint: String,
}

/// Returns the declarations for scripts; as JSON `[[name, text]]`, one pair per file.
async fn print_types(
    catalog: &Catalog,
    server: Option<&str>,
    json: bool,
) -> anyhow::Result<ShellReply> {
    let declared = declare_all(catalog, server).await?;
    Ok(ShellReply::hit(if json {
        serde_json::to_string(&declared)?
    } else {
        let texts: Vec<String> = declared.into_iter().map(|(_, text)| text).collect();
        texts.join("\n")
    }))
}

fn to_whole_ms(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// Servers that could not be asked for their tools, and the command to type.
fn list_failures(catalog: &Catalog) -> Vec<(ServerName, String)> {
    let records = catalog.registry.catalog();
    let failed = records.servers.iter().filter_map(|server| {
        let why = server.stale.as_ref()?;
        let name = server.name.clone();
        let reindex = format!("proxy reindex {name}");
        let log = has_log(&catalog.settings().state_dir, &name);
        let log = log.then(|| format!("proxy logs {name}"));
        let next = match (why.hint.clone(), log) {
            (Some(hint), Some(log)) => format!("{hint}; or: {log}, then {reindex}"),
            (Some(step), None) | (None, Some(step)) => format!("{step}, then {reindex}"),
            (None, None) => reindex,
        };
        Some((name.clone(), format!("{name}: {}\nhint: {next}", why.why)))
    });
    failed.collect()
}

fn list_text(entries: &[&Entry]) -> String {
    let line = |it: &&Entry| format!("{} - {}{}", it.at, it.purpose(), marks_of_definition(it));
    entries.iter().map(line).collect::<Vec<_>>().join("\n")
}

fn pretty(value: &Value) -> String {
    format!("{value:#}")
}

/// The tools of a server or category; of all servers but our own.
fn list_entries<'a>(generation: &'a Generation, of: Option<&str>) -> Vec<&'a Entry> {
    let wanted = of.map(tool::fold);
    let is_wanted = |entry: &&Entry| {
        // Our own tools are listed if the request names us.
        let is_own = entry.at.server.is_built_in();
        wanted.as_ref().map_or(!is_own, |of| {
            let is_of = |text: &str| tool::fold(text) == *of;
            is_of(entry.at.server.as_str()) || (!is_own && is_of(&entry.category))
        })
    };
    generation.entries().filter(is_wanted).collect()
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;
    use registry::{News, Options, Registry, Rules, ServerRules, Snapshot};
    use tool::{ServerName, Tool};

    use super::{list_entries, list_text};

    fn tool(json: &str) -> Tool {
        Tool::parse(json).unwrap()
    }

    fn survey(server: &ServerName, tools: Vec<Tool>) -> News {
        let snapshot = Snapshot {
            server: server.clone(),
            tools,
            offer: tool::Offer::default(),
            server_name: server.to_string(),
            server_version: String::new(),
            instructions: None,
            protocol: "2025-11-25".to_owned(),
            transport: None,
            asking_calls: Vec::new(),
            tokens: 0,
            surveyed_at: 0,
        };
        News {
            server: server.clone(),
            asked_ms: 0,
            outcome: Ok(snapshot),
        }
    }

    #[test]
    fn a_list_has_a_line_a_tool_and_ours_only_for_who_names_us() {
        let folder = tempfile::tempdir().unwrap();
        let [git, mail]: [ServerName; 2] = ["git", "mail"].map(|name| name.parse().unwrap());
        let rules = Rules {
            servers: [&git, &mail]
                .map(|it| ServerRules::plain(it.clone()))
                .into(),
            ..Rules::default()
        };
        let options = Options {
            built_in: vec![
                tool(r#"{"name": "read_result", "description": "Read a result."}"#).into(),
            ],
            ..Options::default()
        };
        let registry = Registry::open_with(folder.path(), rules, options).unwrap();
        let log = r#"{"name": "git_log", "description": "Show the commits. Newest first."}"#;
        let inbox = r#"{"name": "list_inbox"}"#;
        let wipe =
            r#"{"name": "wipe", "annotations": {"destructiveHint": true, "readOnlyHint": false}}"#;
        let news = vec![
            survey(&git, vec![tool(log), tool(r#"{"name": "git_diff"}"#)]),
            survey(&mail, vec![tool(inbox), tool(wipe)]),
        ];
        registry.commit(news, false, 0).unwrap();
        let generation = registry.generation().unwrap();
        let list = |of| list_text(&list_entries(&generation, of));
        assert_snapshot!(list(None), @"
        git/git_diff - Git diff
        git/git_log - Show the commits
        mail/list_inbox - List inbox
        mail/wipe - Wipe [destructive]
        ");
        assert_snapshot!(list(Some("Mail")), @"
        mail/list_inbox - List inbox
        mail/wipe - Wipe [destructive]
        ");
        assert_snapshot!(list(Some("proxy")), @"proxy/read_result - Read a result");
        assert_snapshot!(list(Some("nobody")), @"");
    }
}
