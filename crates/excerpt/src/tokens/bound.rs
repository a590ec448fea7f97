//! A quick upper bound on the tokens of a text, without a tokenizer.

/// For each letter, the letters that often follow it in the tokenizer's words, one bit each. A test
/// computes the table, and prints the correct one if it fails.
const FOLLOWERS: [u32; 26] = [
    0x037e_bfef,
    0x0016_4911,
    0x011e_4d95,
    0x0016_4919,
    0x03ff_fdff,
    0x001a_4931,
    0x0016_69d1,
    0x011a_4111,
    0x02ae_fe7f,
    0x0010_4011,
    0x001c_4111,
    0x011c_4919,
    0x0014_d113,
    0x013c_657d,
    0x017e_fd7f,
    0x001e_c991,
    0x0010_0000,
    0x013e_fd5d,
    0x011c_dd95,
    0x011e_4995,
    0x000e_bd7f,
    0x0000_4111,
    0x0004_6191,
    0x0008_8100,
    0x0004_e011,
    0x0000_4111,
];

/// Pairs of signs that are frequent in JSON and prose.
const PAIRS: [[u8; 2]; 16] = [
    *b"\":", *b":\"", *b"\",", *b",\"", *b"{\"", *b"\"}", *b"},", *b",{", *b"[\"", *b"\"]", *b":[",
    *b"[{", *b"}]", *b":{", *b"()", *b"//",
];

/// Returns at least the tokenizer's count for nearly any text, and for prose half as much again: a
/// word is one token and one more for every four letters and for every two letters that are rarely
/// adjacent; a punctuation character is one, unless it often follows the one before it.
pub fn token_upper_bound(text: &str) -> usize {
    token_upper_bound_to(text, usize::MAX)
}

/// Like [`token_upper_bound`], but stops at the first bound above `max`.
pub fn token_upper_bound_to(text: &str, max: usize) -> usize {
    let mut bound = 0;
    let (mut before, mut run) = (b' ', 0_usize);
    for byte in text.bytes() {
        let goes_on = class(byte) == class(before) && run > 0;
        run = if goes_on { run + 1 } else { 1 };
        bound += match class(byte) {
            Class::Lower if goes_on => {
                let place = usize::from(before - b'a');
                let is_rare = FOLLOWERS[place] & (1 << (byte - b'a')) == 0;
                usize::from(is_rare) + usize::from(run % 4 == 1)
            }
            // A capital begins the word.
            Class::Lower => usize::from(class(before) != Class::Upper),
            // A blank is part of the following word, but not of a number.
            Class::Digit => usize::from(run % 3 == 1) + usize::from(before == b' '),
            Class::Sign if goes_on && PAIRS.contains(&[before, byte]) => usize::from(run % 4 == 1),
            Class::Space => usize::from(run == 2 || run % 8 == 0),
            Class::Upper | Class::Sign | Class::LineEnd | Class::Other => 1,
        };
        before = byte;
        if bound > max {
            break;
        }
    }
    bound + 1
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    Lower,
    Upper,
    Digit,
    Space,
    LineEnd,
    Sign,
    Other,
}

fn class(byte: u8) -> Class {
    match byte {
        b'a'..=b'z' => Class::Lower,
        b'A'..=b'Z' => Class::Upper,
        b'0'..=b'9' => Class::Digit,
        b' ' => Class::Space,
        b'\n' | b'\r' | b'\t' => Class::LineEnd,
        _ if byte.is_ascii() => Class::Sign,
        _ => Class::Other,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{FOLLOWERS, token_upper_bound};
    use crate::tokens::{count, tokenizer};

    fn any_text() -> impl Strategy<Value = String> {
        prop_oneof![
            "[a-z]{200,2000}",
            "([a-z]{1,12} ){50,300}",
            "([A-Z][a-z]{1,9} ?){50,300}",
            "([A-Z]{1,12} ){50,300}",
            "[0-9a-f]{200,2000}",
            "[a-zA-Z0-9+/]{200,2000}",
            "[a-z_]{200,2000}",
            "[0-9., -]{200,2000}",
            "[\\[\\]{}\",:]{200,2000}",
            "(\\{\"[a-z]{1,8}\":\"[a-z ]{1,20}\"\\},?){20,100}",
            "[ \n\t]{200,2000}",
            "[ -~]{200,2000}",
            "\\PC{200,800}",
            "(https?://[a-z]{3,9}\\.com/[a-zA-Z0-9/_-]{1,40}\n){10,60}",
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(300))]

        #[test]
        fn no_text_costs_more_than_its_bound(text in any_text()) {
            prop_assert!(token_upper_bound(&text) >= count(&text), "{} of {}", token_upper_bound(&text), count(&text));
        }
    }

    /// The tokens that come first in the encoding's list are the words that are met most.
    const WORDS_COUNTED: u32 = 57_000;

    /// In how many of those words a pair of letters stands that stands together often.
    const OFTEN: usize = 42;

    /// The table, from the tokenizer's own words: those of small letters, with the blank before
    /// them or without.
    fn count_followers() -> [u32; 26] {
        let mut counts = [[0; 26]; 26];
        let place = |letter: u8| usize::from(letter - b'a');
        for token in 0..WORDS_COUNTED {
            let bytes = tokenizer().decode_bytes(&[token]).unwrap_or_default();
            let word = bytes.strip_prefix(b" ").unwrap_or(&bytes);
            if word.iter().all(u8::is_ascii_lowercase) {
                for pair in word.windows(2) {
                    counts[place(pair[0])][place(pair[1])] += 1;
                }
            }
        }
        let bits = |followers: [usize; 26]| {
            let often = followers
                .iter()
                .enumerate()
                .filter(|(_, count)| **count >= OFTEN);
            often.fold(0, |bits, (follower, _)| bits | 1 << follower)
        };
        counts.map(bits)
    }

    #[test]
    fn the_letters_that_often_follow_are_those_of_the_tokenizer() {
        let counted = count_followers();
        let table = counted.map(|bits| format!("0x{:04x}_{:04x}", bits >> 16, bits & 0xffff));
        assert_eq!(FOLLOWERS, counted, "the table is {}", table.join(", "));
    }

    #[test]
    fn the_bound_of_prose_and_code_is_near() {
        let code = include_str!("counter.rs");
        let prose =
            "A handle is opaque, belongs to its client, and outlives a restart. ".repeat(20);
        let words = "kaikki ihmiset syntyvat vapaina ja tasavertaisina arvoltaan ".repeat(20);
        for text in [code, &prose, &words] {
            let (bound, count) = (token_upper_bound(text), count(text));
            assert!(
                bound >= count && bound <= count * 2,
                "{bound} for {count}: {text}"
            );
        }
    }
}
