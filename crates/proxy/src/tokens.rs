//! How many tokens a text costs a model: exactly with a tokenizer, or quickly without one.

mod bound;
mod counter;
mod pieces;

use std::sync::OnceLock;

use serde_json::value::RawValue;
use tiktoken_rs::{CoreBPE, o200k_base};

use crate::front::{Fields, TOOLS};

pub(crate) use bound::at_most;
pub(crate) use counter::{Counter, digest};
pub(crate) use pieces::Pieces;

/// Counts with the `o200k` encoding. The first call loads the tokenizer, which takes tens of
/// megabytes and up to a second: never on the way of a call.
pub fn count(text: &str) -> usize {
    tokenizer().count_ordinary(text)
}

fn tokenizer() -> &'static CoreBPE {
    static TOKENIZER: OnceLock<CoreBPE> = OnceLock::new();
    TOKENIZER.get_or_init(|| o200k_base().expect("the encoding is built in"))
}

/// What one tool's definition costs a model: its name, description and input schema. Clients do
/// not show a model the rest (annotations, `_meta`, output schema).
pub fn of_definition(json: &str) -> usize {
    count(&shown(json))
}

/// The same without loading the tokenizer.
pub fn estimate_of_definition(json: &str) -> usize {
    estimate(&shown(json))
}

fn shown(json: &str) -> String {
    let Some(fields) = Fields::of(json) else {
        return json.to_owned();
    };
    let members = ["name", "description", "inputSchema"].into_iter();
    let members = members.filter_map(|key| {
        let value = tool::minified(fields.get(key)?.get());
        Some(format!("\"{key}\":{value}"))
    });
    format!("{{{}}}", members.collect::<Vec<_>>().join(","))
}

/// What our own three definitions cost.
pub fn of_ours() -> usize {
    let tools: Vec<&RawValue> = serde_json::from_str(TOOLS).expect("a list of three");
    tools.iter().map(|tool| of_definition(tool.get())).sum()
}

/// About what `count` would say, without loading anything: measured texts have 4 bytes a token
/// where they are ASCII, and about one token a character elsewhere.
pub fn estimate(text: &str) -> usize {
    let (ascii, other) = mix(text);
    ascii.div_ceil(4) + other
}

/// At least what `count` would say of short lists of words and numbers.
pub fn upper_bound(text: &str) -> usize {
    let (ascii, other) = mix(text);
    ascii.div_ceil(3) + 2 * other
}

fn mix(text: &str) -> (usize, usize) {
    let ascii = text.bytes().filter(u8::is_ascii).count();
    // Every character beyond ASCII has exactly one leading byte.
    let other = text.bytes().filter(|byte| *byte >= 0xC0).count();
    (ascii, other)
}
