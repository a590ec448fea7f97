//! Apps: pages of servers that show the results of their tools (SEP-1865, decision 0041). Here: the
//! callers that a tool is for.

use registry::Entry;

use crate::{
    app_use::AppUse,
    authorize::refusal::{CallRefusal, RefusalReason},
    built_in::is_answered_here,
    call_context::CallContext,
    definitions::EXECUTE,
    envelope::{Options, SIGNATURE},
    error::{Audience, ToolError},
};

/// The part of an app in this call; a script has none.
pub(crate) fn find_app_use(
    entry: &Entry,
    options: &Options,
    context: &CallContext,
) -> Option<AppUse> {
    if options.app.is_some() {
        return Some(AppUse::Calls);
    }
    let has_screen = context.script.is_none() && context.shows_apps();
    (has_screen && entry.tool.app().is_some()).then_some(AppUse::Shows)
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
    if is_answered_here(entry) || entry.at.server.as_str() != app {
        return refuse("callers other than an app of another server");
    }
    if !entry.tool.is_for_apps() {
        return refuse("models");
    }
    Ok(())
}
