//! Questions to a generation.

use std::sync::Arc;

use tool::ToolRef;

use crate::generation::Generation;
use crate::{Entry, Learned, View};

/// A question to [`Generation::search`].
#[derive(Debug, Clone)]
pub struct Query {
    /// The request itself.
    pub asked: Asked,
    /// A category or a server, in any spelling.
    pub category: Option<String>,
    /// A server, in any spelling.
    pub server: Option<String>,
    /// A tool must carry all of them.
    pub tags: Vec<String>,
    /// Hits on one page.
    pub limit: usize,
    /// Hits before the page.
    pub offset: usize,
    /// The feedback of earlier calls, if it may count.
    pub learned: Option<Learned>,
    /// Each hit is to come with its evidence.
    pub why: bool,
    /// The asker's view; none sees everything.
    pub view: Option<Arc<View>>,
}

/// A request in one of its two forms.
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

    /// The asker may see this tool.
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
