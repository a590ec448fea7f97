//! The response of one of the three tools: the `result` of a `tools/call`, as JSON text.

use std::{any::Any, time::Duration};

use bytes::Bytes;
use jsonrpc::{Fields, Json, ProtocolError, frame, mcp::Revision};
use results::{Fitted, PartOfWhole, text_block};
use serde_json::{Value, json, value::RawValue};

use crate::{
    error::{Audience, ToolError},
    json_text::set_member,
};

/// A result, ready to send.
#[derive(Debug)]
pub struct ToolReply {
    result: Json,
    is_error: bool,
    /// Replaces the result: an error for the client, not for its model.
    pub(super) client_error: Option<Box<ProtocolError>>,
    /// The code of our error.
    code: Option<&'static str>,
    /// The tool that answered.
    tool: Option<String>,
    /// The whole of which it is a part.
    part: Option<Box<PartOfWhole>>,
    /// Dropped after the client has its response: the record of the call, which is written then.
    _record: Option<Box<dyn Any + Send + Sync>>,
}

impl ToolReply {
    /// A result of one text.
    pub fn text(text: &str) -> Self {
        Self::of_blocks(&[text_block(text)], false)
    }

    /// A tool error with its text.
    pub fn error(error: &ToolError, audience: Audience) -> Self {
        Self {
            code: Some(error.code()),
            ..Self::of_blocks(&[text_block(&error.text_for(audience))], true)
        }
    }

    /// The result of a server, unchanged or with parts left out.
    pub fn of_server(result: Json, is_error: bool) -> Self {
        Self {
            result,
            is_error,
            client_error: None,
            code: None,
            tool: None,
            part: None,
            _record: None,
        }
    }

    /// A result of these blocks, each as JSON.
    pub fn of_blocks(blocks: &[String], is_error: bool) -> Self {
        let flag = if is_error { r#","isError":true"# } else { "" };
        let text = format!(r#"{{"content":[{}]{flag}}}"#, blocks.join(","));
        Self::of_server(Json::of_built(text), is_error)
    }

    #[must_use]
    pub(super) fn of_tool(self, tool: String) -> Self {
        Self {
            tool: Some(tool),
            ..self
        }
    }

    /// The same reply with the record of its call, which is written when it is dropped.
    #[must_use]
    pub(super) fn with_record(self, record: Box<dyn Any + Send + Sync>) -> Self {
        Self {
            _record: Some(record),
            ..self
        }
    }

    /// The whole of which it is a part; none if it is everything.
    pub(super) fn part(&self) -> Option<&PartOfWhole> {
        self.part.as_deref()
    }

    /// The same reply with a line of ours after its other blocks.
    #[must_use]
    pub(super) fn with_note(mut self, note: Option<&str>) -> Self {
        let Some(note) = note else { return self };
        let Some(fields) = Fields::of(self.result.as_str()) else {
            return self;
        };
        let blocks = fields.content().unwrap_or_default().into_iter();
        let blocks = blocks.map(|block| block.get().to_owned());
        let blocks: Vec<String> = blocks.chain([text_block(note)]).collect();
        self.result = with_content(&fields, &blocks);
        self
    }

    /// The same reply with a member in its `_meta`.
    #[must_use]
    pub(super) fn with_meta(mut self, key: &str, value: &Value) -> Self {
        let Some(fields) = Fields::of(self.result.as_str()) else {
            return self;
        };
        let meta = fields.get("_meta").and_then(|it| Fields::of(it.get()));
        let meta = meta.unwrap_or(Fields(Vec::new()));
        let meta = set_member(&meta, key, &value.to_string());
        self.result = Json::of_built(set_member(&fields, "_meta", &meta));
        self
    }

    /// The same reply for a client of this revision: newer kinds of blocks become text.
    #[must_use]
    pub(super) fn for_revision(mut self, revision: &Revision) -> Self {
        // A long result is read three times to find its blocks.
        if revision.as_str() >= LINKS_SINCE {
            return self;
        }
        let is_later = |block: &RawValue| kind_of(block).is_some_and(|it| is_later(it, revision));
        let Some(fields) = Fields::of(self.result.as_str()) else {
            return self;
        };
        let blocks = fields.content().unwrap_or_default();
        if !blocks.iter().any(|block| is_later(block)) {
            return self;
        }
        let blocks = blocks.into_iter().map(|block| {
            if is_later(block) {
                text_block(&printable(block))
            } else {
                block.get().to_owned()
            }
        });
        let blocks: Vec<String> = blocks.collect();
        self.result = with_content(&fields, &blocks);
        self
    }

    /// The cost of its blocks for a model, without images and sounds; counted off the event loop.
    pub async fn tokens(&self) -> usize {
        results::tokens(&self.result).await
    }

    /// Returns true if it is a tool error.
    pub fn is_error(&self) -> bool {
        self.is_error
    }

    /// The result as JSON.
    pub fn json(&self) -> &Json {
        &self.result
    }

    /// The result as JSON, with a member `meta` for scripts: its tool, error, cost and duration, and
    /// the whole if it was cut. `called` is the name of the tool as it was called.
    pub(crate) async fn json_with_meta(&self, called: Option<&str>, took: Duration) -> String {
        let json = self.result.as_str().trim_end();
        let fields = Fields::of(json);
        let measured = results::measure(&self.result).await;
        let measured = measured.as_ref();
        let (tokens, items) = (measured.map(|it| it.tokens), measured.map(|it| it.items));
        let of_block = measured.and_then(|it| it.content_type.as_deref());
        let part = self.part();
        let meta = json!({
            "tool": self.tool.as_deref().or(called),
            "error": self.code.or(self.is_error.then_some("tool_error")),
            "tokens": tokens,
            "bytes": json.len(),
            "items": part.map_or(items, |part| part.items),
            "total_tokens": part.map(|part| part.total_tokens).or(tokens),
            "total_items": part.map_or(items, |part| part.total_items),
            "part": part.map_or(Some(1), |part| part.part),
            "parts": part.map_or(1, |part| part.parts),
            "truncated": part.is_some(),
            "handle": part.and_then(|part| part.handle.as_deref()),
            "content_type": part.and_then(|part| part.content_type).or(of_block),
            "ms": u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
        });
        match (fields, json.strip_suffix('}')) {
            (Some(fields), Some(open)) => {
                let comma = if fields.0.is_empty() { "" } else { "," };
                format!("{open}{comma}\"meta\":{meta}}}")
            }
            _ => json.to_owned(),
        }
    }

    /// The text blocks, joined with line ends; other blocks as a line that names them. For people.
    pub fn printable(&self) -> String {
        let blocks = Fields::of(self.result.as_str()).and_then(|fields| fields.content());
        let blocks = blocks.unwrap_or_default().into_iter();
        blocks.map(printable).collect::<Vec<_>>().join("\n")
    }

    /// The line of the response to the request with this id.
    pub(super) fn line(&self, id: &str, is_stateless: bool) -> Vec<Bytes> {
        match &self.client_error {
            Some(error) => {
                let (code, message, data) = ProtocolError::clone(error).into_parts();
                vec![frame::error_with(id, code, &message, data.as_deref())]
            }
            None => frame::result(id, self.parts(is_stateless)),
        }
    }

    /// The result in pieces of bytes, for revisions with a handshake or without one.
    fn parts(&self, is_stateless: bool) -> Vec<Bytes> {
        let members: &[_] = if is_stateless { &[COMPLETE] } else { &[] };
        with_members(&self.result, members)
    }
}

/// The member that says in a revision without a handshake that a result is complete.
pub(super) const COMPLETE: (&str, &str) = ("resultType", r#""complete""#);

/// The result with these blocks.
fn with_content(fields: &Fields<'_>, blocks: &[String]) -> Json {
    let content = format!("[{}]", blocks.join(","));
    Json::of_built(set_member(fields, "content", &content))
}

/// The kind of a block, as JSON text.
fn kind_of(block: &RawValue) -> Option<&str> {
    Some(Fields::of(block.get())?.get("type")?.get())
}

/// The revision that added `audio`.
const AUDIO_SINCE: &str = "2025-03-26";

/// The revision that added `resource_link`, the newest kind of block.
const LINKS_SINCE: &str = "2025-06-18";

/// Returns true if a kind of block is newer than this revision.
fn is_later(kind: &str, revision: &Revision) -> bool {
    match kind {
        r#""audio""# => revision.as_str() < AUDIO_SINCE,
        r#""resource_link""# => revision.as_str() < LINKS_SINCE,
        _ => false,
    }
}

/// The result with these members before its own, except for those that it already has.
pub(super) fn with_members(result: &Json, members: &[(&str, &str)]) -> Vec<Bytes> {
    let whole = result.bytes();
    let own = (!members.is_empty()).then(|| Fields::of(result.as_str()));
    let Some(own) = own.flatten() else {
        return vec![whole];
    };
    let missing = members.iter().filter(|(key, _)| own.get(key).is_none());
    let missing: Vec<String> = missing
        .map(|(key, value)| format!(r#""{key}":{value}"#))
        .collect();
    if missing.is_empty() {
        return vec![whole];
    }
    // A JSON object begins with `{`; its members are sent unchanged.
    let rest = whole.slice(1..);
    let comma = if own.0.is_empty() { "" } else { "," };
    vec![Bytes::from(format!("{{{}{comma}", missing.join(","))), rest]
}

impl From<Fitted> for ToolReply {
    fn from(fitted: Fitted) -> Self {
        Self {
            part: fitted.part,
            ..Self::of_server(fitted.result, fitted.is_error)
        }
    }
}

fn printable(block: &RawValue) -> String {
    let value: Value = serde_json::from_str(block.get()).unwrap_or_default();
    let text = |key: &str| value.get(key).and_then(Value::as_str);
    let kind = text("type").unwrap_or("unknown");
    let bytes = text("data").map_or(0, |data| data.len() / 4 * 3);
    let mime = text("mimeType").unwrap_or("unknown type");
    match kind {
        "text" => text("text").unwrap_or_default().to_owned(),
        "image" | "audio" => format!("[{kind}: {mime}, about {bytes} bytes]"),
        "resource_link" => {
            let (name, uri) = (text("name"), text("uri"));
            let (name, uri) = (name.unwrap_or_default(), uri.unwrap_or_default());
            format!("[resource link: {name} {uri}]")
        }
        "resource" => {
            let of = |key: &str| value["resource"][key].as_str();
            let uri = of("uri").unwrap_or_default();
            of("text").map_or_else(|| format!("[resource: {uri}]"), str::to_owned)
        }
        _ => block.get().to_owned(),
    }
}

/// The text for a call whose daemon ended before it answered.
pub const LOST_CALL: &str = "error server_unavailable: the proxy's daemon ended while this call was \
                             under way, so it may have run. Look whether it did before you call \
                             again.";

/// Returns a tool error, as a model reads it, for a call that has no other answer.
/// `names_revision`: the call was made in the modern era, whose results say that they are complete.
pub fn answer_lost_call(id: &str, names_revision: bool, why: &str) -> Bytes {
    let mut result = json!({"content": [{"type": "text", "text": why}], "isError": true});
    if names_revision {
        result["resultType"] = json!("complete");
    }
    frame::result(id, [Bytes::from(result.to_string())])
        .concat()
        .into()
}

#[cfg(test)]
mod tests {
    use jsonrpc::mcp::Revision;

    use super::ToolReply;

    #[track_caller]
    fn check(result: &str, is_stateless: bool, expected: &str) {
        let json = jsonrpc::json(result.to_owned()).expect("the case is JSON");
        let parts = ToolReply::of_server(json, false).parts(is_stateless);
        let sent: Vec<u8> = parts.concat();
        assert_eq!(String::from_utf8(sent).expect("JSON is UTF-8"), expected);
    }

    #[test]
    fn a_client_gets_no_kind_of_block_that_came_after_its_revision() {
        const RESULT: &str = r#"{"isError":false,"content":[{"type":"text","text":"a"},{"type":"audio","data":"AAAA","mimeType":"audio/wav"},{"type":"resource_link","uri":"a:1","name":"one"}],"structuredContent":{}}"#;
        let kinds = |revision: &str| {
            let json = jsonrpc::json(RESULT.to_owned()).unwrap();
            let reply = ToolReply::of_server(json, false).for_revision(&Revision::named(revision));
            let reply: serde_json::Value = serde_json::from_str(reply.json().as_str()).unwrap();
            assert_eq!(reply["isError"], false);
            assert!(reply["structuredContent"].is_object(), "{reply}");
            let blocks = reply["content"].as_array().unwrap().iter();
            let kinds = blocks.map(|it| match &it["type"] {
                kind if *kind == "text" => it["text"].as_str().unwrap().to_owned(),
                kind => kind.as_str().unwrap().to_owned(),
            });
            kinds.collect::<Vec<_>>()
        };
        let (audio, link) = (
            "[audio: audio/wav, about 3 bytes]",
            "[resource link: one a:1]",
        );
        assert_eq!(kinds("2024-11-05"), ["a", audio, link]);
        assert_eq!(kinds("2025-03-26"), ["a", "audio", link]);
        for revision in ["2025-06-18", "2025-11-25", "2026-07-28"] {
            assert_eq!(kinds(revision), ["a", "audio", "resource_link"]);
        }
    }

    #[test]
    fn a_stateless_call_gets_a_result_type_and_one_of_a_session_the_bytes() {
        check(r#"{"content":[]}"#, false, r#"{"content":[]}"#);
        check(
            r#"{"content":[]}"#,
            true,
            r#"{"resultType":"complete","content":[]}"#,
        );
        check("{ }", true, r#"{"resultType":"complete" }"#);
        let says = r#"{"resultType":"complete","content":[]}"#;
        check(says, true, says);
    }
}
