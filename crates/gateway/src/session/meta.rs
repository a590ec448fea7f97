//! The `_meta` of a request.

use bytes::Bytes;
use jsonrpc::{Fields, Json, text_of};
use serde_json::value::RawValue;

use crate::log_level::LogLevel;

/// The members of a request's `_meta`, by whose business they are.
#[derive(Default)]
pub(super) struct Meta {
    /// The revision that a modern request names.
    pub(super) revision: Option<String>,
    pub(super) has_capabilities: bool,
    pub(super) log_level: Option<LogLevel>,
    pub(super) progress_token: Option<Json>,
    /// What travels on to the server.
    pub(super) passed: Vec<(String, Json)>,
}

/// Keys of the protocol itself, which belong to one hop.
const PROTOCOL_PREFIX: &str = "io.modelcontextprotocol/";

impl Meta {
    pub(super) fn read(line: &Bytes, raw: &RawValue) -> Self {
        let mut meta = Self::default();
        let Some(fields) = Fields::of(raw.get()) else {
            return meta;
        };
        for (key, value) in fields.0 {
            match key.strip_prefix(PROTOCOL_PREFIX) {
                Some("protocolVersion") => meta.revision = text_of(value).map(Into::into),
                Some("clientCapabilities") => meta.has_capabilities = value.get().starts_with('{'),
                Some("logLevel") => {
                    meta.log_level = text_of(value).and_then(|level| LogLevel::parse(&level));
                }
                Some(_) => {}
                None if key == "progressToken" => {
                    meta.progress_token = Some(Json::part_of(line, value));
                }
                None => meta
                    .passed
                    .push((key.into_owned(), Json::part_of(line, value))),
            }
        }
        meta
    }
}

/// The name and version that a program says of itself, in a request's `_meta`.
pub(super) fn client_info(meta: &RawValue) -> Option<&RawValue> {
    let fields = Fields::of(meta.get())?;
    let is_it = |key: &str| key.strip_prefix(PROTOCOL_PREFIX) == Some("clientInfo");
    fields
        .0
        .into_iter()
        .find_map(|(key, value)| is_it(&key).then_some(value))
}
