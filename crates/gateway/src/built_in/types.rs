//! `proxy/types`: the tools of a server as TypeScript declarations.

use std::sync::Arc;

use futures::{FutureExt as _, future::BoxFuture};
use results::{Budget, ResultStore, fit};
use script::ServerNames;
use serde::Deserialize;
use tool::{declare_globals, declare_server};

use crate::{
    built_in::{BuiltInTool, OwnCall, Tools},
    call_context::CallContext,
    catalog::Catalog,
    error::ToolError,
    forward::seen,
    reply::ToolReply,
};

const TOOL: &str = "proxy/types";
const SIGNATURE: &str = "(server: string)";

#[derive(Deserialize)]
struct TypesInput {
    server: String,
}

/// `proxy/types`.
#[derive(Debug)]
pub(crate) struct DeclareTypes {
    pub(crate) catalog: Arc<Catalog>,
    pub(crate) results: ResultStore,
}

impl BuiltInTool for DeclareTypes {
    fn call<'a>(
        &'a self,
        call: OwnCall<'a>,
        _tools: &'a dyn Tools,
    ) -> BoxFuture<'a, Result<ToolReply, ToolError>> {
        declare_types(&self.catalog, &self.results, call).boxed()
    }
}

async fn declare_types(
    catalog: &Catalog,
    store: &ResultStore,
    call: OwnCall<'_>,
) -> Result<ToolReply, ToolError> {
    let context = &call.context;
    let asked: TypesInput = serde_json::from_str(call.arguments.get())
        .map_err(|error| wrong_input(&error.to_string()))?;
    let declared = declare(catalog, Some(&asked.server), context).await?;
    let [(_, text)] = declared.as_slice() else {
        return Err(unknown_server(catalog, &asked.server, context).await);
    };
    let budget = Budget {
        is_off: call.options.raw,
        ..Budget::new(call.max_tokens)
    };
    let result = ToolReply::text(text).json().clone();
    let fitted = fit(result, budget, context.origin(), store);
    Ok(ToolReply::from(fitted.await))
}

/// Declares the tools of all servers that the client sees, or of one of them.
async fn declare(
    catalog: &Catalog,
    server: Option<&str>,
    context: &CallContext,
) -> Result<Vec<(String, String)>, ToolError> {
    let generation = catalog.generation().await?;
    let asked = server.map(tool::fold);
    let servers = seen(&generation, &context.policy);
    let names: Vec<String> = servers.iter().map(|it| it.name.to_string()).collect();
    let names = ServerNames::new(&names);
    let servers = servers.into_iter().filter(|it| {
        let is_it = |asked: &String| *asked == tool::fold(it.name.as_str());
        it.tools > 0 && asked.as_ref().is_none_or(is_it)
    });
    let declare = |name: &str| {
        let entries = generation.entries();
        let tools = entries.filter(|it| it.at.server.as_str() == name);
        let tools = tools.map(|entry| (&entry.tool, entry.input_schema()));
        declare_server(name, &names.of(name), &names.globals_of(name), tools)
    };
    let declared = servers.map(|it| {
        let name = it.name.as_str();
        (name.to_owned(), declare(name))
    });
    Ok(declared.collect())
}

async fn unknown_server(catalog: &Catalog, asked: &str, context: &CallContext) -> ToolError {
    let known = match declare(catalog, None, context).await {
        Ok(known) => known,
        Err(error) => return error,
    };
    let names: Vec<&str> = known.iter().map(|(name, _)| name.as_str()).collect();
    let near = tool::near(asked, names.iter().copied(), 1);
    wrong_input(&match near.first() {
        Some(near) => format!("no server has the name; did you mean {near}?"),
        None => format!("no server has the name; there are {}", names.join(", ")),
    })
}

/// Everything that a script may name, as one text, or one text per server; for the command line.
pub(crate) async fn declare_all(
    catalog: &Catalog,
    server: Option<&str>,
) -> anyhow::Result<Vec<(String, String)>> {
    let context = CallContext::default();
    let servers = declare(catalog, server, &context).await?;
    if let (Some(asked), true) = (server, servers.is_empty()) {
        return Err(unknown_server(catalog, asked, &context).await.into());
    }
    let known = catalog.generation().await?;
    let has_server = |name: &str| known.servers().iter().any(|it| it.name.as_str() == name);
    let globals = ("script".to_owned(), declare_globals(has_server));
    Ok([globals].into_iter().chain(servers).collect())
}

fn wrong_input(why: &str) -> ToolError {
    ToolError::own_input(TOOL, "server", why, SIGNATURE)
}
