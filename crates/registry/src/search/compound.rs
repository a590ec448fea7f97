//! The answer to a request that names several steps: the best tools of each step and of the whole.

use std::collections::HashMap;

use tool::ToolRef;

use crate::Entry;
use crate::generation::Generation;
use crate::search::filter::Filter;
use crate::search::query::Query;
use crate::search::rank::Ranking;
use crate::search::search_result::{MatchKind, SearchResult};
use crate::search::steps::split_steps;
use crate::search::sums::Scored;
use crate::words::ParsedQuery;

/// Returns the answer, if the text names several steps that different tools serve; and the steps that
/// no tool serves, if one serves another.
pub(super) fn compound(
    generation: &Generation,
    query: &Query,
    text: &str,
) -> (Option<SearchResult>, Vec<String>) {
    let parts = split_steps(text);
    let filter = Filter::of(query);
    let shown = query.offset.saturating_add(query.limit);
    let ranked = |text: &str| {
        let ParsedQuery::Words(wanted) = ParsedQuery::of(text) else {
            return (Vec::new(), false);
        };
        let is_ours = |entry: &Entry| entry.at.server.is_built_in();
        let admits = |entry: &Entry| query.sees(entry) && filter.admits(entry) && !is_ours(entry);
        let ranking = Ranking::new(generation, &wanted, text, query.learned.as_ref());
        let fitting = ranking.best(generation, shown, admits);
        (fitting.tools, fitting.is_guess)
    };
    let (lists, guesses): (Vec<Vec<Scored>>, Vec<bool>) =
        parts.iter().map(|part| ranked(part)).unzip();
    let unserved = lists.iter().zip(&parts).filter(|(list, _)| list.is_empty());
    let mut unserved: Vec<String> = unserved.map(|(_, part)| part.clone()).collect();
    if unserved.len() == parts.len() {
        unserved.clear();
    }
    if !differ(&lists) {
        return (None, unserved);
    }
    let mut fused = fuse(&ranked(text).0, &lists);
    show_each_step(&mut fused, &lists, shown);
    let tools: Vec<Scored> = fused.iter().map(|(tool, _)| *tool).collect();
    let mut found = SearchResult::of(generation, MatchKind::Ranked, &tools, query);
    let places = fused
        .iter()
        .map(|(tool, step)| (&tool.entry(generation).at, *step));
    let steps: HashMap<&ToolRef, usize> = places.collect();
    for hit in &mut found.hits {
        hit.step = steps[&hit.entry.at];
        hit.is_guess = guesses[hit.step];
        unserved.retain(|part| *part != parts[hit.step]);
    }
    found.parts = parts;
    (Some(found), unserved)
}

/// Moves the best tool of a step without a hit to the end of the page, in the place of a hit whose
/// step has others.
fn show_each_step(fused: &mut [(Scored, usize)], lists: &[Vec<Scored>], shown: usize) {
    let shown = shown.min(fused.len());
    for (step, list) in lists.iter().enumerate() {
        let Some(best) = list.first() else { continue };
        let is_it = |(tool, of): &(Scored, usize)| *of == step || tool.place == best.place;
        if fused[..shown].iter().any(is_it) {
            continue;
        }
        let has_others = |at: &usize| {
            let same = fused[..shown].iter().filter(|it| it.1 == fused[*at].1);
            same.count() > 1
        };
        let from = fused.iter().position(|(tool, _)| tool.place == best.place);
        if let (Some(from), Some(to)) = (from, (0..shown).rev().find(has_others)) {
            fused.swap(to, from);
            fused[to..shown].rotate_left(1);
        }
    }
}

/// Returns true if at least two steps have different best tools.
fn differ(lists: &[Vec<Scored>]) -> bool {
    let mut best = lists.iter().filter_map(|list| Some(list.first()?.place));
    let first = best.next();
    first.is_some_and(|first| best.any(|other| other != first))
}

/// Tools by their score for the whole or for a step, whichever is higher, each with the step that it fits
/// best.
fn fuse(whole: &[Scored], lists: &[Vec<Scored>]) -> Vec<(Scored, usize)> {
    let mut best: HashMap<u32, (Scored, usize, f32)> = HashMap::new();
    for tool in whole {
        best.insert(tool.place, (*tool, 0, 0.0));
    }
    for (step, list) in lists.iter().enumerate() {
        for tool in list {
            let (known, of, most) = best.entry(tool.place).or_insert_with(|| {
                let mut tool = *tool;
                tool.score *= PART_WEIGHT;
                (tool, step, 0.0)
            });
            known.score = known.score.max(PART_WEIGHT * tool.score);
            if tool.score > *most {
                (*of, *most) = (step, tool.score);
            }
        }
    }
    let best = best.into_values();
    let mut fused: Vec<(Scored, usize)> = best.map(|(tool, step, _)| (tool, step)).collect();
    fused.sort_by(|(a, _), (b, _)| {
        b.score
            .total_cmp(&a.score)
            .then_with(|| a.place.cmp(&b.place))
    });
    fused
}

/// The weight of a score for a step relative to one for the whole, measured on whole tasks: a higher
/// weight loses hits of the whole, a lower one hides hits that only a step finds.
const PART_WEIGHT: f32 = 0.9;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_without_a_hit_on_the_page_takes_the_place_of_a_hit_of_another() {
        let places = |fused: &[(Scored, usize)]| -> Vec<u32> {
            fused.iter().map(|(tool, _)| tool.place).collect()
        };
        let tools = [(0, 0), (1, 1), (2, 0), (3, 0), (4, 2)];
        let mut fused = tools
            .map(|(place, step)| (Scored::plain(place), step))
            .to_vec();
        let list = |places: &[u32]| places.iter().map(|it| Scored::plain(*it)).collect();
        let lists: [Vec<Scored>; 4] = [list(&[0, 2, 3]), list(&[1]), list(&[4]), list(&[])];
        show_each_step(&mut fused, &lists, 3);
        assert_eq!(places(&fused), [0, 1, 4, 3, 2]);
        show_each_step(&mut fused, &lists, 3);
        assert_eq!(places(&fused), [0, 1, 4, 3, 2]);
        // A page that is too small shows the best.
        show_each_step(&mut fused, &lists, 1);
        assert_eq!(places(&fused), [0, 1, 4, 3, 2]);
    }
}
