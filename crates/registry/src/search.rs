//! Ranked search of a generation, for the model, the command line and the other tools.

use std::sync::Arc;

use tool::ToolRef;

use crate::generation::Generation;
use crate::limits::{HITS_MAX, LARGE_CATALOGUE, NEAREST_MAX, SECOND_LOOK, STEPS_MAX};
use crate::search::filter::Filter;
use crate::search::rank::{Fitting, Ranking};
use crate::search::search_result::categories;
use crate::search::sums::Scored;
use crate::words::{ParsedQuery, QueryWords};
use crate::{Entry, View};

mod alike;
mod compound;
mod filter;
mod learned;
mod query;
mod rank;
mod search_result;
mod spelling;
mod steps;
mod sums;
mod synonyms;
mod term;
mod values;
mod weights;
mod why;

pub use learned::find_lesson;
pub use query::{Query, QueryText};
pub use search_result::{Evidence, Hit, MatchKind, SearchResult, count_categories};

impl Generation {
    /// Ranks tools for a query. Never fails: if nothing fits, the result says so.
    pub fn search(&self, query: &Query) -> SearchResult {
        match &query.asked {
            QueryText::Words(text) => answer(self, query, text),
            QueryText::Steps(steps) => answer_steps(self, query, steps),
        }
    }

    /// Suggestions for a name that no tool has: tools with similar names, and the best hit for its words.
    /// Costs a search.
    pub fn nearest(&self, asked: &str, view: Option<Arc<View>>) -> Vec<ToolRef> {
        let query = Query {
            limit: 1,
            view,
            ..Query::words(asked)
        };
        let mut nearest = self.near(asked);
        nearest.retain(|at| query.sees_at(self, at));
        let found = self.search(&query);
        let hit = found
            .hits
            .first()
            .filter(|_| found.kind != MatchKind::Nearest);
        let hit = hit.map(|hit| &hit.entry.at);
        if let Some(at) = hit.filter(|at| !nearest.contains(at)) {
            nearest.truncate(NEAREST_MAX - 1);
            nearest.push(at.clone());
        }
        nearest
    }
}

fn answer(generation: &Generation, query: &Query, text: &str) -> SearchResult {
    let text = steps::cut_purpose(text);
    if let Some(place) = find_named(generation, query, text) {
        return SearchResult::of(generation, MatchKind::Exact, &[Scored::plain(place)], query);
    }
    let mut found = match ParsedQuery::of(text) {
        ParsedQuery::Browse => return browse(generation, query),
        ParsedQuery::Select(names) => return select(generation, query, &names),
        ParsedQuery::Words(wanted) => {
            let (found, unserved) = compound::compound(generation, query, text);
            let found = found.unwrap_or_else(|| rank_all(generation, query, &wanted, text));
            SearchResult { unserved, ..found }
        }
    };
    if query.why {
        why::explain(generation, query, text, &mut found);
    }
    found
}

/// Hits grouped by step, an equal share of the limit each.
fn answer_steps(generation: &Generation, query: &Query, steps: &[String]) -> SearchResult {
    let steps = &steps[..steps.len().min(STEPS_MAX)];
    let limit = query.limit.div_ceil(steps.len().max(1)).max(1);
    let of_step = Query {
        limit,
        ..query.clone()
    };
    let mut all = SearchResult::default();
    for (step, text) in steps.iter().enumerate() {
        let found = answer(generation, &of_step, text);
        if found.hits.is_empty() {
            all.unserved.push(text.clone());
        }
        all.join(found, step);
    }
    all.is_guess = !all.hits.is_empty() && all.hits.iter().all(|hit| hit.is_guess);
    if all.hits.is_empty() {
        all.categories = categories(generation, query);
        all.unserved.clear();
    }
    all
}

/// The place of the visible tool that has the text as its name. A plain English word counts only if it
/// is the exact name: `fetch` may be a tool, `Search` is a request.
fn find_named(generation: &Generation, query: &Query, text: &str) -> Option<u32> {
    let text = text.trim();
    if text.contains(char::is_whitespace) {
        return None;
    }
    let place = generation.visible_place(text)?;
    let entry = &generation.visible()[place as usize];
    let name = entry.tool.name();
    let is_name = text == name || text.contains(|c: char| !c.is_alphanumeric());
    (is_name && query.sees(entry)).then_some(place)
}

fn browse(generation: &Generation, query: &Query) -> SearchResult {
    let filter = Filter::of(query);
    let all = || {
        let tools = (0..).take(generation.visible().len()).map(Scored::plain);
        tools.filter(|tool| query.sees(tool.entry(generation)))
    };
    let kept = all().filter(|tool| filter.admits(tool.entry(generation)));
    let kept: Vec<Scored> = kept.collect();
    if kept.is_empty() && filter.is_set() {
        let all: Vec<Scored> = all().collect();
        let mut found = SearchResult::of(generation, MatchKind::Browse, &all, query);
        found.without_filter = !found.hits.is_empty();
        found.categories = categories(generation, query);
        return found;
    }
    SearchResult::of(generation, MatchKind::Browse, &kept, query)
}

fn select(generation: &Generation, query: &Query, names: &[String]) -> SearchResult {
    let mut places = Vec::new();
    let mut unknown = Vec::new();
    let mut near = Vec::new();
    for name in names.iter().take(HITS_MAX) {
        let place = generation.visible_place(name);
        match place.filter(|place| query.sees(&generation.visible()[*place as usize])) {
            Some(place) if !places.contains(&place) => places.push(place),
            Some(_) => {}
            None => {
                near.extend(generation.near(name));
                unknown.push(name.clone());
            }
        }
    }
    let tools = places.into_iter().map(Scored::plain);
    let tools: Vec<Scored> = tools.collect();
    let mut found = SearchResult::of(generation, MatchKind::Selected, &tools, query);
    found.unknown_words = unknown;
    near.retain(|at| query.sees_at(generation, at));
    near.truncate(NEAREST_MAX);
    found.nearest = near;
    found
}

fn rank_all(
    generation: &Generation,
    query: &Query,
    wanted: &QueryWords,
    text: &str,
) -> SearchResult {
    let ranking = Ranking::new(generation, wanted, text, query.learned.as_ref());
    let filter = Filter::of(query);
    let shown = query.offset.saturating_add(query.limit.min(HITS_MAX));
    let is_inside = |entry: &Entry| query.sees(entry) && filter.admits(entry);
    let mut fitting = ranking.best(generation, shown, is_inside);
    let mut without_filter = false;
    if fitting.is_empty() && !query.tags.is_empty() {
        // The tags are a part of the request: a tool that has them is a guess at least.
        (fitting.tools, _) = ranking.nearest(generation, is_inside);
        fitting.is_guess = true;
    }
    if fitting.is_empty() && filter.is_set() {
        let outside = ranking.best(generation, shown, |entry| query.sees(entry));
        // An uncertain hit outside is no better than the most similar tool inside the requested
        // scope.
        let is_sure = !outside.is_guess && query.tags.is_empty();
        let is_better = || is_sure || !generation.entries().any(is_inside);
        if !outside.tools.is_empty() && is_better() {
            (fitting, without_filter) = (outside, true);
        }
    }
    if fitting.is_empty() {
        return answer_nearest(generation, query, &ranking, wanted, text);
    }
    let Fitting {
        mut tools,
        ours,
        is_guess,
    } = fitting;
    if is_guess {
        put_harmless_first(generation, &mut tools);
    }
    let mut found = if tools.is_empty() {
        SearchResult::of(generation, MatchKind::Ranked, &ours, query)
    } else {
        SearchResult::of(generation, MatchKind::Ranked, &tools, query)
            .with_ours(generation, &ours, query)
    };
    found.unknown_words = ranking.unknown_words;
    found.without_filter = without_filter;
    found.set_guess(is_guess && !tools.is_empty());
    if without_filter && !generation.entries().any(is_inside) {
        found.categories = categories(generation, query);
    }
    found
}

/// Moves the best tool that is not destructive to the front: a guess must not destroy anything.
fn put_harmless_first(generation: &Generation, tools: &mut [Scored]) {
    let looked_at = tools.len().min(SECOND_LOOK);
    let mut front = tools[..looked_at].iter();
    let harmless = front.position(|tool| !tool.entry(generation).is_destructive());
    if let Some(place) = harmless {
        tools[..=place].rotate_right(1);
    }
}

/// The answer if no tool surely fits: the nearest tools, one of which may be the right one. A search by
/// words alone shows any tools of a small catalogue if none shares a word with the request. In a large
/// catalogue where no tool is near, the nearest are only named.
fn answer_nearest(
    generation: &Generation,
    query: &Query,
    ranking: &Ranking,
    wanted: &QueryWords,
    text: &str,
) -> SearchResult {
    let filter = Filter::of(query);
    let is_inside = |entry: &Entry| query.sees(entry) && filter.admits(entry);
    let without_filter = !generation.entries().any(is_inside);
    let admits = |entry: &Entry| query.sees(entry) && (without_filter || filter.admits(entry));
    let (mut nearest, is_near) = ranking.nearest(generation, admits);
    put_harmless_first(generation, &mut nearest);
    let is_required = wanted.words.iter().any(|word| word.must);
    if nearest.is_empty() && !is_required && text.len() <= NAME_BYTES_MAX {
        let near = generation.near(text);
        let places = near
            .iter()
            .filter_map(|at| generation.visible_place(&at.to_string()));
        nearest = places.map(Scored::plain).collect();
        nearest.retain(|tool| admits(tool.entry(generation)));
    }
    let of_servers = generation
        .entries()
        .filter(|it| query.sees(it) && !it.at.server.is_built_in());
    let is_small = of_servers.count() < LARGE_CATALOGUE || !query.tags.is_empty();
    let is_whole = matches!(query.asked, QueryText::Words(_));
    let is_any = nearest.is_empty() && !is_required && is_small && is_whole;
    if is_any {
        nearest = ranking.any(generation, admits);
    }
    let mut found = if is_near || is_small {
        SearchResult::nearest(generation, &nearest, query)
    } else {
        SearchResult::default()
    };
    if without_filter || is_any {
        found.categories = categories(generation, query);
    }
    if without_filter {
        found.without_filter = filter.is_set() && !found.hits.is_empty();
    }
    if found.hits.is_empty() {
        let named = nearest.iter().take(NEAREST_MAX);
        found.nearest = named.map(|it| it.entry(generation).at.clone()).collect();
        found.categories = categories(generation, query);
    }
    found.unknown_words.clone_from(&ranking.unknown_words);
    found
}

/// The maximum length of a possibly misspelt name; comparing long texts with every name would be
/// slow.
const NAME_BYTES_MAX: usize = 100;
