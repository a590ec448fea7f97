//! Weights, found on the development sets of `examples/eval`. Scores change little around these
//! values, so the last digits do not matter.

pub(super) const K1: f32 = 1.2;
pub(super) const B: f32 = 0.75;
pub(super) const COORDINATION: f32 = 0.5;
pub(super) const NAME_SPELT: f32 = 0.3;
pub(super) const SERVER_SPELT: f32 = 0.3;
pub(super) const JOINED_WEIGHT: f32 = 0.5;
pub(super) const RELATIVE_TRUST: f32 = 0.8;
pub(super) const SLIP_TRUST: f32 = 0.6;
pub(super) const PREFIX_TRUST: f32 = 0.4;
pub(super) const SCORE_SHARE_MIN: f32 = 0.2;

/// The weight of the share of a request that a tool's words cover, and of the score of its words relative to
/// the best tool's, beside the similarity. They and the weights of servers were fitted to the order of tools
/// (docs/decisions/0035).
pub(super) const COVERED_WEIGHT: f32 = 0.15;
pub(super) const WORDS_WEIGHT: f32 = 0.05;
/// The weight of a server's mean similarity in a tool's score.
pub(super) const SERVER_NEAR: f32 = 0.2;
/// The weight of the similarity of the server's description, else of its tools.
pub(super) const SERVER_ABOUT: f32 = 0.1;
pub(super) const SERVER_SIZE: f32 = 0.02;
pub(super) const SERVER_NAMED: f32 = 0.105;
/// The factor for a deprecated tool, which ranks it below its successor with the same description.
pub(super) const DEPRECATED: f32 = 0.8;
pub(super) const MEANT_SHARE_MIN: f32 = 0.4;
pub(super) const COVERAGE_CONFIDENCE: f32 = 0.2;
/// The minimum confidence of an offer: for a request without words, the reduction per word, and for a long
/// request. It depends on the length so that at most one request in fifty is refused wrongly.
pub(super) const CONFIDENCE_MIN_SHORT: f32 = 0.445;
pub(super) const CONFIDENCE_A_WORD: f32 = 0.011;
pub(super) const CONFIDENCE_MIN_LONG: f32 = 0.335;
/// The margin above that minimum from which an offer is sure.
pub(super) const SURE: f32 = 0.09;
/// The odds that a tool of the catalogue serves the request, as a logarithm, fitted by a logistic regression
/// to 1,400 requests over catalogues of 9 to 3,364 tools with and without example requests
/// (docs/decisions/0035): the confidence of the best tool above the minimum, its lead over the sixth (the
/// more similar tools a request has, the surer that they are of its field), and the number of compared texts, of which some are
/// similar to anything by chance.
pub(super) const ODDS_BASE: f32 = 6.75;
pub(super) const ODDS_CONFIDENCE: f32 = 25.5;
pub(super) const ODDS_LEAD: f32 = -16.0;
pub(super) const ODDS_SIZE: f32 = -1.0;
/// A larger lead counts as this one: the only tool of a request ("read arXiv 1706.03762") is no worse for
/// being the only one.
pub(super) const LEAD_MAX: f32 = 0.25;
/// The lead over all other tools from which the best is offered as a guess, whatever the odds.
pub(super) const LEAD_OFFERED: f32 = 0.15;
/// Fewer texts count as this many: the regression saw no smaller catalogue.
pub(super) const TEXTS_MIN: f32 = 12.0;
/// Odds from which tools are offered, and from which the offer is sure.
pub(super) const ODDS_OFFERED: f32 = -2.1;
pub(super) const ODDS_SURE: f32 = 2.2;
/// The place of the tool that the best is compared with: after a fifth of the tools, at most this one.
pub(super) const COMPARED_SHARE: usize = 5;
pub(super) const COMPARED_PLACE: usize = 5;
/// The confidence below which the nearest tools are only named: no request of our sets with a
/// matching tool has less.
pub(super) const CONFIDENCE_NEAR: f32 = 0.15;
/// The same for a search by words alone: the share of the query's weight.
pub(super) const COVERAGE_NEAR: f32 = 0.13;
/// The share of the best tool's score from which a built-in tool is shown after the page.
pub(super) const OURS_SHARE_MIN: f32 = 0.9;
/// The share of a query that one of our tools must cover to fit a search by words alone.
pub(super) const OURS_COVERAGE_MIN: f32 = 0.5;
/// The most that learned requests add to a similarity, so that a clearly better tool stays first; without
/// embeddings, to the factor of the words, from this share of words in common.
pub(super) const LEARNED_GAIN_MAX: f32 = 0.2;
pub(super) const LEARNED_LIFT: f32 = 0.25;
pub(super) const LEARNED_SHARE_MIN: f32 = 0.5;
