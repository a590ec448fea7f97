//! One word of a query in the catalogue: the tools that contain it, and its weight.

use crate::index::{Index, IndexField};
use crate::search::weights::{B, K1, PREFIX_TRUST, RELATIVE_TRUST, SLIP_TRUST};
use crate::search::{spelling, synonyms};
use crate::words::QueryWord;
use crate::words::vocabulary::is_general_verb;

#[derive(Debug)]
pub(super) struct Term {
    pub(super) tools: Vec<(u32, u32)>,
    /// The weight of the word in the score.
    pub(super) weight: f32,
    /// The weight of its absence against a tool.
    pub(super) mass: f32,
    pub(super) must: bool,
}

impl Term {
    pub(super) fn of(index: &Index, word: &QueryWord) -> Self {
        let (tools, trust) = lookup(index, word);
        let idf = idf(index.lengths.len(), tools.len());
        // A tool is not penalised for a missing value or a missing general verb.
        let is_excused = tools.is_empty() && (word.is_value || is_general_verb(&word.exact));
        let mass = if is_excused { 0.0 } else { idf };
        Self {
            weight: idf * trust,
            mass,
            must: word.must,
            tools,
        }
    }
}

/// The tools with the word's stem, or else with a related stem, a similar spelling or a longer word that
/// begins with it; and the trust in that match.
fn lookup(index: &Index, word: &QueryWord) -> (Vec<(u32, u32)>, f32) {
    let tools = if word.is_value {
        index.postings(IndexField::Stems, &word.stem)
    } else {
        synonyms::postings(index, IndexField::Stems, &word.stem)
    };
    if !tools.is_empty() {
        return (tools, 1.0);
    }
    let tools = index.postings(IndexField::Exact, &word.exact);
    if !tools.is_empty() {
        return (tools, 1.0);
    }
    if word.is_value {
        return (Vec::new(), 0.0);
    }
    let mut relatives =
        spelling::relatives(&word.stem).map(|stem| index.postings(IndexField::Stems, stem));
    if let Some(tools) = relatives.find(|tools| !tools.is_empty()) {
        return (tools, RELATIVE_TRUST);
    }
    let any = |words: Vec<&str>| any_of(index, &words);
    let slips = any(spelling::slips(&word.exact, index.vocabulary()));
    if !slips.is_empty() {
        return (slips, SLIP_TRUST);
    }
    let begun = any(spelling::continuations(&word.exact, index.vocabulary()));
    (begun, PREFIX_TRUST)
}

fn any_of(index: &Index, words: &[&str]) -> Vec<(u32, u32)> {
    let mut tools: Vec<(u32, u32)> = words
        .iter()
        .flat_map(|word| index.postings(IndexField::Exact, word))
        .collect();
    tools.sort_unstable_by(|a, b| a.0.cmp(&b.0).then(b.1.cmp(&a.1)));
    tools.dedup_by_key(|(tool, _)| *tool);
    tools
}

/// Returns BM25's idf for the number of tools that contain the word.
#[expect(
    clippy::cast_precision_loss,
    reason = "catalogues hold thousands of tools"
)]
pub(super) fn idf(tools: usize, holders: usize) -> f32 {
    let (tools, holders) = (tools as f32, holders as f32);
    (1.0 + (tools - holders + 0.5) / (holders + 0.5)).ln()
}

/// BM25's saturation of a word's frequency in a text of this length (1 is the mean).
#[expect(clippy::cast_precision_loss, reason = "a word stands a few times")]
pub(super) fn saturation(times: u32, length: f32) -> f32 {
    let times = times as f32;
    times * (K1 + 1.0) / (times + K1 * (1.0 - B + B * length))
}
