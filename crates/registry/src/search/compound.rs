//! The answer to a request that names several steps: the best tools of each step and of the whole.

use std::collections::HashMap;

use tool::ToolRef;

use crate::Entry;
use crate::generation::Generation;
use crate::search::filter::Filter;
use crate::search::query::Query;
use crate::search::rank::{Ranking, is_built_in};
use crate::search::search_result::{MatchKind, SearchResult};
use crate::search::steps::split_steps;
use crate::search::sums::Scored;
use crate::search::{learned, parsed_query};

/// The answer, if the text names several steps that different tools serve.
pub(super) fn compound(generation: &Generation, query: &Query, text: &str) -> Option<SearchResult> {
    let parts = split_steps(text);
    let filter = Filter::of(query);
    let shown = query.offset.saturating_add(query.limit);
    let ranked = |text: &str| {
        let admits =
            |entry: &Entry| query.sees(entry) && filter.admits(entry) && !is_built_in(entry);
        let mut tools = rank_parts(generation, admits, shown, text);
        learned::lift(generation, query, text, &mut tools);
        tools
    };
    let lists: Vec<Vec<Scored>> = parts.iter().map(|part| ranked(part)).collect();
    if !differ(&lists) {
        return None;
    }
    let whole = ranked(text);
    if whole.is_empty() {
        return None;
    }
    let fused = fuse(&whole, &lists);
    let tools: Vec<Scored> = fused.iter().map(|(tool, _)| *tool).collect();
    let mut found = SearchResult::of(generation, MatchKind::Ranked, &tools, query);
    let places = fused
        .iter()
        .map(|(tool, step)| (&tool.entry(generation).at, *step));
    let steps: HashMap<&ToolRef, usize> = places.collect();
    for hit in &mut found.hits {
        hit.step = steps[&hit.entry.at];
    }
    found.parts = parts;
    Some(found)
}

fn rank_parts(
    generation: &Generation,
    admits: impl Fn(&Entry) -> bool,
    shown: usize,
    text: &str,
) -> Vec<Scored> {
    match parsed_query::ParsedQuery::of(text) {
        parsed_query::ParsedQuery::Words(wanted) => {
            let ranking = Ranking::new(generation, &wanted, text);
            ranking.best(generation, shown, admits).tools
        }
        _ => Vec::new(),
    }
}

/// Returns true if at least two steps have different best tools.
fn differ(lists: &[Vec<Scored>]) -> bool {
    let mut best = lists
        .iter()
        .filter_map(|list| list.first())
        .map(|tool| tool.place);
    best.next()
        .is_some_and(|first| best.any(|other| other != first))
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
