//! Finds secrets in a text and masks them: known values in any form (`redactor.rs`), tokens and other patterns
//! (`tokens.rs`, `redaction.rs`), and plain secrets that are recognized by the name of their variable or
//! option, by their place in an address, or by their own form (`text.rs`).
//!
//! A finder returns places, and `found.rs` joins and replaces them.

mod address;
mod cards;
mod form;
mod found;
mod known_values;
mod line;
mod name;
mod plain_text;
mod prose;
mod redaction;
mod redactor;
mod text;
mod tokens;

pub use address::mask_address;
use found::hide;
pub use found::{FoundSecret, HIDDEN, join_overlapping, replace_secrets};
pub use line::mask_lines;
pub use name::{names_secret, names_secret_argument};
pub use prose::mask_prose;
pub use redaction::{Redaction, count_redacted, has_card_number};
pub use redactor::Redactor;
pub use text::{find_secrets, find_secrets_in_arguments};

/// Masks the secrets in a text.
pub fn mask_secrets(text: &str, name: Option<&str>) -> String {
    // Most keys of a configuration are such words.
    if name.is_none() && form::is_short_word(text) {
        return text.to_owned();
    }
    hide(text, &find_secrets(text, name))
}

/// Masks the secrets in the arguments of a program.
pub fn mask_arguments<'a>(
    arguments: impl IntoIterator<Item = &'a str, IntoIter: Clone>,
) -> Vec<String> {
    let arguments = arguments.into_iter();
    let found = find_secrets_in_arguments(arguments.clone());
    let masked = arguments.zip(found).map(|(text, found)| hide(text, &found));
    masked.collect()
}

#[cfg(test)]
mod tests;
