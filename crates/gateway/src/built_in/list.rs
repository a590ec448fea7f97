//! `proxy/list`: the servers a client has, or the tools of one.

use std::sync::Arc;

use files::clock::{now_s, show_age};
use futures::{FutureExt as _, future::BoxFuture};
use jsonrpc::Fields;
use printable::count_of;
use registry::{Entry, Generation, KnownServer};
use serde_json::value::RawValue;

use crate::{
    built_in::{BuiltInTool, OwnCall, Tools},
    call_context::CallContext,
    catalog::Catalog,
    error::ToolError,
    render::{error::shorten_home_paths, whole_lines},
    reply::ToolReply,
    tools::describe_tool::describe_server,
};

/// The number of most used tools that are named for a server.
const MOST_USED_MAX: usize = 3;

/// The longest description of a server, in characters.
const ABOUT_CHARS_MAX: usize = 160;

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
        async move { list_servers(&self.catalog, call.arguments, &call.context).await }.boxed()
    }
}

/// Lists the servers that the client sees, one a line; with `server` the tools of that one.
async fn list_servers(
    catalog: &Catalog,
    arguments: &RawValue,
    context: &CallContext,
) -> Result<ToolReply, ToolError> {
    let policy = &*context.policy;
    let asked = Fields::of(arguments.get());
    let asked = asked.and_then(|it| serde_json::from_str::<String>(it.get("server")?.get()).ok());
    if let Some(name) = asked.filter(|name| !name.trim().is_empty()) {
        let error = ToolError::own_input(
            "proxy/list",
            "server",
            &format!(
                "no server is called \"{}\"",
                printable::one_line_of(&name, 80)
            ),
            "(server?: string)",
        );
        return describe_server(catalog, &name, error, context)
            .await
            .map(|text| ToolReply::text(&text));
    }
    let generation = catalog.generation().await?;
    let servers = generation.servers().iter();
    let seen: Vec<&KnownServer> = servers
        .filter(|it| policy.sees(&it.name, &it.category))
        .map(AsRef::as_ref)
        .collect();
    let tools: usize = seen.iter().map(|it| it.tools).sum();
    let mut lines = vec![format!(
        "{}, {}",
        count_of(seen.len(), "server"),
        count_of(tools, "tool")
    )];
    lines.extend(
        seen.iter()
            .map(|server| server_line(catalog, &generation, server)),
    );
    let text = whole_lines(lines.join("\n"), catalog.settings().room(policy));
    Ok(ToolReply::text(&text))
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
    let failure = catalog.failure(&server.name);
    let failure = failure.or_else(|| server.stale.as_ref().map(ToString::to_string));
    if catalog.needs_login(&server.name, server.stale.is_some()) {
        parts.push("login required".to_owned());
    } else if let Some(why) = failure {
        parts.push(format!(
            "down: {}",
            printable::one_line_of(&shorten_home_paths(&why), WHY_CHARS_MAX)
        ));
    }
    let entries = generation
        .entries()
        .filter(|it| it.at.server == server.name);
    let used = |entry: &Entry| {
        let count = catalog.usage.count(&entry.at);
        (count > 0).then(|| (count, catalog.usage.last(&entry.at), entry.at.tool.clone()))
    };
    let mut used: Vec<_> = entries.filter_map(used).collect();
    used.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| a.2.cmp(&b.2)));
    let most = used.iter().take(MOST_USED_MAX);
    let most: Vec<String> = most
        .map(|(count, _, name)| format!("{name} ({count})"))
        .collect();
    if !most.is_empty() {
        parts.push(format!("most used {}", most.join(", ")));
    }
    if let Some((_, Some(last), name)) = used.iter().max_by_key(|it| it.1) {
        parts.push(format!(
            "last used {name}, {}",
            show_age(now_s().saturating_sub(*last))
        ));
    }
    parts.join("; ")
}
