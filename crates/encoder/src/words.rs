//! The rows of words and places that go into the first layer.

/// Numbers of a vector.
pub const DIMENSIONS: usize = 384;

/// Words of the vocabulary.
const COUNT: usize = 30_522;

/// Words of one text, with the two that mark its ends.
pub(crate) const PLACES: usize = 256;

/// Read where it lies in the program: only the rows of a text's words are ever touched.
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

    /// A row for each id: its word's and its place's, added up.
    pub(crate) fn rows(&self, ids: &[u32]) -> Vec<f32> {
        let places = self.places.chunks_exact(DIMENSIONS * size_of::<f32>());
        let rows = ids.iter().zip(places).flat_map(|(id, place)| {
            let id = (*id as usize).min(COUNT - 1);
            let scale = number(&self.scales[id * size_of::<f32>()..]);
            let small = &self.small[id * DIMENSIONS..][..DIMENSIONS];
            let small = small.iter().map(|byte| f32::from(byte.cast_signed()));
            let place = place.chunks_exact(size_of::<f32>()).map(number);
            small
                .zip(place)
                .map(move |(word, place)| word * scale + place)
        });
        rows.collect()
    }
}

/// The little-endian number at the start of some bytes.
fn number(bytes: &[u8]) -> f32 {
    let first = bytes.first_chunk().expect("the file's size was checked");
    f32::from_le_bytes(*first)
}
