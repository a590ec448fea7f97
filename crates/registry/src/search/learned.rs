//! Requests learned from use in a search.

use std::collections::{BTreeMap, BTreeSet};

use crate::embedding::{REQUEST_DISTANCE, Vector};
use crate::feedback::{Learned, LearnedRequest};
use crate::generation::Generation;
use crate::index::IndexField;
use crate::limits::QUERY_CHARS_MAX;
use crate::search::sums::{Scored, share};
use crate::search::weights::{LEARNED_GAIN_MAX, LEARNED_LIFT, LEARNED_SHARE_MIN};
use crate::words::ParsedQuery;
use crate::words::vocabulary::is_request_word;
use crate::words::{self, Word};

/// Returns the words of a request that a call may teach: those that occur in the text of some tool, and
/// those that say nothing. A piece with another word is left out as a whole. `None` if nothing is left.
pub fn find_lesson(generation: &Generation, request: &str) -> Option<String> {
    let postings = |stem: &str| generation.index.postings(IndexField::Stems, stem);
    let is_known = |it: &Word| is_request_word(&it.exact) || !postings(&it.stem).is_empty();
    let mut known = Vec::new();
    for piece in printable::first_chars(request, QUERY_CHARS_MAX).split_whitespace() {
        let mut words = words::split(piece);
        words.retain(|it| !it.is_joined);
        if words.iter().all(is_known) {
            known.extend(words.into_iter().map(|it| it.exact));
        }
    }
    let text = known.join(" ");
    matches!(ParsedQuery::of(&text), ParsedQuery::Words(_)).then_some(text)
}

/// Raises the tools that have a learned request near this one; returns the gain of each, by its place.
///
/// With embeddings, a learned request is a text of its tool like an example request, but the tool gains a
/// bounded amount; else the share of words in common raises the score of the tool's own words. `scored` is
/// in the order of places.
pub(super) fn raise(
    generation: &Generation,
    learned: &Learned,
    (vector, stems): (Option<&Vector>, &BTreeSet<String>),
    scored: &mut [Scored],
) -> BTreeMap<u32, f32> {
    let mut gains = BTreeMap::new();
    learned.each(|tool, request| {
        let near = nearness(request, vector, stems);
        let Some(place) = generation.visible_place(tool).filter(|_| near > 0.0) else {
            return;
        };
        let Ok(at) = scored.binary_search_by_key(&place, |it| it.place) else {
            return;
        };
        let gain = match vector {
            Some(_) => (near - REQUEST_DISTANCE - scored[at].similar).min(LEARNED_GAIN_MAX),
            None => LEARNED_LIFT * near,
        };
        let best = gains.entry(place).or_insert(0.0_f32);
        let digest = || {
            generation.visible()[place as usize]
                .tool
                .digest()
                .to_string()
        };
        if gain > *best && digest() == request.digest {
            *best = gain;
        }
    });
    gains.retain(|_, gain| *gain > 0.0);
    for (place, gain) in &gains {
        let at = scored.binary_search_by_key(place, |it| it.place);
        let tool = &mut scored[at.expect("found above")];
        match vector {
            Some(_) => tool.similar += gain,
            None => tool.lexical *= 1.0 + gain,
        }
    }
    gains
}

/// Returns the similarity of a learned request to this one, or without embeddings the share of words that
/// both have; 0 if it is low.
fn nearness(request: &LearnedRequest, vector: Option<&Vector>, stems: &BTreeSet<String>) -> f32 {
    if let Some(vector) = vector {
        return Vector::from_bytes(&request.vector).map_or(0.0, |it| it.times(vector));
    }
    let common = request.stems.iter().filter(|it| stems.contains(*it));
    let share = share(common.count(), request.stems.len().max(stems.len()));
    if share < LEARNED_SHARE_MIN {
        0.0
    } else {
        share
    }
}
