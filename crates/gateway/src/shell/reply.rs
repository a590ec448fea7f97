//! The output of a command.

use serde::{Deserialize, Serialize};
use tool::ServerName;

/// The output of a command, and whether it succeeded.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShellReply {
    /// The text for stdout; empty: nothing.
    pub data: String,
    /// The text for stderr; empty: nothing.
    pub told: String,
    /// True for a hit or a success.
    pub is_hit: bool,
}

impl ShellReply {
    pub(super) fn hit(data: String) -> Self {
        Self {
            data,
            is_hit: true,
            ..Self::default()
        }
    }

    /// Explains the delay if servers had to be asked for their tools.
    #[must_use]
    pub fn after_asking(mut self, new: &[ServerName]) -> Self {
        if !new.is_empty() {
            let names: Vec<&str> = new.iter().map(ServerName::as_str).collect();
            let names = names.join(", ");
            let gap = if self.told.is_empty() { "" } else { "\n" };
            let asked = format!("asked for their tools for the first time: {names}{gap}");
            self.told.insert_str(0, &asked);
        }
        self
    }

    pub(super) fn nothing(told: String) -> Self {
        Self {
            told,
            ..Self::default()
        }
    }
}
