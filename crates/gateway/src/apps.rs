//! Apps: pages of servers that show the results of their tools (SEP-1865, decision 0041). Here: the
//! callers that a tool is for, and the results that an app gets.

use jsonrpc::Json;
use registry::Entry;
use results::{Origin, ResultStore};
use serde_json::json;

use crate::{
    authorize::refusal::{CallRefusal, RefusalReason},
    built_in::is_own,
    call_context::CallContext,
    definitions::EXECUTE,
    envelope::{Options, SIGNATURE},
    error::{Audience, ToolError},
    reply::ToolReply,
};

/// The page of ours that shows the app of the called tool, for `_meta.ui` of `execute_dynamic_tool`.
pub(crate) const FRAME: &str = "ui://proxy/frame";

/// The member of a result's `_meta` that the page reads: the tool, and the handle of the whole result.
const META: &str = "proxy/app";

/// The part of an app in a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AppUse {
    /// An app shows the result, which a model gets as well.
    Shows,
    /// An app made the call: its result is whole and unchanged, since no model reads it.
    Calls,
}

impl AppUse {
    /// The part of an app in this call; a script has none.
    pub(crate) fn of(entry: &Entry, options: &Options, context: &CallContext) -> Option<Self> {
        if options.app.is_some() {
            return Some(Self::Calls);
        }
        let has_screen = context.script.is_none() && context.shows_apps();
        (has_screen && entry.tool.app().is_some()).then_some(Self::Shows)
    }
}

/// Refuses a call whose caller the tool is not for (`_meta.ui.visibility`), and a call of an app to
/// anything but a tool of its own server. A person may call every tool.
pub(crate) fn check_caller(
    entry: &Entry,
    options: &Options,
    context: &CallContext,
) -> Result<(), ToolError> {
    let refuse = |by: &str| {
        Err(ToolError::Refused(Box::new(CallRefusal {
            called: entry.at.to_string(),
            by: by.to_owned(),
            reason: None,
            why: RefusalReason::Caller,
        })))
    };
    let Some(app) = &options.app else {
        return if context.audience == Audience::Model && !entry.tool.is_for_models() {
            refuse("the apps of its server")
        } else {
            Ok(())
        };
    };
    if !context.shows_apps() {
        let why = "this client did not announce that it shows apps";
        return Err(ToolError::own_input(EXECUTE, "proxy/app", why, SIGNATURE));
    }
    let is_of_us = is_own(entry) || entry.at.server.is_scripts();
    if is_of_us || entry.at.server.as_str() != app {
        return refuse("callers other than an app of another server");
    }
    if !entry.tool.is_for_apps() {
        return refuse("models");
    }
    Ok(())
}

/// Names the tool in a reply that an app shows, and keeps the whole result for it if the model gets
/// another one.
pub(crate) async fn name_whole(
    reply: ToolReply,
    whole: Json,
    origin: Origin,
    store: &ResultStore,
) -> ToolReply {
    let tool = origin.tool.clone();
    let is_whole = reply.json().as_str() == whole.as_str();
    let handle = if is_whole || !origin.reads_on {
        None
    } else {
        store
            .keep_whole(&whole, origin.client, origin.tool)
            .await
            .ok()
    };
    let mut named = json!({"tool": tool});
    if let Some(handle) = handle {
        named["whole"] = handle.to_string().into();
    }
    reply.with_meta(META, &named)
}
