//! A vector with 8 bits per number: 388 bytes.

use encoder::DIMENSIONS;

/// A vector of length one, rounded to 8 bits per number.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Vector {
    scale: f32,
    small: Box<[i8; DIMENSIONS]>,
}

impl Vector {
    /// The length of [`Vector::to_bytes`].
    pub(super) const BYTES: usize = DIMENSIONS + size_of::<f32>();

    #[expect(clippy::cast_possible_truncation, reason = "scaled to -127..=127")]
    pub(crate) fn of(numbers: &[f32]) -> Self {
        let most = numbers.iter().fold(0.0, |most: f32, it| most.max(it.abs()));
        let scale = most.max(f32::MIN_POSITIVE) / 127.0;
        let mut small = Box::new([0; DIMENSIONS]);
        for (small, number) in small.iter_mut().zip(numbers) {
            *small = (number / scale).round() as i8;
        }
        Self { scale, small }
    }

    /// Returns the rounded numbers and their scale.
    pub(crate) fn parts(&self) -> ([i8; DIMENSIONS], f32) {
        (*self.small, self.scale)
    }

    /// Returns the cosine similarity of two vectors.
    pub(crate) fn times(&self, other: &Self) -> f32 {
        let product = encoder::products(std::slice::from_ref(&*self.small), &other.small)[0];
        whole(product) * self.scale * other.scale
    }

    pub(crate) fn to_bytes(&self) -> impl Iterator<Item = u8> {
        let small = self.small.iter().map(|it| it.cast_unsigned());
        self.scale.to_le_bytes().into_iter().chain(small)
    }

    pub(crate) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (scale, small) = bytes.split_first_chunk()?;
        let small: &[u8; DIMENSIONS] = small.try_into().ok()?;
        let scale = f32::from_le_bytes(*scale);
        let small = Box::new(small.map(u8::cast_signed));
        scale.is_finite().then_some(Self { scale, small })
    }
}

#[expect(clippy::cast_precision_loss, reason = "far below 2^24")]
pub(super) fn whole(product: i32) -> f32 {
    product as f32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounding_keeps_angles_and_bytes_keep_everything() {
        let wave = |step: usize| -> Vec<f32> {
            let numbers =
                (0..DIMENSIONS).map(|at| f32::from(u16::try_from(at * step % 97).unwrap()) - 48.0);
            encoder::of_length_one(numbers.collect())
        };
        let (a, b) = (wave(7), wave(11));
        let exact: f32 = a.iter().zip(&b).map(|(a, b)| a * b).sum();
        let (a, b) = (Vector::of(&a), Vector::of(&b));
        assert!((a.times(&b) - exact).abs() < 0.01);
        assert!((a.times(&a) - 1.0).abs() < 0.01);
        let bytes: Vec<u8> = a.to_bytes().collect();
        assert_eq!(bytes.len(), Vector::BYTES);
        assert_eq!(Vector::from_bytes(&bytes), Some(a));
        assert_eq!(Vector::from_bytes(&bytes[1..]), None);
    }

    #[test]
    fn nothing_is_like_nothing() {
        let nothing = Vector::of(&[0.0; DIMENSIONS]);
        assert!(nothing.times(&nothing).abs() < f32::EPSILON);
    }
}
