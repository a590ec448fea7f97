//! Responses to requests that were in progress when their daemon ended.

use bytes::Bytes;
use jsonrpc::frame;
use serde_json::json;

/// The text for a call whose daemon ended before it answered.
pub const LOST_CALL: &str = "error server_unavailable: the proxy's daemon ended while this call was \
                             under way, so it may have run. Look whether it did before you call \
                             again.";

/// Returns a tool error, as a model reads it, for a call that has no other answer.
/// `names_revision`: the call was made in the modern era, whose results say that they are complete.
pub fn answer_lost_call(id: &str, names_revision: bool, why: &str) -> Bytes {
    let mut result = json!({"content": [{"type": "text", "text": why}], "isError": true});
    if names_revision {
        result["resultType"] = json!("complete");
    }
    frame::result(id, [Bytes::from(result.to_string())])
        .concat()
        .into()
}
