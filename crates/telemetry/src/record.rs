//! One call, search or session, as it is handed over.

use std::borrow::Cow;

use bytes::Bytes;

/// What is written down of a call's arguments.
#[derive(Debug, Clone, Default)]
pub enum Arguments {
    /// Nothing.
    #[default]
    None,
    /// A digest of this text.
    Digest(Bytes),
    /// This JSON text; what is named like a secret is masked.
    Full(Bytes),
}

/// One call of a tool, prompt or resource.
#[derive(Debug, Clone, Default)]
pub struct CallRecord {
    /// When it came in, in unix milliseconds.
    pub at_ms: u64,
    /// The name that its client announced; empty for a person at the command line.
    pub client: String,
    /// The token or subject that let it in, over HTTP: `token NAME`, `oauth SUBJECT`; empty
    /// otherwise.
    pub caller: String,
    /// The number of the client's connection.
    pub session: Option<u64>,
    /// The server.
    pub server: String,
    /// `tool`, `prompt` or `resource`.
    pub kind: &'static str,
    /// The own name of the tool or prompt, or the URI.
    pub name: String,
    /// What the rules said: `allow`, `ask`, `deny`; empty where it did not come so far.
    pub decision: &'static str,
    /// The rule that said so, counted from 1; none: the preset.
    pub rule: Option<usize>,
    /// `ok`, `tool_error`, or the code of an error.
    pub outcome: Cow<'static, str>,
    /// Of the arguments.
    pub bytes_in: u64,
    /// Of the result as the server sent it.
    pub bytes: u64,
    /// Of the answer as the client got it.
    pub bytes_sent: u64,
    /// It was cut, and kept.
    pub is_cut: bool,
    /// From the call to its answer, in microseconds.
    pub micros: u64,
    /// What is written down of them.
    pub arguments: Arguments,
}

/// Something that is counted.
#[derive(Debug, Clone)]
pub enum Event {
    /// A call that ended.
    Call(Box<CallRecord>),
    /// A search.
    Search {
        /// In unix milliseconds.
        at_ms: u64,
        /// What was asked, kept where nothing was found.
        words: String,
        /// How many tools were found.
        hits: usize,
    },
    /// A script that ran.
    Script {
        /// In unix milliseconds.
        at_ms: u64,
        /// Of the results that its calls brought it.
        bytes_read: u64,
        /// Of the answer that its client got.
        bytes_sent: u64,
    },
    /// A client that connected.
    Session {
        /// In unix milliseconds.
        at_ms: u64,
        /// The name that it announced.
        client: String,
        /// The tokens of definitions that it was not sent.
        tokens_saved: u64,
    },
}

/// What so many bytes of text cost a model, by the rule of thumb.
pub fn estimate_tokens(bytes: u64) -> u64 {
    bytes.div_ceil(4)
}
