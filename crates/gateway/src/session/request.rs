//! Requests that are answered in tasks of their own, as they came.

use std::borrow::Cow;

use bytes::Bytes;
use jsonrpc::{Fields, Json, Message, text_of};
use serde_json::value::RawValue;

use super::meta::Meta;
use crate::client_tasks::TaskMethod;
use crate::forward::{Method, Params};

/// A request of a client whose response may need servers.
pub(super) struct ClientRequest {
    pub(super) id: Json,
    pub(super) meta: Meta,
    pub(super) wants: Wants,
    /// The answers to the questions in the response to the earlier request.
    pub(super) continuation: Continuation,
}

/// The two ends of a subscription.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Watching {
    Begins,
    Ends,
}

/// The requested operation.
pub(super) enum Wants {
    /// One of our tools.
    Tool {
        name: String,
        arguments: Option<Box<RawValue>>,
    },
    Other(Method, Params),
    /// The state of a task, an answer to its questions, or its end; with the answers.
    Task(TaskMethod, Params, Option<Json>),
    /// A subscription to a resource, or its end.
    Watch(Watching, Params),
    /// A subscription to changes; the filter as it came.
    Listen(Json),
}

/// The members, besides arguments, of a request that continues an earlier one.
#[derive(Debug, Default)]
pub(super) struct Continuation {
    pub(super) state: Option<Json>,
    pub(super) responses: Option<Json>,
}

const STATE: &str = "requestState";
const RESPONSES: &str = "inputResponses";

impl Continuation {
    pub(super) fn read(line: &Bytes, params: &Fields<'_>) -> Self {
        let part = |key| params.filled(key).map(|it| Json::part_of(line, it));
        Self {
            state: part(STATE),
            responses: part(RESPONSES),
        }
    }

    /// Returns true if this member of `params` belongs to a continuation.
    pub(super) fn has(key: &str) -> bool {
        [STATE, RESPONSES].contains(&key)
    }
}

impl ClientRequest {
    /// Reads a request that we answer: of an open legacy session, or of a modern client with
    /// everything that a request needs. Any other is left to rmcp, which can refuse it.
    pub(super) fn read(line: &Bytes, message: &Message<'_>, is_open: bool) -> Option<Self> {
        let method = message.method.as_deref()?;
        let params = message.params.and_then(|params| Fields::of(params.get()));
        let meta = params.as_ref().and_then(|params| params.get("_meta"));
        let meta = meta.map(|raw| Meta::read(line, raw)).unwrap_or_default();
        let is_ours = match &meta.revision {
            Some(revision) => {
                revision.is_known() && revision.is_stateless() && meta.capabilities.is_some()
            }
            None => is_open,
        };
        if !is_ours {
            return None;
        }
        let continuation = params
            .as_ref()
            .map(|params| Continuation::read(line, params));
        let wants = if method == "tools/call" {
            let params = params?;
            Wants::Tool {
                name: text_of(params.get("name")?)?.into_owned(),
                arguments: params.get("arguments").map(ToOwned::to_owned),
            }
        } else if method == "subscriptions/listen" {
            let filter = params?.get("notifications")?;
            meta.revision.as_ref()?;
            Wants::Listen(Json::part_of(line, filter))
        } else {
            let members = params.into_iter().flat_map(|params| params.0);
            let members = members.filter(|(key, _)| key != "_meta" && !Continuation::has(key));
            let members = members
                .map(|(key, value)| (Cow::Owned(key.into_owned()), Json::part_of(line, value)));
            let responses = || continuation.as_ref().and_then(|it| it.responses.clone());
            if let Some(asked) = TaskMethod::parse(method) {
                return Some(Self {
                    id: Json::part_of(line, message.id?),
                    meta,
                    wants: Wants::Task(asked, members.collect(), responses()),
                    continuation: Continuation::default(),
                });
            }
            match method {
                "resources/subscribe" => Wants::Watch(Watching::Begins, members.collect()),
                "resources/unsubscribe" => Wants::Watch(Watching::Ends, members.collect()),
                _ => Wants::Other(Method::parse(method)?, members.collect()),
            }
        };
        Some(Self {
            id: Json::part_of(line, message.id?),
            meta,
            wants,
            continuation: continuation.unwrap_or_default(),
        })
    }
}
