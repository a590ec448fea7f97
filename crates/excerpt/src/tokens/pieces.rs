//! The pieces of a text whose tokens are counted one by one.

use super::encoding::find_piece_end;

/// The longest piece, in bytes. A longer run is counted in several pieces, since the time of the
/// encoding grows with the square of a piece's length.
const PIECE_BYTES_MAX: usize = 64;

/// The text in which the end of a piece is searched, in bytes. It is longer than a piece, because the
/// characters after a piece decide where it ends.
const WINDOW_BYTES: usize = 2 * PIECE_BYTES_MAX;

/// The pieces of a text in order; joined they are the text. They are those of the encoding, except
/// that long ones are split, which counts for a little more.
#[derive(Debug)]
pub struct Pieces<'a> {
    rest: &'a str,
}

impl<'a> Pieces<'a> {
    /// Returns the pieces of a text.
    pub fn of(text: &'a str) -> Self {
        Self { rest: text }
    }
}

impl<'a> Iterator for Pieces<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        let window = &self.rest[..self.rest.floor_char_boundary(WINDOW_BYTES)];
        let end = find_piece_end(window)?.min(PIECE_BYTES_MAX);
        let (piece, rest) = self.rest.split_at(self.rest.floor_char_boundary(end));
        self.rest = rest;
        Some(piece)
    }
}

#[cfg(test)]
mod tests {
    use super::Pieces;

    #[track_caller]
    fn check(text: &str, expected: &[&str]) {
        assert_eq!(Pieces::of(text).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn pieces_are_those_of_the_pattern() {
        check(
            "It's 12345 HTTPServers",
            &["It's", " ", "123", "45", " HTTPServers"],
        );
        check("a  b\n\n  c", &["a", " ", " b", "\n\n", " ", " c"]);
        check(
            r#"{"id":1,"name":"x"}"#,
            &["{\"", "id", "\":", "1", ",\"", "name", "\":\"", "x", "\"}"],
        );
        check("end.\nnext  ", &["end", ".\n", "next", "  "]);
        check("日本 ünï", &["日本", " ünï"]);
        check("", &[]);
    }

    #[test]
    fn a_long_run_is_split() {
        let text = "é".repeat(1_000);
        let pieces: Vec<&str> = Pieces::of(&text).collect();
        assert!(pieces.iter().all(|piece| piece.len() <= 64));
        assert_eq!(pieces.concat(), text);
    }
}
