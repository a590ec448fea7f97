//! The words of the encoding and their ranks.

use crate::tokens::digest::{EMPTY, RANK_BITS, SLOTS, find_slot, make_entry};

/// Every word, concatenated.
static WORDS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/words"));

/// The offset in `WORDS` of the word of each rank, four bytes each.
static STARTS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/starts"));

/// The entries of words by their digests, four bytes each.
static ENTRIES: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/slots"));

/// The length of the longest word, in bytes; a test checks it.
pub(super) const WORD_BYTES_MAX: usize = 128;

/// Returns the rank of a word; lower ranks are merged first.
pub(super) fn rank(word: &[u8]) -> Option<u32> {
    if word.len() > WORD_BYTES_MAX {
        return None;
    }
    let mut slot = find_slot(word);
    loop {
        let entry = number(ENTRIES, slot);
        if entry == EMPTY {
            return None;
        }
        let rank = entry & ((1 << RANK_BITS) - 1);
        if make_entry(word, rank) == entry && self::word(rank) == word {
            return Some(rank);
        }
        slot = (slot + 1) % SLOTS;
    }
}

/// Returns the word of an existing rank.
pub(super) fn word(rank: u32) -> &'static [u8] {
    let start = |place: u32| number(STARTS, place as usize) as usize;
    &WORDS[start(rank)..start(rank + 1)]
}

fn number(table: &[u8], place: usize) -> u32 {
    let (numbers, _) = table.as_chunks::<4>();
    u32::from_le_bytes(numbers[place])
}
