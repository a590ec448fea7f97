//! Checks a call's arguments against the input schema of its tool.

mod coerce;
mod cost;
mod finding;
mod graph;
mod nullable;
mod pattern;
mod ready;
mod violation;

use serde_json::{Map, Value};

use cost::At;
use ready::Ready;

pub(crate) use violation::NAME_CHARS_MAX;
pub use violation::Violation;

/// An input schema compiled to check arguments.
///
/// Compilation takes up to milliseconds, a passing check about one microsecond: compile when first
/// needed, and keep the checker.
///
/// The schema is untrusted, so a check that may exceed a time or memory limit does not start: the
/// arguments pass, and the server decides.
#[derive(Debug)]
pub struct Checker {
    ready: Option<Ready>,
}

/// A check of at most this many steps costs less than handing it to another thread.
const QUICK_STEPS_MAX: u64 = 1_000;

impl Checker {
    /// Compiles a schema. Never fails: if the schema cannot be compiled (an unknown dialect, or a
    /// reference to another document, which is never fetched), the checker accepts everything and
    /// the server decides.
    pub fn new(schema: &str) -> Self {
        let ready = serde_json::from_str(schema).ok().and_then(Ready::new);
        Self { ready }
    }

    pub(crate) fn of(schema: Value) -> Self {
        let ready = Ready::new(schema);
        Self { ready }
    }

    /// Returns true if this checker accepts everything because its schema could not be compiled.
    pub fn is_blind(&self) -> bool {
        self.ready.is_none()
    }

    /// Returns true if a check of these arguments takes less than a millisecond.
    pub fn is_quick(&self, arguments: &Map<String, Value>) -> bool {
        self.ready.as_ref().is_none_or(|ready| {
            let cost = cost::of(&ready.graph, At::Object(arguments));
            let steps = cost.map(|cost| ready.in_runs(cost.explained()));
            // A check that does not run is quick.
            steps.is_none_or(|steps| steps <= QUICK_STEPS_MAX)
        })
    }

    /// Returns `Ok(None)` if the arguments are valid unchanged, `Ok(Some)` if they are valid after
    /// values were converted in the only way that the schema allows, and `Err` with all violations
    /// otherwise.
    pub fn check(
        &self,
        arguments: &Map<String, Value>,
    ) -> Result<Option<Map<String, Value>>, Vec<Violation>> {
        let Some(ready) = &self.ready else {
            return Ok(None);
        };
        let mut value = Value::Object(arguments.clone());
        if ready.is_valid(&value) != Some(false) {
            return Ok(None);
        }
        if coerce::coerce(ready, &mut value).is_none() {
            return Ok(None);
        }
        let Some(violations) = ready.violations(&value) else {
            return Ok(None);
        };
        match value {
            Value::Object(arguments) if violations.is_empty() => Ok(Some(arguments)),
            _ => Err(violations),
        }
    }

    /// Returns true if the value satisfies the schema unchanged; `false` if that cannot be
    /// determined.
    pub(crate) fn accepts(&self, value: &Value) -> bool {
        let ready = self.ready.as_ref();
        ready.is_some_and(|ready| ready.is_valid(value) == Some(true))
    }
}

#[cfg(test)]
mod bound_tests;
#[cfg(test)]
mod tests;
