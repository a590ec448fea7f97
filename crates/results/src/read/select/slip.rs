//! Explains mistakes in a jq expression to its author: messages of `jaq` contain whole values, which
//! may be all of the result.

use serde_json::Value;

/// The longest message, in characters.
const MESSAGE_CHARS_MAX: usize = 400;

/// Returns the shortened message, with the correct expression for the most common mistakes.
pub(super) fn explain(message: &str) -> String {
    explain_indexing(message).unwrap_or_else(|| shorten(message))
}

/// `cannot index VALUE with KEY`.
fn explain_indexing(message: &str) -> Option<String> {
    const WITH: &str = " with ";
    let rest = message.strip_prefix("cannot index ")?;
    // Both may contain the word itself: the key is the part that is JSON up to the end.
    let (value, key, parsed) = rest.rmatch_indices(WITH).find_map(|(at, _)| {
        let key = &rest[at + WITH.len()..];
        let parsed = serde_json::from_str::<Value>(key).ok()?;
        Some((&rest[..at], key, parsed))
    })?;
    let (key, kind) = (shorten(key), name_kind(value)?);
    let hint = match (kind, &parsed) {
        ("array", Value::String(name)) => {
            let step = write_step(name, &key);
            format!(": for every item `.[]{step}`, for the first `.[0]{step}`")
        }
        ("object", Value::Number(_)) => ": its values are `.[]`, its names `keys`".to_owned(),
        ("string", _) => ": if it contains JSON, write `fromjson |` before".to_owned(),
        _ => String::new(),
    };
    Some(format!("cannot index {kind} with {key}{hint}"))
}

/// Writes a step to a member, after another step.
fn write_step(name: &str, quoted: &str) -> String {
    let mut chars = name.chars();
    let is_letter = |c: char| c.is_ascii_alphabetic() || c == '_';
    let is_word = chars.next().is_some_and(is_letter)
        && chars.all(|c| is_letter(c) || c.is_ascii_digit())
        && name.len() <= MESSAGE_CHARS_MAX;
    if is_word {
        format!(".{name}")
    } else {
        format!("[{quoted}]")
    }
}

fn shorten(text: &str) -> String {
    printable::shorten_middle(text, MESSAGE_CHARS_MAX).into_owned()
}

fn name_kind(value: &str) -> Option<&'static str> {
    Some(match value.as_bytes().first()? {
        b'[' => "array",
        b'{' => "object",
        b'"' => "string",
        b't' | b'f' => "boolean",
        b'n' => "null",
        b'-' | b'0'..=b'9' => "number",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::explain;

    #[track_caller]
    fn check(message: &str, expected: &str) {
        assert_eq!(explain(message), expected);
    }

    #[test]
    fn a_slip_is_told_in_short_with_what_to_write() {
        let array = "[{\"id\":1,\"name\":\"a\"},".repeat(5_000);
        check(
            &format!("cannot index {array} with \"name\""),
            "cannot index array with \"name\": for every item `.[].name`, for the first \
             `.[0].name`",
        );
        check(
            "cannot index [\"a with \\\"b\\\"\"] with \"x with 1\"",
            "cannot index array with \"x with 1\": for every item `.[][\"x with 1\"]`, for the \
             first `.[0][\"x with 1\"]`",
        );
        check(
            "cannot index {\"a\":1} with 0",
            "cannot index object with 0: its values are `.[]`, its names `keys`",
        );
        check(
            "cannot index \"{}\" with \"a\"",
            "cannot index string with \"a\": if it contains JSON, write `fromjson |` before",
        );
        check(
            "cannot index 1 with \"a\"",
            "cannot index number with \"a\"",
        );
        let long = format!("cannot use {} as iterable", "ä".repeat(50_000));
        let short = explain(&long);
        assert_eq!(short.chars().count(), 400);
        assert!(short.starts_with("cannot use ää") && short.ends_with("ä as iterable"));
    }
}
