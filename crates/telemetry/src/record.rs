//! The records of calls, searches, scripts and sessions.

use std::sync::Arc;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::outcome::Outcome;

/// The recorded form of a call's arguments.
#[derive(Debug, Clone, Default)]
pub enum RecordedArguments {
    /// Nothing.
    #[default]
    None,
    /// The digest of this text.
    Digest(Bytes),
    /// This JSON text, with secrets masked.
    Full(Bytes),
}

/// One call of a tool, a prompt or a resource, or one subscription or completion (decision 0047).
#[derive(Debug, Clone, Default)]
pub struct CallRecord {
    /// The time of the call, in unix milliseconds.
    pub at_ms: u64,
    /// The name that its client announced; empty for a person at the command line.
    pub client: Arc<str>,
    /// The token or subject that authorized the call over HTTP: `token NAME`, `oauth SUBJECT`; empty
    /// otherwise.
    pub caller: Arc<str>,
    /// The number of the client's connection.
    pub session: Option<u64>,
    /// The transport of the client: `stdio`, `http`, `shell`; empty if it is not known.
    pub transport: &'static str,
    /// The name of the call of a script, which is the `parent` of the calls that the script makes.
    pub run: Option<String>,
    /// The call of the script that makes this one.
    pub parent: Option<String>,
    /// True if an app of the server made the call.
    pub by_app: bool,
    /// The server.
    pub server: Arc<str>,
    /// The node of the cluster that runs the server, if it is another one.
    pub node: Option<String>,
    /// `tool`, `prompt`, `resource`, `subscription` or `completion`.
    pub kind: &'static str,
    /// The tool's or prompt's name on its server, or the URI.
    pub name: String,
    /// The decision of the rules: `allow`, `ask`, `deny`; empty if the call ended before they were
    /// evaluated.
    pub decision: &'static str,
    /// The rule that decided, counted from 1; none: the preset.
    pub rule: Option<usize>,
    /// The way in which it ended.
    pub outcome: Outcome,
    /// The size of the arguments in bytes.
    pub bytes_in: u64,
    /// The size in bytes of the result as the server sent it.
    pub bytes: u64,
    /// The size in bytes of the response as the client received it.
    pub bytes_sent: u64,
    /// The number of texts in the result that were redacted.
    pub redacted: u64,
    /// True if the result was cut and stored.
    pub is_cut: bool,
    /// The handle of the stored result that the response is a part of.
    pub handle: Option<String>,
    /// The time from the call to its response, in microseconds.
    pub micros: u64,
    /// The recorded form of the arguments.
    pub arguments: RecordedArguments,
}

/// The newest call in the audit log of a node. In the log of another node, it proves later that no line up to it
/// was removed or changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditHead {
    /// The number of its line.
    pub number: u64,
    /// The digest of its line.
    pub digest: String,
}

/// An event that is counted.
#[derive(Debug, Clone)]
pub enum Event {
    /// A call that ended.
    Call(Box<CallRecord>),
    /// A credential that was refused. It is in the log, and counts as no call.
    Refusal(Box<CallRecord>),
    /// The newest call in the audit log of another node. It is in the log, and counts as no call.
    Head {
        /// The time in unix milliseconds.
        at_ms: u64,
        /// The name of that node.
        node: String,
        /// Its newest call.
        head: AuditHead,
    },
    /// A search.
    Search {
        /// The time in unix milliseconds.
        at_ms: u64,
        /// The words of the search, which are kept if no tool was found.
        words: String,
        /// The number of tools found.
        hits: usize,
    },
    /// A script that ran.
    Script {
        /// The time in unix milliseconds.
        at_ms: u64,
        /// The size in bytes of the results that its calls returned.
        bytes_read: u64,
        /// The size in bytes of the response that its client received.
        bytes_sent: u64,
    },
    /// The first call of one of the three tools in a session.
    FirstUse {
        /// The time in unix milliseconds.
        at_ms: u64,
        /// The name that the client announced.
        client: String,
        /// The tool.
        tool: &'static str,
        /// The number of the call in its session, from 1 on.
        turn: u64,
    },
    /// A client that connected.
    Session {
        /// The time in unix milliseconds.
        at_ms: u64,
        /// The name that the client announced.
        client: String,
        /// The tokens of the tool definitions that the client was not sent.
        tokens_saved: u64,
    },
}

impl Event {
    /// Returns true if the audit log has a line for it.
    pub(crate) fn is_logged(&self) -> bool {
        matches!(self, Self::Call(_) | Self::Refusal(_) | Self::Head { .. })
    }
}

/// Estimates the number of tokens of a text with this many bytes, by a rule of thumb.
pub fn estimate_tokens(bytes: u64) -> u64 {
    bytes.div_ceil(4)
}
