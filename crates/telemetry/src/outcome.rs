//! The meaning of *call* and *error* in every figure (decision 0047, `docs/figures.md`).

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The outcome of a call: `ok`, `tool_error`, or the code of an error (interface, section 6).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outcome(&'static str);

impl Outcome {
    /// The caller got a result without `isError`.
    pub const OK: Self = Self("ok");
    /// The caller got a result with `isError`.
    pub const TOOL_ERROR: Self = Self("tool_error");
    /// The caller cancelled the call or disconnected, or a person ended it.
    pub const CANCELLED: Self = Self("cancelled");

    /// The outcome of a call that ended with an error of this code.
    pub const fn of_code(code: &'static str) -> Self {
        Self(code)
    }

    /// Returns the outcome of a result.
    pub const fn of_result(is_error: bool) -> Self {
        if is_error { Self::TOOL_ERROR } else { Self::OK }
    }

    /// Returns the name in the audit log, in metrics and in statistics.
    pub const fn as_str(self) -> &'static str {
        self.0
    }

    /// Returns true if the call counts as an error.
    pub fn is_error(self) -> bool {
        is_error(self.0)
    }
}

impl Default for Outcome {
    /// The outcome of a call that ended without another one.
    fn default() -> Self {
        Self::CANCELLED
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

/// Returns true if a call with this outcome counts as an error: every outcome but `ok` does. All figures
/// ask this function.
pub(crate) fn is_error(outcome: &str) -> bool {
    outcome != Outcome::OK.0
}

/// Returns the outcome of the call that a line of the audit log records. Returns `None` for a line that
/// records no call: a refused credential, lost records, the log of another node.
pub(crate) fn outcome_of_line(line: &Value) -> Option<&str> {
    let is_call = line["credential"].is_null();
    line["outcome"].as_str().filter(|_| is_call)
}

/// Calls, and those of them that are errors.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CallCount {
    /// All calls.
    pub calls: u64,
    /// The calls with an outcome other than `ok`.
    pub errors: u64,
}

impl CallCount {
    /// Adds a number of calls with this outcome.
    pub(crate) fn add(&mut self, outcome: &str, calls: u64) {
        self.calls += calls;
        self.errors += if is_error(outcome) { calls } else { 0 };
    }

    /// Adds the call that a line of the audit log records, if it records one.
    pub fn add_line(&mut self, line: &Value) {
        if let Some(outcome) = outcome_of_line(line) {
            self.add(outcome, 1);
        }
    }

    /// Returns the calls that came after an earlier count.
    #[must_use]
    pub fn since(self, earlier: Self) -> Self {
        Self {
            calls: self.calls.saturating_sub(earlier.calls),
            errors: self.errors.saturating_sub(earlier.errors),
        }
    }
}

impl std::ops::AddAssign for CallCount {
    fn add_assign(&mut self, other: Self) {
        self.calls += other.calls;
        self.errors += other.errors;
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_outcome_but_ok_is_an_error() {
        assert!(!Outcome::OK.is_error() && !Outcome::of_result(false).is_error());
        for outcome in [
            Outcome::TOOL_ERROR,
            Outcome::CANCELLED,
            Outcome::default(),
            Outcome::of_result(true),
            Outcome::of_code("denied"),
        ] {
            assert!(outcome.is_error(), "{outcome}");
        }
    }

    #[test]
    fn a_line_counts_if_it_records_a_call() {
        let mut count = CallCount::default();
        for line in [
            json!({"n": 1, "server": "a", "tool": "b", "outcome": "ok"}),
            json!({"n": 2, "server": "a", "prompt": "b", "outcome": "denied"}),
            json!({"n": 3, "credential": "no token", "outcome": "denied"}),
            json!({"n": 4, "lost": 7}),
            json!({"n": 5, "log_of": "node-2", "line": 9, "has": "00"}),
        ] {
            count.add_line(&line);
        }
        let expected = CallCount {
            calls: 2,
            errors: 1,
        };
        assert_eq!(count, expected);
    }
}
