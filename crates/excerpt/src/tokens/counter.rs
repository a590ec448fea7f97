//! Counts the tokens of long texts: each piece once, as texts repeat their words.

use parking_lot::Mutex;

use super::{digest::digest, encoding, pieces::Pieces};

/// Pieces that are remembered; a newer one takes the place of an older.
const SLOTS: usize = 1 << 15;

/// A counter that caches the tokens of pieces, by their digest. Two pieces of one digest would be
/// confused; with 64 bits that does not happen in practice.
#[derive(Debug)]
pub struct Counter {
    slots: Box<[(u64, u16)]>,
}

impl Counter {
    /// Runs with the counter that remembers earlier texts, or with a new one while another
    /// thread has it.
    pub fn with<T>(work: impl FnOnce(&mut Self) -> T) -> T {
        static SHARED: Mutex<Option<Counter>> = Mutex::new(None);
        match SHARED.try_lock() {
            Some(mut shared) => work(shared.get_or_insert_with(Self::new)),
            None => work(&mut Self::new()),
        }
    }

    fn new() -> Self {
        Self {
            slots: vec![(0, 0); SLOTS].into_boxed_slice(),
        }
    }

    /// Returns about the tokenizer's count for the whole text, and hardly ever less.
    pub fn count(&mut self, text: &str) -> usize {
        Pieces::of(text).map(|piece| self.piece(piece)).sum()
    }

    /// The same, but no further than to the first count above `max`.
    pub fn count_to(&mut self, text: &str, max: usize) -> usize {
        let mut count = 0;
        for piece in Pieces::of(text) {
            count += self.piece(piece);
            if count > max {
                break;
            }
        }
        count
    }

    /// Counts one of [`Pieces`], remembered for the next text that has it.
    pub fn piece(&mut self, piece: &str) -> usize {
        let bytes = piece.as_bytes();
        let is_one = match bytes {
            [_] => true,
            [b'0'..=b'9', ..] => bytes.iter().all(u8::is_ascii_digit),
            _ => false,
        };
        if is_one {
            return 1;
        }
        let digest = digest(bytes);
        let place = usize::try_from(digest % SLOTS as u64).expect("a place among few");
        let (held, count) = self.slots[place];
        if held == digest {
            return usize::from(count);
        }
        let count = encoding::count(piece);
        self.slots[place] = (digest, u16::try_from(count).unwrap_or(u16::MAX));
        count
    }
}
