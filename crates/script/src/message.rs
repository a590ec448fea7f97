//! The messages between a script's process and ours: JSON, one per line.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::limits::Limit;

/// The script for a process, with its settings.
#[derive(Debug, Serialize, Deserialize)]
pub struct Job {
    /// TypeScript or JavaScript.
    pub script: String,
    /// The value of `args`.
    pub args: Box<RawValue>,
    /// The servers that it may use.
    pub servers: Vec<String>,
    /// The names of their tools: an object with a list for each server.
    pub tools: Box<RawValue>,
    /// True if calls are checked and reported, but not made.
    pub dry_run: bool,
    /// The time limit in milliseconds. In the script's process it applies to processor time.
    pub wall_ms: u64,
}

/// A message to the process.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ToScript {
    Run(Job),
    /// The errors in the names that the script uses; empty: continue.
    Checked(Vec<String>),
    Answered {
        id: u64,
        /// JSON: the answer, or the error.
        answer: Box<RawValue>,
        is_error: bool,
    },
}

/// A message from the process.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum FromScript {
    Check(Vec<CallSite>),
    Ask(PendingRequest),
    Log(String),
    /// The return value.
    Done(Box<RawValue>),
    Failed(Failed),
    Exceeded(Limit),
}

/// An error that ended a script.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Failed {
    pub(crate) text: String,
    pub(crate) place: Option<ScriptPosition>,
    pub(crate) kind: FailureKind,
}

/// The origin of an error's text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum FailureKind {
    /// The proxy's error: the script cannot be run, or uses a name that does not exist.
    Unreadable,
    /// The proxy's error: the refusal of a call or another request, which the script did not catch.
    Refused,
    /// The engine's error: an undefined name.
    Undefined,
    /// The script's own error, or a tool's error that it did not catch.
    Thrown,
}

/// A place in a script, counted from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScriptPosition {
    /// The line.
    pub line: u32,
    /// The column of the line, if it is known.
    pub column: Option<u32>,
}

impl fmt::Display for ScriptPosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { line, column } = self;
        match column {
            Some(column) => write!(f, "line {line}, column {column}"),
            None => write!(f, "line {line}"),
        }
    }
}

/// One request of a script; requests may be answered in any order.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct PendingRequest {
    pub(crate) id: u64,
    pub(crate) what: ScriptRequest,
}

/// The requests that a script can make.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ScriptRequest {
    /// A tool call, whose answer is the whole result.
    Call {
        /// `server/tool`.
        tool: String,
        /// Its arguments, an object.
        input: Box<RawValue>,
    },
    /// A search for tools.
    Search {
        /// The words.
        query: String,
    },
    /// The description of one tool.
    Describe {
        /// Its name.
        name: String,
    },
    /// The description of one tool as data.
    Help {
        /// Its name.
        name: String,
    },
    /// The tools of one server, or of all.
    List {
        /// The server.
        server: Option<String>,
    },
    /// Text of a stored result, from a byte offset: `{text, next}`.
    Chunk {
        /// Its handle.
        handle: String,
        /// The byte offset.
        from: usize,
    },
    /// A file of the workspace.
    Workspace {
        /// `read`, `write`, `append`, `list`, `exists` or `remove`.
        verb: String,
        /// The path, relative to the workspace.
        path: String,
        /// The text to write.
        text: Option<String>,
    },
    /// A pause.
    Sleep {
        /// The duration in milliseconds.
        ms: u64,
    },
}

/// A call as it appears in the text of a script, before the script runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallSite {
    /// The server, as the script names it.
    pub server: String,
    /// The tool.
    pub tool: String,
    /// The names of the arguments, if they are written in the call.
    pub arguments: Option<Vec<String>>,
    /// The line of the call, counted from 1.
    pub line: u32,
}
