//! Queries to a generation.

use std::sync::Arc;

use tool::ToolRef;

use crate::generation::Generation;
use crate::{Entry, Learned, View};

/// A query for [`Generation::search`].
#[derive(Debug, Clone)]
pub struct Query {
    /// The text of the query.
    pub asked: QueryText,
    /// A category or a server, in any spelling.
    pub category: Option<String>,
    /// A server, in any spelling.
    pub server: Option<String>,
    /// Tags that a tool must have, all of them.
    pub tags: Vec<String>,
    /// The maximum number of hits on one page.
    pub limit: usize,
    /// The number of hits before the page.
    pub offset: usize,
    /// The requests learned from earlier calls, if they are to be used.
    pub learned: Option<Learned>,
    /// Each hit includes its evidence.
    pub why: bool,
    /// The client's view; `None` sees everything.
    pub view: Option<Arc<View>>,
}

/// The text of a query in one of its two forms.
#[derive(Debug, Clone)]
pub enum QueryText {
    /// Words; also `select:a,b`, `+word`, `*` or nothing (browse), an exact tool name.
    Words(String),
    /// One query per step of a task; the steps share the limit.
    Steps(Vec<String>),
}

impl Query {
    /// Creates a query of words without a filter, with five hits.
    pub fn words(text: impl Into<String>) -> Self {
        Self {
            asked: QueryText::Words(text.into()),
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

    /// Returns true if the client may see this tool.
    pub(super) fn sees(&self, entry: &Entry) -> bool {
        let admits = |view: &Arc<View>| view.admits(&entry.at.server, &entry.category);
        self.view.as_ref().is_none_or(admits)
    }

    pub(super) fn sees_at(&self, generation: &Generation, at: &ToolRef) -> bool {
        self.view.is_none()
            || generation
                .find(&at.to_string())
                .is_ok_and(|it| self.sees(it))
    }
}
