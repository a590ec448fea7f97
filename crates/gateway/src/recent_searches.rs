//! The last searches of a session, to detect that a call followed from one.

use std::{collections::VecDeque, path::Path, sync::OnceLock};

use parking_lot::Mutex;
use registry::{Generation, Query, QueryText, SearchResult};
use tool::{Digest, ToolRef};

/// The number of searches of one session from which a call may follow.
const SEARCHES_KEPT: usize = 8;

/// The longest part of a client's name that is kept, in characters.
const CLIENT_CHARS: usize = 32;

/// The last searches of one session, and their owner.
#[derive(Debug, Default)]
pub struct RecentSearches {
    client: OnceLock<String>,
    /// The client's project, if its working folder is known.
    project: Option<String>,
    searches: Mutex<VecDeque<Searched>>,
}

/// The lesson of a search, and the tools that it found; a tool is removed after a successful call.
#[derive(Debug)]
struct Searched {
    lesson: String,
    tools: Vec<ToolRef>,
}

impl RecentSearches {
    /// No searches yet, of a client that works in this folder, if it is known.
    pub(super) fn in_folder(folder: Option<&Path>) -> Self {
        Self {
            project: folder.map(project_of),
            ..Self::default()
        }
    }

    /// Sets the name that the client announces; later names are ignored.
    pub(super) fn set_client(&self, client: &str) {
        let plain = client
            .chars()
            .filter(|c| c.is_ascii_alphanumeric() || *c == '-');
        let name: String = plain.take(CLIENT_CHARS).collect();
        let _ = self.client.set(name.to_lowercase());
    }

    /// The client and its project, which keep lessons apart; `project` is ours, for a client whose
    /// folder is not known.
    pub(super) fn owner(&self, project: &str) -> String {
        let client = self.client.get().map_or("", String::as_str);
        let client = if client.is_empty() { "unnamed" } else { client };
        let project = self.project.as_deref().unwrap_or(project);
        format!("{client}{project}")
    }

    pub(super) fn push(&self, generation: &Generation, query: &Query, found: &SearchResult) {
        let texts: Vec<&str> = match &query.asked {
            QueryText::Words(text) if found.parts.is_empty() => vec![text],
            QueryText::Words(_) => found.parts.iter().map(String::as_str).collect(),
            QueryText::Steps(steps) => steps.iter().map(String::as_str).collect(),
        };
        let mut searches = self.searches.lock();
        for (step, text) in texts.into_iter().enumerate() {
            let hits = found.hits.iter().filter(|hit| hit.step == step);
            let tools = hits.flat_map(|hit| std::iter::once(&hit.entry.at).chain(&hit.also));
            let tools: Vec<ToolRef> = tools.cloned().collect();
            let lesson = registry::find_lesson(generation, text).filter(|_| !tools.is_empty());
            if let Some(lesson) = lesson {
                searches.push_front(Searched { lesson, tools });
            }
        }
        searches.truncate(SEARCHES_KEPT);
    }

    /// Returns the lesson of the last search that found the tool, and the outcome of its call. After a success
    /// the search teaches nothing more of this tool; a failed call may be repeated with other arguments.
    pub(super) fn take_lesson(
        &self,
        tool: &ToolRef,
        ok: impl FnOnce() -> bool,
    ) -> Option<(String, bool)> {
        let mut searches = self.searches.lock();
        let search = searches.iter_mut().find(|it| it.tools.contains(tool))?;
        let ok = ok();
        search.tools.retain(|known| !ok || known != tool);
        Some((search.lesson.clone(), ok))
    }
}

/// A name for this project that does not reveal it, from our working folder, which clients set.
pub(super) fn project() -> String {
    project_of(&std::env::current_dir().unwrap_or_default())
}

fn project_of(folder: &Path) -> String {
    let digest = Digest::of_bytes(folder.as_os_str().as_encoded_bytes());
    format!("@{}", digest.short(8))
}
