//! The list of tools for a client that shows apps. rmcp answers every other `tools/list`.

use bytes::Bytes;
use jsonrpc::{Fields, Message, frame};

use super::{calls::Calls, meta::Meta};
use crate::{definitions::TOOLS_WITH_APPS, elicitation::Capabilities, forward::has_apps};

/// The members that revisions from 2026-07-28 on want: the list is valid for a minute, since a server
/// with apps may be added.
const OF_STATELESS: &str = r#""resultType":"complete","ttlMs":60000,"cacheScope":"private","#;

/// Answers the request if its client shows apps and sees a tool with one.
pub(super) async fn list_with_apps(
    calls: &Calls,
    line: &Bytes,
    message: &Message<'_>,
    is_open: bool,
) -> Option<Vec<Bytes>> {
    let params = message.params.and_then(|it| Fields::of(it.get()));
    let meta = Meta::read(line, params.as_ref());
    if !meta.is_served(is_open) {
        return None;
    }
    let shows_apps = match (&meta.revision, meta.capabilities) {
        (Some(_), Some(declared)) => Capabilities::read(declared).shows_apps(),
        _ => calls.questions.shows_apps(),
    };
    if !shows_apps {
        return None;
    }
    let generation = calls.gateway.catalog.generation().await.ok()?;
    if !has_apps(&generation, &calls.policy()) {
        return None;
    }
    let members = meta.revision.map_or("", |_| OF_STATELESS);
    let result = format!("{{{members}\"tools\":{}}}", *TOOLS_WITH_APPS);
    Some(frame::result(message.id?.get(), [Bytes::from(result)]))
}
