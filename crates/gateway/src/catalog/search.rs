//! A search over the known tools, and over those of servers that are being asked.

use std::sync::atomic::Ordering;

use registry::{Generation, Kind, Query, View};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tool::ServerName;

use super::{Catalog, sees};
use crate::{
    error::ToolError,
    recent_searches::RecentSearches,
    search_tools::{RESULTS_MAX, SearchAnswer},
    survey,
    surveys::{ANSWER_WAIT, WaitsFor},
};

/// The most tools without an embedding for which a search without a sure hit waits: some 9 ms of a
/// core each.
const EMBEDDINGS_AWAITED_MAX: usize = 100;

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
        let concerns = |name: &ServerName| self.is_seen(name, view.as_deref());
        loop {
            let end = self.surveys.next_end();
            let mut answer = self.search_known(query.clone()).await?;
            let is_last = answer.is_sure()
                || !(self.surveys)
                    .wait_for(end, WaitsFor::FirstTools, concerns)
                    .await;
            if is_last {
                if !answer.is_sure() && self.wait_for_embeddings(&answer.generation).await {
                    answer = self.search_known(query).await?;
                }
                let is_exact = answer.found.kind == Kind::Exact;
                let missing = if is_exact {
                    Vec::new()
                } else {
                    self.surveys.missing(concerns)
                };
                return Ok(SearchAnswer { missing, ..answer });
            }
        }
    }

    /// Waits until a few new tools have their embeddings, some milliseconds each; returns true if
    /// they may have. Does not wait if there are many, or if an earlier wait was in vain.
    async fn wait_for_embeddings(&self, generation: &Generation) -> bool {
        let missing = generation.unembedded();
        let is_late = self.embeddings_are_late.load(Ordering::Relaxed);
        if missing == 0 || missing > EMBEDDINGS_AWAITED_MAX || is_late {
            return false;
        }
        let never = CancellationToken::new();
        let embedding = survey::embed_tools(self, &never);
        let is_done = timeout(ANSWER_WAIT, embedding).await.is_ok();
        if !is_done {
            self.embeddings_are_late.store(true, Ordering::Relaxed);
        }
        is_done
    }

    fn is_seen(&self, name: &ServerName, view: Option<&View>) -> bool {
        let catalog = self.registry.catalog();
        let server = catalog.servers.iter().find(|it| it.name == *name);
        server.is_none_or(|server| sees(view, server))
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
            self.to_embed.notify_one();
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
        let answer = searching.await;
        let mut answer = answer.map_err(|error| ToolError::Internal(error.to_string()))?;
        // While no server has sent its tools, our own tools are no answer to a query.
        if answer.found.kind != Kind::Exact && self.registry.catalog().tools() == 0 {
            answer.found.hits.clear();
        }
        Ok(answer)
    }
}
