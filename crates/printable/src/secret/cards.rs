//! Card numbers in a text.

use std::ops::Range;

use super::{found::FoundSecret, tokens::find_runs};

/// The digits of a card number.
const CARD_DIGITS: Range<usize> = 14..17;

/// Finds card numbers: 14 to 16 digits in groups or together, with the first digits of an issuer and a valid
/// checksum.
pub(super) fn find_cards(text: &str) -> impl Iterator<Item = FoundSecret> {
    let runs = find_runs(
        text,
        |byte| matches!(byte, b'0'..=b'9' | b' ' | b'-'),
        CARD_DIGITS.start,
    );
    runs.flat_map(|run| find_cards_in(text, run))
        .map(|range| FoundSecret::new(range, Some("card number")))
}

/// Finds them in a run of digits, blanks and hyphens.
fn find_cards_in(text: &str, run: Range<usize>) -> Vec<Range<usize>> {
    let bytes = text.as_bytes();
    let begins_word = |at: usize| at == 0 || !is_of_word(bytes[at - 1]);
    let ends_word = |at: usize| at == bytes.len() || !is_of_word(bytes[at]);
    let mut found: Vec<Range<usize>> = Vec::new();
    let mut at = run.start;
    while at < run.end {
        if !bytes[at].is_ascii_digit() || !begins_word(at) {
            at += 1;
            continue;
        }
        let (mut digits, mut card, mut end) = (Vec::new(), None, at);
        while end < run.end && digits.len() < CARD_DIGITS.end {
            match bytes[end] {
                digit @ b'0'..=b'9' => digits.push(digit - b'0'),
                // Two separators in a row separate numbers.
                _ if !bytes[end - 1].is_ascii_digit() => break,
                _ => {}
            }
            end += 1;
            if ends_word(end) && bytes[end - 1].is_ascii_digit() && is_card(&digits) {
                card = Some(at..end);
            }
        }
        match card {
            Some(range) => {
                at = range.end;
                found.push(range);
            }
            None => at += 1,
        }
    }
    found
}

fn is_card(digits: &[u8]) -> bool {
    let issued = match digits {
        [3, 4 | 7, ..] => digits.len() == 15,
        [3, 0 | 6 | 8 | 9, ..] => digits.len() == 14,
        [4 | 6, ..] | [5, 1..=5, ..] | [2, 2..=7, ..] => digits.len() == 16,
        _ => false,
    };
    let doubled = |digit: u8| if digit > 4 { 2 * digit - 9 } else { 2 * digit };
    let sum = |(place, digit): (usize, &u8)| {
        u32::from(if place % 2 == 1 {
            doubled(*digit)
        } else {
            *digit
        })
    };
    issued && digits.iter().rev().enumerate().map(sum).sum::<u32>() % 10 == 0
}

fn is_of_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}
