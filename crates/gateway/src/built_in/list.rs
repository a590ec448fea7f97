//! `proxy/list`: the servers a client has, or the tools of one; categories, and the tools used most.

use std::sync::Arc;

use files::clock::{now_s, show_age};
use fleet::Availability;
use futures::{FutureExt as _, future::BoxFuture};
use printable::count_of;
use registry::{Entry, Generation, KnownServer};
use serde::Deserialize;

use crate::{
    built_in::{BuiltInTool, OwnCall, Tools},
    catalog::Catalog,
    error::ToolError,
    forward::seen,
    render::{error::shorten_home_paths, whole_lines},
    reply::ToolReply,
    tools::describe_tool::describe_server,
};

/// The number of most used tools that are named for a server.
const MOST_USED_MAX: usize = 3;

/// The longest description of a server, in characters.
const ABOUT_CHARS_MAX: usize = 160;

/// The number of tools used most that are listed if the call does not say.
const POPULAR_DEFAULT: usize = 10;

/// The longest reason for which a server is down, in characters.
const WHY_CHARS_MAX: usize = 160;

/// `proxy/list`.
#[derive(Debug)]
pub(crate) struct List {
    pub(crate) catalog: Arc<Catalog>,
}

impl BuiltInTool for List {
    fn call<'a>(
        &'a self,
        call: OwnCall<'a>,
        _tools: &'a dyn Tools,
    ) -> BoxFuture<'a, Result<ToolReply, ToolError>> {
        list(&self.catalog, call).boxed()
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Asked {
    server: Option<String>,
    categories: bool,
    popular: bool,
    top_n: Option<usize>,
}

/// Lists the servers that the client sees, one a line; with `server` the tools of that one.
async fn list(catalog: &Catalog, call: OwnCall<'_>) -> Result<ToolReply, ToolError> {
    let policy = &*call.context.policy;
    let asked: Asked = serde_json::from_str(call.arguments.get()).unwrap_or_default();
    let generation = catalog.generation().await?;
    let server = asked.server.filter(|name| !name.trim().is_empty());
    let within = server.as_ref().map(|name| generation.servers_named(name));
    let is_listed = |entry: &Entry| {
        let is_within = |server: &&Arc<KnownServer>| server.name == entry.at.server;
        policy.sees(&entry.at.server, &entry.category)
            && within.as_ref().is_none_or(|it| it.iter().any(is_within))
    };
    let is_known = within.as_ref().is_none_or(|it| !it.is_empty());
    let mut lines = Vec::new();
    if asked.categories && is_known {
        let counts = registry::count_categories(&generation, is_listed).into_iter();
        lines.extend(counts.map(|(name, tools)| format!("{name} {tools}")));
    }
    if (asked.popular || asked.top_n.is_some()) && is_known {
        let used = list_used(catalog, generation.entries().filter(|it| is_listed(it)));
        let top = used.iter().take(asked.top_n.unwrap_or(POPULAR_DEFAULT));
        let top = top.map(|(count, _, entry)| format!("{} ({count})", entry.at));
        lines.push(format!("most used: {}", top.collect::<Vec<_>>().join(", ")));
    }
    if let (true, Some(name)) = (lines.is_empty(), server) {
        let shown = printable::one_line_of(&name, 80);
        let why = format!("no server is called \"{shown}\"");
        let error = ToolError::own_input("proxy/list", "server", &why, call.entry.signature());
        let described = describe_server(catalog, &name, error, &call.context).await;
        return described.map(|text| ToolReply::text(&text));
    }
    if lines.is_empty() {
        let seen = seen(&generation, policy);
        let tools: usize = seen.iter().map(|it| it.tools).sum();
        let (servers, tools) = (count_of(seen.len(), "server"), count_of(tools, "tool"));
        lines.push(format!("{servers}, {tools}"));
        lines.extend(seen.iter().map(|it| server_line(catalog, &generation, it)));
    }
    let room = catalog.settings().room(policy);
    Ok(ToolReply::text(&whole_lines(lines.join("\n"), room)))
}

/// The tools that were called, with the number of calls and the time of the last; the most called
/// first.
fn list_used<'a>(
    catalog: &Catalog,
    entries: impl Iterator<Item = &'a Entry>,
) -> Vec<(u64, Option<u64>, &'a Entry)> {
    let used = |entry: &'a Entry| {
        let count = catalog.usage.count(&entry.at);
        (count > 0).then(|| (count, catalog.usage.last(&entry.at), entry))
    };
    let mut used: Vec<_> = entries.filter_map(used).collect();
    used.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| a.2.at.cmp(&b.2.at)));
    used
}

/// `github - 35 tools; source-control; most used list_prs (14), get_pr (3); last used list_prs, 2 h ago`.
fn server_line(catalog: &Catalog, generation: &Generation, server: &KnownServer) -> String {
    let count = count_of(server.tools, "tool");
    let mut parts = vec![
        format!("{} - {count}", server.name),
        server.category.clone(),
    ];
    let described = server.description.as_ref();
    parts.extend(described.map(|it| printable::one_line_of(it, ABOUT_CHARS_MAX)));
    if let Some(trouble) = catalog.find_trouble(&server.name, server.stale.is_some()) {
        let why = catalog.failure(&server.name);
        let why = why.or_else(|| server.stale.as_ref().map(ToString::to_string));
        let why = why.filter(|_| trouble != Availability::LoginRequired);
        let why = why.map(|why| {
            let why = printable::one_line_of(&shorten_home_paths(&why), WHY_CHARS_MAX);
            format!(": {why}")
        });
        parts.push(trouble.label().to_owned() + &why.unwrap_or_default());
    }
    let entries = generation
        .entries()
        .filter(|it| it.at.server == server.name);
    let used = list_used(catalog, entries);
    let most = used.iter().take(MOST_USED_MAX);
    let most: Vec<String> = most
        .map(|(count, _, entry)| format!("{} ({count})", entry.at.tool))
        .collect();
    if !most.is_empty() {
        parts.push(format!("most used {}", most.join(", ")));
    }
    if let Some((_, Some(last), entry)) = used.iter().max_by_key(|it| it.1) {
        parts.push(format!(
            "last used {}, {}",
            entry.at.tool,
            show_age(now_s().saturating_sub(*last))
        ));
    }
    parts.join("; ")
}
