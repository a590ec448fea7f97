//! Properties of the envelope for arbitrary bytes: tests check them, and a fuzzer can target them.

use serde_json::{Map, Value, json, value::RawValue};

use crate::{
    ToolError,
    envelope::{ExecuteRequest, Input},
};

/// The nesting depth of generated envelopes.
const DEPTH_MAX: u8 = 4;

/// The longest text of an error, in characters (interface, section 6).
const ERROR_CHARS_MAX: usize = 2_000;

/// The words in generated envelopes, as keys and as texts.
const WORDS: [&str; 16] = [
    "tool_name",
    "tool_input",
    "name",
    "tool",
    "arguments",
    "params",
    "input",
    "server",
    "timeout_ms",
    "raw",
    "proxy/raw",
    "proxy/dry_run",
    "execute_dynamic_tool",
    "a/b",
    "x",
    "",
];

/// Bytes read as choices; after the last byte the first choice is always taken.
struct Choices<'a>(&'a [u8]);

impl Choices<'_> {
    fn below(&mut self, end: u8) -> u8 {
        let Some((first, rest)) = self.0.split_first() else {
            return 0;
        };
        self.0 = rest;
        first % end
    }

    fn word(&mut self) -> &'static str {
        WORDS[usize::from(self.below(16))]
    }

    fn value(&mut self, depth: u8) -> Value {
        match self.below(if depth == 0 { 4 } else { 8 }) {
            0 => Value::Null,
            1 => json!(self.word()),
            2 => json!(self.below(9)),
            3 => json!(self.below(2) == 0),
            4 => json!([self.value(depth - 1)]),
            5 => json!(self.value(depth - 1).to_string()),
            _ => Value::Object(self.object(depth - 1)),
        }
    }

    fn object(&mut self, depth: u8) -> Map<String, Value> {
        let count = self.below(5);
        let member = |_| (self.word().to_owned(), self.value(depth));
        (0..count).map(member).collect()
    }
}

fn parse(text: &str) -> Result<ExecuteRequest, ToolError> {
    let raw = RawValue::from_string(text.to_owned()).expect("it is JSON");
    ExecuteRequest::parse(Some(&raw))
}

/// An envelope in any spelling is read as a call, or refused with a bounded text that says why;
/// white space in it has no meaning.
///
/// # Panics
///
/// If this does not hold.
pub fn an_envelope_is_read_or_refused(input: &[u8]) {
    let envelope = Choices(input).value(DEPTH_MAX);
    let (small, wide) = (envelope.to_string(), format!("{envelope:#}"));
    match (parse(&small), parse(&wide)) {
        (Ok(small), Ok(wide)) => {
            assert_eq!(small.tool_name, wide.tool_name, "{envelope}");
            assert_eq!(small.repairs, wide.repairs, "{envelope}");
            assert_eq!(small.input.to_map(), wide.input.to_map(), "{envelope}");
        }
        (Err(error), Err(_)) => {
            assert_eq!(error.code(), "invalid_input", "{envelope}");
            let text = error.to_string();
            assert!(text.chars().count() <= ERROR_CHARS_MAX, "{text}");
        }
        (small, wide) => panic!("{envelope}: {} {}", small.is_ok(), wide.is_ok()),
    }
}

/// The arguments of a call that needs no repair pass byte for byte, whatever they contain.
///
/// # Panics
///
/// If this does not hold.
pub fn a_plain_call_keeps_its_bytes(input: &[u8]) {
    let text = Value::from(String::from_utf8_lossy(input)).to_string();
    let arguments = format!(r#"{{ "x" : {text},"n":1.0 , "m":1E2 }}"#);
    let envelope = format!(r#" {{"tool_name":"a/b", "tool_input":{arguments} }} "#);
    let request = parse(&envelope).expect("it is a plain call");
    assert!(request.repairs.is_empty(), "{envelope}");
    if let Input::AsSent(_) = &request.input {
        assert_eq!(request.input.into_json().as_str(), arguments);
    } else {
        // Words of an envelope in it caused a closer look.
        assert!(
            text.contains("tool_name") || text.contains("proxy"),
            "{text}"
        );
    }
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::*};

    proptest! {
        #[test]
        fn an_envelope_is_read_or_refused(input in vec(any::<u8>(), 0..80)) {
            super::an_envelope_is_read_or_refused(&input);
        }

        #[test]
        fn a_plain_call_keeps_its_bytes(input in vec(any::<u8>(), 0..80)) {
            super::a_plain_call_keeps_its_bytes(&input);
        }
    }
}
