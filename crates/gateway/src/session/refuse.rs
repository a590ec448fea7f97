//! Errors of the protocol that are sent without rmcp.

use bytes::Bytes;
use jsonrpc::frame;
use serde_json::Value;

use crate::{forward::ForwardError, out::Out};

/// Refuses a line that is no message.
pub(super) async fn refuse_unreadable(out: &Out, line: &Bytes) {
    let (code, why) = match serde_json::from_slice::<Value>(line) {
        Ok(_) => {
            let why = "Invalid Request: expected one object";
            (frame::INVALID_REQUEST, why.to_owned())
        }
        Err(error) => (frame::PARSE_ERROR, format!("Parse error: {error}")),
    };
    refuse(out, "null", code, &why).await;
}

/// The line of the response to a request; a result is in pieces of bytes.
pub(super) fn respond(
    id: &str,
    answer: Result<Vec<Bytes>, ForwardError>,
    is_stateless: bool,
) -> Vec<Bytes> {
    match answer {
        Ok(result) => frame::result(id, result),
        Err(refusal) => vec![refusal.line(id, is_stateless)],
    }
}

/// Answers a request with an error; `id` as it came, or `null`.
pub async fn refuse(out: &Out, id: &str, code: i32, why: &str) {
    let _ = out.answer(vec![frame::error(id, code, why)]).await;
}
