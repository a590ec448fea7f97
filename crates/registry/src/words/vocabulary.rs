//! Common words of requests, from `registry/requests.toml`.

use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;

use serde::{Deserialize, Deserializer};

use crate::words;

type Words = HashSet<String>;

/// The lists of the file, which explains each of them.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Vocabulary {
    pub(crate) request_words: Words,
    pub(crate) general_verbs: Words,
    pub(crate) sequence: Words,
    pub(crate) leads: Words,
    pub(crate) object_starts: Words,
    pub(crate) verbs: Words,
    pub(crate) noun_verbs: Words,
    pub(crate) any_operation: Words,
    /// The rows that have a verb or its stem, one bit each.
    #[serde(deserialize_with = "read_rows")]
    pub(crate) operations: HashMap<String, u8>,
}

fn read_rows<'de, D: Deserializer<'de>>(from: D) -> Result<HashMap<String, u8>, D::Error> {
    let mut rows = HashMap::new();
    for (row, verbs) in Vec::<Vec<String>>::deserialize(from)?.iter().enumerate() {
        for word in verbs.iter().flat_map(|verb| words::split(verb)) {
            for text in HashSet::from([word.exact, word.stem]) {
                *rows.entry(text).or_default() |= 1 << row;
            }
        }
    }
    Ok(rows)
}

pub(crate) static VOCABULARY: LazyLock<Vocabulary> =
    LazyLock::new(|| toml::from_str(SOURCE).expect("a test reads the same embedded file"));

/// Returns true for a word that only makes a request polite or grammatical.
pub(crate) fn is_request_word(word: &str) -> bool {
    VOCABULARY.request_words.contains(word)
}

/// Returns true for a verb so general that tools for it may use another verb.
pub(crate) fn is_general_verb(word: &str) -> bool {
    VOCABULARY.general_verbs.contains(word)
}

const SOURCE: &str = include_str!("../../../../registry/requests.toml");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_verb_is_the_name_of_a_thing_or_it_is_not() {
        let both = VOCABULARY.verbs.intersection(&VOCABULARY.noun_verbs);
        assert_eq!(both.collect::<Vec<_>>(), Vec::<&String>::new());
    }

    #[test]
    fn verbs_that_name_what_tools_do_are_not_left_out_of_a_request() {
        for verb in ["list", "get", "find", "show"] {
            assert!(!is_request_word(verb), "{verb}");
        }
    }
}
