//! Sums over the words of a query, for every tool.

use crate::Entry;
use crate::generation::Generation;
use crate::index::Index;
use crate::search::term::{Term, idf, saturation};
use crate::search::weights::{COORDINATION, COVERAGE_CONFIDENCE, JOINED_WEIGHT};

/// The scores of one tool; `place` is its position among the generation's visible tools.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scored {
    pub(crate) place: u32,
    pub(crate) score: f32,
    /// The score by words alone.
    pub(super) lexical: f32,
    /// The similarity of its embedding; 0 if embeddings are not used.
    pub(super) similar: f32,
    /// The share of the query's weight that the tool's words carry, 0 to 1.
    pub(super) coverage: f32,
    /// The number of words of the query that the tool contains.
    pub(super) words: u32,
}

impl Scored {
    pub(crate) fn plain(place: u32) -> Self {
        Self {
            place,
            score: 1.0,
            lexical: 0.0,
            similar: 0.0,
            coverage: 1.0,
            words: 0,
        }
    }

    /// Returns the confidence that the tool serves the request.
    pub(super) fn confidence(&self) -> f32 {
        self.similar + COVERAGE_CONFIDENCE * self.coverage
    }

    pub(crate) fn entry<'a>(&self, generation: &'a Generation) -> &'a Entry {
        &generation.visible()[self.place as usize]
    }
}

/// Sums for every tool, added word by word.
pub(super) struct Sums<'a> {
    index: &'a Index,
    totals: Vec<f32>,
    masses: Vec<f32>,
    /// One bit per word of the query.
    held: Vec<u64>,
}

impl<'a> Sums<'a> {
    pub(super) fn new(index: &'a Index) -> Self {
        let tools = index.lengths.len();
        Self {
            index,
            totals: vec![0.0; tools],
            masses: vec![0.0; tools],
            held: vec![0; tools],
        }
    }

    pub(super) fn add(&mut self, number: usize, term: &Term) {
        for &(tool, times) in &term.tools {
            let place = tool as usize;
            let length = self.index.lengths[place] / self.index.length_mean;
            self.totals[place] += term.weight * saturation(times, length);
            self.masses[place] += term.mass;
            self.held[place] |= 1 << number;
        }
    }

    /// A joined form repeats its parts, so it only adds to the score of tools that contain it. It covers
    /// words only if the parts alone are unknown (`e-mail`).
    pub(super) fn add_joined(&mut self, tools: &[(u32, u32)], unknown: f32) {
        let idf = idf(self.index.lengths.len(), tools.len());
        for &(tool, _) in tools {
            self.totals[tool as usize] += JOINED_WEIGHT * idf;
            self.masses[tool as usize] += unknown;
        }
    }

    pub(super) fn score(self, terms: &[Term], similar: Option<Vec<f32>>) -> Vec<Scored> {
        let has_similar = similar.is_some();
        let similar = similar.unwrap_or_else(|| vec![0.0; self.totals.len()]);
        let must = (0..).zip(terms).filter(|(_, term)| term.must);
        let must: u64 = must.map(|(number, _)| 1_u64 << number).sum();
        let all: f32 = terms.iter().map(|term| term.mass).sum();
        let tools = (0..).zip(self.totals).zip(self.masses).zip(self.held);
        tools
            .zip(similar)
            .filter(|((((_, sum), _), held), _)| (has_similar || *sum > 0.0) && held & must == must)
            .map(|((((place, sum), mass), held), similar)| {
                let coverage = if all > 0.0 {
                    (mass / all).min(1.0)
                } else {
                    1.0
                };
                Scored {
                    place,
                    score: 0.0,
                    lexical: sum * coverage_factor(coverage),
                    similar,
                    coverage,
                    words: held.count_ones(),
                }
            })
            .collect()
    }
}

pub(super) fn coverage_factor(coverage: f32) -> f32 {
    1.0 + COORDINATION * coverage
}

#[expect(clippy::cast_precision_loss, reason = "names have a few words")]
pub(super) fn share(part: usize, whole: usize) -> f32 {
    if whole == 0 {
        0.0
    } else {
        part as f32 / whole as f32
    }
}
