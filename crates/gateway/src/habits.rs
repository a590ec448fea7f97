//! What a client searched for lately, so that a call can be told to have followed from it.

use std::{collections::VecDeque, path::Path, sync::OnceLock};

use parking_lot::{Mutex, MutexGuard};
use registry::{Asked, Found, Generation, Learned, Query};
use tool::{Digest, ToolRef};

use super::{Gateway, now};

/// Searches of one session that a call may follow from.
const SEARCHES_KEPT: usize = 8;

/// The longest part of a client's name that is kept.
const CLIENT_CHARS: usize = 32;

/// One session's client, and its last searches.
#[derive(Debug, Default)]
pub struct Habits {
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

impl Habits {
    pub(super) fn in_folder(folder: Option<&Path>) -> Self {
        Self {
            project: folder.map(project_of),
            ..Self::default()
        }
    }

    /// What the client calls itself; the first name counts.
    pub(super) fn named(&self, client: &str) {
        let plain = client
            .chars()
            .filter(|c| c.is_ascii_alphanumeric() || *c == '-');
        let name: String = plain.take(CLIENT_CHARS).collect();
        let _ = self.client.set(name.to_lowercase());
    }

    fn whose(&self, project: &str) -> String {
        let client = self.client.get().map_or("", String::as_str);
        let client = if client.is_empty() { "unnamed" } else { client };
        let project = self.project.as_deref().unwrap_or(project);
        format!("{client}{project}")
    }

    pub(super) fn searched(&self, generation: &Generation, query: &Query, found: &Found) {
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

    /// The words of the last search that found the tool; once a search and tool.
    fn led_to(&self, tool: &ToolRef) -> Option<Vec<String>> {
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

impl Gateway {
    /// What a search may know of earlier calls: those of this client in this project, or for a
    /// search from the shell those of all clients here.
    pub(super) fn learned(&self, habits: Option<&Habits>) -> Option<Learned> {
        self.settings().search.learns.then(|| Learned {
            feedback: self.feedback.clone(),
            whose: habits.map_or(self.project.clone(), |it| it.whose(&self.project)),
            now: now(),
        })
    }

    /// Takes a lesson from a call, if it followed from a search.
    pub(super) fn learn(&self, habits: Option<&Habits>, tool: &ToolRef, ok: impl FnOnce() -> bool) {
        let Some(habits) = habits.filter(|_| self.settings().search.learns) else {
            return;
        };
        if let Some(words) = habits.led_to(tool) {
            let whose = habits.whose(&self.project);
            self.feedback.learn(&whose, &words, tool, ok(), now());
        }
    }
}

/// Tells this project from others without naming it: our working folder, which clients set.
pub(super) fn project() -> String {
    project_of(&std::env::current_dir().unwrap_or_default())
}

fn project_of(folder: &Path) -> String {
    let digest = Digest::of_bytes(folder.as_os_str().as_encoded_bytes());
    format!("@{}", digest.short(8))
}
