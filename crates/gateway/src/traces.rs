//! Spans of requests and calls, as the conventions of OpenTelemetry for MCP name them.
//!
//! No argument, no result, no URI and no id of a session is in one: each may be a secret.

use std::sync::Arc;

use fleet::{Template, Variables, with_secrets};
use secrets::Resolver;
use telemetry::otlp::{Collector, Delivery, Exporter, Kind, OpenSpan, Prepare};
use telemetry::{CallRecord, estimate_tokens};
use tool::ServerName;

use crate::{call_context::CallContext, settings::TraceSettings, trace_parent::parent_in};

/// Of a request that its client took back, or left; as of its call.
const TAKEN_BACK: &str = "cancelled";

/// The longest name of a tool or prompt in a span, in characters.
const NAME_CHARS_MAX: usize = 200;

/// The way to the collector; none where the configuration names none.
#[derive(Debug, Default)]
pub(crate) struct Traces(Option<Arc<Exporter>>);

impl Traces {
    pub(crate) fn new(
        settings: Option<&TraceSettings>,
        secrets: impl FnOnce() -> Arc<Resolver>,
    ) -> Self {
        let exporter = |settings| Arc::new(Exporter::new(prepare(settings, secrets())));
        Self(settings.cloned().map(exporter))
    }

    /// A span below that of the context, else below that which its client's request names. None
    /// where there is no collector, or the client's trace is not to be kept.
    pub(crate) fn begin(&self, context: &CallContext) -> Option<OpenSpan> {
        let exporter = self.0.as_ref()?;
        OpenSpan::begin(exporter, context.trace.or_else(|| parent_in(&context.meta)))
    }

    /// The span of a request for one of our three tools; what it calls is below it.
    pub(crate) fn begin_request(&self, tool: &str, context: &mut CallContext) -> Option<OpenSpan> {
        let mut span = self.begin(context)?;
        span.is_named(format!("tools/call {tool}"), Kind::Server);
        span.has("mcp.method.name", "tools/call");
        span.has("gen_ai.operation.name", "execute_tool");
        span.has("gen_ai.tool.name", tool);
        has_client(&mut span, &context.policy.name);
        span.fails_unless_it_ends(TAKEN_BACK);
        context.trace = span.context();
        Some(span)
    }

    /// The delivery of spans so far; `None` if there is no collector.
    pub(crate) fn delivery(&self) -> Option<Delivery> {
        self.0.as_ref().map(|exporter| exporter.delivery())
    }

    /// Sends what is left, within the limit that the exporter has for it.
    pub(crate) async fn finish(&self) {
        if let Some(exporter) = &self.0 {
            exporter.finish().await;
        }
    }
}

/// Says of a span what was written down of its call.
pub(crate) fn describe_call(span: &mut OpenSpan, call: &CallRecord) {
    let method = match call.kind {
        "tool" => "tools/call",
        "prompt" => "prompts/get",
        "resource" => "resources/read",
        "completion" => "completion/complete",
        _ => "resources/subscribe",
    };
    span.has("mcp.method.name", method);
    // A name that means nothing is a text of whoever called.
    let name = printable::one_line_of(&call.name, NAME_CHARS_MAX);
    let target = match call.kind {
        "tool" if !call.server.is_empty() => {
            span.has("gen_ai.operation.name", "execute_tool");
            Some("gen_ai.tool.name")
        }
        "prompt" if !call.server.is_empty() => Some("gen_ai.prompt.name"),
        _ => None,
    };
    let is_ours = [ServerName::built_in(), ServerName::scripts()];
    let is_ours = call.server.is_empty() || is_ours.iter().any(|it| it.as_str() == call.server);
    let kind = if is_ours {
        Kind::Internal
    } else {
        Kind::Client
    };
    match target {
        Some(key) => {
            span.is_named(format!("{method} {name}"), kind);
            span.has(key, &*name);
        }
        None => span.is_named(method.to_owned(), kind),
    }
    if !call.server.is_empty() {
        span.has("proxy.server", &*call.server);
    }
    has_client(span, &call.client);
    if let Some(session) = call.session {
        span.has("proxy.session", session);
    }
    if !call.decision.is_empty() {
        span.has("proxy.decision", call.decision);
    }
    if let Some(rule) = call.rule {
        span.has("proxy.rule", rule as u64);
    }
    span.has("proxy.outcome", &*call.outcome);
    span.has("proxy.arguments.bytes", call.bytes_in);
    span.has("proxy.arguments.tokens", estimate_tokens(call.bytes_in));
    span.has("proxy.result.bytes", call.bytes);
    span.has("proxy.answer.bytes", call.bytes_sent);
    span.has("proxy.answer.tokens", estimate_tokens(call.bytes_sent));
    span.has("proxy.answer.is_cut", call.is_cut);
    if call.outcome != "ok" {
        span.fails(&call.outcome);
    }
}

/// A person at the command line has no name.
fn has_client(span: &mut OpenSpan, client: &str) {
    if !client.is_empty() {
        span.has("proxy.client", client);
    }
}

fn prepare(settings: TraceSettings, secrets: Arc<Resolver>) -> Prepare {
    let settings = Arc::new(settings);
    Box::new(move || {
        let (settings, secrets) = (Arc::clone(&settings), Arc::clone(&secrets));
        Box::pin(async move { find_collector(&settings, &secrets).await })
    })
}

/// Fills in the address and the headers, from the variables of this process.
async fn find_collector(settings: &TraceSettings, secrets: &Resolver) -> Result<Collector, String> {
    let templates: Vec<&Template> = settings.templates().collect();
    let variables = Variables::of_process();
    let variables = with_secrets(templates, &variables, Some(secrets)).await;
    let variables = variables.map_err(|failure| failure.to_string())?;
    let fill = |template: &Template| {
        let filled = template.expand(|name| variables.get(name).map(str::to_owned));
        filled.map_err(|unset| unset.to_string())
    };
    let header = |(name, value): &(String, Template)| Ok((name.clone(), fill(value)?));
    let headers: Result<Vec<_>, String> = settings.headers.iter().map(header).collect();
    let (endpoint, headers) = (fill(&settings.endpoint)?, headers?);
    // It reads the certificates that this machine trusts.
    let opening = tokio::task::spawn_blocking(move || Collector::new(&endpoint, &headers));
    opening.await.map_err(|error| error.to_string())?
}
