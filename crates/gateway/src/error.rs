//! The errors of our tools (interface, section 6): a code, a sentence, the next step.

use std::{fmt, time::Duration};

use fleet::{CallError, Failure, HeldUp, LoginNeeded, Ran, Refusal};
use jsonrpc::ProtocolError;
use tool::{ServerName, ToolRef, Violation};

use crate::{authorize::refusal::CallRefusal, used_up_quota::UsedUpQuota};

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
        /// Tools with similar names, with their signatures; for a server some of its tools.
        near: Vec<String>,
        /// The thing that the name names instead, if any.
        instead: Option<OtherThing>,
        /// Servers that may have it: they are being asked for their tools right now.
        missing: Vec<ServerName>,
    },
    /// Several servers have the name.
    AmbiguousTool {
        /// The name as it was asked for.
        asked: String,
        /// The tools that have it, with their signatures.
        candidates: Vec<String>,
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
    /// A person restarted the server during the call.
    ServerRestarted(ServerName),
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
    /// A quota of the configuration is used up.
    QuotaUsedUp(Box<UsedUpQuota>),
    /// A rule for calls refuses it, or a person was to be asked and did not allow it.
    Refused(Box<CallRefusal>),
    /// Nothing can be read under a handle.
    HandleExpired {
        /// The handle, as it was written.
        handle: String,
        /// The reason why it cannot be read.
        why: String,
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
    /// A person ended the call.
    EndedByPerson,
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

impl ToolError {
    /// The code with which the text begins.
    pub fn code(&self) -> &'static str {
        match self {
            Self::UnknownTool { .. } => "unknown_tool",
            Self::AmbiguousTool { .. } => "ambiguous_tool",
            Self::InvalidInput { .. } => "invalid_input",
            Self::ServerUnavailable { .. } => "server_unavailable",
            Self::ServerRestarted(_) => "server_restarted",
            Self::LoginRequired { .. } => "login_required",
            Self::Timeout { .. } => "timeout",
            Self::Denied { .. } | Self::Refused(_) => "denied",
            Self::QuotaUsedUp(_) => "quota",
            Self::HandleExpired { .. } => "handle_expired",
            Self::ServerError { .. } => "downstream_error",
            Self::Cancelled | Self::EndedByPerson => "cancelled",
            Self::InputRequired { .. } => "input_required",
            Self::Misconfigured(_) => "misconfigured",
            Self::Script { code, .. } => code,
            Self::ScriptLimit(_) => "script_limit",
            Self::Internal(_) => "internal",
        }
    }

    pub(crate) fn internal(error: impl fmt::Display) -> Self {
        Self::Internal(error.to_string())
    }

    /// A server that is known to be unavailable before a call is sent to it.
    pub(crate) fn unavailable(
        server: ServerName,
        failure: Failure,
        available: Vec<ServerName>,
    ) -> Self {
        Self::ServerUnavailable {
            server,
            failure: Box::new(failure),
            tries: 0,
            ran: Ran::No,
            available,
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
                None if failure.is_restart && ran == Ran::Maybe => Self::ServerRestarted(server),
                None => Self::ServerUnavailable {
                    server,
                    failure: Box::new(failure),
                    tries,
                    ran,
                    available: available(),
                },
            },
            CallError::UnknownServer(server) => {
                let failure = Failure::new("it is not in the configuration, or not enabled");
                Self::unavailable(server, failure, available())
            }
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
            CallError::Refused(refusal) => Self::of_refusal(refusal),
            CallError::Cancelled => Self::Cancelled,
            CallError::Protocol { error, .. } => Self::ServerError {
                tool,
                error: Box::new(error),
                signature: signature.to_owned(),
            },
        }
    }

    /// Returns the error with which the rules refuse a call at its start.
    pub(crate) fn of_refusal(refusal: Refusal) -> Self {
        refusal
            .downcast()
            .map_or_else(Self::internal, |error| *error)
    }

    /// Adds a note to a server's own error.
    pub(super) fn with_note(mut self, note: Option<&str>) -> Self {
        if let (Self::ServerError { error, .. }, Some(note)) = (&mut self, note) {
            error.message = format!("{} {note}", error.message);
        }
        self
    }
}

/// Returns the code of the error that [`ToolError::of_call`] makes of a failed call.
pub(crate) fn code_of_call(error: &CallError) -> &'static str {
    match error {
        CallError::Unavailable { failure, .. } if failure.login().is_some() => "login_required",
        CallError::Unavailable { failure, ran, .. } if failure.is_restart && *ran == Ran::Maybe => {
            "server_restarted"
        }
        CallError::Unavailable { .. } | CallError::UnknownServer(_) => "server_unavailable",
        CallError::TimedOut { .. } => "timeout",
        CallError::Refused(refusal) => refusal.downcast_ref().map_or("denied", ToolError::code),
        CallError::Cancelled => "cancelled",
        CallError::Protocol { .. } => "downstream_error",
    }
}

impl std::error::Error for ToolError {}

#[cfg(test)]
mod tests;
