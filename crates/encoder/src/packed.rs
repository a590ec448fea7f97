//! Weights of 5 bits, as `crates/encoder/training/network.py` describes their files.

/// The weights that share a step: one that is chosen for them, and a byte in the file.
pub(crate) const GROUP: usize = 32;
/// The bytes of a group.
const BYTES: usize = GROUP * 5 / 8;

/// Weights that are read in place.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Packed {
    groups: &'static [[u8; BYTES]],
    steps: &'static [u8],
}

impl Packed {
    /// Reads this many weights from the beginning of a file; returns them and the rest of the file.
    pub(crate) fn read(bytes: &'static [u8], weights: usize) -> Option<(Self, &'static [u8])> {
        let (groups, bytes) = bytes.split_at_checked(weights / GROUP * BYTES)?;
        let (steps, bytes) = bytes.split_at_checked(weights / GROUP)?;
        let (groups, _) = groups.as_chunks();
        Some((Self { groups, steps }, bytes))
    }

    /// Splits off the first weights; their number is a multiple of [`GROUP`].
    pub(crate) fn split_at(self, weights: usize) -> Option<(Self, Self)> {
        let (groups, groups_behind) = self.groups.split_at_checked(weights / GROUP)?;
        let (steps, steps_behind) = self.steps.split_at_checked(weights / GROUP)?;
        let behind = Self {
            groups: groups_behind,
            steps: steps_behind,
        };
        Some((Self { groups, steps }, behind))
    }

    /// Returns the numbers from -16 to 15 of each group, and its step.
    pub(crate) fn groups(self) -> impl Iterator<Item = ([i8; GROUP], i8)> {
        let numbers = self.groups.iter().map(unpack);
        numbers.zip(self.steps.iter().map(|step| step.cast_signed()))
    }

    /// Appends each weight as an integer from -63 to 63: its number times its step / 32.
    pub(crate) fn add_integers(self, integers: &mut Vec<i8>) {
        for (numbers, step) in self.groups() {
            let step = i16::from(step);
            integers.extend(numbers.map(|it| to_small((i16::from(it) * step + 16) >> 5)));
        }
    }
}

/// Returns the numbers of a group. The loops have no branch, so they are compiled to vector instructions.
fn unpack(bytes: &[u8; BYTES]) -> [i8; GROUP] {
    let (low, high) = bytes.split_at(GROUP / 2);
    let mut numbers = [0_u8; GROUP];
    let (first, second) = numbers.split_at_mut(GROUP / 2);
    for ((first, second), byte) in first.iter_mut().zip(second).zip(low) {
        *first = byte & 15;
        *second = byte >> 4;
    }
    for (bit, four) in numbers.chunks_exact_mut(4).enumerate() {
        for (number, byte) in four.iter_mut().zip(high) {
            *number |= (byte >> bit & 1) << 4;
        }
    }
    numbers.map(|it| it.cast_signed() - 16)
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "16 times a step of at most 126, divided by 32, is 63"
)]
fn to_small(integer: i16) -> i8 {
    integer as i8
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two groups: number `k` of the first is `k - 16`; the second has 15 and, in its second half, -16.
    static FILE: [u8; 2 * (BYTES + 1) + 1] = {
        let mut file = [0; 2 * (BYTES + 1) + 1];
        let (mut at, mut byte) = (0, 0_u8);
        while at < GROUP / 2 {
            file[at] = byte;
            file[BYTES + at] = 0x0f;
            at += 1;
            byte = byte.wrapping_add(0x11);
        }
        while at < BYTES {
            file[at] = 0xf0;
            file[BYTES + at] = 0x0f;
            at += 1;
        }
        file[2 * BYTES] = 32;
        file[2 * BYTES + 1] = (-126_i8).cast_unsigned();
        file
    };

    #[test]
    fn weights_are_numbers_times_the_step_of_their_group() {
        let (packed, rest) = Packed::read(&FILE, 2 * GROUP).unwrap();
        assert_eq!(rest.len(), 1);
        let mut integers = Vec::new();
        packed.add_integers(&mut integers);
        let first: Vec<i8> = (-16..16).collect();
        assert_eq!(integers[..GROUP], first);
        assert_eq!(integers[GROUP..GROUP + GROUP / 2], [-59; GROUP / 2]);
        assert_eq!(integers[GROUP + GROUP / 2..], [63; GROUP / 2]);
        let (_, second) = packed.split_at(GROUP).unwrap();
        let (numbers, step) = second.groups().next().unwrap();
        assert_eq!((numbers[0], numbers[GROUP / 2], step), (15, -16, -126));
        assert!(second.split_at(2 * GROUP).is_none());
        assert!(Packed::read(&FILE, 4 * GROUP).is_none());
    }
}
