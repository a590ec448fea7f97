//! Arguments as headers of HTTP, as every header can hold them.

use base64::{Engine as _, prelude::BASE64_STANDARD};
use http::{HeaderName, HeaderValue};

use super::super::http::Headers;

/// A text that looks so stands for bytes.
const ENCODED: (&str, &str) = ("=?base64?", "?=");

/// `Mcp-Param-NAME` of each; a name that no header can have is left out.
pub(super) fn param_headers(arguments: &[(String, String)]) -> Headers {
    let header = |(name, value): &(String, String)| {
        let name = HeaderName::from_bytes(format!("mcp-param-{name}").as_bytes()).ok()?;
        Some((name, HeaderValue::from_str(&encode(value)).ok()?))
    };
    arguments.iter().filter_map(header).collect()
}

/// As it is, unless a header would lose some of it.
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
