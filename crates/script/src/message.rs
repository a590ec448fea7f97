//! The lines between a script's process and ours: JSON, one message each.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::limits::Limit;

/// What a process is to run.
#[derive(Debug, Serialize, Deserialize)]
pub struct Job {
    /// TypeScript or JavaScript.
    pub script: String,
    /// The value of `args`.
    pub args: Box<RawValue>,
    /// The servers that it may name.
    pub servers: Vec<String>,
    /// Calls are checked and told, and not made.
    pub dry_run: bool,
    /// The time that it has, in milliseconds: in its process, what it computes for counts.
    pub wall_ms: u64,
}

/// To the process.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ToScript {
    Run(Job),
    /// Mistakes in what it names; none: go on.
    Checked(Vec<String>),
    Answered {
        id: u64,
        /// JSON: what was asked for, or why there is nothing.
        answer: Box<RawValue>,
        is_error: bool,
    },
}

/// From the process.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum FromScript {
    Check(Vec<CallSite>),
    Ask(Asked),
    Log(String),
    /// The value that it returned.
    Done(Box<RawValue>),
    Failed(Failed),
    Exceeded(Limit),
}

/// An error that ended a script.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Failed {
    pub(crate) text: String,
    pub(crate) place: Option<Place>,
    pub(crate) kind: FailureKind,
}

/// The origin of an error's text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum FailureKind {
    /// Ours: the script cannot be run, or names what does not exist.
    Unreadable,
    /// Ours: the refusal of a call or another question, which the script did not catch.
    Refused,
    /// The engine's: a name that is not defined.
    Undefined,
    /// The script's, or of a tool's error that it did not catch.
    Thrown,
}

/// A place in a script, from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// The line.
    pub line: u32,
    /// The character of the line, where it is known.
    pub column: Option<u32>,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { line, column } = self;
        match column {
            Some(column) => write!(f, "line {line}, column {column}"),
            None => write!(f, "line {line}"),
        }
    }
}

/// One question of a script, answered whenever it can be.
#[derive(Debug, Serialize, Deserialize)]
pub struct Asked {
    pub(crate) id: u64,
    pub(crate) what: Question,
}

/// What a script may ask for.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Question {
    /// A call of a tool, which answers the whole result.
    Call {
        /// `server/tool`.
        tool: String,
        /// Its arguments, an object.
        input: Box<RawValue>,
    },
    /// Tools that fit some words.
    Search {
        /// The words.
        query: String,
    },
    /// All that is known of one tool.
    Describe {
        /// Its name.
        name: String,
    },
    /// Text of a kept result, from a byte on: `{text, next}`.
    Chunk {
        /// Its handle.
        handle: String,
        /// The byte.
        from: usize,
    },
    /// A file of the workspace.
    Workspace {
        /// `read`, `write`, `append`, `list` or `remove`.
        verb: String,
        /// Relative to the workspace.
        path: String,
        /// What is written.
        text: Option<String>,
    },
    /// Some time.
    Sleep {
        /// Milliseconds.
        ms: u64,
    },
}

/// A call as the text of a script shows it, before anything runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallSite {
    /// The server, as it is named.
    pub server: String,
    /// The tool.
    pub tool: String,
    /// The names of the arguments, where they stand there.
    pub arguments: Option<Vec<String>>,
    /// Where it stands, from 1.
    pub line: u32,
}
