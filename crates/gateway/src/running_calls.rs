//! The tool calls in flight, for people who watch them and may end one.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use files::clock::now_ms;
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

/// The longest name of a tool that is kept, in characters: it is as the client wrote it.
const TOOL_CHARS_MAX: usize = 200;

/// A tool call in flight.
#[derive(Debug)]
pub struct RunningCall {
    /// Its number, unique in this process.
    pub id: u64,
    /// The tool as the client named it, on one line.
    pub tool: String,
    /// The name of the client, in lower case; empty if it announced none.
    pub client: Arc<str>,
    /// `stdio`, `http`, `shell` or `page`.
    pub transport: &'static str,
    /// The time at which it began, in milliseconds since 1970.
    pub since_ms: u64,
    /// The number of the call of the script that makes it.
    pub parent: Option<u64>,
    /// Cancelled when a person ends the call.
    pub(crate) end: CancellationToken,
}

impl RunningCall {
    /// Returns the name of the call in the audit log, if other calls are made within it: unique among all
    /// processes.
    pub(crate) fn run(&self) -> String {
        format!("{:x}-{:x}", self.since_ms, self.id)
    }
}

/// All tool calls in flight.
#[derive(Debug, Default)]
pub struct RunningCalls {
    last: AtomicU64,
    list: Mutex<BTreeMap<u64, Arc<RunningCall>>>,
}

/// One call in the list, until this is dropped.
#[derive(Debug)]
pub(crate) struct ListedCall<'a> {
    pub(crate) call: Arc<RunningCall>,
    list: &'a RunningCalls,
}

impl RunningCalls {
    /// Lists a call of this client, over this transport, by the script of the call `parent`.
    pub(crate) fn begin(
        &self,
        tool: &str,
        (client, transport): (&Arc<str>, &'static str),
        parent: Option<u64>,
    ) -> ListedCall<'_> {
        let call = Arc::new(RunningCall {
            id: self.last.fetch_add(1, Ordering::Relaxed) + 1,
            tool: printable::one_line_of(tool, TOOL_CHARS_MAX),
            client: Arc::clone(client),
            transport,
            since_ms: now_ms(),
            parent,
            end: CancellationToken::new(),
        });
        self.list.lock().insert(call.id, Arc::clone(&call));
        ListedCall { call, list: self }
    }

    /// Returns the calls in flight, the oldest first.
    pub fn list(&self) -> Vec<Arc<RunningCall>> {
        self.list.lock().values().cloned().collect()
    }

    /// Ends a call: its client gets the error `cancelled`. Returns false if there is no such call.
    pub fn end(&self, id: u64) -> bool {
        let call = self.list.lock().get(&id).cloned();
        call.inspect(|it| it.end.cancel()).is_some()
    }
}

impl Drop for ListedCall<'_> {
    fn drop(&mut self) {
        self.list.list.lock().remove(&self.call.id);
    }
}
