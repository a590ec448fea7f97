//! The one word for the state of a server, in every table, answer and metric (`docs/figures.md`).

use serde::{Deserialize, Serialize};

use crate::RunState;

/// The state of a server or of one of its processes, for people and models.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Availability {
    /// The configuration disables it.
    #[serde(rename = "disabled", alias = "off")]
    Disabled,
    /// It needs a login that it does not have.
    #[serde(rename = "login required")]
    LoginRequired,
    /// It did not start or answer last time, and does not run; after a wait, its next call starts it.
    #[serde(rename = "down", alias = "resting", alias = "failed")]
    Down,
    /// It runs, and its list of tools is from an earlier survey, because the last one failed.
    #[serde(rename = "stale")]
    Stale,
    /// Its process was started or its connection is being opened; calls wait.
    #[serde(rename = "starting")]
    Starting,
    /// It accepts calls.
    #[serde(rename = "ready")]
    Ready,
    /// It does not run; its next call starts it.
    #[default]
    #[serde(rename = "stopped")]
    Stopped,
    /// It was never surveyed.
    #[serde(rename = "not asked yet")]
    NotAsked,
}

/// The facts about a server that decide its state, beside its processes.
#[derive(Debug, Clone, Copy, Default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a fact of its own, and any may be true with any"
)]
pub struct ServerFacts {
    /// The configuration enables it.
    pub is_enabled: bool,
    /// It needs a login that it does not have.
    pub needs_login: bool,
    /// Its last start or process failed, and it was not started since.
    pub is_down: bool,
    /// Its last survey failed, or its snapshot is damaged.
    pub is_stale: bool,
    /// It was surveyed at least once.
    pub is_surveyed: bool,
}

impl Availability {
    /// Returns the word, which is the value in JSON too.
    pub fn label(self) -> &'static str {
        match self {
            Self::Disabled => "disabled",
            Self::LoginRequired => "login required",
            Self::Down => "down",
            Self::Stale => "stale",
            Self::Starting => "starting",
            Self::Ready => "ready",
            Self::Stopped => "stopped",
            Self::NotAsked => "not asked yet",
        }
    }

    /// Returns the state of a server whose processes have these states.
    pub fn choose(facts: ServerFacts, processes: impl IntoIterator<Item = RunState>) -> Self {
        let newest = processes.into_iter().max().unwrap_or_default();
        if let Some(trouble) = Self::find_trouble(facts, || newest) {
            return trouble;
        }
        match newest {
            RunState::Stopped if !facts.is_surveyed => Self::NotAsked,
            state => state.into(),
        }
    }

    /// Returns the state if it is one in which calls fail or tools may have changed. `newest` returns the
    /// largest state of the processes, and is called only if that matters.
    pub fn find_trouble(facts: ServerFacts, newest: impl FnOnce() -> RunState) -> Option<Self> {
        match facts {
            ServerFacts {
                is_enabled: false, ..
            } => Some(Self::Disabled),
            ServerFacts {
                needs_login: true, ..
            } => Some(Self::LoginRequired),
            ServerFacts { is_down: true, .. } => Some(Self::Down),
            ServerFacts { is_stale: true, .. } => match newest() {
                RunState::Ready => Some(Self::Stale),
                RunState::Starting => None,
                RunState::Down | RunState::Stopped => Some(Self::Down),
            },
            _ => None,
        }
    }
}

impl From<RunState> for Availability {
    fn from(state: RunState) -> Self {
        match state {
            RunState::Stopped => Self::Stopped,
            RunState::Down => Self::Down,
            RunState::Starting => Self::Starting,
            RunState::Ready => Self::Ready,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_label_is_the_value_in_json() {
        for state in [
            Availability::Disabled,
            Availability::LoginRequired,
            Availability::Down,
            Availability::Stale,
            Availability::Starting,
            Availability::Ready,
            Availability::Stopped,
            Availability::NotAsked,
        ] {
            assert_eq!(serde_json::to_value(state).unwrap(), state.label());
        }
    }

    #[test]
    fn one_rule_chooses_the_word() {
        let fine = ServerFacts {
            is_enabled: true,
            is_surveyed: true,
            ..ServerFacts::default()
        };
        let stale = ServerFacts {
            is_stale: true,
            ..fine
        };
        let new = ServerFacts {
            is_surveyed: false,
            ..fine
        };
        let disabled = ServerFacts {
            is_enabled: false,
            ..stale
        };
        let no_login = ServerFacts {
            needs_login: true,
            is_down: true,
            ..stale
        };
        let down = ServerFacts {
            is_down: true,
            ..fine
        };
        let [stopped, ready, starting] = [RunState::Stopped, RunState::Ready, RunState::Starting];
        for (facts, processes, label) in [
            (fine, &[][..], "stopped"),
            (fine, &[stopped, ready], "ready"),
            (fine, &[starting, stopped], "starting"),
            (fine, &[RunState::Down, stopped], "down"),
            (new, &[], "not asked yet"),
            (new, &[starting], "starting"),
            (stale, &[], "down"),
            (stale, &[stopped], "down"),
            (stale, &[starting], "starting"),
            (stale, &[ready], "stale"),
            (down, &[stopped], "down"),
            (no_login, &[ready], "login required"),
            (disabled, &[], "disabled"),
        ] {
            let chosen = Availability::choose(facts, processes.iter().copied());
            assert_eq!(chosen.label(), label, "{facts:?} {processes:?}");
        }
    }
}
