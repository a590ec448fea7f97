//! The last searches of a session, so that a call can be told to have followed from one.

use std::{collections::VecDeque, path::Path, sync::OnceLock};

use parking_lot::{Mutex, MutexGuard};
use registry::{Asked, Found, Generation, Query};
use tool::{Digest, ToolRef};

/// Searches of one session that a call may follow from.
const SEARCHES_KEPT: usize = 8;

/// The longest part of a client's name that is kept.
const CLIENT_CHARS: usize = 32;

/// The last searches of one session, and whose they are.
#[derive(Debug, Default)]
pub struct RecentSearches {
    client: OnceLock<String>,
    /// The client's own, where we know the folder it works in.
    project: Option<String>,
    searches: Mutex<VecDeque<Searched>>,
}

/// Words, and tools that they found; a tool goes once a call of it was learned from.
#[derive(Debug)]
struct Searched {
    words: Vec<String>,
    tools: Vec<ToolRef>,
}

impl RecentSearches {
    /// None yet, of a client that works in this folder, where it is known.
    pub(super) fn in_folder(folder: Option<&Path>) -> Self {
        Self {
            project: folder.map(project_of),
            ..Self::default()
        }
    }

    /// Takes what the client calls itself; the first name counts.
    pub(super) fn set_client(&self, client: &str) {
        let plain = client
            .chars()
            .filter(|c| c.is_ascii_alphanumeric() || *c == '-');
        let name: String = plain.take(CLIENT_CHARS).collect();
        let _ = self.client.set(name.to_lowercase());
    }

    /// The client and its project, by which lessons are kept apart; `project` is ours, for a
    /// client whose folder is not known.
    pub(super) fn owner(&self, project: &str) -> String {
        let client = self.client.get().map_or("", String::as_str);
        let client = if client.is_empty() { "unnamed" } else { client };
        let project = self.project.as_deref().unwrap_or(project);
        format!("{client}{project}")
    }

    /// Takes a search and what it found.
    pub(super) fn push(&self, generation: &Generation, query: &Query, found: &Found) {
        let texts: Vec<&str> = match &query.asked {
            Asked::Words(text) if found.parts.is_empty() => vec![text],
            Asked::Words(_) => found.parts.iter().map(String::as_str).collect(),
            Asked::Steps(steps) => steps.iter().map(String::as_str).collect(),
        };
        let mut searches = self.searches();
        for (step, text) in texts.into_iter().enumerate() {
            let hits = found.hits.iter().filter(|hit| hit.step == step);
            let tools = hits.flat_map(|hit| std::iter::once(&hit.entry.at).chain(&hit.also));
            let tools: Vec<ToolRef> = tools.cloned().collect();
            let words = generation.feedback_words(text);
            if !tools.is_empty() && !words.is_empty() {
                searches.push_front(Searched { words, tools });
            }
        }
        searches.truncate(SEARCHES_KEPT);
    }

    /// Takes the words of the last search that found the tool; once a search and tool.
    pub(super) fn take_words(&self, tool: &ToolRef) -> Option<Vec<String>> {
        self.searches().iter_mut().find_map(|search| {
            let at = search.tools.iter().position(|known| known == tool)?;
            search.tools.remove(at);
            Some(search.words.clone())
        })
    }

    fn searches(&self) -> MutexGuard<'_, VecDeque<Searched>> {
        self.searches.lock()
    }
}

/// A name for this project that does not tell what it is: our working folder, which clients set.
pub(super) fn project() -> String {
    project_of(&std::env::current_dir().unwrap_or_default())
}

fn project_of(folder: &Path) -> String {
    let digest = Digest::of_bytes(folder.as_os_str().as_encoded_bytes());
    format!("@{}", digest.short(8))
}
