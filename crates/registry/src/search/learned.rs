//! Raises tools that worked for similar requests, and lowers those that failed, within bounds.

use crate::generation::Generation;
use crate::index::IndexField;
use crate::limits::SECOND_LOOK;
use crate::search::asked::ParsedQuery;
use crate::search::languages;
use crate::search::query::Query;
use crate::search::sums::Scored;

impl Generation {
    /// The words of a request that [`RelevanceFeedback`](crate::RelevanceFeedback) may keep: stems
    /// that stand in the text of some tool.
    pub fn feedback_words(&self, request: &str) -> Vec<String> {
        let english = languages::to_english(request, |word| self.index().holds(word));
        let said = english.as_deref().unwrap_or(request);
        let ParsedQuery::Words(wanted) = ParsedQuery::of(said) else {
            return Vec::new();
        };
        let words = wanted.words.into_iter().filter(|word| !word.is_value);
        let stems = words.map(|word| word.stem);
        let known = stems.filter(|stem| !self.index().postings(IndexField::Stems, stem).is_empty());
        known.take(WORDS_MAX).collect()
    }
}

/// Moves the best candidates by what was learned. The best by its text stays within the first
/// two, whatever was learned.
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

/// The factor that an opinion of -1 to 1 is to a score.
pub(super) fn factor(opinion: f32) -> f32 {
    1.0 + LIFT_MAX * opinion
}

const LIFT_MAX: f32 = 0.25;

/// Words of a request that feedback keeps.
const WORDS_MAX: usize = 12;
