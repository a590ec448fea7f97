//! Builds messages from JSON text: one line each, including its line end.
//!
//! `params`, `result`, `error` and `data` are JSON text on one line: part of a [`Message`](crate::Message),
//! or a [`Json`](crate::Json). A sink refuses a message with another raw line break than that at its end.
//!
//! An `id` is also JSON text, exactly as the peer wrote it: a number, a string or `null`.

use std::fmt::Display;

use bytes::Bytes;

use crate::quote;

/// The error code for an unknown method.
pub const METHOD_NOT_FOUND: i32 = -32_601;
/// The error code for parameters that are invalid for the method.
pub const INVALID_PARAMS: i32 = -32_602;
/// The error code for a line that is not JSON.
pub const PARSE_ERROR: i32 = -32_700;
/// The error code for a line that is JSON but not a message.
pub const INVALID_REQUEST: i32 = -32_600;
/// The error code for an internal error.
pub const INTERNAL_ERROR: i32 = -32_603;

/// Builds a request; the pieces of `params` are not copied.
pub fn request(
    id: impl Display,
    method: &str,
    params: impl IntoIterator<Item = Bytes>,
) -> Vec<Bytes> {
    let method = quote(method);
    let head = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":{method},"params":"#);
    enclose(head, params)
}

/// Builds a successful response; the pieces of `result` are not copied.
pub fn result(id: &str, result: impl IntoIterator<Item = Bytes>) -> Vec<Bytes> {
    enclose(format!(r#"{{"jsonrpc":"2.0","id":{id},"result":"#), result)
}

/// Builds a notification; `params` is JSON text.
pub fn notification(method: &str, params: &str) -> Bytes {
    let method = quote(method);
    let line = format!(r#"{{"jsonrpc":"2.0","method":{method},"params":{params}}}"#);
    Bytes::from(line + "\n")
}

/// Builds an error response; the pieces of `error`, which is JSON text, are not copied.
pub fn error_of(id: &str, error: impl IntoIterator<Item = Bytes>) -> Vec<Bytes> {
    enclose(format!(r#"{{"jsonrpc":"2.0","id":{id},"error":"#), error)
}

/// Builds an error response. `code` must print as a JSON number.
pub fn error(id: &str, code: impl Display, message: &str) -> Bytes {
    error_with(id, code, message, None)
}

/// Builds an error response with `data`, which is JSON text.
pub fn error_with(id: &str, code: impl Display, message: &str, data: Option<&str>) -> Bytes {
    let message = quote(message);
    let data = data
        .map(|data| format!(r#","data":{data}"#))
        .unwrap_or_default();
    let error = format!(r#"{{"code":{code},"message":{message}{data}}}"#);
    Bytes::from(format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{error}}}"#) + "\n")
}

fn enclose(head: String, pieces: impl IntoIterator<Item = Bytes>) -> Vec<Bytes> {
    let pieces = pieces.into_iter();
    let mut parts = Vec::with_capacity(pieces.size_hint().0 + 2);
    parts.push(Bytes::from(head));
    parts.extend(pieces);
    parts.push(Bytes::from_static(b"}\n"));
    parts
}
