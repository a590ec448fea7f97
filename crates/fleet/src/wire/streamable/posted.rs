//! The requests that rmcp posts over streamable HTTP, and their responses, which are taken out below
//! rmcp.

use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use jsonrpc::{Json, Message, frame};
use rmcp::model::{RequestId, RequestMetaObject};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::super::address::Headers;
use crate::{
    Request,
    asking::Questions,
    pending::{PendingRequest, PendingRequests, Routed},
    request::{Params, write_params},
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

/// Takes a message out if it is not for rmcp. `own` is the request whose own stream carried it.
pub(super) fn intercept(
    pending: &PendingRequests,
    text: &Bytes,
    own: Option<&PostedRequest>,
    questions: &Questions,
) -> Rewrite {
    let Some(message) = Message::parse(text) else {
        return Rewrite::Keep;
    };
    let own = own.map(|own| &*own.request);
    match pending.route(text, &message, own, questions) {
        Routed::Other => Rewrite::Keep,
        Routed::Handled => Rewrite::Drop,
        Routed::Response => {
            let id = message.id.map_or("", |id| id.get().trim_matches('"'));
            let tools = message.result.map(write_tools_with_headers);
            Rewrite::Replace(write_stand_in(id, &tools.unwrap_or_default()))
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
            let taken = intercept(&pending, &text, None, &questions);
            assert!(matches!(taken, Rewrite::Replace(_)));
        }
        let response = response.try_recv().unwrap();
        assert_eq!(response.unwrap().as_str(), "1.0");
        posted.register(&pending, &RequestId::Number(7));
        drop(posted);
        assert!(pending.by_id.is_empty());
    }
}
