//! JSON Web Tokens that we sign: who we are, and proofs of a key.

use std::fmt;

use aws_lc_rs::{
    rand::SystemRandom,
    signature::{
        ECDSA_P256_SHA256_FIXED_SIGNING, ECDSA_P384_SHA384_FIXED_SIGNING, EcdsaKeyPair,
        Ed25519KeyPair, KeyPair as _, RSA_PKCS1_SHA256, RsaKeyPair,
    },
};
use base64::{
    Engine as _,
    engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD},
};
use serde_json::{Value, json};

use crate::error::LoginError;

/// A key that signs. What it is says by which algorithm.
pub(crate) enum SigningKey {
    P256(EcdsaKeyPair),
    P384(EcdsaKeyPair),
    Rsa(RsaKeyPair),
    Ed25519(Ed25519KeyPair),
}

impl SigningKey {
    /// The key in a PEM text, in PKCS #8 (`BEGIN PRIVATE KEY`).
    pub(crate) fn of_pem(pem: &str) -> Result<Self, LoginError> {
        let bad = || {
            let what = "`oauth.private_key` holds no key that signs: wanted is a PEM text with `BEGIN \
                        PRIVATE KEY` (PKCS #8), of P-256, P-384, RSA or Ed25519";
            LoginError::Metadata(what.to_owned())
        };
        let (_, rest) = pem
            .split_once("-----BEGIN PRIVATE KEY-----")
            .ok_or_else(bad)?;
        let (body, _) = rest
            .split_once("-----END PRIVATE KEY-----")
            .ok_or_else(bad)?;
        let body: String = body.split_whitespace().collect();
        let der = STANDARD.decode(body).map_err(|_| bad())?;
        Self::of_der(&der).ok_or_else(bad)
    }

    fn of_der(der: &[u8]) -> Option<Self> {
        let p256 = || EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, der);
        let p384 = || EcdsaKeyPair::from_pkcs8(&ECDSA_P384_SHA384_FIXED_SIGNING, der);
        let rsa = || RsaKeyPair::from_pkcs8(der);
        let ed25519 = || Ed25519KeyPair::from_pkcs8_maybe_unchecked(der);
        (p256().map(Self::P256))
            .or_else(|_| p384().map(Self::P384))
            .or_else(|_| rsa().map(Self::Rsa))
            .or_else(|_| ed25519().map(Self::Ed25519))
            .ok()
    }

    /// A new key of P-256, and the text of which [`Self::of_text`] makes it again.
    pub(crate) fn generate() -> Result<(Self, String), LoginError> {
        let algorithm = &ECDSA_P256_SHA256_FIXED_SIGNING;
        let pkcs8 = EcdsaKeyPair::generate_pkcs8(algorithm, &SystemRandom::new());
        let pkcs8 = pkcs8.map_err(|_| LoginError::Randomness)?;
        let text = STANDARD.encode(pkcs8.as_ref());
        let key = Self::of_text(&text).ok_or(LoginError::Randomness)?;
        Ok((key, text))
    }

    /// The key that was kept as this text.
    pub(crate) fn of_text(text: &str) -> Option<Self> {
        Self::of_der(&STANDARD.decode(text).ok()?)
    }

    fn algorithm(&self) -> &'static str {
        match self {
            Self::P256(_) => "ES256",
            Self::P384(_) => "ES384",
            Self::Rsa(_) => "RS256",
            Self::Ed25519(_) => "EdDSA",
        }
    }

    /// The public half of a key of P-256 (RFC 7517).
    pub(crate) fn public_jwk(&self) -> Option<Value> {
        let Self::P256(pair) = self else { return None };
        // Uncompressed: a byte that says so, and two coordinates.
        let (x, y) = pair.public_key().as_ref().get(1..)?.split_at_checked(32)?;
        let text = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
        Some(json!({"kty": "EC", "crv": "P-256", "x": text(x), "y": text(y)}))
    }

    /// A token with these claims. `head` is what stands in its head besides the algorithm.
    pub(crate) fn sign(&self, mut head: Value, claims: &Value) -> Result<String, LoginError> {
        head["alg"] = self.algorithm().into();
        let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let signed = format!("{}.{}", part(&head), part(claims));
        let (random, bytes) = (SystemRandom::new(), signed.as_bytes());
        let signature = match self {
            Self::P256(key) | Self::P384(key) => {
                key.sign(&random, bytes).map(|it| it.as_ref().to_vec())
            }
            Self::Rsa(key) => {
                let mut signature = vec![0; key.public_modulus_len()];
                let signing = key.sign(&RSA_PKCS1_SHA256, &random, bytes, &mut signature);
                signing.map(|()| signature)
            }
            Self::Ed25519(key) => Ok(key.sign(bytes).as_ref().to_vec()),
        };
        let signature = signature.map_err(|_| LoginError::Randomness)?;
        Ok(format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature)))
    }
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SigningKey")
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
    use jsonwebtoken::{Algorithm, DecodingKey, Validation, decode, decode_header};
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
            let key = SigningKey::of_pem(&pem(der)).unwrap();
            let token = key.sign(json!({"typ": "JWT"}), &json!({})).unwrap();
            assert_eq!(decode_header(&token).unwrap().alg, algorithm);
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
        let token = again.sign(json!({"typ": "JWT"}), &json!({"exp": u32::MAX, "a": "b"}));
        let jwk = serde_json::from_value(key.public_jwk().unwrap()).unwrap();
        let checking = DecodingKey::from_jwk(&jwk).unwrap();
        let checked = decode::<Value>(
            token.unwrap(),
            &checking,
            &Validation::new(Algorithm::ES256),
        );
        assert_eq!(checked.unwrap().claims["a"], "b");
    }
}
