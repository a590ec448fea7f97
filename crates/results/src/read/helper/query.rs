//! The query to the process, as JSON on its stdin.

use std::{path::PathBuf, time::Duration};

use serde::{Deserialize, Serialize};

use super::super::{
    grep,
    limits::{SEARCH_TIME_MAX, TIME_MAX},
};

/// The requested part of a kept result.
#[derive(Debug, Serialize, Deserialize)]
pub(in crate::read) enum HelperQuery {
    Grep(grep::GrepQuery),
    Select(String),
}

impl HelperQuery {
    /// The argument that it comes from.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Self::Grep(_) => "grep",
            Self::Select(_) => "select",
        }
    }

    pub(super) fn time_max(&self) -> Duration {
        match self {
            Self::Grep(_) => SEARCH_TIME_MAX,
            Self::Select(_) => TIME_MAX,
        }
    }
}

#[derive(Serialize, Deserialize)]
pub(super) struct Task {
    pub(super) query: HelperQuery,
    /// The kept result.
    pub(super) path: PathBuf,
    /// The time after which it is ended, in milliseconds.
    pub(super) time_ms: u64,
    /// The process id of the parent, which asks.
    pub(super) parent: u32,
}
