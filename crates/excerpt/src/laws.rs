//! Laws of cutting, each for any bytes: properties in tests, targets for a fuzzer.

use serde::de::IgnoredAny;

use crate::{
    Rooms, TextPiece, close, describe_shape, find_first_cut, find_first_part, locate, split,
    tokens::Pieces,
};

/// Texts and rooms from bytes: two bytes choose the rooms, a zero byte ends a text.
fn read(input: &[u8]) -> (Vec<String>, Rooms) {
    let room = |at: usize| 64 + usize::from(input.get(at).copied().unwrap_or(0));
    let texts = input.get(2..).unwrap_or_default().split(|byte| *byte == 0);
    let texts = texts.map(|text| String::from_utf8_lossy(text).into_owned());
    let (first, others) = (room(0), room(1));
    let rooms = Rooms {
        first: first.min(others),
        others,
    };
    (texts.collect(), rooms)
}

/// Checks that the joined parts of any texts are the texts, no part is empty, none splits a character, and
/// the first is the one that is found alone.
///
/// # Panics
///
/// Panics if the property does not hold.
pub fn parts_joined_are_the_whole(input: &[u8]) {
    let (texts, rooms) = read(input);
    let pieces: Vec<TextPiece<'_>> = texts.iter().map(|text| TextPiece::of(text)).collect();
    let whole = texts.concat();
    let mut start = 0;
    let cuts = split(&pieces, rooms);
    assert_eq!(cuts[0], find_first_part(&pieces, rooms.first), "{texts:?}");
    for cut in cuts {
        assert!(cut.end > start || whole.is_empty(), "{texts:?}");
        assert!(whole.is_char_boundary(cut.end), "{texts:?}");
        start = cut.end;
    }
    assert_eq!(start, whole.len(), "{texts:?}");
    assert_eq!(Pieces::of(&whole).collect::<String>(), whole);
}

/// Checks that the beginning of any text is completed to valid JSON or left unchanged, and described
/// in one line.
///
/// # Panics
///
/// Panics if the property does not hold.
pub fn a_beginning_is_closed_or_left(input: &[u8]) {
    let (texts, rooms) = read(input);
    for text in &texts {
        let piece = TextPiece::of(text);
        let cut = find_first_cut(&piece, rooms.first);
        if let Some(closed) = close(&text[..cut.end]) {
            assert!(
                serde_json::from_str::<IgnoredAny>(&closed).is_ok(),
                "{text}"
            );
        }
        if let Some(place) = locate(text, cut.end) {
            assert!(place.shown <= place.items, "{text}");
        }
        assert!(!describe_shape(&piece).contains('\n'), "{text}");
    }
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::*};

    /// Bytes that are text of some kind now and then.
    fn almost_text() -> impl Strategy<Value = Vec<u8>> {
        let lines = prop_oneof![
            "(\\{\"[a-z]{1,4}\":\\[?[0-9\",]{0,9}\\]?,?){0,80}",
            "([a-z\"]{1,6},[0-9]{1,3}\n){0,80}",
            "(#{1,3} [a-z]{1,9}\n\n|[a-z ]{9,40}\n){0,40}",
        ];
        (any::<[u8; 2]>(), vec(lines, 1..4))
            .prop_map(|(rooms, texts)| [&rooms[..], texts.join("\0").as_bytes()].concat())
    }

    fn input() -> impl Strategy<Value = Vec<u8>> {
        prop_oneof![vec(any::<u8>(), 0..600), almost_text()]
    }

    proptest! {
        #[test]
        fn parts_joined_are_the_whole(input in input()) {
            super::parts_joined_are_the_whole(&input);
        }

        #[test]
        fn a_beginning_is_closed_or_left(input in input()) {
            super::a_beginning_is_closed_or_left(&input);
        }
    }
}
