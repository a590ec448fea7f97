//! The errors of our tools (interface, section 6): a code, a sentence, the next step.

use std::{fmt, time::Duration};

use fleet::{CallError, Failure, HeldUp, LoginNeeded, Ran};
use jsonrpc::ProtocolError;
use printable::shorten_middle;
use tool::{ServerName, ToolRef, Violation};

use crate::refused::Refused;

/// The longest error text, in characters (interface, section 6).
const ERROR_CHARS_MAX: usize = 2_000;

/// The reader of an error: the next step depends on it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Audience {
    /// A client's model, which calls tools.
    #[default]
    Model,
    /// A person, who types commands.
    Person,
}

/// The other thing that a name refers to, when it is no tool's name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OtherThing {
    /// A server with several tools.
    Server(ServerName),
    /// One of the three tools that clients see.
    OurThree,
}

/// An error with everything its text needs.
#[derive(Debug)]
pub enum ToolError {
    /// No tool has the name.
    UnknownTool {
        /// The name as it was asked for.
        asked: String,
        /// Tools with similar names; for a server some of its tools.
        near: Vec<Signed>,
        /// The thing that the name names instead, if any.
        instead: Option<OtherThing>,
        /// Servers that may have it: they are being asked for their tools right now.
        missing: Vec<ServerName>,
    },
    /// Several servers have the name.
    AmbiguousTool {
        /// The name as it was asked for.
        asked: String,
        /// The tools that have it.
        candidates: Vec<Signed>,
    },
    /// The arguments of a server's tool, or of one of our three, are invalid.
    InvalidInput {
        /// The tool, by its name or address.
        tool: String,
        /// All mistakes at once.
        violations: Vec<Violation>,
        /// The parameters that the tool takes.
        signature: String,
    },
    /// The server could not be reached, or ended during the call.
    ServerUnavailable {
        /// The server.
        server: ServerName,
        /// The failure.
        failure: Box<Failure>,
        /// The number of failures in a row; 0 if that is not counted.
        tries: u32,
        /// The answer to whether the tool may have acted.
        ran: Ran,
        /// Servers that can be used meanwhile.
        available: Vec<ServerName>,
    },
    /// A person has to log in to the server.
    LoginRequired {
        /// The server.
        server: ServerName,
        /// The kind of login: the first or a repeated one, and its scopes.
        needed: Box<LoginNeeded>,
        /// The message of the server.
        why: String,
    },
    /// No response arrived in time.
    Timeout {
        /// The tool that was called.
        tool: ToolRef,
        /// The time limit.
        limit: Duration,
        /// The answer to whether the tool may have acted.
        ran: Ran,
        /// The reason if the call waited for calls of other clients to end.
        held_up: Option<HeldUp>,
    },
    /// A rule of the configuration hides the tool.
    Denied {
        /// The tool that was asked for.
        tool: ToolRef,
        /// The rule.
        rule: String,
        /// The place of the rule in the configuration.
        table: String,
    },
    /// A rule for calls refuses it, or a person was to be asked and did not allow it.
    Refused(Box<Refused>),
    /// Nothing can be read under a handle.
    HandleExpired {
        /// The handle, as it was written.
        handle: String,
        /// The reason why it cannot be read.
        why: String,
        /// The tool that gave the result, if it is known.
        tool: Option<String>,
    },
    /// The server answered with a protocol error.
    ServerError {
        /// The tool that was called.
        tool: ToolRef,
        /// The error as it came.
        error: Box<ProtocolError>,
        /// The parameters that the tool takes.
        signature: String,
    },
    /// The client cancelled its call.
    Cancelled,
    /// The server asks for further input, which cannot be provided.
    InputRequired {
        /// The tool that was called.
        tool: ToolRef,
        /// The input that the server requested, and why it cannot be provided.
        why: String,
    },
    /// The configuration cannot be used; its mistakes, as a person reads them.
    Misconfigured(String),
    /// A script failed.
    Script {
        /// The code of the error.
        code: &'static str,
        /// The reason.
        text: String,
    },
    /// A script reached a limit.
    ScriptLimit(script::Limit),
    /// An internal error, or a failure of our disk.
    Internal(String),
}

/// A tool as an error names it: with its signature.
#[derive(Debug, Clone)]
pub struct Signed {
    /// Its address.
    pub at: ToolRef,
    /// Its signature, as a hit shows it.
    pub signature: String,
}

impl fmt::Display for Signed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.at, self.signature)
    }
}

impl ToolError {
    /// The code with which the text begins.
    pub fn code(&self) -> &'static str {
        match self {
            Self::UnknownTool { .. } => "unknown_tool",
            Self::AmbiguousTool { .. } => "ambiguous_tool",
            Self::InvalidInput { .. } => "invalid_input",
            Self::ServerUnavailable { .. } => "server_unavailable",
            Self::LoginRequired { .. } => "login_required",
            Self::Timeout { .. } => "timeout",
            Self::Denied { .. } | Self::Refused(_) => "denied",
            Self::HandleExpired { .. } => "handle_expired",
            Self::ServerError { .. } => "downstream_error",
            Self::Cancelled => "cancelled",
            Self::InputRequired { .. } => "input_required",
            Self::Misconfigured(_) => "misconfigured",
            Self::Script { code, .. } => code,
            Self::ScriptLimit(_) => "script_limit",
            Self::Internal(_) => "internal",
        }
    }

    /// One mistake in the arguments of one of our own tools.
    pub fn own_input(tool: &str, path: &str, message: &str, signature: &str) -> Self {
        let violation = Violation {
            path: path.to_owned(),
            message: message.to_owned(),
        };
        Self::InvalidInput {
            tool: tool.to_owned(),
            violations: vec![violation],
            signature: signature.to_owned(),
        }
    }

    /// Converts a failed call to an error for the model.
    pub fn of_call(
        error: CallError,
        tool: &ToolRef,
        signature: &str,
        available: impl FnOnce() -> Vec<ServerName>,
    ) -> Self {
        let tool = tool.clone();
        match error {
            CallError::Unavailable {
                server,
                failure,
                tries,
                ran,
            } => match failure.login() {
                Some(needed) => Self::LoginRequired {
                    server,
                    needed: Box::new(needed.clone()),
                    why: failure.why,
                },
                None => Self::ServerUnavailable {
                    server,
                    failure: Box::new(failure),
                    tries,
                    ran,
                    available: available(),
                },
            },
            CallError::UnknownServer(server) => Self::ServerUnavailable {
                failure: Box::new(Failure::new(
                    "it is not in the configuration, or not enabled",
                )),
                server,
                tries: 0,
                ran: Ran::No,
                available: available(),
            },
            CallError::TimedOut {
                limit,
                ran,
                held_up,
                ..
            } => Self::Timeout {
                tool,
                limit,
                ran,
                held_up,
            },
            CallError::Cancelled => Self::Cancelled,
            CallError::Protocol { error, .. } => Self::ServerError {
                tool,
                error: Box::new(error),
                signature: signature.to_owned(),
            },
        }
    }

    /// Adds a note to a server's own error.
    pub(super) fn with_note(mut self, note: Option<&str>) -> Self {
        if let (Self::ServerError { error, .. }, Some(note)) = (&mut self, note) {
            error.message = format!("{} {note}", error.message);
        }
        self
    }

    /// The text, with a next step that its reader can take.
    pub fn told_to(&self, audience: Audience) -> String {
        let sentence = end_sentence(&self.sentence(audience));
        let text = format!("error {}: {sentence}", self.code());
        shorten_middle(&printable::prose(&text), ERROR_CHARS_MAX).into_owned()
    }

    fn sentence(&self, audience: Audience) -> String {
        match self {
            Self::UnknownTool {
                asked,
                near,
                instead,
                missing,
            } => match instead {
                Some(thing) => explain_other_thing(asked, thing, near, audience),
                None => explain_unknown(asked, near, missing, audience),
            },
            Self::AmbiguousTool { asked, candidates } => explain_ambiguous(asked, candidates),
            Self::InvalidInput {
                tool,
                violations,
                signature,
            } => {
                let list: Vec<String> = violations.iter().map(ToString::to_string).collect();
                let list = end_sentence(&printable::prose(&list.join("; ")));
                format!("{list} Expected {tool}{signature}")
            }
            Self::ServerUnavailable {
                server,
                failure,
                tries,
                ran,
                available,
            } => explain_unavailable(server, failure, *tries, *ran, available),
            Self::LoginRequired {
                server,
                needed,
                why,
            } => explain_login(server, needed, why),
            Self::Timeout {
                tool,
                limit,
                ran,
                held_up,
            } => explain_timeout(tool, *limit, *ran, held_up.as_ref(), audience),
            Self::Denied { tool, rule, table } => format!(
                "{tool} is kept out by {rule}. A person can change it under [{table}] in the \
                 configuration"
            ),
            Self::Refused(refused) => refused.to_string(),
            Self::HandleExpired { handle, why, tool } => format!(
                "\"{handle}\": {why}. Call {} again",
                tool.as_deref().unwrap_or("the tool that gave it")
            ),
            Self::ServerError {
                tool,
                error,
                signature,
            } => explain_server_error(tool, error, signature),
            Self::Cancelled => "the call was cancelled".to_owned(),
            Self::InputRequired { tool, why } => format!(
                "{tool} asks for more before it goes on: {why}. The call is not done. Call it with \
                 all it needs, if it takes that as arguments"
            ),
            Self::Misconfigured(mistakes) => {
                format!(
                    "the configuration cannot be used. {}",
                    printable::prose(mistakes)
                )
            }
            Self::Script { text, .. } => text.clone(),
            Self::ScriptLimit(limit) => limit.to_string(),
            Self::Internal(why) => format!("{why}. This is the proxy's own fault, not the tool's"),
        }
    }
}

impl fmt::Display for ToolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.told_to(Audience::Model))
    }
}

impl std::error::Error for ToolError {}

/// Ends a sentence with a full stop, unless it is a question.
fn end_sentence(text: &str) -> String {
    let text = text.trim_end();
    let stop = if text.ends_with('?') { "" } else { "." };
    format!("{text}{stop}")
}

fn explain_other_thing(
    asked: &str,
    thing: &OtherThing,
    some: &[Signed],
    audience: Audience,
) -> String {
    let asked = shorten_middle(asked, 200);
    match (thing, audience) {
        (OtherThing::OurThree, Audience::Model) => {
            format!("\"{asked}\" is one of the three tools of this gateway: call it by itself")
        }
        (OtherThing::OurThree, Audience::Person) => format!(
            "\"{asked}\" is for models; `proxy search`, `proxy describe` and `proxy call` do the same"
        ),
        (OtherThing::Server(server), _) => {
            let some: Vec<String> = some.iter().map(ToString::to_string).collect();
            let all = match audience {
                Audience::Model => format!("describe_tool {{\"name\":\"{server}\"}}"),
                Audience::Person => format!("`proxy list {server}`"),
            };
            format!(
                "\"{asked}\" is a server, not a tool. Some of its tools: {}. {all} lists all",
                some.join(", ")
            )
        }
    }
}

fn explain_unknown(
    asked: &str,
    near: &[Signed],
    missing: &[ServerName],
    audience: Audience,
) -> String {
    let asked = shorten_middle(asked, 200);
    if !missing.is_empty() {
        let missing: Vec<&str> = missing.iter().map(ServerName::as_str).collect();
        return format!(
            "\"{asked}\" is on none of the servers known so far. Being asked for their tools right \
             now: {}. Try again in a few seconds",
            missing.join(", ")
        );
    }
    match near {
        [] => match audience {
            Audience::Model => format!("\"{asked}\". Use search_tools to find the right name"),
            Audience::Person => format!("\"{asked}\". `proxy search WORDS` finds the right name"),
        },
        near => {
            let list: Vec<String> = near.iter().map(ToString::to_string).collect();
            let otherwise = match audience {
                Audience::Model => "use search_tools",
                Audience::Person => "`proxy search WORDS`",
            };
            let list = list.join(" or ");
            format!("\"{asked}\". Did you mean {list}? Otherwise {otherwise}")
        }
    }
}

fn explain_ambiguous(asked: &str, candidates: &[Signed]) -> String {
    let list: Vec<String> = candidates.iter().map(ToString::to_string).collect();
    format!(
        "\"{asked}\" is on {}. Call one of them by its whole name",
        list.join(" and ")
    )
}

fn explain_unavailable(
    server: &ServerName,
    failure: &Failure,
    tries: u32,
    ran: Ran,
    available: &[ServerName],
) -> String {
    let mut text = format!("{server}: {failure}");
    match ran {
        Ran::No => text.push_str(". The call did not run"),
        Ran::Maybe => text.push_str(". The call may have run"),
    }
    if tries > 0 {
        let times = if tries == 1 {
            "once".to_owned()
        } else {
            format!("{tries} times")
        };
        text.push_str(&format!(". Tried {times} in a row"));
    }
    if let Some(hint) = &failure.hint {
        text.push_str(&format!(". A person can mend it: {hint}"));
    }
    let names: Vec<&str> = available.iter().map(ServerName::as_str).collect();
    let names = if names.is_empty() {
        "no other server".to_owned()
    } else {
        names.join(", ")
    };
    text.push_str(&format!(". Available: {names}"));
    text
}

fn explain_login(server: &ServerName, needed: &LoginNeeded, why: &str) -> String {
    let mut text = format!("{server}: ask the user to run \"proxy login {server}\"");
    if !needed.scopes.is_empty() {
        let scopes = needed.scopes.join(" ");
        let scopes = printable::one_line_of(&scopes, 200);
        text.push_str(&format!(
            ", the login lacks the scopes it asks for: {scopes}"
        ));
    } else if needed.again {
        text.push_str(" again, the login has ended");
    }
    let why = shorten_middle(&printable::one_line(why), 200).into_owned();
    text.push_str(&format!(". Then call again; nothing ran. It said: {why}"));
    text
}

fn explain_timeout(
    tool: &ToolRef,
    limit: Duration,
    ran: Ran,
    held_up: Option<&HeldUp>,
    audience: Audience,
) -> String {
    let ms = limit.as_millis();
    let happened = match (ran, held_up) {
        _ if tool.server == ServerName::built_in() => {
            "it was ended, and changed nothing".to_owned()
        }
        (Ran::No, Some(why)) => format!("its server {why}; the call did not run"),
        (Ran::No, None) => {
            "its server was still starting, or its arguments being checked; the call did not run"
                .to_owned()
        }
        (Ran::Maybe, _) => "the call was cancelled, and may have run".to_owned(),
    };
    let more = ms.saturating_mul(2);
    let longer = match audience {
        Audience::Model => format!("put \"proxy/timeout_ms\":{more} into tool_input"),
        Audience::Person => format!("give --timeout-ms {more}"),
    };
    format!("{tool} gave no answer within {ms} ms; {happened}. To wait longer, {longer}")
}

fn explain_server_error(tool: &ToolRef, error: &ProtocolError, signature: &str) -> String {
    let data = error
        .data
        .as_deref()
        .map(|data| format!(" ({})", shorten_middle(&printable::one_line(data), 600)));
    format!(
        "{} answered with error {}: {}{}. Called was {tool}{signature}",
        tool.server,
        printable::one_line_of(&error.code, 40),
        shorten_middle(&printable::one_line(&error.message), 900),
        data.unwrap_or_default(),
    )
}

#[cfg(test)]
mod tests;
