//! One line of the audit log.

use std::fmt::Write as _;

use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

use crate::{
    clock::show_time,
    record::{Arguments, CallRecord, estimate_tokens},
};

/// What the first line of all follows.
pub(super) const BEGINNING: &str = "00000000000000000000000000000000";

/// Of a digest, in a line.
const DIGEST_DIGITS: usize = 32;

const DIGEST: &str = ",\"digest\":\"";

/// Arguments that are longer are written down as a digest.
const ARGUMENTS_BYTES_MAX: usize = 16 * 1024;

/// The longest name that is written down, in characters.
const NAME_CHARS_MAX: usize = 300;

/// Adds a line to the text; answers its digest. The body is an object.
pub(super) fn chained(before: &str, body: &str, text: &mut String) -> String {
    let digest = digest_of(before, body);
    let open = body.strip_suffix('}').unwrap_or(body);
    text.push_str(open);
    text.push_str(DIGEST);
    text.push_str(&digest);
    text.push_str("\"}\n");
    digest
}

/// The body of a line, and the digest that it carries.
pub(super) fn parted(line: &str) -> Option<(String, &str)> {
    let at = line.rfind(DIGEST)?;
    let digest = line[at + DIGEST.len()..].strip_suffix("\"}")?;
    let is_digest = digest.len() == DIGEST_DIGITS;
    is_digest.then(|| (format!("{}}}", &line[..at]), digest))
}

pub(super) fn digest_of(before: &str, body: &str) -> String {
    hex(&Sha256::new()
        .chain_update(before)
        .chain_update(body)
        .finalize())
}

fn hex(bytes: &[u8]) -> String {
    let mut digits = String::with_capacity(DIGEST_DIGITS);
    for byte in &bytes[..DIGEST_DIGITS / 2] {
        let _ = write!(digits, "{byte:02x}");
    }
    digits
}

pub(super) fn digest_in(line: &str) -> Option<&str> {
    let at = line.rfind(DIGEST)?;
    line[at + DIGEST.len()..].strip_suffix("\"}")
}

pub(super) fn number_in(line: &str) -> Option<u64> {
    let rest = line.strip_prefix("{\"n\":")?;
    rest.split(',').next()?.parse().ok()
}

/// The first line of a segment.
pub(super) fn head(before: &str) -> String {
    format!("{{\"follows\":\"{before}\"}}")
}

/// A line that stands for records that were lost.
pub(super) fn lost_body(number: u64, lost: u64) -> String {
    format!("{{\"n\":{number},\"lost\":{lost}}}")
}

pub(super) fn body(number: u64, call: &CallRecord) -> String {
    let text = |text: &str| Value::from(printable::one_line_of(text, NAME_CHARS_MAX));
    let mut line = format!("{{\"n\":{number},\"at\":\"{}\"", show_time(call.at_ms));
    let mut add = |key: &str, value: Value| {
        let _ = write!(line, ",\"{key}\":{value}");
    };
    add("client", text(&call.client));
    if let Some(session) = call.session {
        add("session", session.into());
    }
    add("server", text(&call.server));
    add(call.kind, text(&call.name));
    add("decision", call.decision.into());
    if let Some(rule) = call.rule {
        add("rule", rule.into());
    }
    add("outcome", text(&call.outcome));
    add("bytes", call.bytes.into());
    add("tokens", estimate_tokens(call.bytes_sent).into());
    add("ms", json!(call.micros / 1_000));
    match &call.arguments {
        Arguments::None => {}
        Arguments::Full(json) if json.len() <= ARGUMENTS_BYTES_MAX => {
            add("arguments", masked(json));
        }
        Arguments::Digest(json) | Arguments::Full(json) => {
            let digest = hex(&Sha256::digest(json));
            add("arguments", Value::from(format!("sha256:{digest}")));
        }
    }
    line.push('}');
    line
}

/// Words in names of members whose values are not written down.
const SECRET_WORDS: [&str; 11] = [
    "password",
    "passwd",
    "passphrase",
    "secret",
    "token",
    "apikey",
    "authorization",
    "credential",
    "privatekey",
    "cookie",
    "accesskey",
];

fn masked(json: &[u8]) -> Value {
    let mut value = serde_json::from_slice(json).unwrap_or(Value::Null);
    mask(&mut value);
    value
}

fn mask(value: &mut Value) {
    match value {
        Value::Object(members) => mask_members(members),
        Value::Array(items) => items.iter_mut().for_each(mask),
        Value::String(text) if text.starts_with("Bearer ") => "***".clone_into(text),
        _ => {}
    }
}

fn mask_members(members: &mut Map<String, Value>) {
    for (name, value) in members {
        let plain: String = name.chars().filter(char::is_ascii_alphanumeric).collect();
        let plain = plain.to_ascii_lowercase();
        if SECRET_WORDS.iter().any(|word| plain.contains(word)) {
            *value = Value::from("***");
        } else {
            mask(value);
        }
    }
}
