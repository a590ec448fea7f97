//! The embeddings of words and positions, the input of the first layer.

use crate::numbers::number;

/// The numbers of a vector.
pub const DIMENSIONS: usize = 384;

/// The words of the vocabulary.
const COUNT: usize = 30_522;

/// The most words of one text, including the two end marks.
pub(crate) const PLACES: usize = 256;

/// The embeddings, read in place from the program: only the rows of a text's words are accessed.
pub(crate) struct Words {
    small: &'static [u8],
    scales: &'static [u8],
    places: &'static [u8],
}

impl Words {
    pub(crate) fn of(bytes: &'static [u8]) -> Option<Self> {
        let (small, rest) = bytes.split_at_checked(COUNT * DIMENSIONS)?;
        let (scales, places) = rest.split_at_checked(COUNT * size_of::<f32>())?;
        let fits = places.len() == PLACES * DIMENSIONS * size_of::<f32>();
        fits.then_some(Self {
            small,
            scales,
            places,
        })
    }

    /// Appends a row for each id: the sum of the rows of its word and its position.
    pub(crate) fn add_rows(&self, ids: &[u32], rows: &mut Vec<f32>) {
        let places = self.places.chunks_exact(DIMENSIONS * size_of::<f32>());
        for (id, place) in ids.iter().zip(places) {
            let id = (*id as usize).min(COUNT - 1);
            let scale = number(&self.scales[id * size_of::<f32>()..]);
            let small = &self.small[id * DIMENSIONS..][..DIMENSIONS];
            let both = small.iter().zip(place.chunks_exact(size_of::<f32>()));
            let add = |(small, place): (&u8, &[u8])| {
                f32::from(small.cast_signed()) * scale + number(place)
            };
            rows.extend(both.map(add));
        }
    }
}
