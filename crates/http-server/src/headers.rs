//! The headers of a request: accepted forms of the response, content type, and, in the modern era,
//! values that must match the body.

use base64::{Engine as _, prelude::BASE64_STANDARD};
use gateway::{explain_not_served, is_gone_in_stateless};
use hyper::{HeaderMap, StatusCode, header::ACCEPT};
use jsonrpc::mcp::{Revision, meta};
use jsonrpc::{Fields, Message, text_of};

use super::http_error::HttpError;

pub(super) const SESSION: &str = "mcp-session-id";
pub(super) const LAST_EVENT: &str = "last-event-id";
const VERSION: &str = "mcp-protocol-version";
const METHOD: &str = "mcp-method";
const NAME: &str = "mcp-name";

/// The forms of a response that the client accepts.
#[derive(Debug, Clone, Copy)]
pub(super) struct Accepts {
    pub(super) json: bool,
    pub(super) events: bool,
}

impl Accepts {
    pub(super) fn of(headers: &HeaderMap) -> Result<Self, HttpError> {
        let values = headers.get_all(ACCEPT).iter();
        let said = values.filter_map(|it| it.to_str().ok());
        let said: Vec<&str> = said.flat_map(|it| it.split(',')).collect();
        let accepts = Self {
            json: said.is_empty() || takes(&said, ["*/*", "application/*", "application/json"]),
            events: takes(&said, ["*/*", "text/*", "text/event-stream"]),
        };
        if accepts.json || accepts.events {
            return Ok(accepts);
        }
        Err(HttpError::mistake(
            StatusCode::NOT_ACCEPTABLE,
            "send `Accept: application/json, text/event-stream`",
        ))
    }
}

/// Returns true if media ranges with their parameters include a form of a response. The narrowest of its
/// ranges counts, and `ranges` begins with the widest; a weight of 0 excludes it.
fn takes(said: &[&str], ranges: [&str; 3]) -> bool {
    let (mut narrowest, mut is_taken) = (0, false);
    for said in said {
        let mut parts = said.split(';').map(str::trim);
        let range = parts.next().unwrap_or_default();
        let Some(at) = ranges.iter().position(|it| it.eq_ignore_ascii_case(range)) else {
            continue;
        };
        let weight = parts.find_map(|it| {
            let (name, value) = it.split_once('=')?;
            (name.trim().eq_ignore_ascii_case("q")).then(|| value.trim().parse::<f32>())
        });
        let is_refused = matches!(weight, Some(Ok(weight)) if weight <= 0.0);
        if at > narrowest {
            (narrowest, is_taken) = (at, false);
        }
        is_taken |= at == narrowest && !is_refused;
    }
    is_taken
}

/// Returns the value of a header that may be sent only once.
pub(super) fn get_once<'a>(
    headers: &'a HeaderMap,
    name: &str,
) -> Result<Option<&'a str>, HttpError> {
    let value = http_core::get_once(headers, name);
    value.map_err(|why| HttpError::mismatch(format!("{name}: {why}")))
}

/// Returns true if the client supports events without data: clients from before 2025-11-25 were seen
/// to read them as messages.
pub(super) fn takes_empty_events(headers: &HeaderMap) -> bool {
    let version = headers.get(VERSION).and_then(|it| it.to_str().ok());
    version.is_some_and(|it| Revision::named(it) >= Revision::LAST_WITH_HANDSHAKE)
}

/// The protocol revision of a message.
#[derive(Debug)]
pub(super) struct Spoken {
    pub(super) revision: Revision,
    /// True if its `_meta` has every field that is required without a handshake.
    pub(super) has_whole_meta: bool,
}

/// Reads the revision of a message; fails if header and body contradict each other.
pub(super) fn read_spoken(headers: &HeaderMap, message: &Message<'_>) -> Result<Spoken, HttpError> {
    let version = get_once(headers, VERSION)?;
    let params = message.params.and_then(|params| Fields::of(params.get()));
    let own = params
        .as_ref()
        .and_then(|it| Fields::of(it.get("_meta")?.get()));
    let get = |key: &str| own.as_ref().and_then(|own| own.get(key));
    let said = get(meta::PROTOCOL_VERSION).and_then(text_of);
    let with_handshake = |revision| Spoken {
        revision,
        has_whole_meta: false,
    };
    let method = message.method.as_deref().unwrap_or_default();
    let is_stateless = version.is_some_and(|it| Revision::named(it).is_stateless());
    if message.id.is_some() && is_gone_in_stateless(method) && is_stateless {
        return Err(HttpError::no_method(explain_not_served(method, true)));
    }
    if method == "initialize" {
        return Ok(with_handshake(Revision::LAST_WITH_HANDSHAKE));
    }
    let has_whole_meta = said.is_some() && get(meta::CLIENT_CAPABILITIES).is_some();
    let named = version.map(Revision::named);
    match (named, said) {
        (Some(named), Some(said)) if named.as_str() != said => Err(HttpError::mismatch(format!(
            "MCP-Protocol-Version is {:?}, but the body's _meta says {said:?}",
            named.as_str()
        ))),
        (None, Some(_)) => Err(HttpError::mismatch(
            "MCP-Protocol-Version is missing, but the body's _meta names one",
        )),
        (Some(revision), _) if revision.is_stateless() => {
            check_routing(headers, message, params.as_ref())?;
            Ok(Spoken {
                revision,
                has_whole_meta,
            })
        }
        (Some(named), _) if !named.is_known() => Err(HttpError::mistake(
            StatusCode::BAD_REQUEST,
            format!("MCP-Protocol-Version {:?} is not supported", named.as_str()),
        )),
        (named, _) => Ok(with_handshake(named.unwrap_or(Revision::UNNAMED))),
    }
}

/// Intermediaries may route by `Mcp-Method` and `Mcp-Name`, so these headers must match the body.
fn check_routing(
    headers: &HeaderMap,
    message: &Message<'_>,
    params: Option<&Fields<'_>>,
) -> Result<(), HttpError> {
    let Some(method) = message.method.as_deref() else {
        return Ok(());
    };
    check_same(METHOD, get_once(headers, METHOD)?, method)?;
    let key = match method {
        "tools/call" | "prompts/get" => Some("name"),
        "resources/read" => Some("uri"),
        "tasks/get" | "tasks/update" | "tasks/cancel" => Some("taskId"),
        _ => None,
    };
    let name = key.and_then(|key| params?.get(key));
    match name.and_then(text_of) {
        Some(name) => check_same(NAME, get_once(headers, NAME)?, &name),
        None => Ok(()),
    }
}

fn check_same(header: &str, value: Option<&str>, body: &str) -> Result<(), HttpError> {
    let value = value.ok_or_else(|| {
        HttpError::mismatch(format!(
            "{header} is missing: send {body:?}, as in the body"
        ))
    })?;
    match decode(value) {
        Some(value) if value == body => Ok(()),
        _ => Err(HttpError::mismatch(format!(
            "{header} is {value:?}, but the body says {body:?}"
        ))),
    }
}

/// Decodes a value; one that is not a valid header is in Base64: `=?base64?...?=`.
fn decode(value: &str) -> Option<String> {
    let coded = value
        .strip_prefix("=?base64?")
        .and_then(|rest| rest.strip_suffix("?="));
    match coded {
        Some(coded) => String::from_utf8(BASE64_STANDARD.decode(coded).ok()?).ok(),
        None => Some(value.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use hyper::header::{HeaderName, HeaderValue};

    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        let pair = |&(name, value)| {
            (
                HeaderName::from_static(name),
                HeaderValue::from_static(value),
            )
        };
        pairs.iter().map(pair).collect()
    }

    const META: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}"#;

    /// `expected`: whether it needs no handshake, or a piece of the refusal.
    #[track_caller]
    fn check(pairs: &[(&'static str, &'static str)], body: &str, expected: Result<bool, &str>) {
        let message = Message::parse(body.as_bytes()).unwrap();
        match (read_spoken(&headers(pairs), &message), expected) {
            (Ok(spoken), Ok(is_stateless)) => {
                assert_eq!(spoken.revision.is_stateless(), is_stateless);
            }
            (Err(refusal), Err(piece)) => {
                assert!(refusal.message.contains(piece), "{}", refusal.message);
            }
            (found, expected) => panic!("{found:?}, expected {expected:?}"),
        }
    }

    #[test]
    fn head_and_body_of_a_modern_request_say_the_same() {
        let version = ("mcp-protocol-version", "2026-07-28");
        let list = format!(r#"{{"id":1,"method":"tools/list","params":{{{META}}}}}"#);
        let call = format!(r#"{{"id":1,"method":"tools/call","params":{{"name":"a b",{META}}}}}"#);
        check(&[version, ("mcp-method", "tools/list")], &list, Ok(true));
        check(&[version], &list, Err("mcp-method is missing"));
        check(&[version, ("mcp-method", "ping")], &list, Err("tools/list"));
        check(&[], &list, Err("MCP-Protocol-Version is missing"));
        let other = ("mcp-protocol-version", "2025-11-25");
        check(&[other], &list, Err("2025-11-25"));
        let method = ("mcp-method", "tools/call");
        check(&[version, method], &call, Err("mcp-name is missing"));
        check(&[version, method, ("mcp-name", "ab")], &call, Err("\"ab\""));
        check(&[version, method, ("mcp-name", "a b")], &call, Ok(true));
        let read =
            format!(r#"{{"id":1,"method":"resources/read","params":{{"uri":"a:b",{META}}}}}"#);
        let method_of_read = ("mcp-method", "resources/read");
        check(
            &[version, method_of_read],
            &read,
            Err("mcp-name is missing"),
        );
        check(
            &[version, method_of_read, ("mcp-name", "a:b")],
            &read,
            Ok(true),
        );
        let look = format!(r#"{{"id":1,"method":"tasks/get","params":{{"taskId":"t",{META}}}}}"#);
        let method_of_look = ("mcp-method", "tasks/get");
        let other = ("mcp-name", "u");
        check(&[version, method_of_look, other], &look, Err("\"u\""));
        check(
            &[version, method_of_look, ("mcp-name", "t")],
            &look,
            Ok(true),
        );
        let coded = ("mcp-name", "=?base64?YSBi?=");
        check(&[version, method, coded], &call, Ok(true));
        check(
            &[version, method, coded, coded],
            &call,
            Err("several values"),
        );
    }

    #[test]
    fn an_older_request_may_name_its_revision() {
        let ping = r#"{"id":1,"method":"ping"}"#;
        check(&[], ping, Ok(false));
        check(&[("mcp-protocol-version", "2025-06-18")], ping, Ok(false));
        check(&[("mcp-protocol-version", "1999-01-01")], ping, Err("1999"));
        let initialize = r#"{"id":1,"method":"initialize","params":{}}"#;
        check(
            &[("mcp-protocol-version", "2025-11-25")],
            initialize,
            Ok(false),
        );
        let modern = [("mcp-protocol-version", "2026-07-28")];
        check(&modern, initialize, Err("Method not found: initialize"));
        check(&modern, ping, Err("Method not found: ping"));
    }

    #[test]
    fn what_a_client_takes_is_what_it_gets() {
        let accepts = |value| Accepts::of(&headers(&[("accept", value)]));
        let both = accepts("application/json, text/event-stream;q=0.5").unwrap();
        assert!(both.json && both.events);
        let json = accepts("application/json").unwrap();
        assert!(json.json && !json.events);
        assert!(accepts("*/*").unwrap().events && accepts("text/html").is_err());
        assert!(!Accepts::of(&HeaderMap::new()).unwrap().events);
        let none = accepts("application/json, text/event-stream;q=0").unwrap();
        assert!(none.json && !none.events);
        for (value, json, events) in [
            ("*/*, application/json; Q=0.000", false, true),
            ("text/event-stream ; q = 0 , */*", true, false),
            ("application/*;q=0, application/json", true, false),
            ("text/*;q=0, */*;q=0.1", true, false),
            ("application/json;charset=utf-8;q=0.5", true, false),
        ] {
            let said = accepts(value).unwrap();
            assert_eq!((said.json, said.events), (json, events), "{value}");
        }
        assert!(accepts("*/*;q=0").is_err() && accepts("application/json;q=0").is_err());
    }
}
