//! Counts the tokens of long texts. Each different piece is counted once, since texts repeat words.

use parking_lot::Mutex;

use super::{digest::digest, encoding, pieces::Pieces};

/// The number of cached pieces; a newer one replaces an older one.
const SLOTS: usize = 1 << 15;

/// A counter that caches the tokens of pieces, by their digest. Two pieces of one digest would be
/// confused; with 64 bits that does not happen in practice.
#[derive(Debug)]
pub struct Counter {
    slots: Box<[(u64, u16)]>,
}

impl Counter {
    /// Runs with the shared counter, whose cache has earlier texts, or with a new one while another
    /// thread uses it.
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

    /// Returns the tokenizer's count, or slightly more for a text with very long words.
    pub fn count(&mut self, text: &str) -> usize {
        Pieces::of(text).map(|piece| self.piece(piece)).sum()
    }

    /// Like [`Counter::count`], but stops at the first count above `max`.
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

    /// Counts one of [`Pieces`], and caches the count.
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
