//! Notifications to a client about lists that change: in an open session, or, without a session, on
//! the stream that the client requested.

use std::sync::Arc;

use bytes::Bytes;
use futures::future::join_all;
use jsonrpc::mcp::meta::SUBSCRIPTION_ID;
use jsonrpc::{Fields, Json, frame};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::subscriptions::{SUBSCRIPTIONS_MAX, tell as tell_update};
use crate::{
    call_context::CallContext,
    forward::{Announced, ListState},
    gateway::Gateway,
    json_text::write_object,
    out::Out,
    policy::ClientPolicy,
};

const PROMPTS: &str = "notifications/prompts/list_changed";
const RESOURCES: &str = "notifications/resources/list_changed";

/// The changes that a client is notified of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Filter {
    prompts: bool,
    resources: bool,
}

impl Filter {
    /// All kinds that were announced to have lists.
    pub(super) fn of(announced: Announced) -> Self {
        Self {
            prompts: announced.prompts,
            resources: announced.resources,
        }
    }

    pub(super) fn is_empty(self) -> bool {
        !self.prompts && !self.resources
    }

    /// The changes that `subscriptions/listen` asks for, limited to the announced ones.
    pub(super) fn read(asked: &str, announced: Announced) -> Self {
        let fields = Fields::of(asked);
        let wants = |key: &str| {
            let value = fields.as_ref().and_then(|it| it.get(key));
            value.is_some_and(|it| it.get() == "true")
        };
        Self {
            prompts: announced.prompts && wants("promptsListChanged"),
            resources: announced.resources && wants("resourcesListChanged"),
        }
    }

    /// The filter in the acknowledgement, with the watched resources.
    fn json(self, uris: &[&str]) -> String {
        let members = [
            ("promptsListChanged", self.prompts.then(|| json!(true))),
            ("resourcesListChanged", self.resources.then(|| json!(true))),
            (
                "resourceSubscriptions",
                (!uris.is_empty()).then(|| json!(uris)),
            ),
        ];
        let members = members.into_iter();
        write_object(members.filter_map(|(key, value)| Some((key, value?))))
    }
}

/// Notifies a client of every list that changes, until the future is dropped. A notification that
/// the client does not read in time is dropped: the client requests the list when it reads again.
/// `policy` returns the client's current rules.
pub(super) async fn tell(
    gateway: &Gateway,
    policy: impl Fn() -> Arc<ClientPolicy>,
    filter: Filter,
    meta: &str,
    out: &Out,
) {
    let mut changes = gateway.catalog.lists_changed.subscribe();
    let state = || ListState::of(&gateway.catalog.registry.catalog(), &policy());
    let mut told = state();
    let params = if meta.is_empty() {
        "{}".to_owned()
    } else {
        format!(r#"{{"_meta":{meta}}}"#)
    };
    while changes.changed().await.is_ok() {
        let now = state();
        if filter.prompts && now.prompts != told.prompts {
            out.offer(vec![frame::notification(PROMPTS, &params)]);
        }
        if filter.resources && now.resources != told.resources {
            out.offer(vec![frame::notification(RESOURCES, &params)]);
        }
        told = now;
    }
}

/// The resources that `subscriptions/listen` subscribes to.
pub(super) fn uris(asked: &str, announced: Announced) -> Vec<String> {
    let fields = Fields::of(asked).filter(|_| announced.resources);
    let list = fields.and_then(|it| it.get("resourceSubscriptions"));
    let list: Option<Vec<String>> = list.and_then(|raw| serde_json::from_str(raw.get()).ok());
    let mut list = list.unwrap_or_default();
    list.truncate(SUBSCRIPTIONS_MAX);
    list
}

pub(super) struct Listening {
    pub(super) uris: Vec<String>,
    pub(super) context: CallContext,
    pub(super) id: Json,
    pub(super) filter: Filter,
    pub(super) out: Out,
    /// Cancelled when the client is gone, or we end.
    pub(super) gone: CancellationToken,
    /// Cancelled with `gone`, or when the client cancels the request.
    pub(super) cancel: CancellationToken,
}

/// Answers the request: first an acknowledgement, then every change, and a result if we end it. A
/// resource that cannot be watched is not in the acknowledgement.
pub(super) async fn listen(
    gateway: Arc<Gateway>,
    listening: Listening,
    policy: impl Fn() -> Arc<ClientPolicy>,
) {
    let Listening {
        id, out, cancel, ..
    } = &listening;
    let meta = format!(r#"{{"{SUBSCRIPTION_ID}":{}}}"#, id.as_str());
    let watching = listening.uris.iter().map(async |uri| {
        let hear = tell_update(out.clone(), Some(meta.clone()));
        let forwarder = &gateway.forwarder;
        let watching = forwarder.watch_resource(uri, &listening.context, hear);
        Some((uri.as_str(), watching.await.ok()?))
    });
    let watched = cancel.run_until_cancelled(join_all(watching)).await;
    let watched: Vec<_> = watched.unwrap_or_default().into_iter().flatten().collect();
    let heard: Vec<&str> = watched.iter().map(|(uri, _)| *uri).collect();
    let accepted = listening.filter.json(&heard);
    let params = format!(r#"{{"notifications":{accepted},"_meta":{meta}}}"#);
    let acknowledged = frame::notification("notifications/subscriptions/acknowledged", &params);
    if out.tell(vec![acknowledged]).await.is_err() {
        return;
    }
    let telling = tell(&gateway, policy, listening.filter, &meta, out);
    let _ = cancel.run_until_cancelled(telling).await;
    if listening.gone.is_cancelled() {
        let result = format!(r#"{{"resultType":"complete","_meta":{meta}}}"#);
        let line = frame::result(id.as_str(), [Bytes::from(result)]);
        let _ = out.answer(line).await;
    } else {
        out.withdraw();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_announced_is_listened_to() {
        let announced = Announced {
            prompts: true,
            ..Announced::default()
        };
        let asked =
            r#"{"promptsListChanged":true,"resourcesListChanged":true,"toolsListChanged":true}"#;
        assert_eq!(
            Filter::read(asked, announced).json(&[]),
            r#"{"promptsListChanged":true}"#
        );
        assert_eq!(
            Filter::read("{}", announced).json(&["a:1"]),
            r#"{"resourceSubscriptions":["a:1"]}"#
        );
        assert_eq!(Filter::read("7", announced).json(&[]), "{}");
    }
}
