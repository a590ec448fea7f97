//! Parses the text of a query.

use crate::limits::{QUERY_CHARS_MAX, QUERY_WORDS_MAX};
use crate::words::vocabulary::is_request_word;
use crate::words::{self, Word};

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ParsedQuery {
    /// Lists everything, by server.
    Browse,
    /// Selects exactly these tools.
    Select(Vec<String>),
    Words(QueryWords),
}

/// The words of a query that are searched.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct QueryWords {
    pub(crate) words: Vec<QueryWord>,
    /// Joined forms of identifiers and of adjacent words (`file system`): they add to a score, and never
    /// count as missing.
    pub(crate) joined: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct QueryWord {
    pub(crate) exact: String,
    pub(crate) stem: String,
    /// True for `+word`.
    pub(crate) must: bool,
    /// A number, an address or a name in the middle of a sentence: an argument rather than a part of a
    /// tool's name.
    pub(crate) is_value: bool,
}

impl ParsedQuery {
    pub(crate) fn of(text: &str) -> Self {
        let text = printable::first_chars(text, QUERY_CHARS_MAX).trim();
        if text.is_empty() || text == "*" {
            return Self::Browse;
        }
        if let Some(names) = text.strip_prefix("select:") {
            let names = names
                .split(',')
                .map(str::trim)
                .filter(|name| !name.is_empty());
            return Self::Select(names.map(str::to_owned).collect());
        }
        match QueryWords::of(text) {
            // A query of request words alone, such as "what tools are there", browses. Punctuation
            // alone does not.
            wanted if wanted.words.is_empty() && text.chars().any(char::is_alphanumeric) => {
                Self::Browse
            }
            wanted => Self::Words(wanted),
        }
    }
}

impl QueryWords {
    fn of(text: &str) -> Self {
        let mut wanted = Self::default();
        for (place, piece) in text.split_whitespace().enumerate() {
            wanted.add(piece, place);
        }
        wanted.join_neighbours();
        wanted
    }

    fn add(&mut self, piece: &str, place: usize) {
        let must = piece.len() > 1 && piece.starts_with('+');
        let is_value = is_value(piece, place);
        for Word {
            exact,
            stem,
            is_joined,
        } in words::split(piece)
        {
            if is_joined {
                self.joined.push(exact);
            } else if (must || !is_request_word(&exact)) && self.words.len() < QUERY_WORDS_MAX {
                self.add_word(QueryWord {
                    exact,
                    stem,
                    must,
                    is_value,
                });
            }
        }
    }

    fn add_word(&mut self, word: QueryWord) {
        match self.words.iter_mut().find(|known| known.stem == word.stem) {
            Some(known) => {
                known.must |= word.must;
                known.is_value &= word.is_value;
            }
            None => self.words.push(word),
        }
    }

    fn join_neighbours(&mut self) {
        let pairs = self
            .words
            .windows(2)
            .map(|pair| format!("{}{}", pair[0].exact, pair[1].exact));
        let pairs: Vec<String> = pairs.collect();
        self.joined.extend(pairs);
        self.joined.sort_unstable();
        self.joined.dedup();
        self.joined.truncate(QUERY_WORDS_MAX);
    }
}

/// Returns true if a piece of a request looks like an argument.
fn is_value(piece: &str, place: usize) -> bool {
    let has_digit = piece.chars().any(|c| c.is_ascii_digit());
    let is_address = piece.contains(['@', '\\']) || piece.contains("://") || piece.starts_with('/');
    let is_quoted = piece.starts_with(['"', '\'', '`', '\u{201c}']);
    let is_name = place > 0 && piece.chars().next().is_some_and(char::is_uppercase);
    has_digit || is_address || is_quoted || is_name
}
