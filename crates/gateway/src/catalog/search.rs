//! A search over the known tools, and over those of servers that are being asked.

use std::sync::{Arc, atomic::Ordering};

use registry::{Generation, MatchKind, Query, QueryText, SearchResult};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tool::ServerName;

use super::{Catalog, sees};
use crate::{
    built_in::is_own,
    error::ToolError,
    recent_searches::RecentSearches,
    survey,
    surveys::{ANSWER_WAIT, WaitsFor},
};

/// The maximum number of hits (interface, section 4).
const RESULTS_MAX: usize = 20;

/// The most texts without an embedding for which a search without a sure hit waits, some 4 ms of a core each:
/// a hundred tools with two example requests each.
const EMBEDDINGS_AWAITED_MAX: usize = 300;

/// The outcome of a search; [`search_text`](crate::search_text) and
/// [`search_json`](crate::search_json) write it.
#[derive(Debug)]
pub struct SearchAnswer {
    pub(crate) generation: Arc<Generation>,
    pub(crate) query: Query,
    pub(crate) found: SearchResult,
    /// Servers whose tools may be missing: they were still being asked for them.
    pub(crate) missing: Vec<ServerName>,
}

impl SearchAnswer {
    /// Returns true if anything matches; the nearest tools and those that the filter does not admit
    /// are no match.
    pub fn has_hits(&self) -> bool {
        let found = &self.found;
        !found.hits.is_empty() && !found.without_filter && found.kind != MatchKind::Nearest
    }

    /// Returns true if the answer has a tool of a server for everything that was asked for, and that
    /// tool is no guess.
    pub(crate) fn is_sure(&self) -> bool {
        let Self { found, query, .. } = self;
        if found.kind == MatchKind::Exact {
            return true;
        }
        let has_hit = |step: Option<usize>| {
            let mut hits = found.hits.iter();
            hits.any(|hit| {
                let is_for_it = step.is_none_or(|step| hit.step == step);
                !is_own(&hit.entry) && !hit.is_guess && is_for_it
            })
        };
        let is_whole = match &query.asked {
            QueryText::Steps(steps) => (0..steps.len()).all(|step| has_hit(Some(step))),
            QueryText::Words(_) => has_hit(None),
        };
        let lacks_names = found.kind == MatchKind::Selected && !found.unknown_words.is_empty();
        is_whole && !found.without_filter && !lacks_names
    }
}

impl Catalog {
    /// Searches with the lessons of `searches`, or, without it, of all clients here. Responds at
    /// once with the known tools. Only without a sure hit it waits, a few seconds at most: for
    /// servers that have never sent their tools (all searches together once for each start of a
    /// server), then for the embeddings of a few new tools.
    pub async fn search(
        &self,
        query: Query,
        searches: Option<&RecentSearches>,
    ) -> Result<SearchAnswer, ToolError> {
        let query = Query {
            learned: self.learned(searches),
            limit: query.limit.clamp(1, RESULTS_MAX),
            ..query
        };
        let view = query.view.clone();
        let concerns = |name: &ServerName| {
            let is_seen = self.read_record(name, |it| sees(view.as_deref(), it));
            is_seen.unwrap_or(true)
        };
        loop {
            let end = self.surveys.next_end();
            let mut answer = self.search_known(query.clone()).await?;
            if !answer.is_sure() {
                let waiting = self.surveys.wait_for(end, WaitsFor::FirstTools, concerns);
                if waiting.await {
                    continue;
                }
                if self.wait_for_embeddings(&answer.generation).await {
                    answer = self.search_known(query).await?;
                }
            }
            if answer.found.kind != MatchKind::Exact {
                answer.missing = self.surveys.missing(concerns);
            }
            return Ok(answer);
        }
    }

    /// Waits until a few new tools have their embeddings, some milliseconds each; returns true if
    /// they may have. Does not wait if there are many, or if an earlier wait was in vain.
    async fn wait_for_embeddings(&self, generation: &Generation) -> bool {
        let missing = generation.unembedded();
        let is_late = self.embeddings.is_late.load(Ordering::Relaxed);
        if missing == 0 || missing > EMBEDDINGS_AWAITED_MAX || is_late {
            return false;
        }
        let never = CancellationToken::new();
        let embedding = survey::embed_tools(self, &never);
        let is_done = timeout(ANSWER_WAIT, embedding).await.is_ok();
        if !is_done {
            self.embeddings.is_late.store(true, Ordering::Relaxed);
        }
        is_done
    }

    /// Searches the known tools off the event loop: the embedding of a request takes milliseconds of
    /// a core.
    async fn search_known(&self, query: Query) -> Result<SearchAnswer, ToolError> {
        if self.registry.loaded().is_none() {
            let registry = self.registry.clone();
            drop(tokio::task::spawn_blocking(move || registry.load_encoder()));
        }
        let generation = self.generation().await?;
        if generation.unembedded() > 0 {
            self.embeddings.added.notify_one();
        }
        let searching = tokio::task::spawn_blocking(move || {
            let found = generation.search(&query);
            // Read from strangers' schemas once, and kept; here, where that disturbs nobody.
            for hit in &found.hits {
                hit.entry.signature();
                hit.entry.purpose();
            }
            SearchAnswer {
                generation,
                query,
                found,
                missing: Vec::new(),
            }
        });
        let mut answer = searching.await.map_err(ToolError::internal)?;
        // While no server has sent its tools, our own tools are no answer to a query.
        if answer.found.kind != MatchKind::Exact && self.registry.catalog().tools() == 0 {
            answer.found.hits.clear();
        }
        Ok(answer)
    }
}
