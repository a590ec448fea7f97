//! The parts of a whole that is cut, or an estimate if the whole is long.

use excerpt::{Cut, Rooms, TextPiece, find_first_part, tokens::count_samples};
use printable::group_digits;

use crate::store::Parts;

/// A whole with more bytes is cut when it is read on: to find all parts takes longer than everything
/// else.
const CUT_AT_ONCE_BYTES_MAX: usize = 256 * 1024;

/// An estimate has so many digits; the others are zeros.
const DIGITS: u32 = 3;

#[derive(Debug, Clone, Copy)]
pub(super) struct WholeSize {
    pub(super) tokens: usize,
    pub(super) parts: usize,
    pub(super) is_estimate: bool,
}

impl WholeSize {
    /// Returns `61,200`, or `about 61,200`.
    pub(super) fn tokens_text(self) -> String {
        self.text(self.tokens)
    }

    pub(super) fn parts_text(self) -> String {
        self.text(self.parts)
    }

    fn text(self, number: usize) -> String {
        let about = if self.is_estimate { "about " } else { "" };
        format!("{about}{}", group_digits(number))
    }
}

/// The first part, and the others as far as they are known.
pub(super) struct Division {
    pub(super) first: Cut,
    pub(super) size: WholeSize,
    pub(super) parts: Parts,
}

impl Division {
    pub(super) fn of(pieces: &[TextPiece<'_>], rooms: Rooms) -> Self {
        let bytes: usize = pieces.iter().map(|piece| piece.text.len()).sum();
        if bytes <= CUT_AT_ONCE_BYTES_MAX {
            return Self::exact(excerpt::split(pieces, rooms));
        }
        let first = find_first_part(pieces, rooms.first);
        if first.end == bytes {
            return Self::exact(vec![first]);
        }
        let texts: Vec<&str> = pieces.iter().map(|piece| piece.text).collect();
        let tokens = round(count_samples(&texts).max(first.tokens + 1));
        let others = tokens.saturating_sub(first.tokens).div_ceil(rooms.others);
        Self {
            first,
            size: WholeSize {
                tokens,
                parts: 1 + others.max(1),
                is_estimate: true,
            },
            parts: Parts::Uncut(rooms),
        }
    }

    fn exact(cuts: Vec<Cut>) -> Self {
        Self {
            first: cuts[0],
            size: WholeSize {
                tokens: cuts.iter().map(|part| part.tokens).sum(),
                parts: cuts.len(),
                is_estimate: false,
            },
            parts: Parts::Cut(cuts),
        }
    }
}

fn round(number: usize) -> usize {
    let surplus = number.checked_ilog10().unwrap_or(0) + 1;
    let step = 10_usize.pow(surplus.saturating_sub(DIGITS));
    (number + step / 2) / step * step
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_of_a_long_whole_are_estimated() {
        let rooms = Rooms {
            first: 3_000,
            others: 3_890,
        };
        let prose = "A handle is opaque, and belongs to its client.\n".repeat(10_000);
        let digits: Vec<String> = (0..60_000).map(|number| number.to_string()).collect();
        let lists: Vec<String> = (0..800)
            .map(|n| format!("[{n}, \"{}\"]", "ab ".repeat(200)))
            .collect();
        for texts in [vec![prose.clone()], vec![digits.join("\n"), prose], lists] {
            let pieces: Vec<TextPiece<'_>> = texts.iter().map(|text| TextPiece::of(text)).collect();
            let division = Division::of(&pieces, rooms);
            let exact = Division::exact(excerpt::split(&pieces, rooms));
            assert_eq!(division.first, exact.first);
            assert!(division.size.is_estimate && matches!(division.parts, Parts::Uncut(_)));
            let (about, whole) = (division.size, exact.size);
            assert!(
                about.tokens.abs_diff(whole.tokens) * 20 < whole.tokens,
                "{about:?} {whole:?}"
            );
            assert!(
                about.parts.abs_diff(whole.parts) * 10 <= whole.parts,
                "{about:?} {whole:?}"
            );
        }
    }

    #[test]
    fn a_short_whole_is_cut_at_once() {
        let text = "word ".repeat(CUT_AT_ONCE_BYTES_MAX / 5);
        let rooms = Rooms {
            first: 100,
            others: 100,
        };
        let division = Division::of(&[TextPiece::of(&text)], rooms);
        assert!(!division.size.is_estimate && matches!(division.parts, Parts::Cut(_)));
        assert_eq!(
            [1_234, 987_654, 99_950, 42].map(round),
            [1_230, 988_000, 100_000, 42]
        );
    }
}
