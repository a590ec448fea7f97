//! The script that makes a call, and the state that it shares with the scripts that it calls.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use registry::Entry;
use script::{CALLS_MAX, Limit, NESTING_MAX};

use crate::{error::ToolError, running_calls::RunningCall};

#[derive(Debug, Clone)]
pub(crate) struct ScriptCaller {
    depth: usize,
    /// The name of the script that declares itself read-only, and so may call read-only tools alone.
    read_only: Option<Arc<str>>,
    /// The counts of calls, from the outermost script to this one; each includes the calls of nested
    /// scripts. The last is its own.
    calls: Vec<Arc<AtomicUsize>>,
    /// The call that runs it.
    call: Option<Arc<RunningCall>>,
}

impl ScriptCaller {
    /// A script that is run by a call of `outer`; `read_only` is its name if it declares itself
    /// read-only.
    pub(crate) fn within(outer: Option<&Self>, read_only: Option<&str>) -> Result<Self, ToolError> {
        let depth = outer.map_or(0, |it| it.depth) + 1;
        if depth > NESTING_MAX {
            return Err(ToolError::ScriptLimit(Limit::Nesting));
        }
        let outer_reads = outer.and_then(|it| it.read_only.clone());
        Ok(Self {
            depth,
            read_only: outer_reads.or_else(|| read_only.map(Arc::from)),
            calls: outer
                .into_iter()
                .flat_map(|it| it.calls.iter().cloned())
                .chain([Arc::default()])
                .collect(),
            call: None,
        })
    }

    pub(crate) fn of_call(mut self, call: Option<Arc<RunningCall>>) -> Self {
        self.call = call;
        self
    }

    pub(crate) fn call(&self) -> Option<&RunningCall> {
        self.call.as_deref()
    }

    /// The depth of nested scripts, including this one.
    pub(crate) fn depth(&self) -> usize {
        self.depth
    }

    /// The number of calls of this script and of those that it runs.
    pub(crate) fn calls(&self) -> usize {
        self.calls.last().map_or(0, |it| it.load(Ordering::Relaxed))
    }

    /// Counts a call; fails if all scripts together have made too many.
    pub(crate) fn count_call(&self) -> Result<(), ToolError> {
        let [outermost, within @ ..] = self.calls.as_slice() else {
            return Ok(());
        };
        let add = |count: usize| (count < CALLS_MAX).then_some(count + 1);
        let counted = outermost.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add);
        if counted.is_err() {
            return Err(ToolError::ScriptLimit(Limit::Calls));
        }
        for calls in within {
            calls.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Fails if the script is read-only and the tool is not.
    pub(crate) fn check_reads(&self, entry: &Entry) -> Result<(), ToolError> {
        if entry.is_read_only() {
            return Ok(());
        }
        let at = entry.at.to_string();
        self.check_may_change(&at)
    }

    /// Fails if the script is read-only; `what` is something that may change data.
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
