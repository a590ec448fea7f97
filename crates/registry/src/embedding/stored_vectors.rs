//! The file of stored vectors.

use std::collections::BTreeMap;

use tool::Digest;

use crate::disk::Disk;
use crate::embedding::vector::Vector;
use crate::embedding::views::TextKey;

/// The name of the file, next to the catalog. It contains 404 bytes per text.
pub(crate) const FILE: &str = "meaning.bin";

/// Vectors by the key of their text.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct StoredVectors(pub(crate) BTreeMap<TextKey, Vector>);

impl StoredVectors {
    /// Reads the file. A missing or damaged file reads as empty, since vectors can be computed
    /// again.
    pub(crate) fn read(disk: &Disk) -> Self {
        let bytes = disk.read(FILE).unwrap_or_default();
        Self::parse(&bytes).unwrap_or_default()
    }

    /// Adds the vectors of `other` that are missing here.
    pub(crate) fn join(&mut self, other: Self) {
        for (key, vector) in other.0 {
            self.0.entry(key).or_insert(vector);
        }
    }

    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        for (key, vector) in &self.0 {
            bytes.extend(key);
            bytes.extend(vector.to_bytes());
        }
        bytes.extend(sum(&bytes));
        bytes
    }

    fn parse(bytes: &[u8]) -> Option<Self> {
        let (rest, expected) = bytes.split_last_chunk::<SUM_BYTES>()?;
        if sum(rest) != *expected {
            return None;
        }
        let rows = rest
            .strip_prefix(MAGIC)?
            .chunks(size_of::<TextKey>() + Vector::BYTES);
        let rows = rows.map(|row| {
            let (key, vector) = row.split_first_chunk()?;
            Some((*key, Vector::from_bytes(vector)?))
        });
        rows.collect::<Option<_>>().map(Self)
    }
}

const MAGIC: &[u8] = b"proxy meaning 1\n";
const SUM_BYTES: usize = 16;

fn sum(bytes: &[u8]) -> [u8; SUM_BYTES] {
    let text = Digest::of_bytes(bytes).short(SUM_BYTES);
    text.as_bytes()
        .try_into()
        .expect("as many digits as asked for")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn kept(keys: &[u8]) -> StoredVectors {
        let mut kept = StoredVectors::default();
        for key in keys {
            let numbers = vec![f32::from(*key); encoder::DIMENSIONS];
            kept.0.insert([*key; 16], Vector::of(&numbers));
        }
        kept
    }

    proptest! {
        #[test]
        fn a_file_reads_as_what_was_written_or_as_nothing(keys: Vec<u8>, at: usize, bit in 0..8_u8) {
            let kept = kept(&keys);
            let mut bytes = kept.to_bytes();
            prop_assert_eq!(StoredVectors::parse(&bytes), Some(kept));
            let at = at % bytes.len();
            prop_assert_eq!(StoredVectors::parse(&bytes[..at]), None);
            bytes[at] ^= 1 << bit;
            prop_assert_eq!(StoredVectors::parse(&bytes), None);
        }
    }
}
