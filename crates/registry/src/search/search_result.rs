//! One page of the answer to a query.

use std::collections::BTreeMap;
use std::sync::Arc;

use tool::{ServerName, ToolRef};

use crate::Entry;
use crate::generation::{Generation, most_first};
use crate::limits::{HITS_MAX, NEAREST_MAX, SECOND_LOOK};
use crate::search::alike::{self, Group};
use crate::search::query::Query;
use crate::search::sums::Scored;

/// The kind of match of an answer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum MatchKind {
    /// The query was a tool's name.
    Exact,
    /// Ranked by the query.
    Ranked,
    /// Everything that passes the filter, in order.
    Browse,
    /// Selected by names, in their order.
    Selected,
    /// No tool surely fits: the hits are the nearest tools.
    Nearest,
    /// No tool fits; see `unknown_words`, `nearest` and `categories`.
    #[default]
    Nothing,
}

/// The answer to a [`Query`].
#[derive(Debug, Clone, Default)]
pub struct SearchResult {
    /// The way it was found.
    pub kind: MatchKind,
    /// One page, the best first.
    pub hits: Vec<Hit>,
    /// The steps of a request that names several; a hit's `step` is an index into them.
    pub parts: Vec<String>,
    /// The steps for which no tool was found, if there are tools for others.
    pub unserved: Vec<String>,
    /// The number of tools that fit, of which `hits` is one page; those of [`Hit::also`] count as
    /// well.
    pub total: usize,
    /// The number of matching tools by server, most first.
    pub by_server: Vec<(ServerName, usize)>,
    /// Words of the query (names, for a selection) without any match.
    pub unknown_words: Vec<String>,
    /// The closest tools, when nothing fits.
    pub nearest: Vec<ToolRef>,
    /// Nothing passed the filter, in any step: the hits are the best without it.
    pub without_filter: bool,
    /// All hits are guesses: near, but not near enough to be sure.
    pub is_guess: bool,
    /// The number of tools by category, most first; only if nothing fits or nothing passes the filter.
    pub categories: Vec<(String, usize)>,
}

/// One tool of a response.
#[derive(Debug, Clone)]
pub struct Hit {
    /// The tool.
    pub entry: Arc<Entry>,
    /// Comparable within one answer only.
    pub score: f32,
    /// The step of `QueryText::Steps` or of [`SearchResult::parts`] that it answers; else 0.
    pub step: usize,
    /// The hit is a guess. In a query with steps this differs by step.
    pub is_guess: bool,
    /// The same tool on other servers, the best first.
    pub also: Vec<ToolRef>,
    /// Its evidence, if the query requests it.
    pub evidence: Vec<Evidence>,
}

/// One contribution to the score of a tool.
#[derive(Debug, Clone, PartialEq)]
pub struct Evidence {
    /// A quoted word of the request is a summand; a label that begins with `times` is a factor.
    pub label: String,
    /// The summand or the factor.
    pub amount: f32,
}

impl Hit {
    fn of(generation: &Generation, line: &Group) -> Self {
        let entry = |place: u32| &generation.visible()[place as usize];
        let others = line.others.iter();
        Self {
            entry: Arc::clone(entry(line.best.place)),
            score: line.best.score,
            step: 0,
            is_guess: false,
            also: others.map(|place| entry(*place).at.clone()).collect(),
            evidence: Vec::new(),
        }
    }
}

impl SearchResult {
    /// One page of `tools`, which stand in their order.
    pub(super) fn of(
        generation: &Generation,
        kind: MatchKind,
        tools: &[Scored],
        query: &Query,
    ) -> Self {
        let mut found = Self::default();
        if tools.is_empty() {
            found.categories = categories(generation, query);
        } else {
            found.kind = kind;
        }
        found.total = tools.len();
        found.by_server = generation.count_by_server(tools.iter().map(|tool| tool.place));
        let limit = query.limit.min(HITS_MAX);
        let lines = match kind {
            MatchKind::Ranked | MatchKind::Nearest => {
                alike::group(generation, tools, query.offset.saturating_add(limit))
            }
            _ => tools.iter().map(Group::of_one).collect(),
        };
        let page = lines.iter().skip(query.offset).take(limit);
        found.hits = page.map(|line| Hit::of(generation, line)).collect();
        found
    }

    /// The first few of `tools`, none of which surely fits.
    pub(super) fn nearest(generation: &Generation, tools: &[Scored], query: &Query) -> Self {
        let query = Query {
            limit: query.limit.min(NEAREST_MAX),
            ..query.clone()
        };
        let few = &tools[..tools.len().min(SECOND_LOOK)];
        let mut found = Self::of(generation, MatchKind::Nearest, few, &query);
        found.total = found.hits.iter().map(|hit| 1 + hit.also.len()).sum();
        let places = found
            .hits
            .iter()
            .flat_map(|hit| std::iter::once(&hit.entry.at).chain(&hit.also));
        let mut servers: BTreeMap<ServerName, usize> = BTreeMap::new();
        for at in places {
            *servers.entry(at.server.clone()).or_default() += 1;
        }
        found.by_server = most_first(servers);
        found.set_guess(true);
        found
    }

    pub(super) fn set_guess(&mut self, is_guess: bool) {
        self.is_guess = is_guess;
        for hit in &mut self.hits {
            hit.is_guess = is_guess && !hit.entry.at.server.is_built_in();
        }
    }

    /// Appends our own tools to the first page.
    pub(super) fn with_ours(
        mut self,
        generation: &Generation,
        ours: &[Scored],
        query: &Query,
    ) -> Self {
        if query.offset == 0 {
            let lines = ours.iter().map(Group::of_one);
            self.hits
                .extend(lines.map(|line| Hit::of(generation, &line)));
            self.total += ours.len();
        }
        self
    }

    pub(super) fn join(&mut self, step: SearchResult, number: usize) {
        if step.kind != MatchKind::Nothing {
            self.kind = MatchKind::Ranked;
        }
        self.total += step.total;
        if !step.hits.is_empty() {
            let was_outside = self.hits.is_empty() || self.without_filter;
            self.without_filter = step.without_filter && was_outside;
        }
        self.hits.extend(step.hits.into_iter().map(|hit| Hit {
            step: number,
            is_guess: hit.is_guess || step.without_filter,
            ..hit
        }));
        self.unknown_words.extend(step.unknown_words);
        self.nearest.extend(step.nearest);
        let mut servers: BTreeMap<ServerName, usize> = self.by_server.drain(..).collect();
        for (server, tools) in step.by_server {
            *servers.entry(server).or_default() += tools;
        }
        self.by_server = most_first(servers);
    }
}

/// Counts the tools of each category that `sees` admits, without the built-in tools; the largest
/// category first.
pub fn count_categories(
    generation: &Generation,
    sees: impl Fn(&Entry) -> bool,
) -> Vec<(String, usize)> {
    let mut counts = BTreeMap::new();
    let entries = generation.entries();
    let offered = entries.filter(|it| !it.at.server.is_built_in());
    for entry in offered.filter(|entry| sees(entry)) {
        *counts.entry(entry.category.clone()).or_default() += 1;
    }
    most_first(counts)
}

pub(super) fn categories(generation: &Generation, query: &Query) -> Vec<(String, usize)> {
    count_categories(generation, |entry| query.sees(entry))
}
