//! Synonyms: `registry/synonyms.toml`.

use std::collections::HashMap;
use std::sync::LazyLock;

use serde::Deserialize;

use crate::index::{Index, IndexField};
use crate::words;

/// Returns the tools whose text contains a word or a synonym of it, with the count. The word is a stem or,
/// in the exact field, the joined form of adjacent words, as in `pull request`.
pub(crate) fn postings(index: &Index, field: IndexField, word: &str) -> Vec<(u32, u32)> {
    let mut tools = index.postings(field, word);
    let Some(others) = SYNONYMS.get(word) else {
        return tools;
    };
    for phrase in others {
        tools.append(&mut with_all(index, phrase));
    }
    // Keeps the highest count of each tool.
    tools.sort_unstable_by(|a, b| a.0.cmp(&b.0).then(b.1.cmp(&a.1)));
    tools.dedup_by_key(|(tool, _)| *tool);
    tools
}

/// The tools that contain every word of a phrase, with the count of the rarest word.
fn with_all(index: &Index, phrase: &[String]) -> Vec<(u32, u32)> {
    let mut words = phrase
        .iter()
        .map(|stem| index.postings(IndexField::Stems, stem));
    let mut tools = words.next().unwrap_or_default();
    for mut word in words {
        word.sort_unstable();
        tools.retain_mut(|(tool, times)| {
            let held = word.binary_search_by_key(tool, |(tool, _)| *tool);
            held.is_ok_and(|at| {
                *times = (*times).min(word[at].1);
                true
            })
        });
    }
    tools
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Source {
    groups: Vec<Vec<String>>,
}

/// The stems of the synonyms, by the stem of a word or by joined words.
static SYNONYMS: LazyLock<HashMap<String, Vec<Vec<String>>>> = LazyLock::new(|| {
    let source: Source = toml::from_str(include_str!("../../../../registry/synonyms.toml"))
        .expect("a test reads the same embedded file");
    let mut synonyms: HashMap<String, Vec<Vec<String>>> = HashMap::new();
    for group in source.groups {
        for phrase in &group {
            let others = group.iter().filter(|other| *other != phrase);
            let others = others.map(|other| words::stems(other));
            synonyms.entry(key(phrase)).or_default().extend(others);
        }
    }
    synonyms
});

fn key(phrase: &str) -> String {
    match words::stems(phrase).as_slice() {
        [stem] => stem.clone(),
        _ => phrase.split(' ').collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_stands_for_another_and_the_other_for_it() {
        let of = |word: &str| SYNONYMS[word].clone();
        assert!(of("pr").contains(&words::stems("pull request")));
        assert!(of("pullrequest").contains(&words::stems("pr")));
        assert!(
            of("kubernet").contains(&words::stems("k8s")),
            "{:?}",
            SYNONYMS.keys()
        );
    }
}
