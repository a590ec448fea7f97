//! Finds plain secrets in a text: by the name of their variable or option, by their place in an
//! address, or by their own form.
//!
//! The same rules apply to every text: a variable, a header, an argument, an address, a line of a
//! configuration file, a value that a message repeats.

mod address;
mod form;
mod found;
mod line;
mod name;
mod text;
mod tokens;

pub use address::mask_address;
use found::hide;
pub use found::{FoundSecret, HIDDEN};
pub use line::mask_lines;
pub use name::names_secret;
pub use text::{find_secrets, find_secrets_in_arguments};
pub use tokens::{TOKEN_CHARS_MIN, TOKEN_PATTERNS};

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
