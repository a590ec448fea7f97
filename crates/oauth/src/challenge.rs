//! The challenge of a server that requires authorization: `WWW-Authenticate`.

use http::{HeaderMap, header};
use serde::{Deserialize, Serialize};

use crate::scopes;

/// The scheme of tokens that are bound to a key (RFC 9449), which is also their token type.
pub(crate) const BOUND: &str = "DPoP";

/// The parameters of a `Bearer` or `DPoP` challenge.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Challenge {
    /// The address of the server's protected resource metadata (RFC 9728).
    pub resource_metadata: Option<String>,
    /// The scopes that the request requires; empty if the challenge names none.
    pub scopes: Vec<String>,
    /// The error code.
    pub error: Option<String>,
    /// True if the server requires a token that is bound to a key (RFC 9449).
    #[serde(default)]
    pub is_bound: bool,
}

impl Challenge {
    /// Returns the first challenge of a response that can be answered with a token.
    pub fn read(headers: &HeaderMap) -> Option<Self> {
        let all = headers.get_all(header::WWW_AUTHENTICATE).iter();
        let mut texts = all.filter_map(|value| value.to_str().ok());
        texts.find_map(Self::parse)
    }

    fn parse(text: &str) -> Option<Self> {
        let mut found: Option<Self> = None;
        for (scheme, name, value) in parameters(text) {
            if let Some(scheme) = scheme {
                if found.is_some() {
                    break;
                }
                let is_bound = scheme.eq_ignore_ascii_case(BOUND);
                if is_bound || scheme.eq_ignore_ascii_case("bearer") {
                    found = Some(Self {
                        is_bound,
                        ..Self::default()
                    });
                }
            }
            let Some(challenge) = &mut found else {
                continue;
            };
            match name.to_ascii_lowercase().as_str() {
                "resource_metadata" => challenge.resource_metadata = Some(value),
                "scope" => challenge.scopes = scopes::split(&value),
                "error" => challenge.error = Some(value),
                _ => {}
            }
        }
        found
    }

    /// Returns true if the token is valid but lacks a scope.
    pub fn is_step_up(&self) -> bool {
        self.error.as_deref() == Some("insufficient_scope")
    }
}

/// Returns every `name=value` of a header. The first one of each challenge has the scheme before it. A
/// scheme without parameters has an empty name.
fn parameters(text: &str) -> impl Iterator<Item = (Option<&str>, &str, String)> {
    split_outside_quotes(text).map(|part| {
        let part = part.trim();
        let (head, value) = match part.split_once('=') {
            Some((head, value)) => (head.trim(), unquote(value.trim())),
            None => (part, String::new()),
        };
        match head.rsplit_once(char::is_whitespace) {
            Some((scheme, name)) => (Some(scheme.trim()), name, value),
            None if !part.contains('=') => (Some(head), "", value),
            None => (None, head, value),
        }
    })
}

fn split_outside_quotes(text: &str) -> impl Iterator<Item = &str> {
    let (mut is_quoted, mut is_escaped) = (false, false);
    text.split(move |c: char| {
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' if is_quoted => is_escaped = true,
            '"' => is_quoted = !is_quoted,
            _ => return c == ',' && !is_quoted,
        }
        false
    })
}

fn unquote(value: &str) -> String {
    let inside = value.strip_prefix('"').and_then(|it| it.strip_suffix('"'));
    let Some(inside) = inside else {
        return value.to_owned();
    };
    let mut text = String::new();
    let mut chars = inside.chars();
    while let Some(c) = chars.next() {
        text.extend(if c == '\\' { chars.next() } else { Some(c) });
    }
    text
}

#[cfg(test)]
mod tests {
    use super::Challenge;

    fn check(text: &str, metadata: Option<&str>, scopes: &[&str], error: Option<&str>) {
        let expected = Challenge {
            resource_metadata: metadata.map(str::to_owned),
            scopes: scopes.iter().map(ToString::to_string).collect(),
            error: error.map(str::to_owned),
            is_bound: false,
        };
        assert_eq!(Challenge::parse(text), Some(expected), "{text}");
    }

    #[test]
    fn a_bearer_challenge_is_found_among_others() {
        check("Bearer", None, &[], None);
        check(
            r#"Bearer realm="a, b=\"c\"", resource_metadata="https://x/y", scope="read write""#,
            Some("https://x/y"),
            &["read", "write"],
            None,
        );
        check(
            r#"Basic realm="x", bearer error=insufficient_scope, scope="admin", Digest scope="no""#,
            None,
            &["admin"],
            Some("insufficient_scope"),
        );
        let bound = Challenge::parse("DPoP algs=\"ES256\", error=\"use_dpop_nonce\"").unwrap();
        assert!(bound.is_bound);
        assert_eq!(bound.error.as_deref(), Some("use_dpop_nonce"));
        for other in ["", "Basic realm=\"Bearer\"", "Negotiate"] {
            assert_eq!(Challenge::parse(other), None, "{other}");
        }
    }
}
