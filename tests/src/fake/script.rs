//! The script of a fake server.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// The behaviour of a fake server. The default is a correct server without tools that begins with
/// `initialize`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Script {
    pub era: Era,
    /// The error code with which a legacy server refuses `server/discover`; -32601 if absent.
    pub discover_refusal: Option<i64>,
    /// The version in the answer to `initialize`, whatever the client requested.
    pub version: Option<String>,
    /// `serverInfo` as sent; name and version of the fake if absent.
    pub server_info: Option<Value>,
    /// `capabilities` as sent; tools with `listChanged` if absent.
    pub capabilities: Option<Value>,
    pub instructions: Option<String>,

    /// A file with `{"tools": [...]}` and optionally `{"initialize": {...}}`: its tools are listed
    /// unchanged and return their arguments.
    pub catalog: Option<PathBuf>,
    pub tools: Vec<FakeItem>,
    /// Entries of `tools/list` after the tools; they need not be valid tools.
    pub listed: Vec<Value>,
    /// Prompts, resources and templates. A prompt is found by its `name`, a resource by its `uri`, a
    /// template by its `uriTemplate`, which has one variable at most.
    pub prompts: Vec<FakeItem>,
    pub resources: Vec<FakeItem>,
    pub templates: Vec<FakeItem>,
    /// Entries of `skills/list`; their files are resources.
    pub skills: Vec<FakeItem>,
    /// The completions of every argument; those that begin with the typed text are returned.
    pub completions: Vec<String>,
    /// The task with which [`Step::Task`] answers.
    pub task: Option<TaskScript>,
    /// The number of tools per page; all on one page if absent.
    pub page_size: Option<usize>,
    pub paging: Paging,

    /// Steps that run before the first line is read.
    pub before: Vec<Step>,
    /// Steps that replace the proper answer; with an empty list the server never answers.
    pub on_initialize: Option<Vec<Step>>,
    pub on_discover: Option<Vec<Step>>,
    pub on_list: Option<Vec<Step>>,
    /// Steps that run on `notifications/initialized`.
    pub on_initialized: Vec<Step>,
    /// Steps that run when standard input ends.
    pub at_end: Vec<Step>,
    pub ignores_stdin_end: bool,
    pub ignores_sigterm: bool,

    /// A file to which every line received is appended, byte for byte. The fake's own remarks are
    /// `{"fake":"started","pid":1}`, `{"fake":"stdin ended"}` and `{"fake":"sigterm"}`.
    pub record: Option<PathBuf>,
}

/// A task of a fake server.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TaskScript {
    /// The file whose existence ends the task.
    pub ready: PathBuf,
    /// The result of the call.
    pub result: Value,
    /// Questions that are answered first, by key.
    pub asks: Option<Value>,
    /// True if another process of the server knows the task as well.
    pub survives: bool,
}

impl TaskScript {
    fn id(&self) -> String {
        if self.survives {
            "the-task".to_owned()
        } else {
            format!("task-{}", std::process::id())
        }
    }

    /// Returns the state; in the modern era with the result.
    pub(super) fn state(&self, is_modern: bool) -> Value {
        let mut state = json!({"taskId": self.id(), "status": "working", "pollIntervalMs": 50, "pollInterval": 50,
            "createdAt": "2026-11-26T00:00:00Z", "lastUpdatedAt": "2026-11-26T00:00:00Z", "ttlMs": null, "ttl": null});
        let answered = self.ready.with_extension("answered");
        if let Some(asks) = self.asks.as_ref().filter(|_| !answered.exists()) {
            state["status"] = json!("input_required");
            state["inputRequests"] = asks.clone();
        } else if self.ready.exists() {
            state["status"] = json!("completed");
            if is_modern {
                state["result"] = self.result.clone();
            }
        }
        state
    }

    /// Answers the requests about the task.
    pub(super) fn answer(
        &self,
        method: &str,
        params: &Value,
        is_modern: bool,
    ) -> Result<Value, Value> {
        if params["taskId"] != self.id() {
            return Err(json!({"code": -32602, "message": "no such task"}));
        }
        match method {
            "tasks/get" => Ok(self.state(is_modern)),
            "tasks/result" if self.ready.exists() => Ok(self.result.clone()),
            "tasks/cancel" => Ok(json!({})),
            "tasks/update" => {
                let answers = params["inputResponses"].to_string();
                std::fs::write(self.ready.with_extension("answered"), answers)
                    .expect("the folder is writable");
                Ok(json!({}))
            }
            _ => Err(json!({"code": -32601, "message": "no such method of tasks"})),
        }
    }
}

/// The protocol revisions that a fake server supports.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Era {
    /// `initialize` only.
    #[default]
    Legacy,
    /// `server/discover` only; requests without `_meta` of their own are refused.
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
    /// Each page has one tool `page_N` and names a next page; the list never ends.
    Endless,
}

/// One tool, prompt, resource or template of a fake server: its definition, and the steps of a
/// request for it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FakeItem {
    /// The definition, which is listed unchanged.
    pub definition: Value,
    /// True if the item is absent until a [`Step::Reveal`].
    #[serde(default)]
    pub hidden: bool,
    pub steps: Vec<Step>,
}

impl FakeItem {
    /// Returns a tool that accepts any arguments.
    pub fn new(name: &str, steps: impl Into<Vec<Step>>) -> Self {
        let definition = json!({
            "name": name,
            "description": format!("Do {name} as the script says."),
            "inputSchema": { "type": "object" }
        });
        Self::defined(definition, steps)
    }

    /// Returns a tool with this definition.
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

/// One step. A call runs the steps of its tool in order; steps that answer may occur twice, or not
/// at all.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Step {
    /// Answers like a correct server.
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
    /// Answers with a tool error that has this text.
    ToolError(String),
    /// Answers with this `result`.
    Result(Value),
    /// Answers with this `result`, in whose texts `$NAME` stands for an argument, for the variable
    /// of a template, or (`$uri`) for the requested resource.
    Filled(Value),
    /// Answers with this text as the `result`, byte for byte.
    RawResult(String),
    /// Answers with this `error`, valid or not.
    Error(Value),
    /// Writes one line to standard output, `$ID` replaced by the request's id.
    Line(String),
    /// Writes bytes to standard output, without a newline.
    Bytes(Vec<u8>),
    Stderr(String),
    /// Writes this many bytes of [`payload::text`](super::payload::text) to standard error.
    StderrOfBytes(usize),
    /// Sends a notification to the client. `$PROGRESS` as a value becomes the request's progress
    /// token.
    Notify {
        method: String,
        params: Value,
    },
    /// Sends the same notification many times.
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
    /// Sends a request to the client and answers the call with the `result` or `error` of its
    /// response.
    AskAndTell {
        method: String,
        params: Value,
    },
    /// Answers with `input_required` and these requests until the call has `inputResponses`; then
    /// answers with those and the state.
    RequireInput(Value),
    /// Sends one round of requests after the other, limited to those that the client's capabilities
    /// allow: by `input_required` to a modern client, by requests to a legacy one. Then answers
    /// with `result`.
    Inquire {
        rounds: Vec<Value>,
        result: Value,
    },
    WaitMs(u64),
    /// Waits until the client cancels this request.
    UntilCancelled,
    /// Waits until this file exists.
    UntilExists(PathBuf),
    /// Runs the steps unless this argument of the call has this value.
    Unless {
        argument: String,
        value: Value,
        steps: Vec<Step>,
    },
    /// Waits until this folder has a file that it did not have, at most this long. A request that
    /// continues an earlier one does not wait.
    UntilNewFile {
        folder: PathBuf,
        at_most_ms: u64,
    },
    /// Reveals hidden items and sends the notifications of changed lists; the notification for
    /// tools is always sent.
    Reveal,
    /// Repeats the step until this file exists.
    Repeat {
        until: PathBuf,
        pause_ms: u64,
        step: Box<Step>,
    },
    /// Answers with the task of the script, in the form of the era.
    Task,
    /// Writes `{"fake":"..."}` into the record.
    Remark(String),
    /// Locks this file until the process ends. If another process holds it, writes `two owners` into the
    /// record.
    HoldLock(PathBuf),
    /// Answers with the environment as one JSON object.
    Environment,
    /// Stops reading, with the input still open.
    StopReading,
    /// Answers with the working directory.
    Folder,
    /// Starts a process that sleeps for an hour and ignores the end of its input.
    Spawn,
    /// Exits with this code.
    Exit(i32),
    /// Exits with an error if this file does not exist, and creates it first.
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

    /// Repeats a step with a pause until a file exists.
    pub fn every(pause_ms: u64, until: impl Into<PathBuf>, step: Self) -> Self {
        Self::Repeat {
            until: until.into(),
            pause_ms,
            step: Box::new(step),
        }
    }

    /// Sends a progress notification for the call.
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

    /// Asks the user for a text, and answers the call with the response.
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
