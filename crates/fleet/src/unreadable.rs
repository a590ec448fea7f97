//! Lines of a server that are no message: the calls that they end, and the errors about them.

use std::sync::Arc;

use jsonrpc::answered_id;
use memchr::{memchr, memmem};
use printable::Redactor;

use crate::{
    error::RequestError,
    pending::{PendingRequest, PendingRequests, read_id},
};

/// The number of characters shown of a line that is not a message.
const SHOWN_CHARS_MAX: usize = 120;

/// The number of bytes read of a line that is not a message: more than is shown, so that a secret
/// in it is complete when it is masked.
pub(crate) const HEAD_BYTES_MAX: usize = 4096;

/// Quotes a line that is not a message, masked and cut.
pub(crate) fn quote_line(line: &[u8], mask: &Redactor) -> String {
    let head = String::from_utf8_lossy(&line[..line.len().min(HEAD_BYTES_MAX)]);
    printable::one_line_of(&mask.apply(&head), SHOWN_CHARS_MAX)
}

/// The lines of one server that are not messages.
#[derive(Debug, Default)]
pub(crate) struct UnreadableLines {
    printed: PrintedMessage,
}

impl UnreadableLines {
    /// Ends the request that a line answers: the one whose id it has, or the only one. Log output, which
    /// does not begin like a message, ends none.
    pub(crate) fn take(&mut self, pending: &PendingRequests, line: &[u8], mask: &Redactor) {
        if !self.printed.read(line) {
            let id = find_answered(pending, line);
            refuse_by_id(pending, id, line, mask);
            return;
        }
        if let Some(answer) = &self.printed.answer {
            refuse_by_id(pending, self.printed.find_answered(pending), answer, mask);
        }
        if self.printed.has_ended {
            self.printed = PrintedMessage::default();
        }
    }
}

/// A message that a server prints over several lines, as far as it was read. It may be log output: a request,
/// or a message of another connection.
#[derive(Debug, Default)]
struct PrintedMessage {
    /// The indentation of its members, in bytes. Lines with a deeper one are within a member.
    indent: Option<usize>,
    names_protocol: bool,
    is_request: bool,
    id: PrintedId,
    /// The line that begins its result or error, cut.
    answer: Option<Box<[u8]>>,
    has_ended: bool,
}

/// The id that a printed message names.
#[derive(Debug, Clone, Copy, Default)]
enum PrintedId {
    /// None, or `null`.
    #[default]
    Absent,
    /// One that no request of ours has.
    Foreign,
    /// That of a request of ours, pending or not.
    Ours(u64),
}

impl PrintedMessage {
    /// Reads a line. Returns false if it is no part of such a message.
    fn read(&mut self, line: &[u8]) -> bool {
        let text = trim(line).trim_ascii_end();
        let indent = line.len() - trim(line).len();
        if self.indent.is_some_and(|own| indent > own) {
            return true;
        }
        match text.first() {
            Some(b'{' | b'[') if is_first_of_several(text) => {
                *self = Self::default();
                self.read_members(text[1..].trim_ascii_start());
            }
            Some(b'}' | b']') => self.has_ended = self.indent.is_some_and(|own| indent < own),
            Some(b'"' | b'\'') => {
                if self.indent.is_some_and(|own| indent < own) {
                    *self = Self::default();
                }
                self.indent = Some(indent);
                self.read_members(text);
            }
            _ => return false,
        }
        true
    }

    /// Reads the members that begin on a line.
    fn read_members(&mut self, text: &[u8]) {
        let mut rest = Some(text);
        while let Some((name, value)) = rest.and_then(split_member) {
            match name {
                b"jsonrpc" => self.names_protocol = true,
                b"method" => self.is_request = true,
                b"id" if !value.starts_with(b"null") => {
                    self.id = read_leading_id(value).map_or(PrintedId::Foreign, PrintedId::Ours);
                }
                b"result" | b"error" => {
                    self.answer = Some(text[..text.len().min(HEAD_BYTES_MAX)].into());
                }
                _ => {}
            }
            rest = skip_scalar(value);
        }
    }

    /// Returns the id of the request that it answers: the one that it names; after its last line the only
    /// one, if it names none.
    fn find_answered(&self, pending: &PendingRequests) -> Option<u64> {
        match self.id {
            _ if self.is_request => None,
            PrintedId::Ours(id) => Some(id),
            PrintedId::Foreign => None,
            PrintedId::Absent => (self.has_ended && self.names_protocol).then(|| pending.sole())?,
        }
    }
}

/// Returns true for a line that begins an object, and may be followed by its further members on lines of
/// their own. A line with an answer is complete or broken.
fn is_first_of_several(text: &[u8]) -> bool {
    let has_answer = || {
        ["result", "error"]
            .into_iter()
            .any(|name| finds(text, name).is_some())
    };
    [&b"{"[..], b"["].contains(&text) || text.ends_with(b",") && !has_answer()
}

/// Splits the first member of an object into its name, quoted as in JSON or Python, and the text behind it.
fn split_member(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let (quote, rest) = text
        .split_first()
        .filter(|(quote, _)| b"\"'".contains(quote))?;
    let (name, behind) = rest.split_at(memchr(*quote, rest)?);
    let value = behind[1..].trim_ascii_start().strip_prefix(b":")?;
    Some((name, value.trim_ascii_start()))
}

/// Returns the text behind a text or a number and its comma. Returns `None` behind the last member of a line,
/// and for an object or a list.
fn skip_scalar(value: &[u8]) -> Option<&[u8]> {
    let (first, rest) = value.split_first()?;
    let behind = match first {
        b'"' | b'\'' => &rest[memchr(*first, rest)? + 1..],
        b'{' | b'[' => return None,
        _ => &rest[memchr(b',', rest)?..],
    };
    let next = behind.trim_ascii_start().strip_prefix(b",")?;
    Some(next.trim_ascii_start())
}

/// Returns the id of the request that a line answers.
fn find_answered(pending: &PendingRequests, line: &[u8]) -> Option<u64> {
    if !begins_like_message(line) || is_request(line) {
        return None;
    }
    find_id(pending, line).or_else(|| is_evidently_answer(line).then(|| pending.sole())?)
}

fn refuse_by_id(pending: &PendingRequests, id: Option<u64>, line: &[u8], mask: &Redactor) {
    if let Some((_, request)) = id.and_then(|id| pending.by_id.remove(&id)) {
        refuse(&request, line, mask);
    }
}

/// Ends the request whose own stream carried the text, unless the text does not begin like a message.
/// Returns true if it did.
pub(crate) fn refuse_own(own: &Arc<PendingRequest>, text: &[u8], mask: &Redactor) -> bool {
    let is_response = begins_like_message(text) && is_evidently_answer(text) && !is_request(text);
    if is_response {
        refuse(own, text, mask);
    }
    is_response
}

fn refuse(request: &PendingRequest, line: &[u8], mask: &Redactor) {
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

/// Returns true for the beginning of an object or of an array of objects.
fn begins_like_message(line: &[u8]) -> bool {
    trim_to_object(line).starts_with(b"{")
}

/// Returns a line from its first object on, which may be the first element of an array.
fn trim_to_object(line: &[u8]) -> &[u8] {
    let line = trim(line);
    line.strip_prefix(b"[")
        .map_or(line, <[u8]>::trim_ascii_start)
}

/// Returns true if the line must be an answer or part of one, although it has no id: it begins an object
/// with a string as JSON does, or names the protocol. `{` alone may be the beginning of any output.
fn is_evidently_answer(line: &[u8]) -> bool {
    let begins_member = |rest: &[u8]| rest.trim_ascii_start().starts_with(b"\"");
    let object = trim_to_object(line).strip_prefix(b"{");
    let is_object = object.is_some_and(begins_member);
    let is_json = serde_json::from_slice::<serde::de::IgnoredAny>(trim(line)).is_ok();
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
        let id_at = |at: usize| read_leading_id(split_member(&line[at..])?.1);
        let places = memmem::find_iter(line, br#""id""#);
        let mut ids = places.filter_map(id_at).filter(is_pending);
        let first = ids.next()?;
        ids.all(|id| id == first).then_some(first)
    })
}

/// Reads the id with which a text begins.
fn read_leading_id(text: &[u8]) -> Option<u64> {
    let is_id = |byte: &&u8| byte.is_ascii_alphanumeric() || b"\"+-.".contains(byte);
    let length = text.iter().take_while(is_id).count();
    str::from_utf8(&text[..length]).ok().and_then(read_id)
}

/// Returns the reason why a line is no message.
fn explain(line: &[u8]) -> String {
    let Err(error) = str::from_utf8(line) else {
        return match serde_json::from_slice::<serde::de::IgnoredAny>(trim(line)) {
            Ok(_) => "it is JSON, but no JSON-RPC response".to_owned(),
            Err(error) if error.is_eof() => {
                "the JSON does not end on its line; a message is one line".to_owned()
            }
            Err(_) if split_member(trim(line)).is_some() => {
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
