//! Words that stand for each other: `registry/synonyms.toml`.

use std::collections::{BTreeMap, HashMap};
use std::sync::LazyLock;

use serde::Deserialize;

use crate::index::{Index, IndexField};
use crate::words;

/// The tools whose text holds a word or what stands for it, and how often.
pub(crate) fn postings(index: &Index, stem: &str) -> Vec<(u32, u32)> {
    let own = index.postings(IndexField::Stems, stem);
    with_others(index, own, stem)
}

/// The same for neighbours that stand joined, as in `pull request`.
pub(crate) fn joined_postings(index: &Index, joined: &str) -> Vec<(u32, u32)> {
    let own = index.postings(IndexField::Exact, joined);
    with_others(index, own, joined)
}

fn with_others(index: &Index, own: Vec<(u32, u32)>, word: &str) -> Vec<(u32, u32)> {
    let Some(others) = SYNONYMS.get(word) else {
        return own;
    };
    let mut tools: BTreeMap<u32, u32> = own.into_iter().collect();
    for (tool, times) in others.iter().flat_map(|phrase| with_all(index, phrase)) {
        let known = tools.entry(tool).or_default();
        *known = times.max(*known);
    }
    tools.into_iter().collect()
}

/// The tools that hold every word of a phrase, and how often the rarest.
fn with_all(index: &Index, phrase: &[String]) -> HashMap<u32, u32> {
    let mut words = phrase
        .iter()
        .map(|stem| index.postings(IndexField::Stems, stem));
    let mut tools: HashMap<u32, u32> = words.next().into_iter().flatten().collect();
    for word in words {
        let word: HashMap<u32, u32> = word.into_iter().collect();
        tools.retain(|tool, times| match word.get(tool) {
            Some(more) => {
                *times = (*times).min(*more);
                true
            }
            None => false,
        });
    }
    tools
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Source {
    groups: Vec<Vec<String>>,
}

/// By the stem of a word, or by words joined, the stems of what stands for it.
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
