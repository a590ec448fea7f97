//! `describe_tool` of a server's name: its tools, a line each.

use registry::{Generation, KnownServer};

use super::room::whole_lines;
use crate::{call_context::CallContext, catalog::Catalog, error::ToolError, render::hit_line};

/// The most servers with one name that are described in one answer.
const SERVERS_MAX: usize = 5;

/// Describes the server that a name means if it is no tool's name: any name of the server; else the
/// error.
pub(crate) async fn describe_server(
    catalog: &Catalog,
    asked: &str,
    error: ToolError,
    context: &CallContext,
) -> Result<String, ToolError> {
    if matches!(
        error,
        ToolError::Denied { .. } | ToolError::AmbiguousTool { .. }
    ) {
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
    let pages = seen
        .iter()
        .map(|it| page(catalog, &generation, it, context));
    let pages: Vec<String> = pages.collect();
    Ok(whole_lines(
        pages.join("\n"),
        catalog.settings().room(policy),
    ))
}

fn page(
    catalog: &Catalog,
    generation: &Generation,
    server: &KnownServer,
    context: &CallContext,
) -> String {
    let count = printable::count_of(server.tools, "tool");
    let mut lines = vec![format!("{} - {count}; {}", server.name, server.category)];
    let entries = generation
        .entries()
        .filter(|it| it.at.server == server.name);
    lines.extend(entries.map(|entry| hit_line(catalog, entry)));
    let told = context.told.as_ref().and_then(|told| told.brief(server));
    lines.extend(told.map(|says| format!("instructions of {}: {says}", server.name)));
    lines.join("\n")
}
