//! Errors of the protocol that are sent without rmcp.

use bytes::Bytes;
use jsonrpc::frame;
use serde_json::Value;

use crate::out::Out;

/// Refuses a line that is no message.
pub(super) async fn refuse_unreadable(out: &Out, line: &Bytes) {
    match serde_json::from_slice::<Value>(line) {
        Ok(_) => {
            refuse(
                out,
                "null",
                frame::INVALID_REQUEST,
                "Invalid Request: expected one object",
            )
            .await;
        }
        Err(error) => {
            refuse(
                out,
                "null",
                frame::PARSE_ERROR,
                &format!("Parse error: {error}"),
            )
            .await;
        }
    }
}

/// Answers a request with an error; `id` as it came, or `null`.
pub async fn refuse(out: &Out, id: &str, code: i32, why: &str) {
    let _ = out.answer(vec![frame::error(id, code, why)]).await;
}
