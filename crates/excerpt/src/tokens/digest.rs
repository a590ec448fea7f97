//! Digests of words, and the layout of the hash table of words. The build script uses this file too.

/// The slots of the table: a power of two, of which three quarters are used.
pub(crate) const SLOTS: usize = 1 << 18;

/// An unused slot.
pub(crate) const EMPTY: u32 = u32::MAX;

/// The bits of a rank in an entry; the other bits contain a part of the digest.
pub(crate) const RANK_BITS: u32 = 18;

/// Computes a digest of bytes, never 0.
pub(crate) fn digest(bytes: &[u8]) -> u64 {
    const MIX: u64 = 0x9E37_79B9_7F4A_7C15;
    let mut digest = (bytes.len() as u64).wrapping_mul(MIX);
    let (words, rest) = bytes.as_chunks::<8>();
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    for word in words.iter().chain([&last]) {
        digest = (digest ^ u64::from_le_bytes(*word)).wrapping_mul(MIX);
        digest ^= digest >> 29;
    }
    digest.max(1)
}

/// Returns the slot at which the search for a word begins.
pub(crate) fn find_slot(word: &[u8]) -> usize {
    usize::try_from(digest(word) % SLOTS as u64).expect("a place of the table")
}

/// Returns the table entry of a word. It is never [`EMPTY`], because not all values of the rank bits
/// are used.
pub(crate) fn make_entry(word: &[u8], rank: u32) -> u32 {
    let part = u32::try_from(digest(word) >> 40 & 0x3fff).expect("fourteen bits");
    part << RANK_BITS | rank
}
