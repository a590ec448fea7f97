//! JSON Web Tokens that we sign: assertions of our identity, and proofs of a key; and the times of those
//! that others sign.

use aws_lc_rs::{
    rand::SystemRandom,
    signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair},
};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use files::clock::now_s;
use jsonwebtoken::{Algorithm, EncodingKey, Header, encode, jwk::Jwk};
use serde_json::{Value, json};

use crate::error::LoginError;

/// The largest difference between the clocks of two machines, in seconds.
pub(crate) const LEEWAY_S: u64 = 60;

/// Returns true for a time of issue later than now, by any clock that is about right. A token of a later time
/// was made by a clock that is wrong, and expires that much too late.
#[expect(clippy::cast_precision_loss, reason = "seconds since 1970 fit exactly")]
pub(crate) fn is_in_the_future(issued_at_s: f64) -> bool {
    issued_at_s > (now_s() + LEEWAY_S) as f64
}

#[derive(Debug)]
pub(crate) struct SigningKey {
    key: EncodingKey,
    algorithm: Algorithm,
}

impl SigningKey {
    /// Reads a key from a PEM text, in PKCS #8 (`BEGIN PRIVATE KEY`). The text may be indented, or on
    /// one line.
    pub(crate) fn of_pem(pem: &str) -> Result<Self, LoginError> {
        let mut parts: Vec<String> = pem.split("-----").map(str::to_owned).collect();
        if let Some(body) = parts.get_mut(2) {
            body.retain(|c| !c.is_whitespace());
        }
        let pem = parts.join("-----").into_bytes();
        let keys = [
            (Algorithm::ES256, EncodingKey::from_ec_pem(&pem)),
            (Algorithm::ES384, EncodingKey::from_ec_pem(&pem)),
            (Algorithm::RS256, EncodingKey::from_rsa_pem(&pem)),
            (Algorithm::EdDSA, EncodingKey::from_ed_pem(&pem)),
        ];
        let keys = keys.into_iter();
        let mut keys = keys.filter_map(|(algorithm, key)| Self::new(key.ok()?, algorithm));
        keys.next().ok_or_else(|| {
            let why = "`oauth.private_key` is not a signing key: use PEM with `BEGIN PRIVATE KEY` \
                       (PKCS #8), of P-256, P-384, RSA or Ed25519";
            LoginError::Metadata(why.to_owned())
        })
    }

    /// Returns `None` if the key does not sign with this algorithm: keys of several curves look alike.
    fn new(key: EncodingKey, algorithm: Algorithm) -> Option<Self> {
        let key = Self { key, algorithm };
        let signed = key.sign(Header::default(), &json!({}));
        signed.is_ok().then_some(key)
    }

    /// Generates a P-256 key, and the text that [`Self::of_text`] reads.
    pub(crate) fn generate() -> Result<(Self, String), LoginError> {
        let algorithm = &ECDSA_P256_SHA256_FIXED_SIGNING;
        let pkcs8 = EcdsaKeyPair::generate_pkcs8(algorithm, &SystemRandom::new());
        let pkcs8 = pkcs8.map_err(|_| LoginError::Randomness)?;
        let text = STANDARD.encode(pkcs8.as_ref());
        let key = Self::of_text(&text).ok_or(LoginError::Randomness)?;
        Ok((key, text))
    }

    /// Reads a key that [`Self::generate`] made.
    pub(crate) fn of_text(text: &str) -> Option<Self> {
        let der = STANDARD.decode(text).ok()?;
        Self::new(EncodingKey::from_ec_der(&der), Algorithm::ES256)
    }

    /// The public half of the key (RFC 7517).
    pub(crate) fn public_jwk(&self) -> Option<Jwk> {
        Jwk::from_encoding_key(&self.key, self.algorithm).ok()
    }

    /// Signs a token with these claims. The key determines the algorithm in the header.
    pub(crate) fn sign(&self, head: Header, claims: &Value) -> Result<String, LoginError> {
        let alg = self.algorithm;
        let signed = encode(&Header { alg, ..head }, claims, &self.key);
        signed.map_err(|_| LoginError::Randomness)
    }
}

#[cfg(test)]
mod tests {
    use aws_lc_rs::{
        encoding::AsDer as _,
        rsa::KeySize,
        signature::{ECDSA_P384_SHA384_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, RsaKeyPair},
    };
    use base64::{Engine as _, engine::general_purpose::STANDARD};
    use jsonwebtoken::{Algorithm, DecodingKey, Header, Validation, decode, decode_header};
    use serde_json::{Value, json};

    use super::SigningKey;

    fn pem(der: &[u8]) -> String {
        let body = STANDARD.encode(der);
        let lines: Vec<&str> = body
            .as_bytes()
            .chunks(64)
            .map(|it| std::str::from_utf8(it).unwrap())
            .collect();
        format!(
            "-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----\n",
            lines.join("\n")
        )
    }

    #[test]
    fn a_key_says_by_which_algorithm_it_signs() {
        let random = aws_lc_rs::rand::SystemRandom::new();
        let p384 = EcdsaKeyPair::generate_pkcs8(&ECDSA_P384_SHA384_FIXED_SIGNING, &random).unwrap();
        let ed25519 = Ed25519KeyPair::generate_pkcs8(&random).unwrap();
        let rsa = RsaKeyPair::generate(KeySize::Rsa2048).unwrap();
        let rsa: aws_lc_rs::encoding::Pkcs8V1Der<'_> = rsa.as_der().unwrap();
        for (der, algorithm) in [
            (p384.as_ref(), Algorithm::ES384),
            (ed25519.as_ref(), Algorithm::EdDSA),
            (rsa.as_ref(), Algorithm::RS256),
        ] {
            let pem = pem(der);
            for text in [&pem, &pem.replace('\n', "\n  "), &pem.replace('\n', " ")] {
                let key = SigningKey::of_pem(text).unwrap();
                let token = key.sign(Header::default(), &json!({})).unwrap();
                assert_eq!(decode_header(&token).unwrap().alg, algorithm);
            }
        }
        for none in [
            "",
            "hunter2",
            &pem(b"no key"),
            "-----BEGIN PRIVATE KEY-----",
        ] {
            let error = SigningKey::of_pem(none).unwrap_err().to_string();
            assert!(
                error.contains("PKCS #8") && !error.contains("hunter2"),
                "{error}"
            );
        }
    }

    #[test]
    fn what_is_signed_can_be_checked_with_the_public_half() {
        let (key, text) = SigningKey::generate().unwrap();
        let again = SigningKey::of_text(&text).unwrap();
        assert_eq!(key.public_jwk(), again.public_jwk());
        let token = again.sign(Header::default(), &json!({"exp": u32::MAX, "a": "b"}));
        let checking = DecodingKey::from_jwk(&key.public_jwk().unwrap()).unwrap();
        let checked = decode::<Value>(
            token.unwrap(),
            &checking,
            &Validation::new(Algorithm::ES256),
        );
        assert_eq!(checked.unwrap().claims["a"], "b");
    }
}
