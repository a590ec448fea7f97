//! Introspection of tokens that only their issuer can read (RFC 7662).

use files::clock::now_s;
use std::{collections::HashMap, time::Duration};

use parking_lot::Mutex;
use reqwest::Url;
use secrets::Secret;
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use tokio::time::Instant;

use crate::{
    error::{LoginError, shown},
    jwt::is_in_the_future,
    metadata::Issuer,
    registration::by_hand,
    scopes,
    token::TokenClient,
    web::HttpClient,
};

/// The longest time for which a response is cached, since a token may be revoked.
const AGE_MAX: Duration = Duration::from_mins(1);

/// The most responses that are cached; the oldest are removed first.
const ANSWERS_MAX: usize = 1024;

/// The client that sends introspection requests to an issuer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IntrospectionClient {
    /// Its id at the issuer.
    pub id: String,
    /// Its secret.
    pub secret: Secret,
}

/// The time of each response, and its content.
type Answers = HashMap<[u8; 32], (Instant, Option<TokenDescription>)>;

/// Sends introspection requests to one issuer, and caches the responses for a minute.
#[derive(Debug)]
pub(crate) struct Introspection {
    client: IntrospectionClient,
    /// Responses by the token's digest: no token stays in memory for longer than its request.
    answers: Mutex<Answers>,
}

/// The issuer's description of a valid token.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct TokenDescription {
    pub(crate) subject: String,
    pub(crate) scopes: Vec<String>,
    audiences: Vec<String>,
    issuer: Option<String>,
    expires_at: Option<u64>,
    issued_at: Option<f64>,
}

impl Introspection {
    pub(crate) fn new(client: IntrospectionClient) -> Self {
        let answers = Mutex::default();
        Self { client, answers }
    }

    /// Returns the issuer's description of a token, or `None` if the token is not valid.
    pub(crate) async fn ask(
        &self,
        issuer: &str,
        token: &str,
    ) -> Result<Option<TokenDescription>, LoginError> {
        let digest: [u8; 32] = Sha256::digest(token.as_bytes()).into();
        if let Some((at, description)) = self.answers.lock().get(&digest)
            && at.elapsed() < AGE_MAX
        {
            return Ok(description.clone());
        }
        let description = self.ask_issuer(issuer, token).await?;
        let mut answers = self.answers.lock();
        answers.retain(|_, (at, _)| at.elapsed() < AGE_MAX);
        while answers.len() >= ANSWERS_MAX
            && let Some(oldest) = answers
                .iter()
                .min_by_key(|(_, (at, _))| *at)
                .map(|it| *it.0)
        {
            answers.remove(&oldest);
        }
        answers.insert(digest, (Instant::now(), description.clone()));
        Ok(description)
    }

    async fn ask_issuer(
        &self,
        issuer: &str,
        token: &str,
    ) -> Result<Option<TokenDescription>, LoginError> {
        let bad = || LoginError::Metadata(format!("{} is not a valid issuer", shown(issuer)));
        let web = HttpClient::of(&Url::parse(issuer).map_err(|_| bad())?).await?;
        let issuer = Issuer::discover(&web, issuer).await?;
        let client = by_hand(&issuer, &self.client.id, Some(&self.client.secret));
        let token_client = TokenClient {
            web: &web,
            issuer: &issuer.metadata.issuer,
            client: &client,
            resource: None,
            prover: None,
        };
        let form = [("token", token), ("token_type_hint", "access_token")];
        let answer = token_client.post(issuer.introspection()?, &form).await?;
        if !answer.status.is_success() {
            return Err(LoginError::NoToken(answer.explain()));
        }
        Ok(answer.object().and_then(|object| read(&object)))
    }
}

impl TokenDescription {
    /// Checks that the token was issued by this issuer for this audience, and has not expired.
    pub(crate) fn check(&self, issuer: &str, audience: &str) -> Result<(), &'static str> {
        if self.issuer.as_ref().is_some_and(|it| it != issuer) {
            return Err("it is from another issuer");
        }
        if self.audiences.iter().all(|it| it != audience) {
            return Err("it is for another audience");
        }
        if self.expires_at.is_some_and(|at| at <= now_s()) {
            return Err("it has expired");
        }
        if self.issued_at.is_some_and(is_in_the_future) {
            return Err("it is not valid yet");
        }
        Ok(())
    }
}

/// Returns `None` if the token is not active or has no subject.
fn read(object: &Value) -> Option<TokenDescription> {
    let text = |key: &str| object.get(key)?.as_str().map(str::to_owned);
    if object.get("active") != Some(&Value::Bool(true)) {
        return None;
    }
    let audiences = match object.get("aud") {
        Some(Value::String(one)) => vec![one.clone()],
        Some(Value::Array(all)) => {
            let texts = all.iter().filter_map(Value::as_str);
            texts.map(str::to_owned).collect()
        }
        _ => Vec::new(),
    };
    Some(TokenDescription {
        // The token of a machine has no subject, only a client.
        subject: text("sub").or_else(|| text("client_id"))?,
        scopes: text("scope").map_or_else(Vec::new, |all| scopes::split(&all)),
        audiences,
        issuer: text("iss"),
        expires_at: object.get("exp").and_then(Value::as_u64),
        issued_at: object.get("iat").and_then(Value::as_f64),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{now_s, read};

    #[test]
    fn only_what_is_active_and_for_us_is_taken() {
        let check = |more: serde_json::Value, expected: Result<(), &str>| {
            let mut object = json!({"active": true, "sub": "ada", "aud": "https://us"});
            for (key, value) in more.as_object().unwrap() {
                object[key] = value.clone();
            }
            let description =
                read(&object).map(|description| description.check("https://as", "https://us"));
            assert_eq!(description.unwrap_or(Err("none")), expected, "{object}");
        };
        check(json!({"scope": "a b"}), Ok(()));
        check(
            json!({"aud": ["https://other", "https://us"], "iss": "https://as"}),
            Ok(()),
        );
        check(json!({"sub": null, "client_id": "machine"}), Ok(()));
        check(json!({"active": false}), Err("none"));
        check(json!({"active": "true"}), Err("none"));
        check(json!({"sub": null}), Err("none"));
        check(json!({"aud": null}), Err("it is for another audience"));
        check(
            json!({"iss": "https://other"}),
            Err("it is from another issuer"),
        );
        check(json!({"exp": 1}), Err("it has expired"));
        check(json!({"iat": now_s() + 50}), Ok(()));
        check(json!({"iat": now_s() + 100}), Err("it is not valid yet"));
        check(json!({"iat": 4_102_444_800.5}), Err("it is not valid yet"));
    }
}
