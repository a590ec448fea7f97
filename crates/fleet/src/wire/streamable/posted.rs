//! The requests that rmcp posts over streamable HTTP, and their responses, which are taken out below
//! rmcp.

use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use jsonrpc::{Json, Message, events::EventTooLong, frame, messages_in};
use printable::Redactor;
use rmcp::model::{RequestId, RequestMetaObject};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::super::address::Headers;
use crate::{
    Request,
    asking::Questions,
    error::RequestError,
    pending::{
        PendingRequest, PendingRequests, Routed, is_response_without_id, read_id, with_plain_id,
    },
    request::{Params, write_params},
    unreadable::refuse_own,
};

/// A request of ours on its way through rmcp, which clones and drops it as it posts it.
pub(super) struct PostedRequest {
    pub(super) request: Arc<PendingRequest>,
    params: Params,
    /// The members of the client's `_meta`.
    meta: Vec<(String, Json)>,
    /// The headers that rmcp would add if it knew the tool.
    pub(super) headers: Headers,
    /// The table that has the request, and its id there.
    registered: OnceLock<(Arc<PendingRequests>, u64)>,
}

impl PostedRequest {
    pub(super) fn new(pending: Arc<PendingRequest>, request: &Request, headers: Headers) -> Self {
        Self {
            request: pending,
            params: request.params.clone(),
            meta: request.meta.clone(),
            headers,
            registered: OnceLock::new(),
        }
    }

    /// Writes the message to post: the members of the client byte for byte, because the values of rmcp's
    /// types lose digits of numbers; and `own`, the `_meta` of rmcp, which takes precedence over members of
    /// the client.
    pub(super) fn write(&self, id: &RequestId, method: &str, own: &RequestMetaObject) -> Vec<u8> {
        let own: Vec<(&str, String)> = own
            .0
            .0
            .iter()
            .map(|(key, value)| (key.as_str(), value.to_string()))
            .collect();
        let passed = self
            .meta
            .iter()
            .filter(|(key, _)| own.iter().all(|(own, _)| own != key))
            .map(|(key, value)| (key.as_str(), value.as_str()));
        let own = own.iter().map(|(key, value)| (*key, value.as_str()));
        frame::request(id, method, write_params(&self.params, passed.chain(own))).concat()
    }

    /// Adds the request to the table before it is posted, so that neither its response nor its progress
    /// can be early. rmcp posts a request again when its session was lost.
    pub(super) fn register(&self, pending: &Arc<PendingRequests>, id: &RequestId) {
        let RequestId::Number(id) = id else { return };
        let Ok(id) = u64::try_from(*id) else { return };
        self.registered.get_or_init(|| (Arc::clone(pending), id));
        pending.by_id.insert(id, Arc::clone(&self.request));
    }

    /// Returns the stand-in for the response to this request.
    fn replace(&self) -> Rewrite {
        Rewrite::Replace(self.write_stand_in())
    }

    fn write_stand_in(&self) -> String {
        let id = self.registered.get().map_or(0, |(_, id)| *id);
        write_stand_in(&id.to_string(), "")
    }
}

impl Drop for PostedRequest {
    fn drop(&mut self) {
        if let Some((pending, id)) = self.registered.get() {
            pending.by_id.remove(id);
        }
    }
}

/// A change to a message before rmcp reads it.
pub(super) enum Rewrite {
    Keep,
    /// By a stand-in that rmcp takes for the message.
    Replace(String),
    Drop,
}

/// Takes the messages of a text out that are not for rmcp. `own` is the request whose own stream carried it;
/// a text that is no message ends it.
pub(super) fn intercept(
    pending: &PendingRequests,
    text: &Bytes,
    own: Option<&PostedRequest>,
    questions: &Questions,
    mask: &Redactor,
) -> Rewrite {
    if let Some(message) = Message::parse(text) {
        return intercept_message(pending, text, &message, own, questions);
    }
    let found = messages_in(text);
    if found.is_empty() {
        return match own {
            Some(own) if refuse_own(&own.request, text, mask) => own.replace(),
            _ => Rewrite::Keep,
        };
    }
    let mut rewrite = Rewrite::Drop;
    for text in &found {
        let Some(message) = Message::parse(text) else {
            continue;
        };
        match intercept_message(pending, text, &message, own, questions) {
            Rewrite::Replace(stand_in) => rewrite = Rewrite::Replace(stand_in),
            // rmcp reads one message of an event: the response, for which it waits.
            Rewrite::Keep if message.method.is_none() || matches!(rewrite, Rewrite::Drop) => {
                rewrite = replace_by(text);
            }
            Rewrite::Keep | Rewrite::Drop => {}
        }
    }
    rewrite
}

/// Ends the request that an event over the limit answers: `own`, whose own stream carried it, or else the one
/// that its beginning names. Returns the stand-in for the response.
pub(super) fn refuse_too_long(
    pending: &PendingRequests,
    own: Option<&PostedRequest>,
    error: &EventTooLong,
) -> Option<String> {
    let why = || Err(RequestError::Failed(format!("its response is {error}")));
    if let Some(own) = own {
        own.request.respond(why());
        return Some(own.write_stand_in());
    }
    let (id, request) = pending.remove_too_long(&error.head, error.bytes_max + 1)?;
    request.respond(why());
    Some(write_stand_in(&id.to_string(), ""))
}

fn replace_by(text: &[u8]) -> Rewrite {
    Rewrite::Replace(String::from_utf8_lossy(text).into_owned())
}

fn intercept_message(
    pending: &PendingRequests,
    text: &Bytes,
    message: &Message<'_>,
    own: Option<&PostedRequest>,
    questions: &Questions,
) -> Rewrite {
    let request = own.map(|own| &*own.request);
    match pending.route(text, message, request, questions) {
        Routed::Other => match own {
            Some(own) if is_response_without_id(message) => {
                own.request.respond_without_id(message);
                own.replace()
            }
            Some(_) => Rewrite::Keep,
            None => {
                let plain = with_plain_id(text, message);
                if plain == *text {
                    Rewrite::Keep
                } else {
                    replace_by(&plain)
                }
            }
        },
        Routed::Handled => Rewrite::Drop,
        Routed::Response => {
            let id = message
                .id
                .and_then(|id| read_id(id.get()))
                .unwrap_or_default();
            let tools = message.result.map(write_tools_with_headers);
            Rewrite::Replace(write_stand_in(&id.to_string(), &tools.unwrap_or_default()))
        }
    }
}

/// Writes a result that replaces the one that was taken out. Only rmcp reads it.
pub(super) fn write_stand_in(id: &str, tools: &str) -> String {
    let result = Bytes::from(format!(r#"{{"tools":[{tools}]}}"#));
    let line = frame::result(id, [result]).concat();
    String::from_utf8(line).expect("it was put together from texts")
}

/// Writes the tools of a list whose schemas rmcp must know, because some of their arguments are sent
/// as headers as well.
fn write_tools_with_headers(result: &RawValue) -> String {
    const MARK: &[u8] = b"x-mcp-header";
    #[derive(Deserialize)]
    struct ToolList<'a> {
        #[serde(borrow)]
        tools: Vec<&'a RawValue>,
    }
    #[derive(Deserialize)]
    struct MarkedTool<'a> {
        #[serde(borrow)]
        name: &'a RawValue,
        #[serde(borrow, rename = "inputSchema")]
        schema: &'a RawValue,
    }
    let is_marked = |text: &str| memchr::memmem::find(text.as_bytes(), MARK).is_some();
    if !is_marked(result.get()) {
        return String::new();
    }
    let list: Option<ToolList<'_>> = serde_json::from_str(result.get()).ok();
    let tools = list.map(|list| list.tools).unwrap_or_default();
    let tool = |raw: &RawValue| {
        let tool: MarkedTool<'_> = serde_json::from_str(raw.get()).ok()?;
        let (name, schema) = (tool.name, tool.schema);
        Some(format!(r#"{{"name":{name},"inputSchema":{schema}}}"#))
    };
    let marked = tools.into_iter().filter(|raw| is_marked(raw.get()));
    marked.filter_map(tool).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::Listeners;

    #[test]
    fn a_request_that_is_over_leaves_nothing_and_the_first_response_counts() {
        let pending = Arc::new(PendingRequests::default());
        let questions = Questions::new(Arc::default(), Arc::new(|_| Box::pin(async {})));
        let (request, mut response) = PendingRequest::new("tools/call", Listeners::default());
        let posted = PostedRequest::new(request, &Request::default(), Headers::new());
        for result in ["1.0", "2"] {
            posted.register(&pending, &RequestId::Number(7));
            let text = Bytes::from(format!(r#"{{"id":"7","result":{result}}}"#));
            let taken = intercept(&pending, &text, None, &questions, &Redactor::default());
            assert!(matches!(taken, Rewrite::Replace(_)));
        }
        let response = response.try_recv().unwrap();
        assert_eq!(response.unwrap().as_str(), "1.0");
        posted.register(&pending, &RequestId::Number(7));
        drop(posted);
        assert!(pending.by_id.is_empty());
    }

    /// Returns the result of a request whose stream has this text; `ID` is its id.
    fn heard(text: &str, is_own: bool) -> Option<Result<Json, RequestError>> {
        let pending = Arc::new(PendingRequests::default());
        let questions = Questions::new(Arc::default(), Arc::new(|_| Box::pin(async {})));
        let (request, mut response) = PendingRequest::new("tools/call", Listeners::default());
        let posted = PostedRequest::new(request, &Request::default(), Headers::new());
        posted.register(&pending, &RequestId::Number(7));
        let text = jsonrpc::one_line(Bytes::from(text.replace("ID", "7")));
        let own = is_own.then_some(&posted);
        intercept(&pending, &text, own, &questions, &Redactor::default());
        response.try_recv().ok()
    }

    #[test]
    fn a_response_is_read_in_every_form_that_is_certain() {
        for text in [
            r#"{"jsonrpc":"2.0","id":ID,"result":1}"#,
            "{\n\"jsonrpc\":\"2.0\",\r\n\"id\":ID,\n\"result\":1}",
            "\u{feff}{\"id\":ID,\"result\":1}",
            r#"[{"id":ID,"result":1}]"#,
            r#"{"method":"notifications/x"}{"id":ID,"result":1}"#,
            r#"{"id":ID.0,"result":1}"#,
            r#"{"id":"ID","result":1}"#,
        ] {
            for is_own in [true, false] {
                let result = heard(text, is_own).unwrap_or_else(|| panic!("{text}"));
                assert_eq!(result.unwrap().as_str(), "1", "{text}");
            }
        }
    }

    #[test]
    fn a_text_that_is_no_message_ends_the_request_of_its_stream() {
        for text in [
            r#"{"jsonrpc":"2.0","id":ID,"result":NaN}"#,
            r#"{"jsonrpc":"2.0","id":ID,"result":{"#,
            "{\"id\":ID,\"result\":\"a\nb\"}",
        ] {
            let Some(Err(RequestError::Failed(why))) = heard(text, true) else {
                panic!("{text}");
            };
            assert!(
                why.contains("not one valid message") && why.contains("id\":7"),
                "{why}"
            );
            assert!(heard(text, false).is_none(), "{text}");
        }
        for id in ["null", "[]"] {
            let error = format!(
                r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":-32700,"message":"no"}}}}"#
            );
            assert!(matches!(
                heard(&error, true),
                Some(Err(RequestError::Protocol(_)))
            ));
        }
        assert!(matches!(
            heard(r#"{"jsonrpc":"2.0","result":{}}"#, true),
            Some(Err(RequestError::Failed(_)))
        ));
        for noise in ["", "ping", "2026-01-01", "{\"level\":30}"] {
            assert!(heard(noise, true).is_none(), "{noise}");
        }
    }
}
