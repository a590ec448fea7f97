//! The texts of tools, servers and requests that the encoder reads.

use tool::{Digest, ServerName};

use crate::Entry;
use crate::limits::{DESCRIPTION_CHARS_ENCODED, PARAMETERS_ENCODED};

/// The key of a text; see [`key`].
pub(crate) type TextKey = [u8; 16];

/// Returns the server, the name, the beginning of the description, and the parameters: the format
/// that the encoder was trained on (`crates/encoder/training`).
pub(crate) fn text(entry: &Entry) -> String {
    let name = speak(entry.tool.name());
    let server = speak(entry.at.server.as_str());
    let description = entry.description();
    let words = description.split_whitespace().collect::<Vec<_>>().join(" ");
    let begin = printable::first_chars(&words, DESCRIPTION_CHARS_ENCODED);
    let parameters = tool::parameters(&entry.input_schema());
    let parameters = parameters.iter().take(PARAMETERS_ENCODED);
    let parameters: Vec<String> = parameters.map(|it| speak(&it.name)).collect();
    format!("{server} {name}: {begin} ({})", parameters.join(", "))
}

/// Returns the text of a server: its name and its recipe's description.
pub(crate) fn server_text(name: &ServerName, about: &str) -> String {
    format!("{}: {about}", speak(name.as_str()))
}

/// Returns the key of a server's text and the model.
pub(crate) fn server_key(name: &ServerName, about: &str) -> TextKey {
    key_of(&[encoder::MODEL, "server", name.as_str(), about])
}

/// Returns the key of an example request and the model.
pub(crate) fn request_key(request: &str) -> TextKey {
    key_of(&[encoder::MODEL, "request", request])
}

/// Returns the key of a tool's text and the model, without building the text.
pub(crate) fn key(entry: &Entry) -> TextKey {
    let overlay = entry.overlay.description.as_deref().unwrap_or_default();
    let mut parts = vec![
        encoder::MODEL,
        TEXT,
        entry.at.server.as_str(),
        overlay,
        entry.tool.json(),
    ];
    let schema = (!entry.argument_settings.is_empty()).then(|| entry.input_schema());
    parts.extend(schema.as_deref());
    key_of(&parts)
}

fn key_of(parts: &[&str]) -> TextKey {
    let hex = Digest::of_bytes(parts.join("\0").as_bytes()).short(32);
    u128::from_str_radix(&hex, 16)
        .expect("32 hexadecimal digits")
        .to_be_bytes()
}

/// The version of the text format: raise it if the text of an unchanged tool would differ.
const TEXT: &str = "2";

/// Splits an identifier into words: `getUserInfo_v2` becomes `get user info v2`.
fn speak(name: &str) -> String {
    let mut words = String::with_capacity(name.len() + 8);
    let mut before = ' ';
    for c in name.chars() {
        if c.is_uppercase() && (before.is_lowercase() || before.is_ascii_digit()) {
            words.push(' ');
        }
        if c.is_alphanumeric() {
            words.extend(c.to_lowercase());
        } else {
            words.push(' ');
        }
        before = c;
    }
    words.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_said_as_words() {
        for (name, said) in [
            ("getUserInfo_v2", "get user info v2"),
            ("list-files", "list files"),
            ("HTTPServer", "httpserver"),
            ("server.tool/name", "server tool name"),
            ("__x__", "x"),
            ("天气", "天气"),
        ] {
            assert_eq!(speak(name), said);
        }
    }
}
