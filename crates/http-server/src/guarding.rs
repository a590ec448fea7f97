//! Tokens of an authorization server: verification, and the rules that apply to the client.

use std::sync::Arc;

use oauth::{IntrospectionClient, Verifier, VerifyError};
use serde_json::{Value, json};

use crate::{http_error::HttpError, settings::Guard};

/// The path of the description of this resource (RFC 9728).
pub(super) const METADATA_PATH: &str = "/.well-known/oauth-protected-resource";

/// The authorization server that guards this endpoint.
#[derive(Debug)]
pub(super) struct Guarding {
    guard: Guard,
    verifier: Verifier,
}

/// A client that was admitted.
#[derive(Debug)]
pub(super) struct Admitted {
    /// The unique name of the token's owner and rules.
    pub(super) name: Arc<str>,
    /// The name of the client in the audit log.
    pub(super) caller: Arc<str>,
    /// The subject of its token, or the name of a configured one.
    pub(super) subject: String,
    /// The table of the configuration that applies to it; none: that of the name it announces.
    pub(super) rule: Option<Arc<str>>,
}

impl Guarding {
    pub(super) fn new(guard: Guard, introspection: Option<IntrospectionClient>) -> Self {
        let (issuer, audience) = (guard.issuer.clone(), guard.audience.clone());
        let verifier = Verifier::new(issuer, audience, introspection);
        Self { guard, verifier }
    }

    /// Admits a client with a valid token that has one of the scopes.
    pub(super) async fn admit(&self, token: &str) -> Result<Admitted, HttpError> {
        let verified = match self.verifier.verify(token).await {
            Ok(verified) => verified,
            Err(VerifyError::Bad(why)) => return Err(self.refuse(Some(why))),
            Err(VerifyError::NoKeys(why)) => return Err(HttpError::no_keys(&why)),
        };
        let mut scopes = self.guard.scopes.iter();
        let rule = scopes.find(|scope| verified.scopes.contains(scope));
        if rule.is_none() && !self.guard.scopes.is_empty() {
            let challenge = self.challenge(Some("insufficient_scope"));
            return Err(HttpError::scope_needed(challenge));
        }
        let scope = rule.map_or("", String::as_str);
        Ok(Admitted {
            // No name of a configured token holds a space.
            name: format!("oauth {scope} {}", verified.subject).into(),
            caller: format!("oauth {}", verified.subject).into(),
            subject: verified.subject,
            rule: rule.map(|it| Arc::from(it.as_str())),
        })
    }

    /// Returns the error for a client without a token, or with a rejected one.
    pub(super) fn refuse(&self, why: Option<&'static str>) -> HttpError {
        let error = why.map(|_| "invalid_token");
        HttpError::login_needed(self.challenge(error), why)
    }

    /// Returns the challenge for a client without a valid token.
    fn challenge(&self, error: Option<&str>) -> String {
        let mut text = format!("Bearer resource_metadata=\"{}\"", self.metadata_url());
        if !self.guard.scopes.is_empty() {
            text.push_str(&format!(", scope=\"{}\"", self.guard.scopes.join(" ")));
        }
        if let Some(error) = error {
            text.push_str(&format!(", error=\"{error}\""));
        }
        text
    }

    /// The description of this resource.
    pub(super) fn metadata(&self) -> Value {
        let mut metadata = json!({
            "resource": self.guard.audience,
            "authorization_servers": [self.guard.issuer],
            "bearer_methods_supported": ["header"],
        });
        if !self.guard.scopes.is_empty() {
            metadata["scopes_supported"] = json!(self.guard.scopes);
        }
        metadata
    }

    /// Returns the URL of the description: its path is inserted between the host and the path.
    fn metadata_url(&self) -> String {
        let audience = &self.guard.audience;
        let (scheme, rest) = audience.split_once("://").unwrap_or(("https", audience));
        let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
        let path = path.trim_end_matches('/');
        let slash = if path.is_empty() { "" } else { "/" };
        format!("{scheme}://{host}{METADATA_PATH}{slash}{path}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_challenge_says_where_to_begin() {
        let challenge = |audience: &str, scopes: &[&str], error| {
            let guard = Guard {
                issuer: "https://as.example".to_owned(),
                audience: audience.to_owned(),
                scopes: scopes.iter().map(ToString::to_string).collect(),
                introspection: None,
            };
            Guarding::new(guard, None).challenge(error)
        };
        assert_eq!(
            challenge("https://x.example/mcp", &[], None),
            "Bearer resource_metadata=\"https://x.example/.well-known/oauth-protected-resource/mcp\""
        );
        assert_eq!(
            challenge("https://x.example", &["a", "b"], Some("invalid_token")),
            "Bearer resource_metadata=\"https://x.example/.well-known/oauth-protected-resource\", \
             scope=\"a b\", error=\"invalid_token\""
        );
    }
}
