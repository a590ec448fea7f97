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
    /// A subscription to a resource.
    Subscribe(Params),
    Unsubscribe(Params),
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
    /// Reads a request that we answer. Any other is left to rmcp, which can refuse it.
    pub(super) fn read(line: &Bytes, message: &Message<'_>, is_open: bool) -> Option<Self> {
        let method = message.method.as_deref()?;
        let params = message.params.and_then(|params| Fields::of(params.get()));
        let meta = Meta::read(line, params.as_ref());
        if !meta.is_served(is_open) {
            return None;
        }
        let continuation = params.as_ref().map(|it| Continuation::read(line, it));
        let continuation = continuation.unwrap_or_default();
        let members = |params: Option<Fields<'_>>| {
            let members = params.into_iter().flat_map(|params| params.0);
            let members = members.filter(|(key, _)| key != "_meta" && !Continuation::has(key));
            let own = |(key, value): (Cow<'_, str>, _)| {
                (Cow::Owned(key.into_owned()), Json::part_of(line, value))
            };
            members.map(own).collect()
        };
        let wants = match method {
            "tools/call" => {
                let params = params?;
                Wants::Tool {
                    name: text_of(params.get("name")?)?.into_owned(),
                    arguments: params.get("arguments").map(ToOwned::to_owned),
                }
            }
            "subscriptions/listen" => {
                let filter = params?.get("notifications")?;
                meta.revision.as_ref()?;
                Wants::Listen(Json::part_of(line, filter))
            }
            "resources/subscribe" => Wants::Subscribe(members(params)),
            "resources/unsubscribe" => Wants::Unsubscribe(members(params)),
            _ => match TaskMethod::parse(method) {
                Some(asked) => {
                    let responses = continuation.responses.clone();
                    Wants::Task(asked, members(params), responses)
                }
                None => Wants::Other(Method::parse(method)?, members(params)),
            },
        };
        Some(Self {
            id: Json::part_of(line, message.id?),
            meta,
            wants,
            continuation,
        })
    }
}
