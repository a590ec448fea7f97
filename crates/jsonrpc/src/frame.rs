//! Messages put together from text that is JSON already: one line each, its line end included.
//!
//! An `id` is JSON text too, as the peer wrote it: a number, a string or `null`.

use std::fmt::Display;

use bytes::Bytes;
use serde_json::Value;

/// A request was read, and its method is not one that we have.
pub const METHOD_NOT_FOUND: i32 = -32_601;
/// The parameters are not those of the method.
pub const INVALID_PARAMS: i32 = -32_602;
/// A line is not JSON.
pub const PARSE_ERROR: i32 = -32_700;
/// A line is JSON and no message.
pub const INVALID_REQUEST: i32 = -32_600;
/// The fault is ours.
pub const INTERNAL_ERROR: i32 = -32_603;

/// A request; `params` stays in the pieces that it comes in.
pub fn request(
    id: impl Display,
    method: &str,
    params: impl IntoIterator<Item = Bytes>,
) -> Vec<Bytes> {
    let head = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":"#);
    enclose(head, params)
}

/// A successful answer; `result` stays in the pieces that it comes in.
pub fn result(id: &str, result: impl IntoIterator<Item = Bytes>) -> Vec<Bytes> {
    enclose(format!(r#"{{"jsonrpc":"2.0","id":{id},"result":"#), result)
}

/// A notification; `params` is JSON text.
pub fn notification(method: &str, params: &str) -> Bytes {
    let line = format!(r#"{{"jsonrpc":"2.0","method":"{method}","params":{params}}}"#);
    Bytes::from(line + "\n")
}

/// An error answer; `error` is JSON text in the pieces that it comes in.
pub fn error_of(id: &str, error: impl IntoIterator<Item = Bytes>) -> Vec<Bytes> {
    enclose(format!(r#"{{"jsonrpc":"2.0","id":{id},"error":"#), error)
}

/// An error answer. `code` is what prints as a JSON number.
pub fn error(id: &str, code: impl Display, message: &str) -> Bytes {
    error_with(id, code, message, None)
}

/// The same with `data`, which is JSON text.
pub fn error_with(id: &str, code: impl Display, message: &str, data: Option<&str>) -> Bytes {
    let message = Value::from(message);
    let data = data
        .map(|data| format!(r#","data":{data}"#))
        .unwrap_or_default();
    let error = format!(r#"{{"code":{code},"message":{message}{data}}}"#);
    Bytes::from(format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{error}}}"#) + "\n")
}

fn enclose(head: String, pieces: impl IntoIterator<Item = Bytes>) -> Vec<Bytes> {
    let mut parts = vec![Bytes::from(head)];
    parts.extend(pieces);
    parts.push(Bytes::from_static(b"}\n"));
    parts
}
