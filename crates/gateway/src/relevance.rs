//! Relevance feedback: a call that followed from a search teaches later ones.

use registry::Learned;
use tool::ToolRef;

use crate::{clock::now, gateway::Gateway, recent_searches::RecentSearches};

impl Gateway {
    /// The earlier calls that a search may know of: those of this client in this project, or for a
    /// search from the shell those of all clients here.
    pub(super) fn learned(&self, searches: Option<&RecentSearches>) -> Option<Learned> {
        self.settings().search.learns.then(|| Learned {
            feedback: self.feedback.clone(),
            whose: searches.map_or(self.project.clone(), |it| it.owner(&self.project)),
            now: now(),
        })
    }

    /// Takes a lesson from a call, if it followed from a search.
    pub(super) fn learn(
        &self,
        searches: Option<&RecentSearches>,
        tool: &ToolRef,
        ok: impl FnOnce() -> bool,
    ) {
        let Some(searches) = searches.filter(|_| self.settings().search.learns) else {
            return;
        };
        if let Some(words) = searches.take_words(tool) {
            let whose = searches.owner(&self.project);
            self.feedback.learn(&whose, &words, tool, ok(), now());
        }
    }
}
