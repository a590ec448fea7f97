//! `describe_tool`: everything about a tool that its signature leaves out.

use std::sync::Arc;

use files::clock::now_s;
use registry::{Entry, KnownServer, Registry};
use results::{Budget, ResultStore, fit};
use serde_json::{Value, value::RawValue};
use tokio::task::spawn_blocking;
use tracing::warn;

use super::{loose::Loose, server_marks::marks};
use crate::{
    call_context::CallContext,
    catalog::Catalog,
    definitions::DESCRIBE,
    error::ToolError,
    policy::ClientPolicy,
    render::{
        describe::{self, Extent, ToolFacts},
        join, whole_lines,
    },
    reply::ToolReply,
    sent_instructions::SentInstructions,
};

/// Tools in one answer (interface, section 5).
const TOOLS_MAX: usize = 5;

/// The most servers with one name that are described in one answer.
const SERVERS_MAX: usize = 5;

const SIGNATURE: &str = "(name: string, path?: string, full?: boolean)";

/// The cost of the blank line between answers of several tools, in tokens.
const BETWEEN_TOKENS: usize = 2;

/// Describes tools. With `full`, their whole descriptions are cut and kept like any result.
pub(crate) async fn describe_tool(
    catalog: &Catalog,
    results: &ResultStore,
    arguments: Option<&RawValue>,
    context: &CallContext,
) -> Result<ToolReply, ToolError> {
    let arguments = Loose::read(arguments);
    let room = catalog.settings().room(&context.policy);
    let is_full = arguments.text(&["full"]).as_deref() == Some("true");
    let is_kept = is_full && context.policy.sees_ours();
    let extent = Extent {
        room: if is_kept { usize::MAX } else { room },
        is_full,
    };
    let reply = ToolReply::text(&describe_all(catalog, &arguments, context, extent).await?);
    if !is_kept {
        return Ok(reply);
    }
    let budget = Budget {
        is_ours: true,
        ..Budget::new(room as u64)
    };
    let origin = context.origin();
    let fitted = fit(reply.json().clone(), budget, origin, results).await;
    Ok(ToolReply::from(fitted))
}

async fn describe_all(
    catalog: &Catalog,
    arguments: &Loose,
    context: &CallContext,
    extent: Extent,
) -> Result<String, ToolError> {
    let sent = context.sent_instructions.as_deref();
    let names = names(arguments)?;
    let is_sole = names.len() == 1;
    let room = match names.len() {
        1 => extent.room,
        count => (extent.room / count).saturating_sub(BETWEEN_TOKENS),
    };
    let extent = Extent { room, ..extent };
    let path = arguments.text(&["path"]).filter(|_| is_sole);
    let mut texts = Vec::new();
    for name in &names {
        let found = catalog.resolve(name, &context.policy).await;
        texts.push(match (found, &path) {
            (Ok(entry), None) => describe(catalog, &entry, sent, extent).await?,
            (Ok(entry), Some(path)) => describe::branch(&entry, path, room)
                .map_err(|why| ToolError::own_input(DESCRIBE, "path", &why, SIGNATURE))?,
            (Err(error), _) => match describe_server(catalog, name, error, context).await {
                Err(error) if is_sole => return Err(error),
                page => whole_lines(page.unwrap_or_else(|error| error.to_string()), room),
            },
        });
    }
    Ok(texts.join("\n\n"))
}

/// The text form of one tool, built off the event loop: an example for an
/// untrusted schema has to be searched for. Marks its change as read.
pub(super) async fn describe(
    catalog: &Catalog,
    entry: &Arc<Entry>,
    sent: Option<&SentInstructions>,
    extent: Extent,
) -> Result<String, ToolError> {
    let facts = facts(catalog, entry);
    let instructions = facts.server.as_ref().and_then(|server| sent?.long(server));
    let (entry, registry) = (Arc::clone(entry), catalog.registry.clone());
    let describing = spawn_blocking(move || {
        let text = describe::text(&entry, &facts, instructions.as_deref(), extent);
        note_read(&registry, &entry);
        text
    });
    describing.await.map_err(ToolError::internal)
}

/// The definition of a tool and the facts about it as JSON, as `proxy describe --json` prints it.
pub fn describe_json(catalog: &Catalog, entry: &Entry) -> Value {
    describe::json(entry, &facts(catalog, entry))
}

/// Describes the tool that a name means to a client.
pub async fn describe_as_json(
    catalog: &Catalog,
    asked: &str,
    policy: &ClientPolicy,
) -> Result<Value, ToolError> {
    let entry = catalog.resolve(asked, policy).await?;
    Ok(describe_json(catalog, &entry))
}

fn facts(catalog: &Catalog, entry: &Entry) -> ToolFacts {
    let server = &entry.at.server;
    let settings = catalog.settings();
    let of_server = settings.server(server).and_then(|it| it.notes.clone());
    let notes = [entry.overlay.notes.clone(), of_server];
    let notes: Vec<String> = notes.into_iter().flatten().collect();
    ToolFacts {
        server: catalog.registry.known_server(server),
        trouble: catalog.find_trouble(server, entry.stale),
        failure: catalog.failure(server),
        calls: catalog.usage.count(&entry.at),
        last_call: catalog.usage.last(&entry.at),
        notes: (!notes.is_empty()).then(|| notes.join(" ")),
        now: now_s(),
    }
}

/// Describes the server that a name means if it is no tool's name: any name of the server; else the
/// error.
pub(crate) async fn describe_server(
    catalog: &Catalog,
    asked: &str,
    error: ToolError,
    context: &CallContext,
) -> Result<String, ToolError> {
    if let ToolError::Denied { .. } | ToolError::AmbiguousTool { .. } = error {
        return Err(error);
    }
    let policy = &*context.policy;
    let generation = catalog.generation().await?;
    let named = generation.servers_named(asked).into_iter();
    let seen = named.filter(|it| it.tools > 0 && policy.sees(&it.name, &it.category));
    let seen: Vec<&KnownServer> = seen.take(SERVERS_MAX).map(AsRef::as_ref).collect();
    if seen.is_empty() {
        return Err(error);
    }
    let pages = seen.into_iter().map(|server| {
        let entries = generation.entries();
        let entries = entries.filter(|it| it.at.server == server.name);
        let tools = entries.map(|it| (it, marks(catalog, it)));
        let sent = context.sent_instructions.as_ref();
        let instructions = sent.and_then(|sent| sent.brief(server));
        describe::server(server, tools, instructions.as_deref())
    });
    let room = catalog.settings().room(policy);
    Ok(whole_lines(join(pages, "\n"), room))
}

fn names(arguments: &Loose) -> Result<Vec<String>, ToolError> {
    let asked = arguments
        .texts(&["name", "tool_name", "names", "tool", "tools"])
        .unwrap_or_default();
    let split = asked.iter().flat_map(|names| names.split(','));
    let names: Vec<String> = split
        .map(|name| name.trim().to_owned())
        .filter(|name| !name.is_empty())
        .collect();
    let refuse = |message: &str| Err(ToolError::own_input(DESCRIBE, "name", message, SIGNATURE));
    match names.len() {
        0 => refuse("missing; expected the name of a tool"),
        count if count > TOOLS_MAX => {
            refuse(&format!("{count} names; at most {TOOLS_MAX} at once"))
        }
        _ => Ok(names),
    }
}

/// Removes the mark of a changed definition after it was shown. A mark that cannot be removed stays.
fn note_read(registry: &Registry, entry: &Entry) {
    let Some(changed) = entry.changed else { return };
    if let Err(error) = registry.note_read(&[(entry.at.clone(), changed)]) {
        warn!(tool = %entry.at, %error, "still marked as changed");
    }
}
