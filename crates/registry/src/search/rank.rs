//! The score of every tool against the words of a query.
//!
//! Postings come from the index, everything else is decided here: statistics over living
//! documents only, words the catalogue does not know, how much of the query a tool covers.
//! Where tools have vectors, every tool is also as good as its embedding is near the request's:
//! then words add to that, by their share of what the best tool's words are worth.

use std::cmp::Ordering;
use std::collections::BTreeSet;

use tool::{ServerName, ToolRef};

use crate::Entry;
use crate::generation::Generation;
use crate::index::{Index, IndexField};
use crate::limits::{NEAREST_MAX, SECOND_LOOK};
use crate::search::asked::{Wanted, WantedWord};
use crate::search::vocabulary::is_general_verb;
use crate::search::{spelling, synonyms};
use crate::words;

/// One tool's standing; `place` is its position among the generation's visible tools.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scored {
    pub(crate) place: u32,
    pub(crate) score: f32,
    /// The score by words alone.
    lexical: f32,
    /// The nearness of its embedding; 0 where embeddings have no say.
    similar: f32,
    /// Share of the query's weight that the tool's words carry, 0 to 1.
    coverage: f32,
    /// The number of words of the query that the tool holds.
    words: u32,
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

    /// Our confidence that it serves the request.
    fn confidence(&self) -> f32 {
        self.similar + COVERAGE_CONFIDENCE * self.coverage
    }

    pub(crate) fn entry<'a>(&self, generation: &'a Generation) -> &'a Entry {
        &generation.visible()[self.place as usize]
    }
}

#[derive(Debug)]
pub(crate) struct Ranking {
    /// Every tool that holds a word of the query (any tool, where embeddings have a say) and all
    /// words it must hold, in no order.
    scored: Vec<Scored>,
    has_similar: bool,
    /// The most that words add to the nearness of embeddings.
    words_weight: f32,
    /// Stems of the query, for the look at names.
    stems: BTreeSet<String>,
    pub(crate) unknown_words: Vec<String>,
    coverage_min: f32,
    confidence_min: f32,
}

impl Ranking {
    /// `text` is the request as written, for its embedding.
    pub(crate) fn new(generation: &Generation, wanted: &Wanted, text: &str) -> Self {
        let similar = generation.similar(text);
        let index = generation.index();
        let terms: Vec<Term> = wanted
            .words
            .iter()
            .map(|word| Term::of(index, word))
            .collect();
        let mut board = Board::new(index);
        for (number, term) in terms.iter().enumerate() {
            board.add(number, term);
        }
        let unknown: f32 = terms
            .iter()
            .filter(|term| term.tools.is_empty())
            .map(|term| term.mass)
            .sum();
        for joined in &wanted.joined {
            board.add_joined(&synonyms::joined_postings(index, joined), unknown);
        }
        let unknown = wanted
            .words
            .iter()
            .zip(&terms)
            .filter(|(_, term)| term.tools.is_empty());
        Self {
            has_similar: similar.is_some(),
            words_weight: words_weight(wanted.words.len()),
            scored: board.score(&terms, similar),
            stems: wanted.words.iter().map(|word| word.stem.clone()).collect(),
            unknown_words: unknown.map(|(word, _)| word.exact.clone()).collect(),
            coverage_min: coverage_min(&terms),
            confidence_min: confidence_min(text),
        }
    }

    /// Tools that fit, best first; only the first `shown` (and a few more) are in exact order.
    /// Empty when even the best covers too little of the query.
    pub(crate) fn best(
        &self,
        generation: &Generation,
        shown: usize,
        admits: impl Fn(&Entry) -> bool,
    ) -> Vec<Scored> {
        let mut tools = self.admitted(generation, admits);
        if !self.fits(&tools) {
            return Vec::new();
        }
        let top = most(&tools, |tool| tool.score);
        let share = if self.has_similar {
            MEANT_SHARE_MIN
        } else {
            SCORE_SHARE_MIN
        };
        tools.retain(|tool| tool.score >= top * share);
        self.order(generation, &mut tools, shown.max(SECOND_LOOK));
        tools
    }

    /// The best of these serves the request. To be refused what is there hurts more
    /// than to be offered what is not: in doubt it does.
    fn fits(&self, tools: &[Scored]) -> bool {
        let words = tools.iter().map(|tool| tool.words).max().unwrap_or(0);
        let by_words =
            most(tools, |tool| tool.coverage) >= self.coverage_min || words >= WORDS_THAT_FIT;
        if !self.has_similar {
            return by_words;
        }
        let is_near = most(tools, |tool| tool.similar) >= SIMILAR_ENOUGH;
        most(tools, Scored::confidence) >= self.confidence_min && (by_words || is_near)
    }

    /// The closest tools, although none fits.
    pub(crate) fn nearest(
        &self,
        generation: &Generation,
        admits: impl Fn(&Entry) -> bool,
    ) -> Vec<ToolRef> {
        let mut tools = self.admitted(generation, admits);
        self.order(generation, &mut tools, SECOND_LOOK);
        let nearest = tools.iter().take(NEAREST_MAX);
        nearest
            .map(|tool| tool.entry(generation).at.clone())
            .collect()
    }

    fn admitted(&self, generation: &Generation, admits: impl Fn(&Entry) -> bool) -> Vec<Scored> {
        let tools = self.scored.iter().copied();
        let mut tools: Vec<Scored> = tools
            .filter(|tool| admits(tool.entry(generation)))
            .collect();
        self.mix(&mut tools);
        tools
    }

    /// One score of embedding and words.
    fn mix(&self, tools: &mut [Scored]) {
        let best = most(tools, |tool| tool.lexical).max(f32::MIN_POSITIVE);
        for tool in tools {
            tool.score = if self.has_similar {
                tool.similar + self.words_weight * tool.lexical / best
            } else {
                tool.lexical
            };
        }
    }

    /// Brings the `first` best to the front by score alone, then looks at them again.
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
        front.sort_by(|a, b| by_rank(generation, a, b));
    }

    /// More for a tool whose own name, or whose server's, the query spells out.
    pub(super) fn name_factor(&self, entry: &Entry) -> f32 {
        let name = 1.0 + NAME_SPELT * self.score_spelling(entry.tool.name());
        let mut names = std::iter::once(entry.at.server.as_str())
            .chain(entry.aliases.iter().map(String::as_str));
        if names.any(|server| self.score_spelling(server) >= 1.0) {
            name * (1.0 + SERVER_SPELT)
        } else {
            name
        }
    }

    /// The share of a name's words that the query holds.
    fn score_spelling(&self, name: &str) -> f32 {
        let stems: BTreeSet<String> = words::stems(name).into_iter().collect();
        let held = stems
            .iter()
            .filter(|stem| self.stems.contains(*stem))
            .count();
        share(held, stems.len())
    }
}

/// Score, then real tools before ours, read-only before destructive, the shorter name, the
/// alphabet.
fn by_rank(generation: &Generation, a: &Scored, b: &Scored) -> Ordering {
    let key = |tool: &Scored| {
        let entry = tool.entry(generation);
        let is_built_in = entry.at.server == ServerName::built_in();
        let danger = if entry.is_read_only() {
            0
        } else {
            1 + u8::from(entry.is_destructive())
        };
        (is_built_in, danger, entry.tool.name().len())
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

/// One word of the query in the catalogue.
#[derive(Debug)]
pub(super) struct Term {
    pub(super) tools: Vec<(u32, u32)>,
    /// The weight of the word in the score.
    pub(super) weight: f32,
    /// The weight of its absence against a tool.
    pub(super) mass: f32,
    must: bool,
}

impl Term {
    pub(super) fn of(index: &Index, word: &WantedWord) -> Self {
        let (tools, trust) = lookup(index, word);
        let idf = idf(index.lengths.len(), tools.len());
        // No tool is at fault for not knowing whom to write to, or for another verb.
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

/// The word's stem; else a relative, else what it may be a slip of, else what it begins; with how
/// far to trust it.
fn lookup(index: &Index, word: &WantedWord) -> (Vec<(u32, u32)>, f32) {
    let tools = if word.is_value {
        index.postings(IndexField::Stems, &word.stem)
    } else {
        synonyms::postings(index, &word.stem)
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

/// Sums for every tool, filled word by word.
struct Board<'a> {
    index: &'a Index,
    sums: Vec<f32>,
    masses: Vec<f32>,
    /// One bit a word of the query.
    held: Vec<u64>,
}

impl<'a> Board<'a> {
    fn new(index: &'a Index) -> Self {
        let tools = index.lengths.len();
        Self {
            index,
            sums: vec![0.0; tools],
            masses: vec![0.0; tools],
            held: vec![0; tools],
        }
    }

    fn add(&mut self, number: usize, term: &Term) {
        for &(tool, times) in &term.tools {
            let place = tool as usize;
            let length = self.index.lengths[place] / self.index.length_mean;
            self.sums[place] += term.weight * saturation(times, length);
            self.masses[place] += term.mass;
            self.held[place] |= 1 << number;
        }
    }

    /// A joined form says again what its parts said: it adds to the score of tools that hold
    /// it. It covers words only where the parts alone are unknown (`e-mail`).
    fn add_joined(&mut self, tools: &[(u32, u32)], unknown: f32) {
        let idf = idf(self.index.lengths.len(), tools.len());
        for &(tool, _) in tools {
            self.sums[tool as usize] += JOINED_WEIGHT * idf;
            self.masses[tool as usize] += unknown;
        }
    }

    fn score(self, terms: &[Term], similar: Option<Vec<f32>>) -> Vec<Scored> {
        let has_similar = similar.is_some();
        let similar = similar.unwrap_or_else(|| vec![0.0; self.sums.len()]);
        let must = (0..).zip(terms).filter(|(_, term)| term.must);
        let must: u64 = must.map(|(number, _)| 1_u64 << number).sum();
        let all: f32 = terms.iter().map(|term| term.mass).sum();
        let tools = (0..).zip(self.sums).zip(self.masses).zip(self.held);
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

/// The share that even the best tool must cover of a query that holds unknown words. A short query
/// is nearly all keywords, and begins with what is to be done; of a long one no tool says much.
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

/// A tool that holds two words of a request is offered, whatever else the request says: to be
/// refused what is there hurts more than to be offered what is not.
const WORDS_THAT_FIT: u32 = 2;

/// Of a few words each says much; of a long request the embedding does.
fn words_weight(words: usize) -> f32 {
    if words <= KEYWORDS_MAX {
        KEYWORDS_WEIGHT
    } else {
        WORDS_WEIGHT
    }
}

/// A long request names things beside what it asks for, which no tool resembles.
fn confidence_min(text: &str) -> f32 {
    let words = text.split_whitespace().take(LONG_REQUEST_WORDS + 1).count();
    if words > LONG_REQUEST_WORDS {
        CONFIDENCE_MIN_LONG
    } else {
        CONFIDENCE_MIN
    }
}

fn most(tools: &[Scored], number: impl Fn(&Scored) -> f32) -> f32 {
    tools.iter().map(number).fold(0.0, f32::max)
}

/// BM25's idf, from the tools that hold the word.
#[expect(
    clippy::cast_precision_loss,
    reason = "catalogues hold thousands of tools"
)]
fn idf(tools: usize, holders: usize) -> f32 {
    let (tools, holders) = (tools as f32, holders as f32);
    (1.0 + (tools - holders + 0.5) / (holders + 0.5)).ln()
}

/// The factor for covering this share of the request.
pub(super) fn coverage_factor(coverage: f32) -> f32 {
    1.0 + COORDINATION * coverage
}

/// BM25's answer to a word that stands often, in a text of this length (1 is the mean).
#[expect(clippy::cast_precision_loss, reason = "a word stands a few times")]
pub(super) fn saturation(times: u32, length: f32) -> f32 {
    let times = times as f32;
    times * (K1 + 1.0) / (times + K1 * (1.0 - B + B * length))
}

#[expect(clippy::cast_precision_loss, reason = "names have a few words")]
fn share(part: usize, whole: usize) -> f32 {
    if whole == 0 {
        0.0
    } else {
        part as f32 / whole as f32
    }
}

// Weights found on the development sets of `examples/eval`; around these values every set is
// flat, so none is tuned to the last digit.
const K1: f32 = 1.2;
const B: f32 = 0.75;
const COORDINATION: f32 = 0.5;
const NAME_SPELT: f32 = 0.3;
const SERVER_SPELT: f32 = 0.3;
const JOINED_WEIGHT: f32 = 0.5;
const RELATIVE_TRUST: f32 = 0.8;
const SLIP_TRUST: f32 = 0.6;
const PREFIX_TRUST: f32 = 0.4;
const SCORE_SHARE_MIN: f32 = 0.2;

/// Requests of so few words are keywords.
const KEYWORDS_MAX: usize = 3;
const KEYWORDS_WEIGHT: f32 = 0.25;
const WORDS_WEIGHT: f32 = 0.15;
const MEANT_SHARE_MIN: f32 = 0.4;
const COVERAGE_CONFIDENCE: f32 = 0.2;
const LONG_REQUEST_WORDS: usize = 12;
const CONFIDENCE_MIN: f32 = 0.34;
const CONFIDENCE_MIN_LONG: f32 = 0.26;
/// So near an embedding needs no word in common.
const SIMILAR_ENOUGH: f32 = 0.5;
