//! Numbers drawn from a seed.

/// A generator that yields the same numbers for a seed on every machine (`SplitMix64`).
#[derive(Debug)]
pub(super) struct Random(u64);

impl Random {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Creates a generator that depends only on the seed and a number, not on the order of draws.
    pub(super) fn of(seed: u64, number: usize) -> Self {
        let mut mixed = Self(seed ^ (number as u64).wrapping_mul(0xD134_2543_DE82_EF95));
        mixed.next();
        mixed
    }

    pub(super) fn below(&mut self, end: usize) -> usize {
        let drawn = self.next() % (end.max(1) as u64);
        usize::try_from(drawn).expect("the number fits a usize")
    }

    pub(super) fn pick<'a, T>(&mut self, things: &'a [T]) -> Option<&'a T> {
        let at = self.below(things.len());
        things.get(at)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }
}

#[cfg(test)]
mod tests {
    use super::Random;

    #[test]
    fn a_seed_draws_the_same_numbers_again_and_another_does_not() {
        let draw = |seed| {
            let mut random = Random::of(seed, 3);
            (0..20).map(|_| random.below(1_000)).collect::<Vec<_>>()
        };
        assert_eq!(draw(7), draw(7));
        assert_ne!(draw(7), draw(8));
        assert_eq!(Random::new(1).pick::<u8>(&[]), None);
    }
}
