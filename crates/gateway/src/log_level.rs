//! The least severity of server log messages that a client receives.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use jsonrpc::{Fields, mcp::LOG_LEVELS, text_of};
use serde_json::value::RawValue;

/// The longest part of an invalid level that an error repeats, in characters.
const GOT_CHARS_MAX: usize = 60;

/// A session's level, shared with all senders to it.
#[derive(Debug, Clone)]
pub(super) struct LogLevel(Arc<AtomicUsize>);

impl LogLevel {
    /// The level of a client that never set one: `info` and worse.
    pub(super) fn unsaid() -> Self {
        Self(Arc::new(AtomicUsize::new(1)))
    }

    /// `None` for a word that is no level.
    pub(super) fn parse(level: &str) -> Option<Self> {
        Some(Self(Arc::new(AtomicUsize::new(severity(level)?))))
    }

    /// The error text for an invalid level that a client sets; `None` if the level is valid.
    pub(super) fn explain_refusal(level: Option<&RawValue>) -> Option<String> {
        if level.and_then(|it| severity(&text_of(it)?)).is_some() {
            return None;
        }
        let got = level.map_or("nothing", RawValue::get);
        let got = printable::one_line_of(got, GOT_CHARS_MAX);
        let known = LOG_LEVELS.join(", ");
        Some(format!("level: expected one of {known}, got {got}"))
    }

    pub(super) fn set(&self, level: &str) {
        if let Some(severity) = severity(level) {
            self.0.store(severity, Ordering::Relaxed);
        }
    }

    pub(super) fn name(&self) -> &'static str {
        LOG_LEVELS[self.0.load(Ordering::Relaxed).min(LOG_LEVELS.len() - 1)]
    }

    /// Returns true if a log message with these `params` is to be sent. A message without a level is
    /// sent.
    pub(super) fn wants(&self, params: &RawValue) -> bool {
        let level = Fields::of(params.get()).and_then(|fields| text_of(fields.get("level")?));
        let severity = level.and_then(|level| severity(&level));
        severity.is_none_or(|severity| severity >= self.0.load(Ordering::Relaxed))
    }
}

fn severity(level: &str) -> Option<usize> {
    LOG_LEVELS.iter().position(|known| *known == level)
}

#[cfg(test)]
mod tests {
    use serde_json::value::RawValue;

    use super::LogLevel;

    #[test]
    fn a_message_below_the_level_is_not_wanted() {
        let params = |level: &str| {
            let text = format!(r#"{{"level":"{level}","data":"x"}}"#);
            RawValue::from_string(text).expect("the case is JSON")
        };
        let level = LogLevel::unsaid();
        assert!(!level.wants(&params("debug")) && level.wants(&params("info")));
        assert_eq!(level.name(), "info");
        level.set("error");
        assert_eq!(level.name(), "error");
        assert!(!level.wants(&params("warning")) && level.wants(&params("alert")));
        level.set("no level");
        assert!(!level.wants(&params("warning")) && level.wants(&params("odd")));
        assert!(LogLevel::parse("loud").is_none());
    }
}
