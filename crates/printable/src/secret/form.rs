//! Forms by which a text is recognized as a secret.

use super::tokens::{TOKEN_CHARS_MIN, begins_with_token};

/// Prefixes of tokens that words of a text have as well; they are compared with one whole value.
const BEGINNINGS: [&str; 6] = ["sk-", "sk_", "pat-", "secret_", "eyJ", "fc-"];

/// The shortest run of letters and digits that counts as a key of unknown form.
const RANDOM_CHARS_MIN: usize = 20;

/// Returns true if a text is one word that is shorter than every token, so that it is no secret
/// unless its name says so.
pub(super) fn is_short_word(text: &str) -> bool {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b"_-".contains(&byte);
    text.len() < TOKEN_CHARS_MIN && text.bytes().all(is_part)
}

/// Returns true if a text has the form of a well-known service's token.
pub(super) fn looks_secret(text: &str) -> bool {
    let is_token = |c: char| c.is_ascii_alphanumeric() || "-_.=+/~".contains(c);
    text.len() >= TOKEN_CHARS_MIN
        && text.chars().all(is_token)
        && (BEGINNINGS.iter().any(|it| text.starts_with(it)) || begins_with_token(text))
}

pub(super) fn is_hex(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|it| it.is_ascii_hexdigit())
}

/// Returns true if a text looks generated: it has a long run of letters and digits that alternate
/// often. Names, releases and UUIDs have shorter runs between their separators.
pub(super) fn looks_random(text: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || "-_=+~%.".contains(c);
    let runs = text.split(|c: char| !c.is_ascii_alphanumeric());
    let is_random = |run: &str| {
        if run.len() < RANDOM_CHARS_MIN {
            return false;
        }
        let kind = |byte: u8| (byte.is_ascii_digit(), byte.is_ascii_uppercase());
        let changes = run.as_bytes().windows(2);
        let changes = changes
            .filter(|pair| kind(pair[0]) != kind(pair[1]))
            .count();
        let digits = run.bytes().filter(u8::is_ascii_digit).count();
        digits >= 2 && changes * 4 >= run.len()
    };
    text.chars().all(is_part) && runs.into_iter().any(is_random)
}
