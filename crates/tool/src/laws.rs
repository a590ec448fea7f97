//! Properties of untrusted input that hold for arbitrary bytes; tests check them, and a fuzzer can
//! target them.

use serde_json::{Map, Value, json};

use crate::Checker;

/// The nesting depth of generated schemas and values.
const DEPTH_MAX: u8 = 3;

/// The longest message of a violation, in bytes.
const MESSAGE_BYTES_MAX: usize = 320;

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

    fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        let count = u8::try_from(from.len()).expect("a few words");
        from[usize::from(self.below(count))]
    }

    fn schema(&mut self, depth: u8) -> Value {
        match self.below(if depth == 0 { 5 } else { 9 }) {
            0 => json!({}),
            1 => json!({ "type": self.pick(&TYPES) }),
            2 => json!({ "type": [self.pick(&TYPES), self.pick(&TYPES)] }),
            3 => json!({ "enum": [1, "a", null, "1", true] }),
            4 => json!({ "$ref": self.pick(&["#", "#/$defs/a", "#/$defs/none", "x:y"]) }),
            5 => json!({ "type": "array", "items": self.schema(depth - 1) }),
            6 => {
                let keyword = self.pick(&["anyOf", "oneOf", "allOf"]);
                json!({ keyword: [self.schema(depth - 1), self.schema(depth - 1)] })
            }
            7 => json!({ "type": "integer", "minimum": self.below(9), "maximum": self.below(9) }),
            _ => self.object_schema(depth - 1),
        }
    }

    fn object_schema(&mut self, depth: u8) -> Value {
        let count = self.below(4);
        let properties: Map<String, Value> = (0..count)
            .map(|_| (self.pick(&NAMES).to_owned(), self.schema(depth)))
            .collect();
        let required: Vec<&str> = (0..self.below(3)).map(|_| self.pick(&NAMES)).collect();
        json!({
            "type": "object",
            "properties": properties,
            "required": required,
            "additionalProperties": self.below(2) == 0,
            "$defs": { "a": { "type": "integer", "minimum": 2 } },
        })
    }

    fn value(&mut self, depth: u8) -> Value {
        match self.below(if depth == 0 { 5 } else { 7 }) {
            0 => Value::Null,
            1 => json!(self.below(9)),
            2 => json!(self.below(2) == 0),
            3 => json!(self.pick(&["", "a", "1", " -7 ", "True", "null", "1.50", "a,b"])),
            4 => json!(self.pick(&["[1]", "[\"1\"]", "{\"a\":1}", "{\"a\":\"1\"}", "{", "1e9"])),
            5 => (0..self.below(3)).map(|_| self.value(depth - 1)).collect(),
            _ => Value::Object(self.object(depth - 1)),
        }
    }

    fn object(&mut self, depth: u8) -> Map<String, Value> {
        let count = self.below(4);
        let member = |_| (self.pick(&NAMES).to_owned(), self.value(depth));
        (0..count).map(member).collect()
    }
}

const NAMES: [&str; 4] = ["a", "b", "a b", "é"];

const TYPES: [&str; 8] = [
    "string", "integer", "number", "boolean", "null", "array", "object", "odd",
];

/// Checks that accepted arguments pass a second check unchanged, under the names that they came
/// with, and that refused ones get a short reason. `input` holds the choices of a schema and then
/// of arguments.
///
/// # Panics
///
/// If this does not hold.
pub fn what_was_read_passes_and_what_is_refused_says_why(input: &[u8]) {
    let mut choices = Choices(input);
    let schema = choices.object_schema(DEPTH_MAX).to_string();
    let arguments = choices.object(DEPTH_MAX);
    let checker = Checker::new(&schema);
    match checker.check(&arguments) {
        Ok(None) => {}
        Ok(Some(read)) => {
            assert_eq!(checker.check(&read), Ok(None), "{schema}");
            assert!(read != arguments, "{schema} {arguments:?}");
            let is_known = |name: &String| arguments.contains_key(name);
            assert!(read.keys().all(is_known), "{schema} {read:?}");
        }
        Err(violations) => {
            assert!(!violations.is_empty(), "{schema}");
            let is_brief = |message: &String| message.len() <= MESSAGE_BYTES_MAX;
            assert!(violations.iter().all(|it| is_brief(&it.message)));
        }
    }
}

/// Checks that any text is read as a schema without a panic, and that its minified form means the
/// same.
///
/// # Panics
///
/// If this does not hold.
pub fn any_text_is_read_as_a_schema(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    let small = crate::minified(&text);
    let read = |text: &str| serde_json::from_str::<Value>(text).ok();
    assert_eq!(read(&small), read(&text));
    assert_eq!(crate::parameters(&small), crate::parameters(&text));
    assert_eq!(crate::signature(&small, ""), crate::signature(&text, ""));
    let checker = Checker::new(&text);
    if let Some(Value::Object(example)) = crate::example(&text) {
        assert!(checker.check(&example).is_ok(), "{text}");
    }
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::*};

    use super::*;

    /// Bytes that are sometimes a schema.
    fn almost_schema() -> impl Strategy<Value = Vec<u8>> {
        let choices = vec(any::<u8>(), 0..120);
        (choices, any::<u16>(), any::<u8>()).prop_map(|(choices, at, byte)| {
            let schema = Choices(&choices).object_schema(DEPTH_MAX);
            let mut text = format!("{schema:#}").into_bytes();
            let at = usize::from(at) % text.len();
            if byte.is_ascii_graphic() {
                text[at] = byte;
            }
            text
        })
    }

    proptest! {
        #[test]
        fn what_was_read_passes_and_what_is_refused_says_why(input in vec(any::<u8>(), 0..200)) {
            super::what_was_read_passes_and_what_is_refused_says_why(&input);
        }

        #[test]
        fn any_text_is_read_as_a_schema(input in prop_oneof![vec(any::<u8>(), 0..60), almost_schema()]) {
            super::any_text_is_read_as_a_schema(&input);
        }
    }
}
