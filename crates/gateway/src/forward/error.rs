//! The refusal of a request that concerns no tool: an error of the protocol.

use bytes::Bytes;
use fleet::CallError;
use jsonrpc::{Fields, frame};
use serde_json::json;

use crate::error::{ToolError, code_of_call};

/// The longest URI or name that is repeated, in characters.
const ID_CHARS_MAX: usize = 300;

/// Converts the error of a call to a refusal of another request, with the same text.
impl From<ToolError> for ForwardError {
    fn from(error: ToolError) -> Self {
        Self::own(frame::INVALID_REQUEST.into(), error.to_string(), None)
    }
}

/// Keeps the error of a call. A refusal at its start is the error of a call that comes later.
impl From<CallError> for ForwardError {
    fn from(error: CallError) -> Self {
        match error {
            CallError::Refused(refusal) => ToolError::of_refusal(refusal).into(),
            error => Self::Call(Box::new(error)),
        }
    }
}

/// An error of the protocol.
#[derive(Debug)]
pub(crate) enum ForwardError {
    Own {
        code: i64,
        message: String,
        /// JSON text.
        data: Option<String>,
    },
    /// The error with which a server answered, or why there is no answer.
    Call(Box<CallError>),
}

impl ForwardError {
    /// The code for a missing resource, in revisions up to 2025-11-25.
    pub(super) const NOT_FOUND: i64 = -32_002;

    pub(crate) fn params(message: impl Into<String>) -> Self {
        Self::own(frame::INVALID_PARAMS.into(), message.into(), None)
    }

    pub(crate) fn internal(message: impl Into<String>) -> Self {
        Self::own(frame::INTERNAL_ERROR.into(), message.into(), None)
    }

    /// The refusal for a resource that no server visible to the client is known to have.
    pub(super) fn no_resource(uri: &str, why: &str) -> Self {
        let told = shown(uri);
        let data = json!({ "uri": told }).to_string();
        let message = format!("Resource not found: {told}. {why}");
        Self::own(Self::NOT_FOUND, message, Some(data))
    }

    /// The refusal of a read: a missing resource has another code in each era, and is recognized by
    /// the URI in the error.
    pub(super) fn known_by_its_uri(self) -> Self {
        let Self::Call(error) = self else { return self };
        let (code, message, data) = explain(*error);
        let names_uri = || Fields::of(data.as_deref()?)?.get("uri");
        let is_missing = code == i64::from(frame::INVALID_PARAMS) && names_uri().is_some();
        let code = if is_missing { Self::NOT_FOUND } else { code };
        Self::own(code, message, data)
    }

    /// Returns the code that the same error of a tool has, for the record of the request.
    pub(super) fn record_code(&self) -> &'static str {
        match self {
            Self::Own { code, .. } if *code == i64::from(frame::INVALID_PARAMS) => "invalid_input",
            Self::Own { .. } => "internal",
            Self::Call(error) => code_of_call(error),
        }
    }

    fn own(code: i64, message: String, data: Option<String>) -> Self {
        Self::Own {
            code,
            message,
            data,
        }
    }

    /// The whole line that answers a request.
    pub(crate) fn line(self, id: &str, is_stateless: bool) -> Bytes {
        let (code, message, data) = match self {
            Self::Own {
                code,
                message,
                data,
            } => (code, message, data),
            Self::Call(error) => explain(*error),
        };
        let code = match code {
            Self::NOT_FOUND if is_stateless => frame::INVALID_PARAMS.into(),
            code => code,
        };
        frame::error_with(id, code, &message, data.as_deref())
    }
}

fn explain(error: CallError) -> (i64, String, Option<String>) {
    let own = i64::from(frame::INTERNAL_ERROR);
    match error {
        CallError::Protocol { error, .. } => error.into_parts(),
        CallError::Unavailable {
            failure, server, ..
        } => {
            let hint = failure.hint.as_ref().map(|hint| format!(". Next: {hint}"));
            let hint = hint.unwrap_or_default();
            let message = format!("server `{server}` is not available: {failure}{hint}");
            (own, message, None)
        }
        other => (own, other.to_string(), None),
    }
}

/// A text of a client or server on one line, shortened.
pub(super) fn shown(text: &str) -> String {
    printable::one_line_of(text, ID_CHARS_MAX)
}

#[cfg(test)]
mod tests {
    use jsonrpc::ProtocolError;
    use serde_json::Value;

    use super::*;

    #[track_caller]
    fn check(code: &str, data: Option<&str>, of_before: i64, stateless: i64) {
        let error = || CallError::Protocol {
            server: "notes".parse().expect("a name"),
            error: ProtocolError {
                code: code.to_owned(),
                message: "no".to_owned(),
                data: data.map(str::to_owned),
            },
        };
        let refusal = || ForwardError::Call(Box::new(error())).known_by_its_uri();
        for (is_stateless, expected) in [(false, of_before), (true, stateless)] {
            let line = refusal().line("1", is_stateless);
            let line: Value = serde_json::from_slice(&line).expect("JSON");
            assert_eq!(line["error"]["code"], expected, "{code} {data:?}");
        }
    }

    #[test]
    fn a_missing_resource_has_the_code_of_its_clients_era() {
        let uri = Some(r#"{"uri":"a:1"}"#);
        check("-32002", uri, -32_002, -32_602);
        check("-32002", None, -32_002, -32_602);
        check("-32602", uri, -32_002, -32_602);
        check("-32602", None, -32_602, -32_602);
        check("-32000", uri, -32_000, -32_000);
    }
}
