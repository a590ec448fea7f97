//! Parts of a request as HTTP headers, encoded where necessary (SEP-2243).

use base64::{Engine as _, prelude::BASE64_STANDARD};
use http::{HeaderName, HeaderValue};
use rmcp::model::{ClientJsonRpcMessage, ClientRequest, JsonRpcMessage};
use serde_json::Value;

use super::super::address::Headers;

const ENCODED: (&str, &str) = ("=?base64?", "?=");

/// Returns `Mcp-Param-NAME` for each argument whose name is valid in a header.
pub(super) fn param_headers(arguments: &[(String, String)]) -> Headers {
    let header = |(name, value): &(String, String)| {
        let name = HeaderName::from_bytes(format!("mcp-param-{name}").as_bytes()).ok()?;
        Some((name, HeaderValue::from_str(&encode(value)).ok()?))
    };
    arguments.iter().filter_map(header).collect()
}

/// Returns `Mcp-Method` and `Mcp-Name` of a message. rmcp adds them on connections of 2026-07-28; a server
/// of that revision may require them in a session with a handshake as well.
pub(super) fn standard_headers(message: &ClientJsonRpcMessage) -> Headers {
    let (method, name) = match message {
        JsonRpcMessage::Request(request) => {
            let method = request.request.method().to_owned();
            let name = match &request.request {
                ClientRequest::CallToolRequest(call) => Some(call.params.name.to_string()),
                ClientRequest::CustomRequest(custom) => find_name(&method, custom.params.as_ref()),
                _ => None,
            };
            (Some(method), name)
        }
        JsonRpcMessage::Notification(notification) => {
            let json = serde_json::to_value(notification).unwrap_or_default();
            (json["method"].as_str().map(str::to_owned), None)
        }
        _ => (None, None),
    };
    let method = method.and_then(|it| HeaderValue::from_str(&it).ok());
    let name = name.and_then(|it| HeaderValue::from_str(&encode(&it)).ok());
    let headers = [("mcp-method", method), ("mcp-name", name)];
    let named = |(key, value): (&'static str, Option<HeaderValue>)| {
        Some((HeaderName::from_static(key), value?))
    };
    headers.into_iter().filter_map(named).collect()
}

fn find_name(method: &str, params: Option<&Value>) -> Option<String> {
    let key = match method {
        "prompts/get" => "name",
        "resources/read" => "uri",
        "tasks/get" | "tasks/update" | "tasks/cancel" => "taskId",
        _ => return None,
    };
    params?.get(key)?.as_str().map(str::to_owned)
}

/// Encodes a value unless a header keeps it unchanged.
fn encode(value: &str) -> String {
    let (head, tail) = ENCODED;
    let is_lossless = value.bytes().all(|byte| matches!(byte, b' '..=b'~'))
        && value.trim_matches(' ') == value
        && !(value.starts_with(head) && value.ends_with(tail));
    if is_lossless {
        return value.to_owned();
    }
    format!("{head}{}{tail}", BASE64_STANDARD.encode(value))
}

#[cfg(test)]
mod tests {
    use super::encode;

    #[test]
    fn what_a_header_would_lose_is_encoded() {
        for (value, expected) in [
            ("eu west", "eu west"),
            ("", ""),
            (" eu", "=?base64?IGV1?="),
            ("Zürich", "=?base64?WsO8cmljaA==?="),
            ("a\nb", "=?base64?YQpi?="),
            ("=?base64?IGV1?=", "=?base64?PT9iYXNlNjQ/SUdWMT89?="),
        ] {
            assert_eq!(encode(value), expected, "{value:?}");
        }
    }
}
