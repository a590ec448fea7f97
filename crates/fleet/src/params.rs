//! The `params` of our requests, and what we read of those of notifications, as JSON text.

use bytes::Bytes;
use serde::Deserialize;
use serde_json::{Value, value::RawValue};

use crate::request::Request;

/// Members that a request carries in its `_meta`, keys and JSON texts; none before the revision
/// 2026-07-28.
pub(crate) type OwnMembers = [(String, String)];

/// The `params` of a client's request, each member byte for byte as it came.
pub(crate) fn write_params(request: &Request, own: &OwnMembers, id: u64) -> Vec<Bytes> {
    let mut parts = Vec::with_capacity(2 * request.params.len() + 1);
    let mut before = "{";
    for (key, value) in &request.params {
        let key = Value::from(key.as_str());
        parts.push(Bytes::from(format!("{before}{key}:")));
        parts.push(value.bytes());
        before = ",";
    }
    let passed = request.meta.iter();
    let passed = passed.map(|(key, value)| (key.as_str(), value.as_str()));
    let token = request.progress.is_some().then(|| id.to_string());
    let token = token.as_deref().map(|token| ("progressToken", token));
    let meta = write_members(passed.chain(texts(own)).chain(token));
    parts.push(Bytes::from(
        match (meta.is_empty(), request.params.is_empty()) {
            (true, true) => "{}".to_owned(),
            (true, false) => "}".to_owned(),
            (false, _) => format!(r#"{before}"_meta":{{{meta}}}}}"#),
        },
    ));
    parts
}

/// The `params` of one page of a list.
pub(crate) fn write_list(cursor: Option<&str>, own: &OwnMembers) -> Vec<Bytes> {
    let meta = write_members(texts(own));
    let cursor = cursor.map(|cursor| format!(r#""cursor":{}"#, Value::from(cursor)));
    let meta = (!meta.is_empty()).then(|| format!(r#""_meta":{{{meta}}}"#));
    let params: Vec<String> = cursor.into_iter().chain(meta).collect();
    vec![Bytes::from(format!("{{{}}}", params.join(",")))]
}

fn texts(own: &OwnMembers) -> impl Iterator<Item = (&str, &str)> {
    own.iter()
        .map(|(key, value)| (key.as_str(), value.as_str()))
}

fn write_members<'a>(pairs: impl Iterator<Item = (&'a str, &'a str)>) -> String {
    let member = |(key, value)| format!("{}:{value}", Value::from(key));
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
