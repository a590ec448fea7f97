//! The script that makes a call, and what it has in common with the scripts that it calls.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use registry::Entry;
use script::{CALLS_MAX, Limit};
use tokio::sync::{Semaphore, SemaphorePermit};

use crate::error::ToolError;

/// Scripts that run within each other, the outermost one included.
const DEPTH_MAX: usize = 3;

/// Scripts that one script has under way at one time: each is a process.
const NESTED_MAX: usize = 4;

/// A script that makes calls.
#[derive(Debug, Clone)]
pub(crate) struct ScriptCaller {
    depth: usize,
    /// It says of itself that it only reads, and so may call nothing else.
    read_only: Option<Arc<str>>,
    /// Calls that it and those within it have made.
    calls: Arc<AtomicUsize>,
    /// Of the scripts that it calls.
    turns: Arc<Semaphore>,
}

impl ScriptCaller {
    /// A script that is run by a call, which `outer` made; `read_only` is its name where it says so.
    pub(crate) fn within(outer: Option<&Self>, read_only: Option<&str>) -> Result<Self, ToolError> {
        let depth = outer.map_or(0, |it| it.depth) + 1;
        if depth > DEPTH_MAX {
            return Err(ToolError::Script {
                code: "script_limit",
                text: format!("depth: more than {DEPTH_MAX} scripts within each other"),
            });
        }
        let outer_reads = outer.and_then(|it| it.read_only.clone());
        Ok(Self {
            depth,
            read_only: outer_reads.or_else(|| read_only.map(Arc::from)),
            calls: outer.map(|it| Arc::clone(&it.calls)).unwrap_or_default(),
            turns: Arc::new(Semaphore::new(NESTED_MAX)),
        })
    }

    /// Waits until a script may be run for this one. Each has turns of its own to give, so nobody
    /// waits for one that waits for it.
    pub(crate) async fn take_turn(&self) -> Option<SemaphorePermit<'_>> {
        self.turns.acquire().await.ok()
    }

    /// Counts a call; an error where all scripts together have made too many.
    pub(crate) fn count_call(&self) -> Result<(), ToolError> {
        if self.calls.fetch_add(1, Ordering::Relaxed) < CALLS_MAX {
            return Ok(());
        }
        Err(ToolError::Script {
            code: "script_limit",
            text: Limit::Calls.to_string(),
        })
    }

    /// Whether it may call this.
    pub(crate) fn check_reads(&self, entry: &Entry) -> Result<(), ToolError> {
        if entry.is_read_only() {
            return Ok(());
        }
        let at = entry.at.to_string();
        self.check_may_change(&at)
    }

    /// Whether it may do what changes something.
    pub(crate) fn check_may_change(&self, what: &str) -> Result<(), ToolError> {
        let Some(script) = &self.read_only else {
            return Ok(());
        };
        Err(ToolError::Script {
            code: "denied",
            text: format!(
                "{script} is @readOnly, and {what} does not say that it only reads; call another \
                 tool, or take the tag off the script"
            ),
        })
    }
}
