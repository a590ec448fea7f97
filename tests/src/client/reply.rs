//! The answer to one request.

use serde_json::Value;

/// A reply to a request.
#[derive(Debug, Clone)]
pub struct Reply {
    line: String,
    message: Value,
}

impl Reply {
    pub(crate) fn new(line: String, message: Value) -> Self {
        Self { line, message }
    }

    /// Returns the line as received, to search for bytes in it.
    pub fn raw(&self) -> &str {
        &self.line
    }

    /// Returns the result; fails the test if there is none.
    #[track_caller]
    pub fn result(&self) -> &Value {
        let result = self.message.get("result");
        result.unwrap_or_else(|| panic!("no result: {}", self.line))
    }

    /// Returns the result; fails the test if there is none.
    #[track_caller]
    pub fn into_result(mut self) -> Value {
        assert!(
            self.message.get("result").is_some(),
            "no result: {}",
            self.line
        );
        self.message["result"].take()
    }

    /// Returns the JSON-RPC error, if the reply is one.
    pub fn get_error(&self) -> Option<&Value> {
        self.message.get("error")
    }

    /// Returns the JSON-RPC error; fails the test if there is none.
    #[track_caller]
    pub fn error(&self) -> &Value {
        let error = self.message.get("error");
        error.unwrap_or_else(|| panic!("no error: {}", self.line))
    }

    /// Returns true if the result is a tool error.
    #[track_caller]
    pub fn is_error(&self) -> bool {
        self.result()["isError"] == true
    }

    /// Returns the content blocks of the result.
    #[track_caller]
    pub fn content(&self) -> &[Value] {
        self.result()["content"]
            .as_array()
            .map_or(&[], Vec::as_slice)
    }

    /// Returns the text blocks, joined with newlines.
    #[track_caller]
    pub fn text(&self) -> String {
        let texts = self
            .content()
            .iter()
            .filter_map(|block| block["text"].as_str());
        texts.collect::<Vec<_>>().join("\n")
    }

    /// Returns the text; fails the test if the reply is a tool error.
    #[track_caller]
    pub fn good(&self) -> String {
        assert!(!self.is_error(), "a tool error: {}", self.text());
        self.text()
    }

    /// Returns the text; fails the test if the reply is no tool error.
    #[track_caller]
    pub fn bad(&self) -> String {
        assert!(self.is_error(), "no tool error: {}", self.text());
        self.text()
    }
}
