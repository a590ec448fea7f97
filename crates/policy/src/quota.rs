//! Quotas: limits of calls, of tokens, and of repetitions of one call, in a minute, an hour or a day.

use std::{fmt, sync::OnceLock};

use printable::{FoldedText, LetterCase};
use serde_json::{Map, Value};

use crate::rule::{Fault, Patterns, fault, fits_any, read_patterns, read_texts};

/// The keys of a quota, in the order in which they are listed.
const KEYS: [&str; 9] = [
    "calls", "tokens", "repeats", "per", "client", "caller", "server", "tool", "each",
];

/// One quota, prepared for comparison.
#[derive(Debug, Clone)]
pub struct Quota {
    /// The quota as JSON of the configuration.
    pub written: String,
    short_name: OnceLock<String>,
    /// The limit.
    pub limit: u64,
    /// The thing that is limited.
    pub unit: QuotaUnit,
    /// The time after which it is whole again, with an article.
    span: &'static str,
    seconds: u64,
    client: Patterns,
    caller: Patterns,
    server: Patterns,
    tool: Patterns,
    each: Vec<Dimension>,
}

/// The thing that a quota limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QuotaUnit {
    /// Calls of tools.
    Calls,
    /// Tokens of arguments and responses, estimated from their bytes.
    Tokens,
    /// Calls of one tool with the same arguments in one session.
    Repeats,
}

/// The times after which a quota is whole again, as written and as shown, in seconds. Minutes, hours and
/// days are those of UTC.
const SPANS: [(&str, &str, u64); 3] = [
    ("minute", "a minute", 60),
    ("hour", "an hour", 3_600),
    ("day", "a day", 86_400),
];

/// A part of a call whose values are counted apart.
type Dimension = for<'c> fn(&QuotaSubject<'c>) -> &'c str;

/// The call that a quota counts.
#[derive(Debug, Clone, Copy)]
pub struct QuotaSubject<'a> {
    /// The name that the client announced; empty for a person at the command line.
    pub client: &'a str,
    /// The token or subject that admitted it over HTTP, `token NAME` or `oauth SUBJECT`; empty otherwise.
    pub caller: &'a str,
    /// The session, which is never the same for two of them.
    pub session: &'a str,
    /// The server.
    pub server: &'a str,
    /// The tool's name on its server.
    pub tool: &'a str,
    /// The arguments as they are sent.
    pub arguments: &'a str,
}

impl Quota {
    /// Reads a quota as the configuration has it.
    pub fn read(written: &Map<String, Value>) -> Result<Self, Fault> {
        if let Some(unknown) = written.keys().find(|key| !KEYS.contains(&key.as_str())) {
            let hint = format!("known keys of a quota: `{}`", KEYS.join("`, `"));
            return Err(fault(unknown, "unknown key", &hint));
        }
        let (limit, unit) = read_limit(written)?;
        let (span, seconds) = read_span(written)?;
        let names = |key: &str| read_patterns(written, key, LetterCase::Ignored);
        Ok(Self {
            written: Value::Object(written.clone()).to_string(),
            short_name: OnceLock::new(),
            limit,
            unit,
            span,
            seconds,
            client: names("client")?,
            caller: names("caller")?,
            server: names("server")?,
            tool: names("tool")?,
            each: read_each(written)?,
        })
    }

    /// Returns true if the quota limits this call.
    pub fn fits(&self, call: &QuotaSubject<'_>) -> bool {
        let fits = |patterns: &Patterns, text| {
            patterns.is_none() || fits_any(patterns, &FoldedText::new(text))
        };
        let full = || format!("{}/{}", call.server, call.tool);
        fits(&self.client, call.client)
            && fits(&self.caller, call.caller)
            && fits(&self.server, call.server)
            && (fits(&self.tool, call.tool) || fits(&self.tool, &full()))
    }

    /// Returns the name that `make` makes of the quota as written. It is made once.
    pub fn short_name(&self, make: impl FnOnce(&str) -> String) -> &str {
        self.short_name.get_or_init(|| make(&self.written))
    }

    /// Returns the values of `each` by which this call is counted.
    pub fn values<'c>(&self, call: &QuotaSubject<'c>) -> Vec<&'c str> {
        self.each.iter().map(|value| value(call)).collect()
    }

    /// Returns the text that calls of this quota that are counted together have in common: the values of
    /// `each`.
    pub fn key(&self, call: &QuotaSubject<'_>) -> String {
        let mut parts = self.values(call);
        if self.unit == QuotaUnit::Repeats {
            parts.extend([call.session, call.server, call.tool, call.arguments]);
        }
        parts.join("\0")
    }

    /// Returns the time at which the quota is whole again, in Unix seconds.
    pub fn end_of(&self, now_s: u64) -> u64 {
        (now_s / self.seconds + 1) * self.seconds
    }
}

/// The amount, as in `100 calls a minute`.
impl fmt::Display for Quota {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let unit = match self.unit {
            QuotaUnit::Calls => "calls",
            QuotaUnit::Tokens => "tokens",
            QuotaUnit::Repeats => "identical calls",
        };
        write!(f, "{} {unit} {}", self.limit, self.span)
    }
}

fn read_limit(written: &Map<String, Value>) -> Result<(u64, QuotaUnit), Fault> {
    let units = [
        ("calls", QuotaUnit::Calls),
        ("tokens", QuotaUnit::Tokens),
        ("repeats", QuotaUnit::Repeats),
    ];
    let mut limits = units
        .iter()
        .filter_map(|(key, unit)| Some((*key, written.get(*key)?, *unit)));
    let hint = "write one of `calls = 100`, `tokens = 50000` or `repeats = 5`";
    let (Some((key, limit, unit)), None) = (limits.next(), limits.next()) else {
        return Err(fault("", "not exactly one limit", hint));
    };
    let limit = limit.as_u64().filter(|limit| *limit > 0);
    let limit = limit.ok_or_else(|| fault(key, "expected a number from 1 on", hint))?;
    Ok((limit, unit))
}

fn read_span(written: &Map<String, Value>) -> Result<(&'static str, u64), Fault> {
    let per = written.get("per").and_then(Value::as_str);
    let span = SPANS.into_iter().find(|(key, ..)| per == Some(*key));
    let hint = "write `per = \"minute\"`, `\"hour\"` or `\"day\"`";
    let (_, shown, seconds) = span.ok_or_else(|| fault("per", "no such time", hint))?;
    Ok((shown, seconds))
}

fn read_each(written: &Map<String, Value>) -> Result<Vec<Dimension>, Fault> {
    let Some(each) = written.get("each") else {
        return Ok(Vec::new());
    };
    let hint = "write some of `\"client\"`, `\"caller\"`, `\"server\"`, `\"tool\"`";
    let names = read_texts(each).ok_or_else(|| fault("each", "expected a list", hint))?;
    let read = |name: &str| -> Result<Dimension, Fault> {
        Ok(match name {
            "client" => |call| call.client,
            "caller" => |call| call.caller,
            "server" => |call| call.server,
            "tool" => |call| call.tool,
            _ => return Err(fault("each", &format!("unknown `{name}`"), hint)),
        })
    };
    names.into_iter().map(read).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn quota(written: &Value) -> Result<Quota, String> {
        Quota::read(written.as_object().unwrap()).map_err(|fault| fault.to_string())
    }

    const CALL: QuotaSubject<'_> = QuotaSubject {
        client: "cursor-vscode",
        caller: "oauth ann",
        session: "1",
        server: "github",
        tool: "create_issue",
        arguments: "{}",
    };

    #[test]
    fn a_quota_counts_the_calls_that_it_names() {
        let check = |names: Value, expected: bool| {
            let mut written = json!({"calls": 5, "per": "minute"});
            let names = names.as_object().unwrap().clone();
            written.as_object_mut().unwrap().extend(names);
            assert_eq!(quota(&written).unwrap().fits(&CALL), expected, "{written}");
        };
        check(json!({}), true);
        check(json!({"client": "Cursor*"}), true);
        check(json!({"client": "zed"}), false);
        check(json!({"caller": ["oauth ann", "oauth bob"]}), true);
        check(json!({"caller": "token *"}), false);
        check(json!({"server": "git*", "tool": "create_*"}), true);
        check(json!({"tool": "github/create_issue"}), true);
        check(json!({"tool": "delete_*"}), false);
    }

    #[test]
    fn values_of_each_are_counted_apart() {
        let check = |written: Value, other: QuotaSubject<'_>, expected: bool| {
            let quota = quota(&written).unwrap();
            assert_eq!(quota.key(&CALL) == quota.key(&other), expected, "{written}");
        };
        let bob = QuotaSubject {
            caller: "oauth bob",
            ..CALL
        };
        check(json!({"calls": 1, "per": "day"}), bob, true);
        check(
            json!({"calls": 1, "per": "day", "each": "caller"}),
            bob,
            false,
        );
        check(json!({"repeats": 1, "per": "day"}), bob, true);
        let arguments = QuotaSubject {
            arguments: "{\"a\":1}",
            ..CALL
        };
        check(json!({"repeats": 1, "per": "day"}), arguments, false);
        check(json!({"calls": 1, "per": "day"}), arguments, true);
    }

    #[test]
    fn a_quota_ends_with_its_minute_hour_or_day() {
        let check = |per: &str, end: u64| {
            let quota = quota(&json!({"calls": 3, "per": per})).unwrap();
            assert_eq!(quota.end_of(86_400 + 3_600 + 60 + 5), end);
        };
        check("minute", 86_400 + 3_600 + 120);
        check("hour", 86_400 + 7_200);
        check("day", 172_800);
        let shown = quota(&json!({"calls": 3, "per": "day"}))
            .unwrap()
            .to_string();
        assert_eq!(shown, "3 calls a day");
    }

    #[test]
    fn a_mistake_is_told_with_its_key() {
        let check = |written: Value, expected: &str| {
            let error = quota(&written).unwrap_err();
            assert!(error.starts_with(expected), "{error}");
        };
        check(json!({"per": "day"}), "not exactly one limit");
        check(
            json!({"calls": 1, "tokens": 2, "per": "day"}),
            "not exactly one limit",
        );
        check(
            json!({"calls": 0, "per": "day"}),
            "calls: expected a number",
        );
        check(json!({"calls": 1, "per": "week"}), "per: no such time");
        check(json!({"calls": 1}), "per: no such time");
        check(
            json!({"calls": 1, "per": "day", "each": ["user"]}),
            "each: unknown `user`",
        );
        check(
            json!({"calls": 1, "per": "day", "subject": "x"}),
            "subject: unknown key",
        );
    }
}
