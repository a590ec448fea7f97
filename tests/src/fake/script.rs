//! The script of a fake server.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// The whole life of a fake server. The default is a well-behaved server without tools that begins
/// with `initialize`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Script {
    pub era: Era,
    /// The code with which a legacy server refuses `server/discover`; -32601 when absent.
    pub discover_refusal: Option<i64>,
    /// The version in the answer to `initialize`, for any requested version.
    pub version: Option<String>,
    /// `serverInfo` as sent; name and version of the fake when absent.
    pub server_info: Option<Value>,
    /// `capabilities` as sent; tools with `listChanged` when absent.
    pub capabilities: Option<Value>,
    pub instructions: Option<String>,

    /// A file with `{"tools": [...]}` and perhaps `{"initialize": {...}}`: its
    /// tools are listed as they are and echo their arguments.
    pub catalog: Option<PathBuf>,
    pub tools: Vec<FakeItem>,
    /// Entries of `tools/list` behind the tools: anything, tool or not.
    pub listed: Vec<Value>,
    /// Prompts, resources and templates. A prompt is found by its `name`, a resource by its `uri`, a
    /// template by its `uriTemplate`, which has one variable at most.
    pub prompts: Vec<FakeItem>,
    pub resources: Vec<FakeItem>,
    pub templates: Vec<FakeItem>,
    /// Values of every argument; those that begin with what was typed complete it.
    pub completions: Vec<String>,
    /// Tools a page; all on one page when absent.
    pub page_size: Option<usize>,
    pub paging: Paging,

    /// Done before the first line is read.
    pub before: Vec<Step>,
    /// In place of the proper answer; an empty list never answers.
    pub on_initialize: Option<Vec<Step>>,
    pub on_discover: Option<Vec<Step>>,
    pub on_list: Option<Vec<Step>>,
    /// Done when the client says `notifications/initialized`.
    pub on_initialized: Vec<Step>,
    /// Done when standard input ends.
    pub at_end: Vec<Step>,
    pub ignores_stdin_end: bool,
    pub ignores_sigterm: bool,

    /// A file to which every line received is appended, byte for byte. The
    /// fake's own remarks are `{"fake":"started","pid":1}`, `{"fake":"stdin
    /// ended"}` and `{"fake":"sigterm"}`.
    pub record: Option<PathBuf>,
}

/// The protocol revisions that a fake server speaks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Era {
    /// `initialize` only.
    #[default]
    Legacy,
    /// `server/discover` only; requests without the `_meta` of their own are refused.
    Modern,
    Both,
}

/// The cursor from one page of `tools/list` to the next.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Paging {
    #[default]
    Proper,
    /// Every page names itself as the next one.
    RepeatsCursor,
    /// Each page holds one tool `page_N`, and names the next, for ever.
    Endless,
}

/// One tool, prompt, resource or template of a fake server: its definition, and the steps of a
/// request for it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FakeItem {
    /// Listed as it is.
    pub definition: Value,
    /// Not listed and not there before a [`Step::Reveal`].
    #[serde(default)]
    pub hidden: bool,
    pub steps: Vec<Step>,
}

impl FakeItem {
    /// A tool that takes any arguments.
    pub fn new(name: &str, steps: impl Into<Vec<Step>>) -> Self {
        let definition = json!({
            "name": name,
            "description": format!("Do {name} as the script says."),
            "inputSchema": { "type": "object" }
        });
        Self::defined(definition, steps)
    }

    /// A tool with a definition of the test's own.
    pub fn defined(definition: Value, steps: impl Into<Vec<Step>>) -> Self {
        Self {
            definition,
            hidden: false,
            steps: steps.into(),
        }
    }

    pub(super) fn name(&self) -> &str {
        self.text("name")
    }

    pub(super) fn text(&self, key: &str) -> &str {
        self.definition[key].as_str().unwrap_or_default()
    }
}

/// One step. A call is answered by the steps of its tool in order; steps that answer may occur twice,
/// or not at all.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Step {
    /// Answers as a good server would.
    Proper,
    /// Answers with the arguments as one text block, byte for byte.
    Echo,
    Text(String),
    /// Answers with [`payload::text`](super::payload::text).
    TextOfBytes(usize),
    /// Answers with [`payload::lines`](super::payload::lines).
    Lines(usize),
    /// Answers with [`payload::items`](super::payload::items), structured and as text.
    StructuredOfBytes(usize),
    /// A tool error with this text.
    ToolError(String),
    /// Answers with this `result`.
    Result(Value),
    /// Answers with this `result`, in whose texts `$NAME` stands for an argument, for the variable
    /// of a template, or (`$uri`) for the resource that was asked for.
    Filled(Value),
    /// Answers with this text as the `result`, byte for byte.
    RawResult(String),
    /// Answers with this `error`, valid or not.
    Error(Value),
    /// One line to standard output, `$ID` replaced by the request's id.
    Line(String),
    /// Bytes to standard output, no newline added.
    Bytes(Vec<u8>),
    Stderr(String),
    /// That many bytes of [`payload::text`](super::payload::text) to standard error.
    StderrOfBytes(usize),
    /// A notification to the client. `$PROGRESS` as a value becomes the
    /// request's progress token.
    Notify {
        method: String,
        params: Value,
    },
    /// The same notification many times.
    Flood {
        times: usize,
        method: String,
        params: Value,
    },
    /// Sends a request to the client; the next step runs when it is answered.
    Ask {
        method: String,
        params: Value,
    },
    /// A request to the client; the call is answered with the answer's `result` or `error`.
    AskAndTell {
        method: String,
        params: Value,
    },
    /// Answers with `input_required` and these requests, until the call brings `inputResponses`:
    /// those and the state are the answer then.
    RequireInput(Value),
    /// Asks for one object of requests after the other, as far as the client declared that it can
    /// take them: in rounds, or by requests of its own where the client is of before. Answers with
    /// `result` then.
    Inquire {
        rounds: Vec<Value>,
        result: Value,
    },
    WaitMs(u64),
    /// Waits until the client cancels this request.
    UntilCancelled,
    /// Waits until this file exists.
    UntilExists(PathBuf),
    /// Shows what is hidden and says which lists changed; that of tools always.
    Reveal,
    /// Does the step again and again until this file is there.
    Repeat {
        until: PathBuf,
        pause_ms: u64,
        step: Box<Step>,
    },
    /// Writes `{"fake":"..."}` into the record.
    Remark(String),
    /// Answers with the environment as one JSON object.
    Environment,
    /// Reads no further line, though its input stays open.
    StopReading,
    /// Answers with the folder it works in.
    Folder,
    /// Starts a process that does nothing for an hour and heeds nobody.
    Spawn,
    /// Ends the process.
    Exit(i32),
    /// Ends the process unless this file is there, and makes the file.
    ExitOnce(PathBuf),
}

impl Step {
    /// Answers with this text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }

    /// Writes this text to stderr.
    pub fn stderr(text: impl Into<String>) -> Self {
        Self::Stderr(text.into())
    }

    /// Writes this line to stdout, valid or not.
    pub fn line(text: impl Into<String>) -> Self {
        Self::Line(text.into())
    }

    /// Writes a remark into the record.
    pub fn remark(text: impl Into<String>) -> Self {
        Self::Remark(text.into())
    }

    /// Repeats the step as fast as possible, until this file exists.
    pub fn flood(until: impl Into<PathBuf>, step: Self) -> Self {
        Self::every(0, until, step)
    }

    /// Does a step again and again until a file exists.
    pub fn every(pause_ms: u64, until: impl Into<PathBuf>, step: Self) -> Self {
        Self::Repeat {
            until: until.into(),
            pause_ms,
            step: Box::new(step),
        }
    }

    /// Sends progress of the call.
    pub fn progress(progress: u64, total: u64) -> Self {
        let params = json!({ "progressToken": "$PROGRESS", "progress": progress, "total": total });
        Self::Notify {
            method: "notifications/progress".to_owned(),
            params,
        }
    }

    /// Sends a log message.
    pub fn log(level: &str, data: impl Into<Value>) -> Self {
        let params = json!({ "level": level, "logger": "fake", "data": data.into() });
        Self::Notify {
            method: "notifications/message".to_owned(),
            params,
        }
    }

    /// Asks the person for a text, and answers the call with what came back.
    pub fn elicit(message: &str) -> Self {
        let schema = json!({ "type": "object", "properties": { "text": { "type": "string" } } });
        Self::AskAndTell {
            method: "elicitation/create".to_owned(),
            params: json!({ "message": message, "requestedSchema": schema }),
        }
    }

    /// Asks the client for its roots.
    pub fn ask_roots() -> Self {
        Self::Ask {
            method: "roots/list".to_owned(),
            params: json!({}),
        }
    }
}

impl From<Step> for Vec<Step> {
    fn from(step: Step) -> Self {
        vec![step]
    }
}
