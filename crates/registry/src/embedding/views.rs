//! The texts of tools, servers and requests that the encoder reads.

use tool::{Digest, ServerName};

use crate::Entry;
use crate::limits::{DESCRIPTION_CHARS_ENCODED, PARAMETERS_ENCODED};

/// The key of a text and the model.
pub(crate) type TextKey = [u8; 16];

#[derive(Debug, Clone, Copy)]
pub(crate) enum EncodedText<'a> {
    Tool(&'a Entry),
    /// A server, and its recipe's description.
    Server(&'a ServerName, &'a str),
    /// An example request.
    Request(&'a str),
}

impl EncodedText<'_> {
    pub(crate) fn text(self) -> String {
        match self {
            Self::Tool(entry) => tool_text(entry),
            Self::Server(name, about) => format!("{}: {about}", speak(name.as_str())),
            Self::Request(text) => text.to_owned(),
        }
    }

    /// Returns the key, without building the text.
    pub(crate) fn key(self) -> TextKey {
        match self {
            Self::Tool(entry) => tool_key(entry),
            Self::Server(name, about) => key_of(&[encoder::MODEL, "server", name.as_str(), about]),
            Self::Request(text) => key_of(&[encoder::MODEL, "request", text]),
        }
    }
}

/// Returns the server, the name, the beginning of the description, and the parameters: the format
/// that the encoder was trained on (`crates/encoder/training`).
fn tool_text(entry: &Entry) -> String {
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

fn tool_key(entry: &Entry) -> TextKey {
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
