//! Formats text for reading: untrusted text on one line or on a terminal; numbers; shortened texts;
//! secrets found and masked. Compares text with patterns, and reads the syntax of templates.
//!
//! This crate has no side effects, and depends on no other crate of the workspace.

#![warn(missing_docs)]

mod foreign;
mod number;
mod pattern;
mod secret;
mod shell;
mod short;
mod template;

pub use foreign::{for_terminal, is_hidden, one_line, one_line_cow, one_line_of, prose, seen_json};
pub use number::{count_of, group_digits};
pub use pattern::{FoldedText, LetterCase, Pattern, escape_pattern};
pub use secret::{
    FoundSecret, HIDDEN, Redaction, Redactor, count_redacted, find_secrets,
    find_secrets_in_arguments, has_card_number, join_overlapping, mask_address, mask_arguments,
    mask_lines, mask_prose, mask_secrets, names_secret, names_secret_argument, replace_secrets,
};
pub use shell::quote_word;
pub use short::{first_chars, shorten, shorten_home, shorten_middle};
pub use template::{escape_template, find_references, has_reference};
