//! Ranked many: what the model, the command line and the other tools ask of a generation.

use std::sync::Arc;

use tool::ToolRef;

use crate::View;
use crate::generation::Generation;
use crate::limits::{HITS_MAX, NEAREST_MAX, SECOND_LOOK, STEPS_MAX};
use crate::search::asked::{ParsedQuery, Wanted};
use crate::search::filter::Filter;
use crate::search::found::categories;
use crate::search::rank::Ranking;
use crate::search::sums::Scored;

mod alike;
mod asked;
mod compound;
mod evidence;
mod filter;
mod found;
mod languages;
mod learned;
mod parts;
mod query;
mod rank;
mod spelling;
mod sums;
mod synonyms;
mod term;
mod values;
mod vocabulary;
mod weights;
mod why;

pub use evidence::Evidence;
pub use found::{Found, Hit, Kind};
pub use query::{Asked, Query};

impl Generation {
    /// Ranks tools against a query. Never fails: when nothing fits, the answer says so.
    pub fn search(&self, query: &Query) -> Found {
        match &query.asked {
            Asked::Words(text) => answer(self, query, text),
            Asked::Steps(steps) => answer_steps(self, query, steps),
        }
    }

    /// The tools that a name may have meant that names none: names that look like it, and the one
    /// that its words would find. Costs a search.
    pub fn nearest(&self, asked: &str, view: Option<Arc<View>>) -> Vec<ToolRef> {
        let query = Query {
            limit: 1,
            view,
            ..Query::words(asked)
        };
        let mut nearest = self.near(asked);
        nearest.retain(|at| query.sees_at(self, at));
        let hits = self.search(&query).hits;
        let hit = hits.first().map(|hit| &hit.entry.at);
        if let Some(at) = hit.filter(|at| !nearest.contains(at)) {
            nearest.truncate(NEAREST_MAX - 1);
            nearest.push(at.clone());
        }
        nearest
    }
}

fn answer(generation: &Generation, query: &Query, text: &str) -> Found {
    if let Some(place) = find_named(generation, query, text) {
        return Found::of(generation, Kind::Exact, &[Scored::plain(place)], query);
    }
    let is_known = |word: &str| generation.index().holds(word);
    let english = languages::to_english(text, is_known);
    let said = english.as_deref().unwrap_or(text);
    let mut found = match ParsedQuery::of(said) {
        ParsedQuery::Browse => return browse(generation, query),
        ParsedQuery::Select(names) => return select(generation, query, &names),
        ParsedQuery::Words(mut wanted) => {
            if english.is_some() {
                wanted.add_known(text, is_known);
            }
            compound::compound(generation, query, said)
                .unwrap_or_else(|| rank_all(generation, query, &wanted, said))
        }
    };
    if query.why {
        why::explain(generation, query, said, &mut found);
    }
    found
}

/// Hits grouped by step, an equal share of the limit each.
fn answer_steps(generation: &Generation, query: &Query, steps: &[String]) -> Found {
    let steps = &steps[..steps.len().min(STEPS_MAX)];
    let limit = query.limit.div_ceil(steps.len().max(1)).max(1);
    let of_step = Query {
        limit,
        ..query.clone()
    };
    let mut all = Found::empty(Kind::Nothing);
    for (step, text) in steps.iter().enumerate() {
        let found = answer(generation, &of_step, text);
        all.join(found, step);
    }
    if all.hits.is_empty() {
        all.categories = categories(generation, query);
    }
    all
}

/// The place of the one visible tool whose name the text is. A plain English word counts only
/// as the whole name: `fetch` may be one, `Search` is a wish.
fn find_named(generation: &Generation, query: &Query, text: &str) -> Option<u32> {
    let text = text.trim();
    if text.contains(char::is_whitespace) {
        return None;
    }
    let place = generation.visible_place(text)?;
    let entry = &generation.visible()[place];
    let name = entry.tool.name();
    let is_name = text == name || text.contains(|c: char| !c.is_alphanumeric());
    (is_name && query.sees(entry)).then_some(place_of(place))
}

fn browse(generation: &Generation, query: &Query) -> Found {
    let filter = Filter::of(query);
    let all = || {
        let places = (0..generation.visible().len()).map(|place| Scored::plain(place_of(place)));
        places.filter(|tool| query.sees(tool.entry(generation)))
    };
    let kept: Vec<Scored> = all()
        .filter(|tool| filter.admits(tool.entry(generation)))
        .collect();
    if kept.is_empty() && filter.is_set() {
        let mut found = Found::of(generation, Kind::Browse, &all().collect::<Vec<_>>(), query);
        found.without_filter = !found.hits.is_empty();
        return found;
    }
    Found::of(generation, Kind::Browse, &kept, query)
}

fn select(generation: &Generation, query: &Query, names: &[String]) -> Found {
    let mut places = Vec::new();
    let mut unknown = Vec::new();
    let mut near = Vec::new();
    for name in names.iter().take(HITS_MAX) {
        let place = generation.visible_place(name);
        match place.filter(|place| query.sees(&generation.visible()[*place])) {
            Some(place) if !places.contains(&place) => places.push(place),
            Some(_) => {}
            None => {
                near.extend(generation.near(name));
                unknown.push(name.clone());
            }
        }
    }
    let tools: Vec<Scored> = places
        .into_iter()
        .map(|place| Scored::plain(place_of(place)))
        .collect();
    let mut found = Found::of(generation, Kind::Selected, &tools, query);
    found.unknown_words = unknown;
    near.retain(|at| query.sees_at(generation, at));
    near.truncate(NEAREST_MAX);
    found.nearest = near;
    found
}

fn rank_all(generation: &Generation, query: &Query, wanted: &Wanted, text: &str) -> Found {
    let ranking = Ranking::new(generation, wanted, text);
    let filter = Filter::of(query);
    let shown = query.offset.saturating_add(query.limit.min(HITS_MAX));
    let inside = ranking.best(generation, shown, |entry| {
        query.sees(entry) && filter.admits(entry)
    });
    let outside = || ranking.best(generation, shown, |entry| query.sees(entry));
    let (mut tools, without_filter) = match inside {
        tools if tools.is_empty() && filter.is_set() => (outside(), true),
        tools => (tools, false),
    };
    let ours = take_ours(generation, &mut tools);
    if tools.is_empty() && (ours.is_empty() || !filter.is_set()) {
        return answer_nothing(generation, query, &ranking, text);
    }
    learned::lift(generation, query, text, &mut tools);
    let is_guess = ranking.is_guess(&tools);
    if is_guess {
        put_harmless_first(generation, &mut tools);
    }
    let mut found = if tools.is_empty() {
        Found::of(generation, Kind::Ranked, &ours, query)
    } else {
        Found::of(generation, Kind::Ranked, &tools, query).with_ours(generation, &ours, query)
    };
    found.unknown_words = ranking.unknown_words;
    found.without_filter = without_filter;
    found.is_guess = is_guess;
    found
}

/// Takes our own tools out: they take no server's place. Those that fit about as well as the best are
/// left to be told behind the page.
fn take_ours(generation: &Generation, tools: &mut Vec<Scored>) -> Vec<Scored> {
    let is_ours = |tool: &Scored| generation.is_built_in(tool.place);
    let (mut ours, of_servers): (Vec<Scored>, Vec<Scored>) = tools.drain(..).partition(is_ours);
    let best = of_servers.first().map_or(0.0, |tool| tool.score);
    ours.retain(|tool| tool.score >= best * OURS_SHARE_MIN);
    ours.truncate(OURS_MAX);
    *tools = of_servers;
    ours
}

/// The share of the best tool's score with which one of ours is told, and how many are.
const OURS_SHARE_MIN: f32 = 0.9;
const OURS_MAX: usize = 2;

/// A guess of ours is not to take anything away: the best tool that does not comes first.
fn put_harmless_first(generation: &Generation, tools: &mut [Scored]) {
    let looked_at = tools.len().min(SECOND_LOOK);
    let mut front = tools[..looked_at].iter();
    let harmless = front.position(|tool| !tool.entry(generation).is_destructive());
    if let Some(place) = harmless {
        tools[..=place].rotate_right(1);
    }
}

fn answer_nothing(generation: &Generation, query: &Query, ranking: &Ranking, text: &str) -> Found {
    let filter = Filter::of(query);
    let mut found = Found::empty(Kind::Nothing);
    found.unknown_words.clone_from(&ranking.unknown_words);
    found.nearest = ranking.nearest(generation, |entry| {
        query.sees(entry) && filter.admits(entry)
    });
    if found.nearest.is_empty() && text.len() <= NAME_BYTES_MAX {
        found.nearest = generation.near(text);
        found.nearest.retain(|at| query.sees_at(generation, at));
    }
    found.categories = categories(generation, query);
    found
}

fn place_of(place: usize) -> u32 {
    u32::try_from(place).expect("the index holds fewer than 2^32 tools")
}

/// Texts up to here may be a misspelt name; comparing pages with every name would be slow.
const NAME_BYTES_MAX: usize = 100;
