//! Tools: searches, lists, descriptions, calls, and declarations for scripts.

use std::{sync::Arc, time::Instant};

use jsonrpc::{Fields, text_of};
use registry::{Entry, Generation, Query};
use serde::{Deserialize, Serialize};
use serde_json::{
    Value,
    value::{RawValue, to_raw_value},
};

use super::{caller::ApiCaller, error::ApiError};
use crate::{
    built_in::declare_all,
    call_context::CallContext,
    definitions::EXECUTE,
    error::{Audience, ToolError},
    gateway::Gateway,
    policy::ClientPolicy,
    render::{describe::find_title, hit::marks_of_definition},
    tools::{
        describe_tool::describe_json,
        search_tools::{search_json, search_text},
    },
};

/// A search.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct SearchRequest {
    /// The words.
    pub words: String,
    /// Only tools of this category or server.
    pub category: Option<String>,
    /// Only tools with all of these tags.
    pub tags: Vec<String>,
    /// The number of hits to return.
    pub limit: usize,
    /// The number of hits to skip.
    pub offset: usize,
    /// Explain each hit.
    pub why: bool,
    /// The view of the client with this name.
    pub client: Option<String>,
}

/// The hits of a search.
#[derive(Debug, Serialize, Deserialize)]
pub struct SearchReply {
    /// The hits, complete at any length.
    pub hits: Value,
    /// The text that a model gets.
    pub text: String,
    /// False if no tool was found.
    pub is_hit: bool,
}

/// A tool in a list.
#[derive(Debug, Serialize, Deserialize)]
pub struct ListedTool {
    /// `SERVER/TOOL`.
    pub name: String,
    /// Its purpose.
    pub purpose: String,
    /// Its category.
    pub category: String,
    /// Such as `destructive`.
    pub marks: Vec<String>,
}

/// The tools that names mean, or the tools of the server that one of them means.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Description {
    /// The described tools.
    Tools(Vec<DescribedTool>),
    /// The tools of a server.
    Server(Vec<ListedTool>),
}

/// The description of a tool.
#[derive(Debug, Serialize, Deserialize)]
pub struct DescribedTool {
    /// The description that scripts and programs get.
    pub description: Value,
    /// The annotations of its definition.
    pub annotations: Value,
    /// Its purpose.
    pub purpose: String,
    /// Its title, if it says more than the name.
    pub title: Option<String>,
    /// Such as `destructive`.
    pub marks: Vec<String>,
}

/// A call of a tool.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct CallRequest {
    /// The arguments of `execute_dynamic_tool`.
    pub arguments: Box<RawValue>,
    /// True: the reply has the result as JSON.
    pub as_json: bool,
}

/// The arguments of `execute_dynamic_tool`.
#[derive(Debug, Serialize)]
pub struct ToolArguments<'a, I> {
    /// `SERVER/TOOL`.
    pub tool_name: &'a str,
    /// The arguments of the tool.
    pub tool_input: &'a I,
    /// True: return the whole result, however long.
    pub raw: bool,
    /// True: check the arguments, and call nothing.
    pub dry_run: bool,
    /// The timeout in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// The most tokens of the result.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u64>,
}

impl<I: Serialize> ToolArguments<'_, I> {
    /// Makes the request of this call.
    pub fn request(&self, as_json: bool) -> serde_json::Result<CallRequest> {
        Ok(CallRequest {
            arguments: to_raw_value(self)?,
            as_json,
        })
    }
}

/// The result of a call.
#[derive(Debug, Serialize, Deserialize)]
pub struct CallReply {
    /// True if the call failed.
    pub is_error: bool,
    /// The texts of the result; empty beside JSON.
    pub text: String,
    /// The result with its size and duration, if the request asks for it.
    pub json: Option<Box<RawValue>>,
    /// The duration in milliseconds.
    pub ms: u64,
}

/// Searches tools.
pub async fn search(gateway: &Gateway, asked: &SearchRequest) -> Result<SearchReply, ApiError> {
    let client = asked.client.as_deref();
    let policy = client.map_or_else(ClientPolicy::default, |client| {
        gateway.settings().clients.of(Some(client))
    });
    let query = Query {
        category: asked.category.clone(),
        tags: asked.tags.clone(),
        limit: asked.limit,
        offset: asked.offset,
        why: asked.why,
        view: policy.view.clone(),
        ..Query::words(&asked.words)
    };
    let catalog = &gateway.catalog;
    let answer = catalog.search(query, None).await?;
    Ok(SearchReply {
        hits: search_json(catalog, &answer),
        text: search_text(catalog, &answer, &policy).await?,
        is_hit: answer.has_hits(),
    })
}

pub(super) async fn list_tools(
    gateway: &Gateway,
    of: Option<&str>,
) -> Result<Vec<ListedTool>, ApiError> {
    let generation = gateway.catalog.generation().await?;
    Ok(list_entries(&generation, of))
}

/// The tools of a server or category; of all servers but our own.
fn list_entries(generation: &Generation, of: Option<&str>) -> Vec<ListedTool> {
    let wanted = of.map(tool::fold);
    let is_wanted = |entry: &&Entry| {
        // Our own tools are listed if the request names us.
        let is_own = entry.at.server.is_built_in();
        wanted.as_ref().map_or(!is_own, |of| {
            let is_of = |text: &str| tool::fold(text) == *of;
            is_of(entry.at.server.as_str()) || (!is_own && is_of(&entry.category))
        })
    };
    let entries = generation.entries().filter(is_wanted);
    let listed = entries.map(|entry| ListedTool {
        name: entry.at.to_string(),
        purpose: entry.purpose().to_owned(),
        category: entry.category.clone(),
        marks: marks_of_definition(entry),
    });
    listed.collect()
}

/// Describes the tools with these names; each may be several, with commas between them.
pub(super) async fn describe(gateway: &Gateway, names: &[String]) -> Result<Description, ApiError> {
    let mut described = Vec::new();
    for name in names.iter().flat_map(|name| name.split(',')) {
        match describe_tool(gateway, name).await {
            Ok(tool) => described.push(tool),
            Err(error) => {
                let generation = gateway.catalog.generation().await?;
                let servers = generation.servers_named(name);
                let server = servers.first().ok_or(error)?;
                let tools = list_entries(&generation, Some(server.name.as_str()));
                return Ok(Description::Server(tools));
            }
        }
    }
    Ok(Description::Tools(described))
}

/// Describes the tool that a name means.
pub async fn describe_tool(gateway: &Gateway, name: &str) -> Result<DescribedTool, ApiError> {
    let catalog = &gateway.catalog;
    let generation = catalog.generation().await?;
    let entry = catalog.find(&generation, name).await?;
    Ok(DescribedTool {
        description: describe_json(catalog, &entry),
        annotations: read_annotations(entry.tool.json()),
        purpose: entry.purpose().to_owned(),
        title: find_title(&entry),
        marks: marks_of_definition(&entry),
    })
}

fn read_annotations(definition: &str) -> Value {
    let fields = Fields::of(definition);
    let annotations = fields.as_ref().and_then(|it| it.get("annotations"));
    annotations
        .and_then(|it| serde_json::from_str(it.get()).ok())
        .unwrap_or_default()
}

/// Calls a tool as a person.
pub async fn call(gateway: &Arc<Gateway>, asked: &CallRequest, caller: &ApiCaller) -> CallReply {
    let context = CallContext {
        client: caller.client.clone(),
        ..CallContext::of_person(caller.transport, caller.gone.clone())
    };
    let began = Instant::now();
    let arguments = &asked.arguments;
    let reply = gateway.call_tool(EXECUTE, Some(arguments), context).await;
    let reply = reply.expect("it is one of our own tools");
    let took = began.elapsed();
    let json = if asked.as_json {
        let fields = Fields::of(arguments.get());
        let tool_name = fields.and_then(|fields| text_of(fields.get("tool_name")?));
        let json = reply.json_with_meta(tool_name.as_deref(), took).await;
        RawValue::from_string(json).ok()
    } else {
        None
    };
    CallReply {
        is_error: reply.is_error(),
        text: json
            .as_ref()
            .map_or_else(|| reply.printable(), |_| String::new()),
        json,
        ms: u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
    }
}

pub(super) async fn declare(
    gateway: &Gateway,
    server: Option<&str>,
) -> Result<Vec<(String, String)>, ApiError> {
    Ok(declare_all(&gateway.catalog, server).await?)
}

/// Returns the error of a tool: its sentence, and what follows it as the next step.
pub fn explain(error: &ToolError) -> ApiError {
    let text = error.text_for(Audience::Person);
    let (message, next) = match text.split_once('\n') {
        Some((message, next)) => (message.to_owned(), Some(next.to_owned())),
        None => (text, None),
    };
    ApiError {
        next_step: next,
        ..ApiError::new(error.code(), message)
    }
}

impl From<ToolError> for ApiError {
    fn from(error: ToolError) -> Self {
        explain(&error)
    }
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;
    use registry::{News, Options, Registry, Rules, ServerRules, Snapshot};
    use tool::{ServerName, Tool};

    use super::{ToolArguments, list_entries};
    use crate::api::JsonObject;

    #[test]
    fn the_arguments_of_a_call_keep_the_digits_of_numbers() {
        let input = r#"{"id":12345678901234567890123}"#;
        let arguments = ToolArguments {
            tool_name: "git/git_log",
            tool_input: &serde_json::from_str::<JsonObject>(input).unwrap(),
            raw: false,
            dry_run: false,
            timeout_ms: None,
            max_tokens: None,
        };
        let request = arguments.request(false).unwrap();
        assert!(request.arguments.get().contains(input));
    }

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
    fn a_list_has_every_tool_and_ours_only_if_the_request_names_us() {
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
        let list = |of| {
            let listed = list_entries(&generation, of).into_iter();
            let lines = listed.map(|it| format!("{} - {} {:?}", it.name, it.purpose, it.marks));
            lines.collect::<Vec<_>>().join("\n")
        };
        assert_snapshot!(list(None), @r#"
        git/git_diff - Git diff []
        git/git_log - Show the commits []
        mail/list_inbox - List inbox []
        mail/wipe - Wipe ["destructive"]
        "#);
        assert_snapshot!(list(Some("Mail")), @r#"
        mail/list_inbox - List inbox []
        mail/wipe - Wipe ["destructive"]
        "#);
        assert_snapshot!(list(Some("proxy")), @"proxy/read_result - Read a result []");
        assert_snapshot!(list(Some("nobody")), @"");
    }
}
