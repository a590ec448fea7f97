//! The embeddings of words and positions, the input of the first layer.

use crate::packed::{GROUP, Packed, number};

/// The numbers of a vector.
pub const DIMENSIONS: usize = 384;

/// The most words of one text, including the two end marks.
pub(crate) const PLACES: usize = 256;

/// The embeddings, read in place from the program: only the rows of a text's words are accessed.
pub(crate) struct Words {
    rows: Packed,
    scales: &'static [u8],
    places: &'static [u8],
    place_scales: &'static [u8],
}

impl Words {
    /// Reads the file with the rows of `count` words.
    pub(crate) fn of(bytes: &'static [u8], count: usize) -> Option<Self> {
        let (rows, rest) = Packed::read(bytes, count * DIMENSIONS)?;
        let (scales, rest) = rest.split_at_checked(count * size_of::<f32>())?;
        let (places, place_scales) = rest.split_at_checked(PLACES * DIMENSIONS)?;
        let fits = place_scales.len() == PLACES * size_of::<f32>();
        fits.then_some(Self {
            rows,
            scales,
            places,
            place_scales,
        })
    }

    /// Appends a row for each id: the sum of the rows of its word and its position.
    pub(crate) fn add_rows(&self, ids: &[u32], rows: &mut Vec<f32>) {
        let places = self.places.chunks_exact(DIMENSIONS);
        let place_scales = self.place_scales.chunks_exact(size_of::<f32>());
        for ((id, place), place_scale) in ids.iter().zip(places).zip(place_scales) {
            let id = *id as usize;
            let scale = number(&self.scales[id * size_of::<f32>()..]);
            let place_scale = number(place_scale);
            for ((numbers, step), place) in self.row(id).zip(place.chunks_exact(GROUP)) {
                let step = f32::from(step) * scale;
                let both = numbers.iter().zip(place);
                rows.extend(both.map(|(number, place)| {
                    f32::from(*number) * step + f32::from(place.cast_signed()) * place_scale
                }));
            }
        }
    }

    fn row(&self, id: usize) -> impl Iterator<Item = ([i8; GROUP], i8)> {
        let row = self.rows.split_at(id * DIMENSIONS);
        let row = row.and_then(|(_, row)| row.split_at(DIMENSIONS));
        let (row, _) = row.expect("an id is a line of the vocabulary");
        row.groups()
    }
}
