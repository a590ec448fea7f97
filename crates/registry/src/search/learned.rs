//! Adjusts scores by the outcomes of calls after similar requests, within bounds.

use crate::generation::Generation;
use crate::index::IndexField;
use crate::limits::SECOND_LOOK;
use crate::search::parsed_query::ParsedQuery;
use crate::search::query::Query;
use crate::search::sums::Scored;

impl Generation {
    /// Returns the words of a request that [`RelevanceFeedback`](crate::RelevanceFeedback) may
    /// store: stems that occur in the text of some tool.
    pub fn feedback_words(&self, request: &str) -> Vec<String> {
        let ParsedQuery::Words(wanted) = ParsedQuery::of(request) else {
            return Vec::new();
        };
        let words = wanted.words.into_iter().filter(|word| !word.is_value);
        let stems = words.map(|word| word.stem);
        let known = stems.filter(|stem| !self.index().postings(IndexField::Stems, stem).is_empty());
        known.take(WORDS_MAX).collect()
    }
}

/// Reorders the best candidates by feedback. The best candidate by its text stays within the first two.
pub(super) fn lift(generation: &Generation, query: &Query, text: &str, tools: &mut [Scored]) {
    let Some(learned) = &query.learned else {
        return;
    };
    let words = generation.feedback_words(text);
    let looked_at = tools.len().min(SECOND_LOOK);
    let front = &mut tools[..looked_at];
    let Some(best) = front
        .first()
        .map(|tool| tool.place)
        .filter(|_| !words.is_empty())
    else {
        return;
    };
    for tool in front.iter_mut() {
        tool.score *= factor(learned.opinion(&words, &tool.entry(generation).at));
    }
    front.sort_by(|a, b| b.score.total_cmp(&a.score));
    let fell_to = front.iter().position(|tool| tool.place == best);
    if let Some(place) = fell_to.filter(|place| *place > 1) {
        front[1..=place].rotate_right(1);
    }
}

/// The factor by which an opinion of -1 to 1 changes a score.
pub(super) fn factor(opinion: f32) -> f32 {
    1.0 + LIFT_MAX * opinion
}

const LIFT_MAX: f32 = 0.25;

/// The maximum number of words of a request that feedback stores.
const WORDS_MAX: usize = 12;
