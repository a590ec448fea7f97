//! Writes the `params` of requests, and reads those of notifications, as JSON text.

use bytes::Bytes;
use jsonrpc::quote;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::request::Request;

/// The members that the proxy adds to the `_meta` of a request, as keys and JSON texts; none before
/// revision 2026-07-28.
pub(crate) type OwnMembers = [(String, String)];

/// Writes the `params` of a request. Members of the client stay byte for byte the same.
pub(crate) fn write_params(request: &Request, own: &OwnMembers, id: u64) -> Vec<Bytes> {
    let mut parts = Vec::with_capacity(2 * request.params.len() + 1);
    let mut before = "{";
    for (key, value) in &request.params {
        parts.push(Bytes::from([before, &quote(key), ":"].concat()));
        parts.push(value.bytes());
        before = ",";
    }
    let passed = request.meta.iter();
    let passed = passed.map(|(key, value)| (key.as_str(), value.as_str()));
    let token = request.progress.is_some().then(|| id.to_string());
    let token = token.as_deref().map(|token| ("progressToken", token));
    let meta = write_members(passed.chain(texts(own)).chain(token));
    parts.push(match (meta.is_empty(), request.params.is_empty()) {
        (true, true) => Bytes::from_static(b"{}"),
        (true, false) => Bytes::from_static(b"}"),
        (false, _) => Bytes::from(format!(r#"{before}"_meta":{{{meta}}}}}"#)),
    });
    parts
}

fn texts(own: &OwnMembers) -> impl Iterator<Item = (&str, &str)> {
    own.iter()
        .map(|(key, value)| (key.as_str(), value.as_str()))
}

fn write_members<'a>(pairs: impl Iterator<Item = (&'a str, &'a str)>) -> String {
    let member = |(key, value)| [&quote(key), ":", value].concat();
    pairs.map(member).collect::<Vec<_>>().join(",")
}

/// Reads the token of a progress notification.
pub(crate) fn read_progress_token(params: &RawValue) -> Option<&RawValue> {
    #[derive(Deserialize)]
    struct Progress<'a> {
        #[serde(borrow, rename = "progressToken")]
        token: &'a RawValue,
    }
    let progress: Progress<'_> = serde_json::from_str(params.get()).ok()?;
    Some(progress.token)
}
