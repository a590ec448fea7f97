//! Finds the messages in a line that is not one message, where their meaning is certain.

use bytes::Bytes;
use serde_json::value::RawValue;

use crate::{message::Message, scan::scan_items};

/// The character that some programs write before their first output.
const BYTE_ORDER_MARK: char = '\u{feff}';

/// The most places at which a message is looked for behind other text.
const PLACES_MAX: usize = 16;

/// Returns the messages in a line that is not one message, without a copy: behind a byte order mark, several
/// in a row, or in an array (a batch of revision 2025-03-26). Behind other text, such as progress without a
/// line end, only responses are found: a program that logs what it receives writes requests there. Returns
/// none if any part of the line has another meaning.
pub fn messages_in(line: &Bytes) -> Vec<Bytes> {
    let Ok(text) = str::from_utf8(line) else {
        return Vec::new();
    };
    let text = text.trim_start_matches(|c: char| c == BYTE_ORDER_MARK || c.is_ascii_whitespace());
    let in_array = text.starts_with('[').then(|| scan_items(text)).flatten();
    let found = in_array
        .or_else(|| text.starts_with('{').then(|| read_row(text)).flatten())
        .filter(|items| items.iter().all(|item| is_message(item)))
        .or_else(|| find_behind_text(text));
    let slice = |raw: &RawValue| line.slice_ref(raw.get().as_bytes());
    found.into_iter().flatten().map(slice).collect()
}

/// Reads values up to the end of the text.
fn read_row(text: &str) -> Option<Vec<&RawValue>> {
    let values = serde_json::Deserializer::from_str(text).into_iter::<&RawValue>();
    values.collect::<Result<_, _>>().ok()
}

fn find_behind_text(text: &str) -> Option<Vec<&RawValue>> {
    if text.starts_with('{') {
        return None;
    }
    let begins_message = |at: &usize| {
        let inside = text[at + 1..].trim_start();
        [r#""jsonrpc""#, r#""id""#, r#""result""#, r#""error""#]
            .iter()
            .any(|member| inside.starts_with(member))
    };
    let places = memchr::memchr_iter(b'{', text.as_bytes()).filter(begins_message);
    places.take(PLACES_MAX).find_map(|at| {
        let items = read_row(&text[at..])?;
        let is_response = |item: &&RawValue| {
            let message = Message::parse(item.get().as_bytes());
            is_message(item)
                && message.is_some_and(|message| message.method.is_none() && message.id.is_some())
        };
        items.iter().all(is_response).then_some(items)
    })
}

fn is_message(item: &RawValue) -> bool {
    let message = Message::parse(item.get().as_bytes());
    message.is_some_and(|message| {
        message.method.is_some() || message.result.is_some() || message.error.is_some()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(line: &'static str, expected: &[&str]) {
        assert_eq!(
            messages_in(&Bytes::from_static(line.as_bytes())),
            expected,
            "{line}"
        );
    }

    const A: &str = r#"{"jsonrpc":"2.0","id":1,"result":{}}"#;

    #[test]
    fn messages_are_found_where_their_meaning_is_certain() {
        check(
            "\u{feff}{\"id\":1,\"result\":{}}",
            &[r#"{"id":1,"result":{}}"#],
        );
        check(
            r#"{"id":1,"result":{}} {"method":"x"}"#,
            &[r#"{"id":1,"result":{}}"#, r#"{"method":"x"}"#],
        );
        check(
            r#"[{"id":1,"result":{}},{"id":2,"error":{}}]"#,
            &[r#"{"id":1,"result":{}}"#, r#"{"id":2,"error":{}}"#],
        );
        check(r#"50 % {"jsonrpc":"2.0","id":1,"result":{}}"#, &[A]);
        check(r#"[INFO] {a} {"jsonrpc":"2.0","id":1,"result":{}}"#, &[A]);
    }

    #[test]
    fn nothing_is_guessed() {
        for line in [
            "",
            "Server started",
            "[INFO] Server started",
            r"[1,2]",
            r"[]",
            r#"[{"a":1}]"#,
            r#"{"id":1,"result":{}} done"#,
            r#"{"id":1,"result":{}}{"id":2,"res"#,
            r#"{"id":1,"result":NaN}"#,
            r#"got {"jsonrpc":"2.0","id":1,"method":"tools/call"}"#,
            r#"sent {"jsonrpc":"2.0","id":1,"result":{}} in 3 ms"#,
            r#"[INFO] began {"id":1,"tool":"search"}"#,
            r#""{\"id\":1,\"result\":{}}""#,
        ] {
            check(line, &[]);
        }
        assert!(messages_in(&Bytes::from_static(b"\xff{\"id\":1,\"result\":{}}")).is_empty());
    }
}
