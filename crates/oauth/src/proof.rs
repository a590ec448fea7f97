//! Proofs of possession (`DPoP`, RFC 9449): a token that is bound to a key is useless without that key.

use files::clock::now_s;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use jsonwebtoken::Header;
use parking_lot::Mutex;
use reqwest::Url;
use serde_json::json;

use crate::{
    address::with_path,
    challenge::{BOUND, Challenge},
    error::LoginError,
    jwt::SigningKey,
    random::challenge_of,
    random::random_text,
};

const PROOF: HeaderName = HeaderName::from_static("dpop");
const NONCE: HeaderName = HeaderName::from_static("dpop-nonce");

/// The only algorithm of proofs: every server that supports proofs supports it.
pub(crate) const ALGORITHM: &str = "ES256";

/// Proves to one server that we have a key.
#[derive(Debug)]
pub(crate) struct Prover {
    key: SigningKey,
    /// The nonce that the server requires in proofs, as it was last received.
    nonce: Mutex<Option<String>>,
}

impl Prover {
    pub(crate) fn new(key: SigningKey) -> Self {
        let nonce = Mutex::default();
        Self { key, nonce }
    }

    /// Makes a prover with the key that was stored as this text.
    pub(crate) fn of_text(text: &str) -> Option<Self> {
        SigningKey::of_text(text).map(Self::new)
    }

    /// Returns a proof for one request, and for the token that the request carries.
    pub(crate) fn prove(
        &self,
        method: &Method,
        url: &Url,
        token: Option<&str>,
    ) -> Result<(HeaderName, HeaderValue), LoginError> {
        let place = with_path(url, url.path());
        let mut claims = json!({
            "jti": random_text()?, "htm": method.as_str(), "htu": place.as_str(), "iat": now_s(),
        });
        if let Some(token) = token {
            claims["ath"] = challenge_of(token).into();
        }
        if let Some(nonce) = &*self.nonce.lock() {
            claims["nonce"] = nonce.as_str().into();
        }
        let head = Header {
            typ: Some("dpop+jwt".to_owned()),
            jwk: self.key.public_jwk(),
            ..Header::default()
        };
        let proof = self.key.sign(head, &claims)?;
        let proof = HeaderValue::try_from(proof).map_err(|_| LoginError::Randomness)?;
        Ok((PROOF, proof))
    }

    /// Stores the nonce of a response. Returns true if it differs from the previous one.
    pub(crate) fn note_nonce(&self, headers: &HeaderMap) -> bool {
        let said = headers.get(NONCE).and_then(|it| it.to_str().ok());
        let Some(said) = said else { return false };
        let mut nonce = self.nonce.lock();
        let is_new = nonce.as_deref() != Some(said);
        *nonce = Some(said.to_owned());
        is_new
    }

    /// Returns true if a server refused a request only because its proof lacked a nonce, which we have
    /// now.
    pub(crate) fn can_prove_better(&self, status: StatusCode, headers: &HeaderMap) -> bool {
        let is_new = self.note_nonce(headers);
        let challenge = Challenge::read(headers);
        let wants = challenge.is_some_and(|it| it.error.as_deref() == Some(NONCE_WANTED));
        is_new && wants && status == StatusCode::UNAUTHORIZED
    }
}

/// The error code of a request whose proof lacks a nonce.
pub(crate) const NONCE_WANTED: &str = "use_dpop_nonce";

/// Returns the header for a token that is bound to a key.
pub(crate) fn authorization(token: &str) -> Option<(HeaderName, HeaderValue)> {
    let mut value = HeaderValue::try_from(format!("{BOUND} {token}")).ok()?;
    value.set_sensitive(true);
    Some((header::AUTHORIZATION, value))
}

#[cfg(test)]
mod tests {
    use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
    use http::{HeaderMap, HeaderValue, Method, StatusCode};
    use reqwest::Url;
    use serde_json::Value;

    use super::Prover;
    use crate::{jwt::SigningKey, random::challenge_of};

    fn claims(prover: &Prover) -> Value {
        let url = Url::parse("https://x.example/mcp?secret=1#a").unwrap();
        let (_, proof) = prover.prove(&Method::POST, &url, Some("token")).unwrap();
        let proof = proof.to_str().unwrap().to_owned();
        let claims = URL_SAFE_NO_PAD
            .decode(proof.split('.').nth(1).unwrap())
            .unwrap();
        serde_json::from_slice(&claims).unwrap()
    }

    #[test]
    fn a_proof_names_its_request_and_takes_the_nonce_that_was_asked_for() {
        let prover = Prover::new(SigningKey::generate().unwrap().0);
        let (one, two) = (claims(&prover), claims(&prover));
        assert_eq!(one["htm"], "POST");
        assert_eq!(one["htu"], "https://x.example/mcp");
        assert_eq!(one["ath"], challenge_of("token"));
        assert_ne!(one["jti"], two["jti"]);
        assert_eq!(one["nonce"], Value::Null);
        let mut asks = HeaderMap::new();
        asks.insert(
            "www-authenticate",
            HeaderValue::from_static("DPoP error=\"use_dpop_nonce\""),
        );
        asks.insert("dpop-nonce", HeaderValue::from_static("n1"));
        assert!(prover.can_prove_better(StatusCode::UNAUTHORIZED, &asks));
        assert_eq!(claims(&prover)["nonce"], "n1");
        // The same nonce again: the server refuses the request for another reason.
        assert!(!prover.can_prove_better(StatusCode::UNAUTHORIZED, &asks));
    }
}
