//! Spans of requests and calls, named by the OpenTelemetry conventions for MCP.
//!
//! A span contains no argument, result, URI or session id: each may be a secret.

use std::sync::Arc;

use fleet::{Template, Variables, with_secrets};
use secrets::Resolver;
use telemetry::otlp::{Collector, Exporter, OpenSpan, Prepare, SpanKind};
use telemetry::{CallRecord, Outcome, estimate_tokens};
use tool::ServerName;

use crate::{call_context::CallContext, settings::TraceSettings, trace_parent::parent_in};

/// The maximum length of a tool's or prompt's name in a span, in characters.
const NAME_CHARS_MAX: usize = 200;

/// Sends spans to the collector, if the configuration names one.
#[derive(Debug, Default)]
pub(crate) struct Traces(pub(crate) Option<Arc<Exporter>>);

impl Traces {
    pub(crate) fn new(
        settings: Option<&TraceSettings>,
        secrets: impl FnOnce() -> Arc<Resolver>,
    ) -> Self {
        let exporter = |settings| Arc::new(Exporter::new(prepare(settings, secrets())));
        Self(settings.cloned().map(exporter))
    }

    /// Begins a span with the parent of the context, or else the parent that the client's request names.
    /// Returns `None` without a collector, or if the client's trace is not sampled.
    pub(crate) fn begin(&self, context: &CallContext) -> Option<OpenSpan> {
        let exporter = self.0.as_ref()?;
        OpenSpan::begin(exporter, context.trace.or_else(|| parent_in(&context.meta)))
    }

    /// Begins the span of a request for one of our three tools; it is the parent of the calls within it.
    pub(crate) fn begin_request(&self, tool: &str, context: &mut CallContext) -> Option<OpenSpan> {
        let mut span = self.begin(context)?;
        span.set_name(format!("tools/call {tool}"), SpanKind::Server);
        span.set_attribute("mcp.method.name", "tools/call");
        span.set_attribute("gen_ai.operation.name", "execute_tool");
        span.set_attribute("gen_ai.tool.name", tool);
        has_client(&mut span, &context.policy.name);
        span.fail_if_dropped(Outcome::CANCELLED.as_str());
        context.trace = span.context();
        Some(span)
    }

    /// Sends the remaining spans, within the time limit of the exporter.
    pub(crate) async fn finish(&self) {
        if let Some(exporter) = &self.0 {
            exporter.finish().await;
        }
    }
}

pub(crate) fn describe_call(span: &mut OpenSpan, call: &CallRecord) {
    let (method, target) = match call.kind {
        "tool" => ("tools/call", Some("gen_ai.tool.name")),
        "prompt" => ("prompts/get", Some("gen_ai.prompt.name")),
        "resource" => ("resources/read", None),
        "completion" => ("completion/complete", None),
        _ => ("resources/subscribe", None),
    };
    span.set_attribute("mcp.method.name", method);
    // An unknown name is text from the client.
    let name = printable::one_line_of(&call.name, NAME_CHARS_MAX);
    let target = target.filter(|_| !call.server.is_empty());
    if call.kind == "tool" && target.is_some() {
        span.set_attribute("gen_ai.operation.name", "execute_tool");
    }
    let is_ours = [ServerName::built_in(), ServerName::scripts()];
    let is_ours = call.server.is_empty() || is_ours.iter().any(|it| it.as_str() == &*call.server);
    let kind = if is_ours {
        SpanKind::Internal
    } else {
        SpanKind::Client
    };
    match target {
        Some(key) => {
            span.set_name(format!("{method} {name}"), kind);
            span.set_attribute(key, &*name);
        }
        None => span.set_name(method.to_owned(), kind),
    }
    if !call.server.is_empty() {
        span.set_attribute("proxy.server", &*call.server);
    }
    has_client(span, &call.client);
    if let Some(session) = call.session {
        span.set_attribute("proxy.session", session);
    }
    if !call.decision.is_empty() {
        span.set_attribute("proxy.decision", call.decision);
    }
    if let Some(rule) = call.rule {
        span.set_attribute("proxy.rule", rule as u64);
    }
    span.set_attribute("proxy.outcome", call.outcome.as_str());
    span.set_attribute("proxy.arguments.bytes", call.bytes_in);
    span.set_attribute("proxy.arguments.tokens", estimate_tokens(call.bytes_in));
    span.set_attribute("proxy.result.bytes", call.bytes);
    span.set_attribute("proxy.answer.bytes", call.bytes_sent);
    span.set_attribute("proxy.answer.tokens", estimate_tokens(call.bytes_sent));
    span.set_attribute("proxy.answer.is_cut", call.is_cut);
    if call.outcome.is_error() {
        span.fail(call.outcome.as_str());
    }
}

/// A user of the command line has no client name.
fn has_client(span: &mut OpenSpan, client: &str) {
    if !client.is_empty() {
        span.set_attribute("proxy.client", client);
    }
}

fn prepare(settings: TraceSettings, secrets: Arc<Resolver>) -> Prepare {
    let settings = Arc::new(settings);
    Box::new(move || {
        let (settings, secrets) = (Arc::clone(&settings), Arc::clone(&secrets));
        Box::pin(async move { find_collector(&settings, &secrets).await })
    })
}

/// Fills in the address and the headers from the variables of this process.
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
    // Reads the certificates that this machine trusts.
    let opening = tokio::task::spawn_blocking(move || Collector::new(&endpoint, &headers));
    opening.await.map_err(|error| error.to_string())?
}
