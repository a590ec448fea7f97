//! The methods of the protocol that we serve, and the refusal of others.

use jsonrpc::{Fields, Message, frame};

use super::meta;
use crate::{forward::Announced, log_level::LogLevel};

/// The requests that we serve, in any revision.
const SERVED: [&str; 20] = [
    "initialize",
    "ping",
    "server/discover",
    "tools/list",
    "tools/call",
    "prompts/list",
    "prompts/get",
    "resources/list",
    "resources/templates/list",
    "resources/read",
    "resources/subscribe",
    "resources/unsubscribe",
    "completion/complete",
    "skills/list",
    "skills/get",
    "tasks/get",
    "tasks/update",
    "tasks/cancel",
    "logging/setLevel",
    "subscriptions/listen",
];

/// Of those, the ones that only revisions from 2026-07-28 on have.
const NEW_IN_STATELESS: [&str; 3] = ["tasks/get", "tasks/update", "tasks/cancel"];

/// Of those, the ones that revisions from 2026-07-28 on do not have.
const GONE_IN_STATELESS: [&str; 5] = [
    "initialize",
    "ping",
    "logging/setLevel",
    "resources/subscribe",
    "resources/unsubscribe",
];

/// The longest name of a method that is repeated, in characters.
const METHOD_CHARS_MAX: usize = 100;

/// Returns true if the revisions from 2026-07-28 on have dropped this method.
pub fn is_gone_in_stateless(method: &str) -> bool {
    GONE_IN_STATELESS.contains(&method)
}

/// The error text for a method that is not served.
pub fn explain_not_served(method: &str, is_stateless: bool) -> String {
    let served = SERVED.into_iter().filter(|it| is_served(it, is_stateless));
    let served = served.collect::<Vec<_>>().join(", ");
    let method = printable::one_line_of(method, METHOD_CHARS_MAX);
    format!("Method not found: {method}. proxy serves {served}")
}

fn is_served(method: &str, is_stateless: bool) -> bool {
    let is_of_other_revisions = if is_stateless {
        is_gone_in_stateless(method)
    } else {
        NEW_IN_STATELESS.contains(&method)
    };
    SERVED.contains(&method) && !is_of_other_revisions
}

/// A request that is refused without further processing.
pub(super) struct Unserved<'m> {
    pub(super) id: &'m str,
    pub(super) code: i32,
    pub(super) why: String,
}

impl<'m> Unserved<'m> {
    /// `None` for a method that is served, and for a message that is no request. A `tools/call` is
    /// not checked here.
    ///
    /// A method that was not announced is refused to clients of the stateless revisions. Earlier
    /// clients were seen to ask for every list and to disconnect on an error.
    pub(super) fn of(message: &Message<'m>, announced: impl FnOnce() -> Announced) -> Option<Self> {
        let id = message.id?.get();
        let method = message.method.as_deref().filter(|it| *it != "tools/call")?;
        let params = message.params.and_then(|params| Fields::of(params.get()));
        let meta = params.as_ref().and_then(|params| params.get("_meta"));
        let revision = meta.and_then(meta::revision);
        let is_stateless = revision.is_some_and(|it| it.is_stateless());
        let is_served =
            is_served(method, is_stateless) && (!is_stateless || is_announced(method, announced));
        if !is_served {
            return Some(Self {
                id,
                code: frame::METHOD_NOT_FOUND,
                why: explain_not_served(method, is_stateless),
            });
        }
        if method != "logging/setLevel" {
            return None;
        }
        let level = params.as_ref().and_then(|params| params.get("level"));
        LogLevel::explain_refusal(level).map(|why| Self {
            id,
            code: frame::INVALID_PARAMS,
            why: format!("Invalid params: {why}"),
        })
    }
}

fn is_announced(method: &str, announced: impl FnOnce() -> Announced) -> bool {
    match method.split_once('/') {
        Some(("prompts", _)) => announced().prompts,
        Some(("resources", _)) => announced().resources,
        Some(("skills", _)) => announced().skills,
        Some(("completion", _)) => announced().completions,
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(line: &str, expected: Option<(i32, &str)>) {
        let message = Message::parse(line.as_bytes()).expect("the case is a message");
        let found = Unserved::of(&message, Announced::default);
        let found = found.as_ref().map(|it| (it.code, it.why.as_str()));
        match (found, expected) {
            (Some((code, why)), Some((wanted, start))) => {
                assert_eq!(code, wanted, "{line}");
                assert!(why.starts_with(start), "{line}: {why}");
            }
            (found, expected) => assert_eq!(found.is_some(), expected.is_some(), "{line}"),
        }
    }

    #[test]
    fn what_is_not_served_is_refused_with_what_is() {
        let not_found = frame::METHOD_NOT_FOUND;
        let modern = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}"#;
        let request = |method: &str, params: &str| {
            format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{{{params}}}}}"#)
        };
        for method in [
            "prompts/list",
            "resources/read",
            "completion/complete",
            "skills/get",
        ] {
            let says = format!("Method not found: {method}. proxy serves ");
            check(&request(method, ""), None);
            check(&request(method, modern), Some((not_found, &says)));
        }
        for method in ["sampling/createMessage", "tasks/list", "tasks/get"] {
            let says = format!("Method not found: {method}. proxy serves ");
            check(&request(method, ""), Some((not_found, &says)));
        }
        for method in GONE_IN_STATELESS {
            check(
                &request(method, modern),
                Some((not_found, "Method not found: ")),
            );
        }
        for method in ["ping", "tools/list", "tools/call", "server/discover"] {
            check(&request(method, ""), None);
        }
        let level = |value: &str| request("logging/setLevel", value);
        check(&level(r#""level":"warning""#), None);
        let says = "Invalid params: level: expected one of debug, info, ";
        for wrong in ["", r#""level":"loud""#, r#""level":7"#] {
            check(&level(wrong), Some((frame::INVALID_PARAMS, says)));
        }
        check(r#"{"jsonrpc":"2.0","method":"notifications/odd"}"#, None);
    }
}
