//! A client that records all messages.

use journeys::{
    client::{Client, ROUNDS_MAX},
    fake::{LEGACY_VERSION, META_CAPABILITIES},
};
use serde_json::{Map, Value, json};

use super::{ELICIT, ROOTS};
use crate::calling;

/// One of two clients that send the same requests.
pub(super) struct Side {
    pub(super) client: Client,
    /// The name of the server in the proxy; none if the client is connected directly.
    through: Option<&'static str>,
    is_modern: bool,
    /// The client's answers, by method.
    answers: Map<String, Value>,
}

impl Side {
    pub(super) async fn begin(
        client: Client,
        through: Option<&'static str>,
        is_modern: bool,
        answers: &Value,
    ) -> Self {
        let answers = answers.as_object().unwrap().clone();
        if is_modern {
            client.discover().await;
        } else {
            client.initialize_with(LEGACY_VERSION, capabilities()).await;
        }
        for (method, result) in &answers {
            client.answers(method, result.clone());
        }
        Self {
            client,
            through,
            is_modern,
            answers,
        }
    }

    /// Sends a request and returns all of its messages in order: notifications and requests in
    /// between, and the response.
    pub(super) async fn play(&self, method: &str, mut params: Value) -> Vec<Value> {
        params["_meta"]["progressToken"] = json!("mine");
        if self.is_modern {
            params["_meta"][META_CAPABILITIES] = capabilities();
            params["_meta"]["io.modelcontextprotocol/logLevel"] = json!("debug");
        }
        let mut said = Vec::new();
        for _ in 0..ROUNDS_MAX {
            let reply = self.client.request(method, params.clone()).await;
            let heard = self.client.heard().await;
            said.extend(heard.into_iter().map(|message| self.normalize(message)));
            let mut result = match reply.get_error() {
                Some(error) => json!({"error": error}),
                None => reply.into_result(),
            };
            if result["resultType"] != "input_required" {
                drop(result.as_object_mut().unwrap().remove("_meta"));
                if self.is_modern {
                    // The cache members describe the connection of each client.
                    for key in ["ttlMs", "cacheScope"] {
                        drop(result.as_object_mut().unwrap().remove(key));
                    }
                }
                said.push(result);
                return said;
            }
            params["requestState"] = result["requestState"].take();
            for (key, request) in result["inputRequests"].as_object().unwrap() {
                let answer = self.answers[request["method"].as_str().unwrap()].clone();
                params["inputResponses"][key] = answer;
                said.push(self.normalize(request.clone()));
            }
        }
        panic!("{method} {params} still asks after {ROUNDS_MAX} rounds");
    }

    pub(super) async fn call(&self, tool: &str, input: Value) -> Vec<Value> {
        let params = match self.through {
            Some(server) => calling(&format!("{server}/{tool}"), &input),
            None => json!({"name": tool, "arguments": input}),
        };
        let mut said = self.play("tools/call", params).await;
        if let Some(result) = said.last_mut().and_then(Value::as_object_mut) {
            result.remove("structuredContent");
        }
        said
    }

    /// Returns a prompt's name as this client uses it.
    pub(super) fn name(&self, prompt: &str) -> String {
        let server = self.through.map(|server| format!("{server}__"));
        server.unwrap_or_default() + prompt
    }

    fn normalize(&self, mut message: Value) -> Value {
        let fields = message.as_object_mut().unwrap();
        for key in ["id", "jsonrpc"] {
            fields.remove(key);
        }
        if message["method"] == ROOTS {
            drop(message.as_object_mut().unwrap().remove("params"));
        }
        if let (Some(server), true) = (self.through, message["method"] == ELICIT) {
            let text = message["params"]["message"].as_str().unwrap();
            let text = text.strip_prefix(&format!("[{server}] ")).unwrap();
            message["params"]["message"] = json!(text);
        }
        message
    }
}

fn capabilities() -> Value {
    json!({
        "elicitation": {"form": {}, "url": {}},
        "sampling": {"tools": {}},
        "roots": {"listChanged": true},
    })
}
