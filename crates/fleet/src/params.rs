//! The `params` of our requests, and what we read of those of notifications, as JSON text.

use bytes::Bytes;
use serde::Deserialize;
use serde_json::{Value, value::RawValue};

use crate::request::Request;

/// Members that each request carries in its `_meta`, keys and JSON texts; none before the
/// revision 2026-07-28.
pub(crate) type OwnMeta = [(String, String)];

/// The `params` of a `tools/call`, the arguments byte for byte as they came.
pub(crate) fn write_call(request: &Request, own: &OwnMeta, id: u64) -> Vec<Bytes> {
    let name = Value::from(request.tool.as_str());
    let head = format!(r#"{{"name":{name},"arguments":"#);
    let passed = request.meta.iter();
    let passed = passed.map(|(key, value)| (key.as_str(), value.as_str()));
    let token = request.progress.is_some().then(|| id.to_string());
    let token = token.as_deref().map(|token| ("progressToken", token));
    let meta = write_members(passed.chain(texts(own)).chain(token));
    let tail = if meta.is_empty() {
        "}".to_owned()
    } else {
        format!(r#","_meta":{{{meta}}}}}"#)
    };
    vec![
        Bytes::from(head),
        request.arguments.bytes(),
        Bytes::from(tail),
    ]
}

/// The `params` of one page of a `tools/list`.
pub(crate) fn write_list(cursor: Option<&str>, own: &OwnMeta) -> Vec<Bytes> {
    let meta = write_members(texts(own));
    let cursor = cursor.map(|cursor| format!(r#""cursor":{}"#, Value::from(cursor)));
    let meta = (!meta.is_empty()).then(|| format!(r#""_meta":{{{meta}}}"#));
    let params: Vec<String> = cursor.into_iter().chain(meta).collect();
    vec![Bytes::from(format!("{{{}}}", params.join(",")))]
}

fn texts(own: &OwnMeta) -> impl Iterator<Item = (&str, &str)> {
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
