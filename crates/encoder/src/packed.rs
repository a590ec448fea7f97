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

    /// Replaces `integers` by the weights as integers from -63 to 63: each number times its step / 32.
    pub(crate) fn to_integers(self, integers: &mut Vec<i8>) {
        integers.clear();
        integers.resize(self.groups.len() * GROUP, 0);
        let (places, _) = integers.as_chunks_mut::<GROUP>();
        for (place, group) in places.iter_mut().zip(self.groups) {
            *place = unpack(group);
        }
        for (place, step) in places.iter_mut().zip(self.steps) {
            let step = i16::from(step.cast_signed());
            for number in place {
                *number = to_small((i16::from(*number) * step + 16) >> 5);
            }
        }
    }
}

/// Returns the numbers of a group. Eight numbers at a time are the bytes of a word.
fn unpack(bytes: &[u8; BYTES]) -> [i8; GROUP] {
    const LOW: u64 = 0x0f0f_0f0f_0f0f_0f0f;
    const LOWEST: u64 = 0x0101_0101_0101_0101;
    let word =
        |at: usize| u64::from_le_bytes(*bytes[at..].first_chunk().expect("a group is longer"));
    // The last four bytes of the group.
    let high = word(BYTES - 8) >> 32;
    // The fifth bits of the first eight numbers are the lowest bits of its bytes; those of others are two bits higher each.
    let high = high | high >> 1 << 32;
    let mut numbers = [0; GROUP];
    let (places, _) = numbers.as_chunks_mut::<8>();
    for (at, place) in places.iter_mut().enumerate() {
        let low = word(at % 2 * 8) >> (at / 2 * 4) & LOW;
        // A number is negative if its fifth bit is not set, because 16 is added to it.
        let signs = (!(high >> (2 * at)) & LOWEST) * 0xf0;
        *place = (low | signs).to_le_bytes().map(u8::cast_signed);
    }
    numbers
}

/// Reads the little-endian number at the start of some bytes.
pub(crate) fn number(bytes: &[u8]) -> f32 {
    let first = bytes.first_chunk().expect("the file's size was checked");
    f32::from_le_bytes(*first)
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
        packed.to_integers(&mut integers);
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
