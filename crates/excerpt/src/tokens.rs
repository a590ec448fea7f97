//! The tokens that a text costs a model: exactly with a tokenizer, or quickly without one.

mod bound;
mod counter;
mod pieces;

use std::sync::OnceLock;

use tiktoken_rs::{CoreBPE, o200k_base};

pub use bound::token_upper_bound;
pub use counter::Counter;
pub use pieces::Pieces;

/// Counts with the `o200k` encoding. The first call loads the tokenizer, which takes tens of
/// megabytes and up to a second: never on the way of a call.
pub fn count(text: &str) -> usize {
    tokenizer().count_ordinary(text)
}

fn tokenizer() -> &'static CoreBPE {
    static TOKENIZER: OnceLock<CoreBPE> = OnceLock::new();
    TOKENIZER.get_or_init(|| o200k_base().expect("the encoding is built in"))
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
