//! One line of the audit log.

use files::clock::show_time;
use serde::Serialize;
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::masking::mask;
use crate::record::{AuditHead, CallRecord, RecordedArguments, estimate_tokens};

/// The digest that the first line of a log follows.
pub(super) const BEGINNING: &str = "00000000000000000000000000000000";

/// The number of digits of a digest in a line.
const DIGEST_DIGITS: usize = 32;

const DIGEST: &str = ",\"digest\":\"";

/// The largest arguments that are written in full, in bytes; longer ones are written as a digest.
const ARGUMENTS_BYTES_MAX: usize = 16 * 1024;

/// The longest name that is written, in characters.
const NAME_CHARS_MAX: usize = 300;

/// Appends a line to `text` and returns its digest. The body is a JSON object.
pub(super) fn append_chained(before: &str, body: &str, text: &mut String) -> String {
    let digest = digest_of(before, body);
    let open = body.strip_suffix('}').unwrap_or(body);
    text.push_str(open);
    text.push_str(DIGEST);
    text.push_str(&digest);
    text.push_str("\"}\n");
    digest
}

/// Splits a line into its body and its digest.
pub(super) fn split_line(line: &str) -> Option<(String, &str)> {
    let at = line.rfind(DIGEST)?;
    let digest = line[at + DIGEST.len()..].strip_suffix("\"}")?;
    let is_digest = digest.len() == DIGEST_DIGITS;
    is_digest.then(|| (format!("{}}}", &line[..at]), digest))
}

pub(super) fn digest_of(before: &str, body: &str) -> String {
    let digest = Sha256::new().chain_update(before).chain_update(body);
    digits_of(&digest.finalize())
}

/// Returns the digits of a digest that a line has.
fn digits_of(digest: &[u8]) -> String {
    let mut digits = [0; DIGEST_DIGITS];
    hex::encode_to_slice(&digest[..DIGEST_DIGITS / 2], &mut digits).expect("there is room for all");
    String::from_utf8_lossy(&digits).into_owned()
}

pub(super) fn number_in(line: &str) -> Option<u64> {
    let rest = line.strip_prefix("{\"n\":")?;
    rest.split(',').next()?.parse().ok()
}

/// Returns the first line of a segment.
pub(super) fn head(before: &str) -> String {
    format!("{{\"follows\":\"{before}\"}}")
}

/// Returns the line after an unfinished write: it follows this digest, and the given number of bytes
/// between them are not a line.
pub(super) fn continuation(before: &str, torn_bytes: u64) -> String {
    format!("{{\"follows\":\"{before}\",\"unfinished\":{torn_bytes}}}")
}

/// Returns the digest that a segment's first line or a continuation follows, and the number of bytes
/// before it that are not a line.
pub(super) fn followed(body: &str) -> Option<(&str, u64)> {
    let rest = body.strip_prefix("{\"follows\":\"")?.strip_suffix('}')?;
    match rest.split_once("\",\"unfinished\":") {
        Some((digest, bytes)) => Some((digest, bytes.parse().ok()?)),
        None => Some((rest.strip_suffix('"')?, 0)),
    }
}

/// Returns the body of a line that replaces lost records.
pub(super) fn lost_body(number: u64, lost: u64) -> String {
    format!("{{\"n\":{number},\"lost\":{lost}}}")
}

/// Returns the body of a line with the head of another node's log.
pub(super) fn head_body(number: u64, at_ms: u64, node: &str, head: &AuditHead) -> String {
    let (at, node) = (
        show_time(at_ms),
        printable::one_line_of(node, NAME_CHARS_MAX),
    );
    let (of, digest) = (head.number, Value::from(head.digest.as_str()));
    let node = Value::from(node);
    format!("{{\"n\":{number},\"at\":\"{at}\",\"log_of\":{node},\"line\":{of},\"has\":{digest}}}")
}

/// A line under construction: an object of JSON.
struct LineBody(Vec<u8>);

impl LineBody {
    /// Adds a member, if it has a value. The key needs no escapes.
    fn add(&mut self, key: &str, value: Option<impl Serialize>) {
        if let Some(value) = value {
            self.0.extend_from_slice(b",\"");
            self.0.extend_from_slice(key.as_bytes());
            self.0.extend_from_slice(b"\":");
            serde_json::to_writer(&mut self.0, &value).expect("the values are JSON");
        }
    }

    /// Adds an untrusted text, on one line.
    fn add_text(&mut self, key: &str, text: Option<&str>) {
        self.add(
            key,
            text.map(|it| printable::one_line_cow(it, NAME_CHARS_MAX)),
        );
    }

    fn finish(mut self) -> String {
        self.0.push(b'}');
        String::from_utf8(self.0).expect("JSON is UTF-8")
    }
}

/// Returns the body of a call's line. `hide` removes the secrets of the configuration from the
/// arguments. If it returns `None` because the secrets cannot be read, the arguments are written as a
/// digest.
pub(super) fn body(
    number: u64,
    call: &CallRecord,
    hide: impl Fn(&str) -> Option<String>,
) -> String {
    let start = format!("{{\"n\":{number},\"at\":\"{}\"", show_time(call.at_ms));
    let mut line = LineBody(start.into_bytes());
    let said = |text| Some(text).filter(|it: &&str| !it.is_empty());
    let positive = |number| Some(number).filter(|it| *it > 0);
    line.add_text("client", Some(&call.client));
    line.add_text("caller", said(&call.caller));
    line.add("session", call.session);
    line.add("transport", said(call.transport));
    line.add_text("run", call.run.as_deref());
    line.add_text("parent", call.parent.as_deref());
    line.add("app", call.by_app.then_some(true));
    line.add_text("server", Some(&call.server));
    line.add_text("node", call.node.as_deref());
    // An address may hold a password.
    let is_address = call.name.contains("://");
    let masked = is_address.then(|| printable::mask_prose(&call.name));
    line.add_text(call.kind, Some(masked.as_deref().unwrap_or(&call.name)));
    line.add("decision", Some(call.decision));
    line.add("rule", call.rule);
    line.add("outcome", Some(call.outcome.as_str()));
    line.add("bytes_in", positive(call.bytes_in));
    line.add("bytes", Some(call.bytes));
    line.add("tokens", Some(estimate_tokens(call.bytes_sent)));
    line.add("ms", Some(call.micros / 1_000));
    line.add("cut", call.is_cut.then_some(true));
    line.add("redacted", positive(call.redacted));
    line.add_text("handle", call.handle.as_deref());
    line.add("arguments", write_arguments(&call.arguments, hide));
    line.finish()
}

fn write_arguments(
    arguments: &RecordedArguments,
    hide: impl Fn(&str) -> Option<String>,
) -> Option<Value> {
    let json = match arguments {
        RecordedArguments::None => return None,
        RecordedArguments::Digest(json) | RecordedArguments::Full(json) => json,
    };
    if matches!(arguments, RecordedArguments::Full(_)) && json.len() <= ARGUMENTS_BYTES_MAX {
        let hidden = std::str::from_utf8(json).ok().and_then(hide);
        let mut value: Option<Value> = hidden.and_then(|json| serde_json::from_str(&json).ok());
        value.iter_mut().for_each(mask);
        if value.is_some() {
            return value;
        }
    }
    let digits = digits_of(&Sha256::digest(json));
    Some(Value::from(["sha256:", &digits].concat()))
}
