//! The `_meta` of a request.

use bytes::Bytes;
use jsonrpc::mcp::{Revision, meta as keys};
use jsonrpc::{Fields, Json, Message, text_of};
use serde_json::value::RawValue;

use crate::{
    clients::ClientInfo, elicitation::read_announced, elicitation::server_tasks::takes_tasks,
    log_level::LogLevel,
};

/// The members of a request's `_meta`, by their purpose.
#[derive(Default)]
pub(super) struct Meta {
    /// The revision that a request names when there is no handshake.
    pub(super) revision: Option<Revision>,
    /// The capabilities of the client, if the request has them.
    pub(super) capabilities: Option<Json>,
    pub(super) log_level: Option<LogLevel>,
    pub(super) progress_token: Option<Json>,
    /// The members that are passed on to the server.
    pub(super) passed: Vec<(String, Json)>,
}

impl Meta {
    /// Returns true if the client declares with this request that it takes tasks.
    pub(super) fn takes_tasks(&self) -> bool {
        let declared = self.capabilities.as_ref();
        declared.is_some_and(|it| takes_tasks(it.as_str()))
    }

    /// Returns true for a request that we answer: of an open legacy session, or of a modern client with
    /// everything that a request needs.
    pub(super) fn is_served(&self, is_open: bool) -> bool {
        match &self.revision {
            Some(revision) => {
                revision.is_known() && revision.is_stateless() && self.capabilities.is_some()
            }
            None => is_open,
        }
    }

    /// Reads the `_meta` of these `params`.
    pub(super) fn read(line: &Bytes, params: Option<&Fields<'_>>) -> Self {
        let mut meta = Self::default();
        let raw = params.and_then(|it| it.get("_meta"));
        let Some(fields) = raw.and_then(|it| Fields::of(it.get())) else {
            return meta;
        };
        for (key, value) in fields.0 {
            match &*key {
                keys::PROTOCOL_VERSION => meta.revision = text_of(value).map(Revision::named),
                keys::CLIENT_CAPABILITIES => {
                    let is_object = value.get().starts_with('{');
                    meta.capabilities = is_object.then(|| Json::part_of(line, value));
                }
                keys::LOG_LEVEL => {
                    meta.log_level = text_of(value).and_then(|level| LogLevel::parse(&level));
                }
                "progressToken" => meta.progress_token = Some(Json::part_of(line, value)),
                key if key.starts_with(keys::PREFIX) => {}
                _ => meta
                    .passed
                    .push((key.into_owned(), Json::part_of(line, value))),
            }
        }
        meta
    }
}

pub(super) fn revision(meta: &RawValue) -> Option<Revision> {
    let named = Fields::of(meta.get())?.get(keys::PROTOCOL_VERSION)?;
    text_of(named).map(Revision::named)
}

/// The revision of a session with this `initialize`: for a revision that is not served it is the
/// newest one with a handshake.
pub(super) fn read_revision(initialize: &Message<'_>) -> Option<Revision> {
    let params = Fields::of(initialize.params?.get())?;
    let asked = Revision::named(text_of(params.get("protocolVersion")?)?);
    let is_served = asked.is_known() && !asked.is_stateless();
    Some(if is_served {
        asked
    } else {
        Revision::LAST_WITH_HANDSHAKE
    })
}

/// The name and version of a program: from its `initialize`, or from a request's `_meta`.
pub(super) fn read_client_info(message: &Message<'_>) -> Option<ClientInfo> {
    let params = Fields::of(message.params?.get())?;
    let info = match message.method.as_deref() {
        Some("initialize") => params.get("clientInfo")?,
        _ => Fields::of(params.get("_meta")?.get())?.get(keys::CLIENT_INFO)?,
    };
    ClientInfo::read(info)
}

/// The parts of a client's `initialize` that are needed to resume its session.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Announcement {
    /// The name in its session.
    pub name: Option<String>,
    /// A letter for each announced capability: at most nine.
    pub capabilities: String,
}

impl Announcement {
    /// Reads it from the message.
    pub fn read(message: &Message<'_>) -> Self {
        let capabilities = read_announced(message);
        Self {
            name: read_client_info(message).map(|info| info.name.to_string()),
            capabilities: capabilities.map_or_else(String::new, |it| it.letters()),
        }
    }
}
