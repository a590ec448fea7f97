//! The tokens of a text: counted exactly by a tokenizer, or estimated quickly.

mod bound;
mod counter;
mod digest;
mod encoding;
mod pieces;

pub use bound::{token_upper_bound, token_upper_bound_to};
pub use counter::Counter;
pub use encoding::count;
pub use pieces::Pieces;

/// The reference encoding, to compare with ours.
#[cfg(test)]
fn tokenizer() -> &'static tiktoken_rs::CoreBPE {
    tiktoken_rs::o200k_base_singleton()
}

/// The samples of long texts that [`count_samples`] counts.
const SAMPLES: usize = 32;

const SAMPLE_BYTES: usize = 512;

/// Estimates the tokens of long texts by counting samples of them at equal distances, 16 KiB together.
pub fn count_samples(texts: &[&str]) -> usize {
    let whole: usize = texts.iter().map(|text| text.len()).sum();
    let distance = (whole / SAMPLES).max(1);
    let (mut tokens, mut bytes) = (0, 0);
    let (mut start, mut next) = (0, 0);
    Counter::with(|counter| {
        for text in texts {
            while next < start + text.len() {
                let from = text.floor_char_boundary(next - start);
                let to = text.floor_char_boundary(from + SAMPLE_BYTES);
                tokens += counter.count(&text[from..to]);
                bytes += to - from;
                next += distance;
            }
            start += text.len();
        }
    });
    whole.saturating_mul(tokens) / bytes.max(1)
}

/// Estimates the result of `count` quickly: measured texts have 4 bytes per token in ASCII, and about one
/// token per other character.
pub fn estimate(text: &str) -> usize {
    let (ascii, other) = mix(text);
    ascii.div_ceil(4) + other
}

/// Returns an upper bound of `count` for short lists of words and numbers.
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
