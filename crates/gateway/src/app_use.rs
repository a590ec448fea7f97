//! The part of an app in a call, and the result that the app gets (decision 0041).

use jsonrpc::Json;
use results::{Origin, ResultStore};
use serde_json::json;

use crate::reply::ToolReply;

/// The page of ours that shows the app of the called tool, for `_meta.ui` of `execute_dynamic_tool`.
pub(crate) const FRAME: &str = "ui://proxy/frame";

/// The member of a result's `_meta` that the page reads: the handle of the whole result, if the model got
/// another one. It replaces what a server wrote there.
const META: &str = "proxy/app";

/// The part of an app in a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AppUse {
    /// An app shows the result, which a model gets as well.
    Shows,
    /// An app made the call: its result is whole and unchanged, since no model reads it.
    Calls,
}

/// Keeps the whole result for the app that shows it, if the model gets another one, and names it in the
/// reply.
pub(crate) async fn name_whole(
    reply: ToolReply,
    whole: Json,
    origin: Origin,
    store: &ResultStore,
) -> ToolReply {
    let is_whole = reply.json().as_str() == whole.as_str();
    let handle = if is_whole || !origin.reads_on {
        None
    } else {
        store.keep_whole(&whole, origin.client).await.ok()
    };
    let named = handle.map_or_else(|| json!({}), |it| json!({"whole": it.to_string()}));
    reply.with_meta(META, &named)
}
