//! Unguessable texts, and the challenge that is derived from one.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use sha2::{Digest as _, Sha256};

use crate::error::LoginError;

/// Returns 256 random bits as URL-safe text.
pub(crate) fn random_text() -> Result<String, LoginError> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).map_err(|_| LoginError::Randomness)?;
    Ok(URL_SAFE_NO_PAD.encode(bytes))
}

/// Returns the S256 challenge of a verifier (RFC 7636). The digest of a token in a proof is made the
/// same way.
pub(crate) fn challenge_of(verifier: &str) -> String {
    URL_SAFE_NO_PAD.encode(Sha256::digest(verifier.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::{challenge_of, random_text};

    #[test]
    fn a_challenge_is_as_the_rfc_has_it() {
        let verifier = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
        let challenge = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM";
        assert_eq!(challenge_of(verifier), challenge);
        assert_ne!(random_text().unwrap(), random_text().unwrap());
        assert_eq!(random_text().unwrap().len(), 43);
    }
}
