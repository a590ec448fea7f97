//! Conversion of numbers in the files, and of counts.

/// Reads the little-endian number at the start of some bytes.
pub(crate) fn number(bytes: &[u8]) -> f32 {
    let first = bytes.first_chunk().expect("the file's size was checked");
    f32::from_le_bytes(*first)
}

#[expect(clippy::cast_precision_loss, reason = "rows and their numbers are few")]
pub(crate) fn count(things: usize) -> f32 {
    things as f32
}
