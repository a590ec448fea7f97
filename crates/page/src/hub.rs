//! The current state, the tabs that follow it, and the lines that they read.

use bytes::Bytes;
use serde::Serialize;
use tokio::sync::{Mutex, broadcast};

use crate::state::{RowChange, State};

/// One line of the stream.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum Message {
    /// The whole state. The first line, and the one after a gap.
    Snapshot { n: u64, state: Box<State> },
    /// The differences from the state before. `n` grows by one.
    Change { n: u64, changes: Vec<RowChange> },
    /// Nothing changed for a while.
    Alive { n: u64 },
    /// Changes were lost because the tab did not read; a snapshot follows.
    Gap { n: u64 },
    /// The last line.
    End { message: String, next_step: String },
}

/// The current state, and the tabs that follow it.
#[derive(Debug, Default)]
pub(crate) struct Hub(pub(crate) Mutex<Option<Current>>);

#[derive(Debug)]
pub(crate) struct Current {
    pub(crate) n: u64,
    pub(crate) state: State,
    pub(crate) sender: broadcast::Sender<(u64, Bytes)>,
}

impl Current {
    pub(crate) fn snapshot(&self) -> Bytes {
        line(&Message::Snapshot {
            n: self.n,
            state: Box::new(self.state.clone()),
        })
    }
}

pub(crate) fn line(message: &Message) -> Bytes {
    let mut line = serde_json::to_vec(message).unwrap_or_default();
    line.push(b'\n');
    line.into()
}
