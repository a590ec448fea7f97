//! The score of every tool against the words of a query.
//!
//! Postings come from the index, everything else is computed here: statistics over live documents
//! only, unknown words, and the share of the query that a tool covers. If tools have vectors, the
//! score begins with the similarity of the embeddings of tool and request. To it are added that share,
//! the score of the words relative to the best tool's, and a score of the server.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::embedding::Similar;
use crate::generation::Generation;
use crate::index::IndexField;
use crate::limits::SECOND_LOOK;
use crate::search::learned;
use crate::search::sums::{Scored, Sums, share};
use crate::search::synonyms;
use crate::search::term::Term;
use crate::search::values;
use crate::search::weights::{
    COMPARED_PLACE, COMPARED_SHARE, CONFIDENCE_A_WORD, CONFIDENCE_MIN_LONG, CONFIDENCE_MIN_SHORT,
    CONFIDENCE_NEAR, COVERAGE_NEAR, COVERED_WEIGHT, DEPRECATED, LEAD_MAX, LEAD_OFFERED,
    MEANT_SHARE_MIN, NAME_SPELT, ODDS_BASE, ODDS_CONFIDENCE, ODDS_LEAD, ODDS_OFFERED, ODDS_SIZE,
    ODDS_SURE, OURS_COVERAGE_MIN, OURS_SHARE_MIN, SCORE_SHARE_MIN, SERVER_ABOUT, SERVER_NAMED,
    SERVER_NEAR, SERVER_SIZE, SERVER_SPELT, SURE, TEXTS_MIN, WORDS_WEIGHT,
};
use crate::words::Operations;
use crate::words::QueryWords;
use crate::{Entry, Learned};

/// The tools that fit a query.
#[derive(Debug)]
pub(crate) struct Fitting {
    /// Tools of servers, best first.
    pub(crate) tools: Vec<Scored>,
    /// Built-in tools that fit, best first: about as well as the best of `tools`, or surely if none
    /// of those fits.
    pub(crate) ours: Vec<Scored>,
    /// True if the best of `tools` is near, but not near enough to be sure, or does something else than
    /// the request asks for.
    pub(crate) is_guess: bool,
}

impl Fitting {
    pub(crate) fn is_empty(&self) -> bool {
        self.tools.is_empty() && self.ours.is_empty()
    }
}

#[derive(Debug)]
pub(crate) struct Ranking {
    /// Every tool that contains a word of the query (any tool, if embeddings are used) and all
    /// required words, unordered.
    scored: Vec<Scored>,
    has_similar: bool,
    /// The amount that each tool's server adds to the similarity; none if embeddings are not used.
    pub(super) context: Option<Vec<f32>>,
    /// The amount that learned requests add to a tool's similarity, or to the factor of its words; by place.
    pub(super) learned: BTreeMap<u32, f32>,
    operations: Operations,
    /// Stems of the query, to compare with names.
    stems: BTreeSet<String>,
    pub(crate) unknown_words: Vec<String>,
    coverage_min: f32,
    confidence_min: f32,
    /// Texts that were compared for each tool, on average.
    texts_a_tool: f32,
}

impl Ranking {
    /// `text` is the request as it was written, for its embedding.
    pub(crate) fn new(
        generation: &Generation,
        wanted: &QueryWords,
        text: &str,
        learned: Option<&Learned>,
    ) -> Self {
        let similar = generation.similar(&values::with_kinds(text));
        let (vector, similar) = similar.unzip();
        let index = &generation.index;
        let terms: Vec<Term> = wanted
            .words
            .iter()
            .map(|word| Term::of(index, word))
            .collect();
        let mut sums = Sums::new(index);
        for (number, term) in terms.iter().enumerate() {
            sums.add(number, term);
        }
        let unknown: f32 = terms
            .iter()
            .filter(|term| term.tools.is_empty())
            .map(|term| term.mass)
            .sum();
        for joined in &wanted.joined {
            let tools = synonyms::postings(index, IndexField::Exact, joined);
            sums.add_joined(&tools, unknown);
        }
        let unknown = wanted
            .words
            .iter()
            .zip(&terms)
            .filter(|(_, term)| term.tools.is_empty());
        let stems = wanted.words.iter().map(|word| word.stem.clone()).collect();
        let context = similar.as_ref().map(|it| context(generation, it, &stems));
        let mut scored = sums.score(&terms, similar.map(|it| it.tools));
        let learned = learned.map_or_else(BTreeMap::new, |it| {
            learned::raise(generation, it, (vector.as_ref(), &stems), &mut scored)
        });
        Self {
            has_similar: context.is_some(),
            operations: Operations::of_request(text),
            context,
            learned,
            scored,
            stems,
            unknown_words: unknown.map(|(word, _)| word.exact.clone()).collect(),
            coverage_min: coverage_min(&terms),
            confidence_min: confidence_min(wanted.words.len()),
            texts_a_tool: share(generation.embeddings.texts(), generation.visible().len()),
        }
    }

    /// Returns the fitting tools of servers, best first, and the built-in tools that surely fit.
    /// Only the first `shown` (and a few more) are sorted exactly. No tool of a server fits if even
    /// the best covers too little of the query.
    pub(crate) fn best(
        &self,
        generation: &Generation,
        shown: usize,
        admits: impl Fn(&Entry) -> bool,
    ) -> Fitting {
        let tools = self.admitted(generation, admits);
        let is_ours = |tool: &Scored| generation.is_built_in(tool.place);
        let (mut ours, mut tools): (Vec<Scored>, Vec<Scored>) =
            tools.into_iter().partition(is_ours);
        // A filter may leave only built-in tools.
        let are_asked = tools.is_empty() && self.fits(&ours);
        let is_guess = self.has_similar && self.odds(&tools) < ODDS_SURE;
        if !self.fits(&tools) {
            tools.clear();
        }
        let share = if self.has_similar {
            MEANT_SHARE_MIN
        } else {
            SCORE_SHARE_MIN
        };
        let top = most(&tools, |tool| tool.score);
        tools.retain(|tool| tool.score >= top * share);
        self.order(generation, &mut tools, shown.max(SECOND_LOOK));
        let does_else = |tool: &Scored| {
            let operations = tool.entry(generation).operations();
            !self.operations.meets(operations)
        };
        let is_guess = is_guess || tools.first().is_some_and(does_else);
        let is_unserved = tools.is_empty() || is_guess;
        ours.retain(|tool| {
            let rivals = !tools.is_empty() && tool.score >= top * OURS_SHARE_MIN;
            are_asked || rivals || is_unserved && self.fits_surely(tool)
        });
        self.order(generation, &mut ours, shown.max(SECOND_LOOK));
        if !are_asked {
            ours.truncate(OURS_MAX);
        }
        Fitting {
            tools,
            ours,
            is_guess,
        }
    }

    /// Returns true if this built-in tool surely fits the request, whatever tools servers have.
    fn fits_surely(&self, tool: &Scored) -> bool {
        if self.has_similar {
            tool.confidence() >= self.confidence_min + SURE
        } else {
            tool.words >= WORDS_THAT_FIT && tool.coverage >= OURS_COVERAGE_MIN
        }
    }

    /// Returns true if the best of these fits the request. A missed tool is worse than a wrong
    /// offer, so doubtful tools fit.
    fn fits(&self, tools: &[Scored]) -> bool {
        if tools.is_empty() {
            return false;
        }
        if self.has_similar {
            return self.odds(tools) >= ODDS_OFFERED || is_ahead(tools);
        }
        let words = tools.iter().map(|tool| tool.words).max();
        let coverage = most(tools, |tool| tool.coverage);
        coverage >= self.coverage_min || words >= Some(WORDS_THAT_FIT)
    }

    /// Returns the odds, as a logarithm, that one of these tools serves the request.
    fn odds(&self, tools: &[Scored]) -> f32 {
        let mut confidences: Vec<f32> = tools.iter().map(Scored::confidence).collect();
        let Some(place) = confidences.len().checked_sub(1) else {
            return f32::NEG_INFINITY;
        };
        let compared = (tools.len() / COMPARED_SHARE).clamp(1, COMPARED_PLACE);
        let place = place.min(compared);
        let (before, compared, _) =
            confidences.select_nth_unstable_by(place, |a, b| b.total_cmp(a));
        let compared = *compared;
        let best = before.iter().copied().fold(compared, f32::max);
        let texts = count(tools.len()) * self.texts_a_tool;
        ODDS_BASE
            + ODDS_CONFIDENCE * (best - self.confidence_min)
            + ODDS_LEAD * (best - compared).min(LEAD_MAX)
            + ODDS_SIZE * texts.max(TEXTS_MIN).ln()
    }

    /// Returns the most similar tools of servers, best first, although none fits; and true if one is so
    /// similar that it may be the right one.
    pub(crate) fn nearest(
        &self,
        generation: &Generation,
        admits: impl Fn(&Entry) -> bool,
    ) -> (Vec<Scored>, bool) {
        let mut tools = self.admitted(generation, admits);
        tools.retain(|tool| !generation.is_built_in(tool.place));
        let is_near = if self.has_similar {
            most(&tools, Scored::confidence) >= CONFIDENCE_NEAR
        } else {
            most(&tools, |tool| tool.coverage) >= COVERAGE_NEAR
        };
        self.order(generation, &mut tools, SECOND_LOOK);
        (tools, is_near)
    }

    /// Tools of servers, harmless ones first, for a search by words alone that shares no word with any of
    /// them: a few tools of a small catalogue show what exists.
    pub(crate) fn any(
        &self,
        generation: &Generation,
        admits: impl Fn(&Entry) -> bool,
    ) -> Vec<Scored> {
        let places = (0..).take(generation.visible().len());
        let mut tools: Vec<Scored> = places.map(Scored::plain).collect();
        tools.retain(|tool| !generation.is_built_in(tool.place) && admits(tool.entry(generation)));
        self.order(generation, &mut tools, SECOND_LOOK);
        tools
    }

    /// Returns the admitted tools with their scores: of embedding, words and server.
    fn admitted(&self, generation: &Generation, admits: impl Fn(&Entry) -> bool) -> Vec<Scored> {
        let tools = self.scored.iter().copied();
        let mut tools: Vec<Scored> = tools
            .filter(|tool| admits(tool.entry(generation)))
            .collect();
        self.mix(&mut tools);
        tools
    }

    /// Combines the scores of embedding, words and server.
    fn mix(&self, tools: &mut [Scored]) {
        let best = most(tools, |tool| tool.lexical).max(f32::MIN_POSITIVE);
        for tool in tools {
            tool.score = match &self.context {
                Some(context) => {
                    let words = COVERED_WEIGHT * tool.coverage + WORDS_WEIGHT * tool.lexical / best;
                    tool.similar + words + context[tool.place as usize]
                }
                None => tool.lexical,
            };
        }
    }

    /// Moves the `first` best to the front by score alone, then sorts them exactly.
    fn order(&self, generation: &Generation, tools: &mut [Scored], first: usize) {
        let by_score = |a: &Scored, b: &Scored| {
            b.score
                .total_cmp(&a.score)
                .then_with(|| a.place.cmp(&b.place))
        };
        if tools.len() > first {
            tools.select_nth_unstable_by(first, by_score);
        }
        let first = first.min(tools.len());
        let front = &mut tools[..first];
        for tool in front.iter_mut() {
            tool.lexical *= self.name_factor(tool.entry(generation));
        }
        self.mix(front);
        for tool in front.iter_mut() {
            if tool.entry(generation).is_deprecated() {
                tool.score *= DEPRECATED;
            }
        }
        front.sort_by(|a, b| by_rank(generation, a, b));
    }

    /// Returns a higher factor for a tool if the query spells out its name or its server's.
    pub(super) fn name_factor(&self, entry: &Entry) -> f32 {
        let name = 1.0 + NAME_SPELT * score_spelling(entry.name_stems(), &self.stems);
        if names_product(entry, &self.stems) {
            name * (1.0 + SERVER_SPELT)
        } else {
            name
        }
    }
}

/// Returns true if a query with these words contains a name of the product of the tool's server.
fn names_product(entry: &Entry, query: &BTreeSet<String>) -> bool {
    let mut names = entry.products.iter();
    names.any(|name| score_spelling(name, query) >= 1.0)
}

/// Returns the share of a name's words that the query contains.
fn score_spelling(name: &BTreeSet<String>, query: &BTreeSet<String>) -> f32 {
    share(name.intersection(query).count(), name.len())
}

/// Returns the amount that each visible tool's server adds to its similarity: from the similarity of all
/// its tools and of its description; less if it has many tools, of which some are similar to anything by
/// chance; more if the query names its product.
fn context(generation: &Generation, similar: &Similar, query: &BTreeSet<String>) -> Vec<f32> {
    let mut context = Vec::with_capacity(similar.tools.len());
    let of_one_server = |a: &Arc<Entry>, b: &Arc<Entry>| a.at.server == b.at.server;
    let servers = generation.visible().chunk_by(of_one_server);
    for (tools, about) in servers.zip(&similar.servers) {
        let begin = context.len();
        let sum: f32 = similar.definitions[begin..begin + tools.len()].iter().sum();
        let count = count(tools.len());
        let mean = sum / count;
        let mut near = SERVER_NEAR * mean + SERVER_ABOUT * about.unwrap_or(mean);
        if names_product(&tools[0], query) {
            near += SERVER_NAMED;
        }
        context.resize(begin + tools.len(), near - SERVER_SIZE * count.ln());
    }
    context
}

/// Orders by score, then real tools before built-in ones, read-only before destructive, the shorter
/// name, the alphabet.
fn by_rank(generation: &Generation, a: &Scored, b: &Scored) -> Ordering {
    let key = |tool: &Scored| {
        let entry = tool.entry(generation);
        let danger = if entry.is_read_only() {
            0
        } else {
            1 + u8::from(entry.is_destructive())
        };
        let is_ours = entry.at.server.is_built_in();
        (is_ours, danger, entry.tool.name().len())
    };
    let by_name = || a.entry(generation).at.cmp(&b.entry(generation).at);
    round_score(b.score)
        .cmp(&round_score(a.score))
        .then_with(|| key(a).cmp(&key(b)))
        .then_with(by_name)
}

/// Scores closer than a thousandth are equal: rounding errors must not outrank danger.
#[expect(clippy::cast_possible_truncation, reason = "scores are small")]
fn round_score(score: f32) -> i64 {
    (score * 1_000.0).round() as i64
}

/// The share of a query with unknown words that the best tool must cover. A short query is mostly
/// keywords and begins with the action; a tool covers little of a long one.
fn coverage_min(terms: &[Term]) -> f32 {
    let asked: Vec<&Term> = terms.iter().filter(|term| term.mass > 0.0).collect();
    if asked.iter().all(|term| !term.tools.is_empty()) {
        return 0.0;
    }
    let action_is_unknown = asked.first().is_some_and(|term| term.tools.is_empty());
    match asked.len() {
        0..=2 if action_is_unknown => 0.5,
        3 if action_is_unknown => 0.4,
        0..=3 => 0.3,
        4..=5 => 0.14,
        6..=8 => 0.08,
        _ => 0.05,
    }
}

/// Returns true if one tool is clearly nearer than all others, though it may not be near.
fn is_ahead(tools: &[Scored]) -> bool {
    let [mut best, mut second] = [f32::NEG_INFINITY; 2];
    for confidence in tools.iter().map(Scored::confidence) {
        second = second.max(confidence.min(best));
        best = best.max(confidence);
    }
    second.is_finite() && best - second >= LEAD_OFFERED
}

/// A tool with two words of a request is offered, whatever else the request says: a missed tool is worse
/// than a wrong offer.
const WORDS_THAT_FIT: u32 = 2;

/// The maximum number of built-in tools in one response, in addition to its page.
const OURS_MAX: usize = 2;

/// A long request names things that no tool resembles, so the required confidence falls with the number
/// of words.
fn confidence_min(words: usize) -> f32 {
    let min = CONFIDENCE_MIN_SHORT - CONFIDENCE_A_WORD * count(words);
    min.max(CONFIDENCE_MIN_LONG)
}

#[expect(clippy::cast_precision_loss, reason = "counts of tools and of words")]
fn count(things: usize) -> f32 {
    things as f32
}

fn most(tools: &[Scored], number: impl Fn(&Scored) -> f32) -> f32 {
    tools.iter().map(number).fold(0.0, f32::max)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tool_is_ahead_if_all_others_are_far_behind() {
        let check = |similar: &[f32], expected: bool| {
            let tools = (0..).zip(similar).map(|(place, similar)| Scored {
                similar: *similar,
                coverage: 0.0,
                ..Scored::plain(place)
            });
            let tools: Vec<Scored> = tools.collect();
            assert_eq!(is_ahead(&tools), expected, "{similar:?}");
        };
        check(&[0.04, 0.24, 0.03], true);
        check(&[0.24, 0.04], true);
        check(&[0.24, 0.16, 0.23], false);
        check(&[0.24, 0.24], false);
        check(&[0.24], false);
        check(&[], false);
    }
}
