//! Lines of a server that are no message: the calls that they end, and the errors about them.

use std::sync::Arc;

use jsonrpc::answered_id;
use memchr::memmem;

use crate::{
    error::RequestError,
    mask::Mask,
    pending::{PendingRequest, PendingRequests, read_id},
};

/// The number of characters shown of a line that is not a message.
const SHOWN_CHARS_MAX: usize = 120;

/// The number of bytes read of a line that is not a message: more than is shown, so that a secret
/// in it is complete when it is masked.
pub(crate) const HEAD_BYTES_MAX: usize = 4096;

/// Quotes a line that is not a message, masked and cut.
pub(crate) fn quote_line(line: &[u8], mask: &Mask) -> String {
    let head = String::from_utf8_lossy(&line[..line.len().min(HEAD_BYTES_MAX)]);
    printable::one_line_of(&mask.apply(&head), SHOWN_CHARS_MAX)
}

/// Ends the request that an unreadable line answers: the one whose id it has, or the only one. Log output,
/// which does not begin like a message, ends none.
pub(crate) fn refuse_unreadable(pending: &PendingRequests, line: &[u8], mask: &Mask) {
    if !begins_like_message(line) || is_request(line) {
        return;
    }
    let id =
        find_id(pending, line).or_else(|| is_evidently_answer(line).then(|| pending.sole())?);
    if let Some((_, request)) = id.and_then(|id| pending.by_id.remove(&id)) {
        refuse(&request, line, mask);
    }
}

/// Ends the request whose own stream carried the text, unless the text does not begin like a message.
/// Returns true if it did.
pub(crate) fn refuse_own(own: &Arc<PendingRequest>, text: &[u8], mask: &Mask) -> bool {
    let is_response = begins_like_message(text) && is_evidently_answer(text) && !is_request(text);
    if is_response {
        refuse(own, text, mask);
    }
    is_response
}

fn refuse(request: &PendingRequest, line: &[u8], mask: &Mask) {
    let (why, shown) = (explain(line), quote_line(line, mask));
    request.respond(Err(RequestError::Failed(format!(
        "its response is not one valid message: {why}: {shown}"
    ))));
}

/// Returns a line without the white space and the byte order mark at its beginning.
fn trim(line: &[u8]) -> &[u8] {
    let begun = line.trim_ascii_start();
    begun
        .strip_prefix(b"\xEF\xBB\xBF")
        .unwrap_or(begun)
        .trim_ascii_start()
}

/// Returns true for the beginning of an object or of an array of objects, and for a member that a message
/// of several lines has on a line of its own.
fn begins_like_message(line: &[u8]) -> bool {
    let line = trim(line);
    let is_member = |name: &[u8]| {
        let value = line.strip_prefix(name).map(<[u8]>::trim_ascii_start);
        value.is_some_and(|value| value.starts_with(b":"))
    };
    let inside = line
        .strip_prefix(b"[")
        .map_or(line, <[u8]>::trim_ascii_start);
    inside.starts_with(b"{") || is_member(br#""jsonrpc""#) || is_member(br#""id""#)
}

/// Returns true if the line must be an answer or part of one, although it has no id: it begins an object
/// with a string as JSON does, or names the protocol. `{` alone may be the beginning of any output.
fn is_evidently_answer(line: &[u8]) -> bool {
    let line = trim(line);
    let inside = line
        .strip_prefix(b"[")
        .map_or(line, <[u8]>::trim_ascii_start);
    let begins_member = |rest: &[u8]| rest.trim_ascii_start().starts_with(b"\"");
    let is_object = inside.strip_prefix(b"{").is_some_and(begins_member);
    let is_json = serde_json::from_slice::<serde::de::IgnoredAny>(line).is_ok();
    is_object && !is_json || names_protocol(line)
}

/// Returns true if the line names the protocol, as messages do; log output in JSON does not, though it may
/// have a member `error` or `result`.
pub(crate) fn names_protocol(line: &[u8]) -> bool {
    finds(line, "jsonrpc").is_some()
}

/// Returns true if the line names a method before a result: it is no answer. Quotes do not count, because
/// servers log requests as their language prints objects: `{'method': ...}`, `{ method: ... }`.
fn is_request(line: &[u8]) -> bool {
    let answer = ["result", "error"]
        .into_iter()
        .filter_map(|name| finds(line, name));
    let answer = answer.min().unwrap_or(usize::MAX);
    finds(line, "method").is_some_and(|method| method < answer)
}

fn finds(line: &[u8], text: &str) -> Option<usize> {
    memmem::find(&line[..line.len().min(HEAD_BYTES_MAX)], text.as_bytes())
}

/// Returns the id of a pending request that the line names: as a message has it, or else in the only member
/// `id` that names one.
fn find_id(pending: &PendingRequests, line: &[u8]) -> Option<u64> {
    let is_pending = |id: &u64| pending.by_id.contains_key(id);
    let of_head = answered_id(trim(line)).and_then(read_id);
    of_head.filter(is_pending).or_else(|| {
        const MEMBER: &[u8] = br#""id""#;
        let is_id = |byte: &u8| byte.is_ascii_alphanumeric() || b"\"+-.".contains(byte);
        let id_behind = |at: usize| {
            let behind = line[at + MEMBER.len()..].trim_ascii_start();
            let value = behind.strip_prefix(b":")?.trim_ascii_start();
            let length = value.iter().take_while(|byte| is_id(byte)).count();
            str::from_utf8(&value[..length]).ok().and_then(read_id)
        };
        let places = memmem::find_iter(line, MEMBER);
        let mut ids = places.filter_map(id_behind).filter(is_pending);
        let first = ids.next()?;
        ids.all(|id| id == first).then_some(first)
    })
}

/// Returns the reason why a line is no message.
fn explain(line: &[u8]) -> String {
    let Err(error) = str::from_utf8(line) else {
        return match serde_json::from_slice::<serde::de::IgnoredAny>(trim(line)) {
            Ok(_) => "it is JSON, but no JSON-RPC response".to_owned(),
            Err(error) if error.is_eof() => {
                "the JSON does not end on its line; a message is one line".to_owned()
            }
            Err(_) if trim(line).starts_with(b"\"") => {
                "it is part of a message of several lines; a message is one line".to_owned()
            }
            Err(error) => {
                let text = error.to_string();
                let text = text.replace(" at line 1 column ", " at byte ");
                format!("it is not JSON ({text})")
            }
        };
    };
    format!("it is not UTF-8 from byte {} on", error.valid_up_to() + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_logged_request_is_no_answer() {
        for request in [
            r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"result":NaN"#,
            "{'jsonrpc': '2.0', 'id': 7, 'method': 'tools/call', 'params': {'name': 'error'}}",
            "{ jsonrpc: '2.0', id: 7, method: 'tools/list', params: {} }",
        ] {
            assert!(is_request(request.as_bytes()), "{request}");
        }
        for answer in [
            r#"{"jsonrpc":"2.0","id":7,"result":{"method":NaN"#,
            r#"{"jsonrpc":"2.0","id":7,"error":{"message":"no such method"#,
            r#"{"jsonrpc":"2.0","id":7"#,
        ] {
            assert!(!is_request(answer.as_bytes()), "{answer}");
        }
    }

    #[test]
    fn log_output_is_no_message() {
        for noise in [
            "Server started",
            "[INFO] {\"a\": 1",
            "{",
            "}",
            "{ foo: 1,",
            "  \"name\": \"x\",",
            "[1] done",
            "DEBUG {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":NaN}",
            "{'level': 'info'}",
            "",
            "{\"level\":30}",
        ] {
            let line = noise.as_bytes();
            assert!(
                !(begins_like_message(line) && is_evidently_answer(line)),
                "{noise}"
            );
        }
    }
}
