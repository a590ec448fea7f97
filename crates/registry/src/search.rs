//! Ranked many: what the model, the command line and the other tools ask of a generation.

use std::collections::BTreeMap;
use std::sync::Arc;

use tool::{ServerName, ToolRef, fold};

use crate::generation::Generation;
use crate::limits::{HITS_MAX, NEAREST_MAX, STEPS_MAX};
use crate::search::alike::Group;
use crate::search::asked::{Meaning, Wanted};
use crate::search::rank::{Ranking, Scored};
use crate::{Entry, Learned, View};

mod alike;
mod asked;
mod compound;
mod learned;
mod parts;
mod rank;
mod spelling;
mod stop;
mod synonyms;
mod why;

pub(crate) use learned::lesson_words;
pub use why::Evidence;

#[derive(Debug, Clone)]
pub struct Query {
    pub asked: Asked,
    /// A category or a server, in any spelling.
    pub category: Option<String>,
    pub server: Option<String>,
    /// A tool must carry all of them.
    pub tags: Vec<String>,
    pub limit: usize,
    pub offset: usize,
    /// What earlier calls taught, if it may count.
    pub learned: Option<Learned>,
    /// Whether each hit says why it stands where it stands.
    pub why: bool,
    /// What the asker may see; none sees everything.
    pub view: Option<Arc<View>>,
}

#[derive(Debug, Clone)]
pub enum Asked {
    /// Words; also `select:a,b`, `+word`, `*` or nothing (browse), an exact tool name.
    Words(String),
    /// One query a step of a task; the steps share the limit.
    Steps(Vec<String>),
}

impl Query {
    /// Words without a filter, five hits.
    pub fn words(text: impl Into<String>) -> Self {
        Self {
            asked: Asked::Words(text.into()),
            category: None,
            server: None,
            tags: Vec::new(),
            limit: 5,
            offset: 0,
            learned: None,
            why: false,
            view: None,
        }
    }

    /// Whether the asker may see this tool at all.
    fn sees(&self, entry: &Entry) -> bool {
        let admits = |view: &Arc<View>| view.admits(&entry.at.server, &entry.category);
        self.view.as_ref().is_none_or(admits)
    }

    fn sees_at(&self, generation: &Generation, at: &ToolRef) -> bool {
        self.view.is_none()
            || generation
                .find(&at.to_string())
                .is_ok_and(|it| self.sees(it))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The query was a tool's name.
    Exact,
    Ranked,
    Browse,
    Selected,
    /// No tool fits; see `unknown_words`, `nearest` and `categories`.
    Nothing,
}

/// The answer to a [`Query`].
#[derive(Debug, Clone)]
pub struct Found {
    pub kind: Kind,
    pub hits: Vec<Hit>,
    /// The things a request in words asks for, where it asks for several; a hit's `step` says
    /// which of them it is for.
    pub parts: Vec<String>,
    /// Tools that fit, of which `hits` is one page; those of [`Hit::also`] count as well.
    pub total: usize,
    /// Of all that fit, most first.
    pub by_server: Vec<(ServerName, usize)>,
    /// Words of the query (names, for a selection) that match nothing at all.
    pub unknown_words: Vec<String>,
    /// What comes closest when nothing fits.
    pub nearest: Vec<ToolRef>,
    /// Only the filter was in the way: the hits are the best without it.
    pub without_filter: bool,
    /// Every category and its tools, most first; only when nothing fits.
    pub categories: Vec<(String, usize)>,
}

#[derive(Debug, Clone)]
pub struct Hit {
    pub entry: Arc<Entry>,
    /// Comparable within one answer only.
    pub score: f32,
    /// Which step of [`Asked::Steps`] or of [`Found::parts`] it answers; else 0.
    pub step: usize,
    /// The same tool on other servers, the best first.
    pub also: Vec<ToolRef>,
    /// Where the query asks why.
    pub evidence: Vec<Evidence>,
}

impl Hit {
    fn of(generation: &Generation, line: &Group) -> Self {
        let entry = |place: u32| &generation.visible()[place as usize];
        let others = line.others.iter();
        Self {
            entry: Arc::clone(entry(line.best.place)),
            score: line.best.score,
            step: 0,
            also: others.map(|place| entry(*place).at.clone()).collect(),
            evidence: Vec::new(),
        }
    }
}

pub(crate) fn search(generation: &Generation, query: &Query) -> Found {
    match &query.asked {
        Asked::Words(text) => answer(generation, query, text),
        Asked::Steps(steps) => answer_steps(generation, query, steps),
    }
}

fn answer(generation: &Generation, query: &Query, text: &str) -> Found {
    if let Some(place) = named(generation, query, text) {
        return Found::of(generation, Kind::Exact, &[Scored::plain(place)], query);
    }
    let mut found = match Meaning::of(text) {
        Meaning::Browse => return browse(generation, query),
        Meaning::Select(names) => return select(generation, query, &names),
        Meaning::Words(wanted) => compound::compound(generation, query, text)
            .unwrap_or_else(|| ranked(generation, query, &wanted, text)),
    };
    if query.why {
        why::explain(generation, query, text, &mut found);
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
fn named(generation: &Generation, query: &Query, text: &str) -> Option<u32> {
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

fn ranked(generation: &Generation, query: &Query, wanted: &Wanted, text: &str) -> Found {
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
    if tools.is_empty() {
        return nothing(generation, query, &ranking, text);
    }
    learned::lift(generation, query, text, &mut tools);
    let mut found = Found::of(generation, Kind::Ranked, &tools, query);
    found.unknown_words = ranking.unknown_words;
    found.without_filter = without_filter;
    found
}

fn nothing(generation: &Generation, query: &Query, ranking: &Ranking, text: &str) -> Found {
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

impl Found {
    fn empty(kind: Kind) -> Self {
        Self {
            kind,
            hits: Vec::new(),
            parts: Vec::new(),
            total: 0,
            by_server: Vec::new(),
            unknown_words: Vec::new(),
            nearest: Vec::new(),
            without_filter: false,
            categories: Vec::new(),
        }
    }

    /// One page of `tools`, which stand in their order.
    fn of(generation: &Generation, kind: Kind, tools: &[Scored], query: &Query) -> Self {
        let mut found = Self::empty(if tools.is_empty() {
            Kind::Nothing
        } else {
            kind
        });
        if tools.is_empty() {
            found.categories = categories(generation, query);
        }
        found.total = tools.len();
        let servers = tools.iter().map(|tool| &tool.entry(generation).at.server);
        found.by_server = counted(servers.cloned());
        let limit = query.limit.min(HITS_MAX);
        let lines = match kind {
            Kind::Ranked => alike::grouped(generation, tools, query.offset.saturating_add(limit)),
            _ => tools.iter().map(Group::alone).collect(),
        };
        let page = lines.iter().skip(query.offset).take(limit);
        found.hits = page.map(|line| Hit::of(generation, line)).collect();
        found
    }

    fn join(&mut self, step: Found, number: usize) {
        if step.kind != Kind::Nothing {
            self.kind = Kind::Ranked;
        }
        self.total += step.total;
        self.hits.extend(step.hits.into_iter().map(|hit| Hit {
            step: number,
            ..hit
        }));
        self.unknown_words.extend(step.unknown_words);
        self.nearest.extend(step.nearest);
        self.without_filter |= step.without_filter;
        let mut servers: BTreeMap<ServerName, usize> = self.by_server.drain(..).collect();
        for (server, tools) in step.by_server {
            *servers.entry(server).or_default() += tools;
        }
        self.by_server = most_first(servers);
    }
}

/// The parts of a query that a tool must meet whatever its score.
#[derive(Debug)]
struct Filter {
    category: Option<String>,
    server: Option<String>,
    tags: Vec<String>,
}

impl Filter {
    fn of(query: &Query) -> Self {
        let said = |text: &Option<String>| {
            text.as_deref()
                .map(fold)
                .filter(|text| !text.is_empty() && text != "*")
        };
        Self {
            category: said(&query.category),
            server: said(&query.server),
            tags: query.tags.iter().map(|tag| fold(tag)).collect(),
        }
    }

    fn is_set(&self) -> bool {
        self.category.is_some() || self.server.is_some() || !self.tags.is_empty()
    }

    fn admits(&self, entry: &Entry) -> bool {
        if !self.is_set() {
            return true;
        }
        let server = fold(entry.at.server.as_str());
        let category = self.category.as_ref().is_none_or(|asked| {
            *asked == server || *asked == fold(&entry.category) || is_within(&entry.category, asked)
        });
        let has = |tag: &String| entry.tags.iter().any(|known| fold(known) == *tag);
        category
            && self.server.as_ref().is_none_or(|asked| *asked == server)
            && self.tags.iter().all(has)
    }
}

/// Whether a finer category lies within the one asked for.
fn is_within(category: &str, asked: &str) -> bool {
    crate::categories::within(category).is_some_and(|coarse| fold(coarse) == asked)
}

fn categories(generation: &Generation, query: &Query) -> Vec<(String, usize)> {
    let seen = generation.entries().filter(|entry| query.sees(entry));
    counted(seen.map(|entry| entry.category.clone()))
}

fn counted<T: Ord>(things: impl Iterator<Item = T>) -> Vec<(T, usize)> {
    let mut counts = BTreeMap::new();
    for thing in things {
        *counts.entry(thing).or_default() += 1;
    }
    most_first(counts)
}

fn most_first<T: Ord>(counts: BTreeMap<T, usize>) -> Vec<(T, usize)> {
    let mut counts: Vec<(T, usize)> = counts.into_iter().collect();
    counts.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    counts
}

fn place_of(place: usize) -> u32 {
    u32::try_from(place).expect("the index holds fewer than 2^32 tools")
}

/// Texts up to here may be a misspelt name; comparing pages with every name would be slow.
const NAME_BYTES_MAX: usize = 100;
