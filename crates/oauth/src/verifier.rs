//! Verification of tokens that clients present: their validity, subject and scopes.

use std::time::Duration;

use jsonwebtoken::{
    Algorithm, DecodingKey, Validation, decode, decode_header,
    jwk::{Jwk, JwkSet},
};
use reqwest::Url;
use serde::Deserialize;
use serde_json::Value;
use tokio::{sync::Mutex, time::Instant};

use crate::{
    error::{LoginError, shown},
    introspection::{Introspection, IntrospectionClient},
    jwt::{LEEWAY_S, is_in_the_future},
    metadata::Issuer,
    scopes,
    web::HttpClient,
};

/// The longest time for which keys are cached, since a key may be revoked.
const KEYS_AGE_MAX: Duration = Duration::from_mins(15);

/// The shortest time between two requests for the keys when a token names an unknown key.
const KEYS_REST: Duration = Duration::from_secs(10);

/// The largest token in bytes.
const TOKEN_BYTES_MAX: usize = 16 * 1024;

/// The algorithms with a public key, so that knowing the public key does not allow signing.
const ALGORITHMS: [Algorithm; 9] = [
    Algorithm::RS256,
    Algorithm::RS384,
    Algorithm::RS512,
    Algorithm::PS256,
    Algorithm::PS384,
    Algorithm::PS512,
    Algorithm::ES256,
    Algorithm::ES384,
    Algorithm::EdDSA,
];

/// Verifies tokens (JWT, RFC 9068) of one issuer, for one audience. The keys are requested when they
/// are first needed, and again when a token names an unknown one.
#[derive(Debug)]
pub struct Verifier {
    issuer: String,
    audience: String,
    /// For tokens that are not JWTs.
    introspection: Option<Introspection>,
    keys: Mutex<Option<Keys>>,
}

#[derive(Debug)]
struct Keys {
    set: JwkSet,
    read_at: Instant,
}

/// The content of a valid token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verified {
    /// The subject.
    pub subject: String,
    /// The scopes.
    pub scopes: Vec<String>,
}

/// The reason why a token is rejected. It repeats no part of the token.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum VerifyError {
    /// The token is invalid.
    #[error("{0}")]
    Bad(&'static str),
    /// The token could not be checked.
    #[error("the token cannot be checked: {0}")]
    NoKeys(String),
}

#[derive(Debug, Deserialize)]
struct Claims {
    sub: String,
    /// The time of issue, in seconds; a text counts as absent.
    iat: Option<Value>,
    scope: Option<String>,
    /// Some issuers use `scp` instead of `scope`, as a list or as text.
    scp: Option<Scopes>,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Scopes {
    List(Vec<String>),
    Text(String),
}

impl Verifier {
    /// Makes a verifier for tokens of this issuer that name this audience. The client, if there is one,
    /// sends introspection requests for tokens that are not JWTs.
    pub fn new(
        issuer: String,
        audience: String,
        introspection: Option<IntrospectionClient>,
    ) -> Self {
        Self {
            issuer,
            audience,
            introspection: introspection.map(Introspection::new),
            keys: Mutex::default(),
        }
    }

    /// Verifies a token, and returns its subject and scopes.
    pub async fn verify(&self, token: &str) -> Result<Verified, VerifyError> {
        if token.len() > TOKEN_BYTES_MAX {
            return Err(VerifyError::Bad("it is too long"));
        }
        let head = match (decode_header(token), &self.introspection) {
            (Ok(head), _) => head,
            (Err(_), Some(introspection)) => return self.introspect(introspection, token).await,
            (Err(_), None) => return Err(VerifyError::Bad("it is not a JWT")),
        };
        if !ALGORITHMS.contains(&head.alg) {
            return Err(VerifyError::Bad("its algorithm uses no public key"));
        }
        let key = self.find_key(head.kid.as_deref(), head.alg).await?;
        self.read(token, head.alg, &key)
    }

    /// Checks the signature and the claims of a JWT.
    fn read(
        &self,
        token: &str,
        algorithm: Algorithm,
        key: &DecodingKey,
    ) -> Result<Verified, VerifyError> {
        let mut validation = Validation::new(algorithm);
        validation.set_issuer(&[&self.issuer]);
        validation.set_audience(&[&self.audience]);
        validation.set_required_spec_claims(&["exp", "iss", "aud", "sub"]);
        validation.validate_nbf = true;
        validation.leeway = LEEWAY_S;
        let decoded = decode::<Claims>(token, key, &validation);
        let claims = decoded
            .map_err(|error| VerifyError::Bad(explain(&error)))?
            .claims;
        let issued_at = claims.iat.as_ref().and_then(Value::as_f64);
        if issued_at.is_some_and(is_in_the_future) {
            return Err(VerifyError::Bad("it is not valid yet"));
        }
        let listed = match claims.scp {
            Some(Scopes::List(list)) => list,
            Some(Scopes::Text(text)) => scopes::split(&text),
            None => Vec::new(),
        };
        let claimed = claims
            .scope
            .as_deref()
            .map(scopes::split)
            .unwrap_or_default();
        Ok(Verified {
            subject: claims.sub,
            scopes: claimed.into_iter().chain(listed).collect(),
        })
    }

    async fn introspect(
        &self,
        introspection: &Introspection,
        token: &str,
    ) -> Result<Verified, VerifyError> {
        let description = introspection.ask(&self.issuer, token).await;
        let description = description.map_err(|error| VerifyError::NoKeys(error.to_string()))?;
        let description =
            description.ok_or(VerifyError::Bad("its issuer says that it is not active"))?;
        description
            .check(&self.issuer, &self.audience)
            .map_err(VerifyError::Bad)?;
        Ok(Verified {
            subject: description.subject,
            scopes: description.scopes,
        })
    }

    async fn find_key(
        &self,
        id: Option<&str>,
        algorithm: Algorithm,
    ) -> Result<DecodingKey, VerifyError> {
        let mut keys = self.keys.lock().await;
        let is_current = keys.as_ref().is_some_and(|known| {
            let age = known.read_at.elapsed();
            age < KEYS_REST || (age < KEYS_AGE_MAX && find(&known.set, id, algorithm).is_some())
        });
        let mut failure = VerifyError::Bad("it is not signed by a key of the issuer");
        if !is_current {
            match self.read_keys().await {
                Ok(set) => {
                    let read_at = Instant::now();
                    *keys = Some(Keys { set, read_at });
                }
                // Keys that are out of date are better than none.
                Err(error) => failure = VerifyError::NoKeys(error.to_string()),
            }
        }
        let found = keys.as_ref().and_then(|it| find(&it.set, id, algorithm));
        found.ok_or(failure)
    }

    async fn read_keys(&self) -> Result<JwkSet, LoginError> {
        let bad = || LoginError::Metadata(format!("{} is not a valid issuer", shown(&self.issuer)));
        let base = Url::parse(&self.issuer).map_err(|_| bad())?;
        let web = HttpClient::of(&base).await?;
        let issuer = Issuer::discover(&web, &self.issuer).await?;
        let answer = web.get(issuer.keys()?).await?;
        let set = serde_json::from_slice(&answer.body);
        set.map_err(|_| LoginError::Metadata("its keys are not a JWK set".to_owned()))
    }
}

/// Returns the key with this name; for a token that names none, the only key that fits.
fn find(set: &JwkSet, id: Option<&str>, algorithm: Algorithm) -> Option<DecodingKey> {
    let fits = |jwk: &&Jwk| {
        let key = DecodingKey::from_jwk(jwk).ok();
        key.is_some_and(|key| key.family() == algorithm.family())
            && jwk
                .common
                .key_algorithm
                .is_none_or(|it| it.to_string() == format!("{algorithm:?}"))
    };
    let mut fitting = set.keys.iter().filter(fits);
    let found = match id {
        Some(id) => fitting.find(|jwk| jwk.common.key_id.as_deref() == Some(id)),
        None => fitting.next().filter(|_| fitting.next().is_none()),
    };
    DecodingKey::from_jwk(found?).ok()
}

fn explain(error: &jsonwebtoken::errors::Error) -> &'static str {
    use jsonwebtoken::errors::ErrorKind;
    match error.kind() {
        ErrorKind::ExpiredSignature => "it has expired",
        ErrorKind::ImmatureSignature => "it is not valid yet",
        ErrorKind::InvalidAudience => "it is for another audience",
        ErrorKind::InvalidIssuer => "it is from another issuer",
        ErrorKind::InvalidSignature => "its signature is wrong",
        ErrorKind::MissingRequiredClaim(_) => "it lacks `exp`, `iss`, `aud` or `sub`",
        _ => "it cannot be read",
    }
}

#[cfg(test)]
mod tests {
    use files::clock::now_s;
    use jsonwebtoken::Header;
    use serde_json::json;

    use super::*;
    use crate::jwt::SigningKey;

    #[test]
    fn a_token_counts_between_its_times_and_not_before_it_was_issued() {
        let (key, _) = SigningKey::generate().unwrap();
        let checking = DecodingKey::from_jwk(&key.public_jwk().unwrap()).unwrap();
        let verifier = Verifier::new("https://as".to_owned(), "https://us".to_owned(), None);
        let check = |more: Value, expected: Result<(), &'static str>| {
            let mut claims = json!({"iss": "https://as", "aud": "https://us", "sub": "ada",
                "exp": now_s() + 600});
            for (name, value) in more.as_object().unwrap() {
                claims[name] = value.clone();
            }
            let token = key.sign(Header::default(), &claims).unwrap();
            let read = verifier.read(&token, Algorithm::ES256, &checking);
            let expected = expected.map_err(VerifyError::Bad);
            assert_eq!(read.map(drop), expected, "{claims}");
        };
        let later = now_s() + 10 * LEEWAY_S;
        let a_little_later = now_s() + LEEWAY_S / 2;
        check(json!({}), Ok(()));
        check(json!({"iat": now_s()}), Ok(()));
        check(
            json!({"iat": a_little_later, "nbf": a_little_later}),
            Ok(()),
        );
        check(json!({"iat": "yesterday"}), Ok(()));
        check(json!({"iat": later}), Err("it is not valid yet"));
        check(json!({"iat": 4_102_444_800.5}), Err("it is not valid yet"));
        check(json!({"nbf": later}), Err("it is not valid yet"));
        check(
            json!({"exp": now_s() - 10 * LEEWAY_S}),
            Err("it has expired"),
        );
        check(
            json!({"aud": "https://other"}),
            Err("it is for another audience"),
        );
    }
}
