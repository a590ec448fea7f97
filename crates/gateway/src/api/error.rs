//! Errors of the API: a code, one sentence, and the next step.

use std::{borrow::Cow, io};

use serde::{Deserialize, Serialize};

/// An error of the API.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApiError {
    /// A word for programs.
    pub code: Cow<'static, str>,
    /// One sentence for people.
    pub message: String,
    /// A command or a sentence.
    pub next_step: Option<String>,
    /// The member of the request that is wrong.
    pub field: Option<String>,
}

impl ApiError {
    /// Makes an error without a next step.
    pub fn new(code: &'static str, message: impl Into<String>) -> Self {
        Self {
            code: Cow::Borrowed(code),
            message: message.into(),
            next_step: None,
            field: None,
        }
    }

    /// Adds the next step.
    #[must_use]
    pub fn next(mut self, step: impl Into<String>) -> Self {
        self.next_step = Some(step.into());
        self
    }

    /// Adds the member of the request that is wrong.
    #[must_use]
    pub fn at(mut self, field: impl Into<String>) -> Self {
        self.field = Some(field.into());
        self
    }

    pub(super) fn bad(message: impl Into<String>) -> Self {
        Self::new("bad_request", message)
    }

    pub(super) fn not_found(message: impl Into<String>) -> Self {
        Self::new("not_found", message)
    }

    pub(super) fn conflict(message: impl Into<String>) -> Self {
        Self::new("changed", message)
    }
}

impl From<anyhow::Error> for ApiError {
    fn from(error: anyhow::Error) -> Self {
        Self::new("internal", format!("{error:#}"))
    }
}

impl From<io::Error> for ApiError {
    fn from(error: io::Error) -> Self {
        anyhow::Error::from(error).into()
    }
}
