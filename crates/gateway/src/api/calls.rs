//! The logged calls.

use files::clock::{now_ms, parse_span};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use telemetry::Filter;

use super::error::ApiError;
use crate::gateway::Gateway;

/// The calls of one answer if the query does not say.
const CALLS_DEFAULT: usize = 100;

/// The most calls in one answer.
const CALLS_MAX: usize = 10_000;

/// A filter of calls.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct CallsQuery {
    /// Only calls within this time, such as `90s`, `15m`, `1h`, `7d`; or since these seconds since 1970.
    pub since: Option<String>,
    /// Only calls before these seconds since 1970.
    pub until: Option<u64>,
    /// Only calls of the client with this name.
    pub client: Option<String>,
    /// Only calls over HTTP with this token or subject.
    pub caller: Option<String>,
    /// Only calls of this server.
    pub server: Option<String>,
    /// Only calls of the tool with this name on its server.
    pub tool: Option<String>,
    /// Only calls that took at least so many milliseconds.
    pub slow: Option<u64>,
    /// Only calls that failed.
    pub failures: Option<bool>,
    /// Only calls of the session with this number.
    pub session: Option<u64>,
    /// Only calls that the rule with this number decided.
    pub rule: Option<u64>,
    /// Only calls with this outcome, such as `ok` or `denied`.
    pub outcome: Option<String>,
    /// Only calls whose result was redacted.
    pub redacted: Option<bool>,
    /// Only calls with a smaller number.
    pub before: Option<u64>,
    /// The number of calls, at most 10,000.
    pub limit: Option<usize>,
}

/// Calls, the newest first.
#[derive(Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Calls {
    /// The calls.
    pub calls: Vec<LoggedCall>,
    /// The `before` of the next page; none: these are all.
    pub next_before: Option<u64>,
}

/// A line of the audit log, with the command that repeats the call.
#[derive(Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LoggedCall {
    /// Its number.
    pub n: u64,
    /// The other members.
    #[serde(flatten)]
    pub line: Map<String, Value>,
    /// The command that repeats it, if its arguments were logged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
}

/// Lists logged calls. Blocks.
pub fn list_calls(gateway: &Gateway, asked: CallsQuery) -> Result<Calls, ApiError> {
    let filter = Filter {
        since_ms: asked.since.as_deref().map(read_since).transpose()?,
        until_ms: asked.until.map(|at| at.saturating_mul(1_000)),
        session: asked.session,
        client: asked.client,
        caller: asked.caller,
        server: asked.server,
        tool: asked.tool,
        slow_ms: asked.slow,
        failures: asked.failures.unwrap_or(false),
        rule: asked.rule,
        outcome: asked.outcome,
        redacted: asked.redacted.unwrap_or(false),
        before: asked.before,
    };
    let limit = asked.limit.unwrap_or(CALLS_DEFAULT).clamp(1, CALLS_MAX);
    gateway.flush_records();
    let (mut calls, mut is_more) = (Vec::<LoggedCall>::new(), false);
    let folder = gateway.settings().state_dir.join("audit");
    telemetry::read_newest(&folder, &filter, |line| {
        is_more = calls.len() == limit;
        if !is_more {
            calls.extend(LoggedCall::read(line));
        }
        !is_more
    })?;
    let last = calls.last().map(|it| it.n);
    Ok(Calls {
        calls,
        next_before: last.filter(|_| is_more),
    })
}

/// Reads a span before now, or a time in seconds, as milliseconds since 1970.
fn read_since(text: &str) -> Result<u64, ApiError> {
    if let Ok(at) = text.parse::<u64>() {
        return Ok(at.saturating_mul(1_000));
    }
    let span = parse_span(text).ok_or_else(|| {
        let why = "write a number and a unit, such as 90s, 15m, 1h, 7d; or seconds since 1970";
        ApiError::bad(why).at("since")
    })?;
    Ok(now_ms().saturating_sub(span))
}

impl LoggedCall {
    fn read(line: Value) -> Option<Self> {
        let Value::Object(mut line) = line else {
            return None;
        };
        let n = line.remove("n")?.as_u64()?;
        Some(Self {
            n,
            command: command(&line),
            line,
        })
    }
}

fn command(line: &Map<String, Value>) -> Option<String> {
    let text = |key: &str| line.get(key)?.as_str();
    let tool = format!(
        "{}/{}",
        text("server").filter(|it| !it.is_empty())?,
        text("tool")?
    );
    let tool = printable::quote_word(&tool);
    let arguments = line.get("arguments")?;
    if !arguments.is_object() {
        return None;
    }
    let arguments = printable::quote_word(&arguments.to_string());
    Some(format!("proxy call {tool} {arguments}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(line: &str, expected: Option<&str>) {
        let call = LoggedCall::read(serde_json::from_str(line).unwrap()).unwrap();
        assert_eq!(call.command.as_deref(), expected);
    }

    #[test]
    fn a_call_with_its_arguments_can_be_repeated() {
        let line = r#"{"n":1,"server":"git","tool":"log","arguments":{"a":"it's"}}"#;
        check(line, Some(r#"proxy call git/log '{"a":"it'\''s"}'"#));
        check(
            r#"{"n":1,"server":"git","tool":"log","arguments":"sha256:00"}"#,
            None,
        );
        check(
            r#"{"n":1,"server":"git","prompt":"log","arguments":{}}"#,
            None,
        );
        check(r#"{"n":1,"lost":3}"#, None);
    }
}
