//! The check of a call's arguments against its tool's input schema.

mod coerce;
mod cost;
mod finding;
mod graph;
mod pattern;
mod ready;
mod violation;

use serde_json::{Map, Value};

use ready::Ready;

pub use violation::Violation;

/// An input schema made ready to check arguments.
///
/// Making one costs up to milliseconds, a check that passes about one microsecond: make it when
/// it is first needed and keep it.
///
/// The schema comes from a stranger, so no check is begun that may cost more than a bound, in
/// time or in memory: its arguments pass, for the server to judge.
#[derive(Debug)]
pub struct Checker {
    ready: Option<Ready>,
}

/// Steps of a check that take less time than to hand it to another thread is worth.
const QUICK_STEPS_MAX: u64 = 1_000;
impl Checker {
    /// Never fails: what cannot be compiled (an unknown dialect, a reference to another document,
    /// which is never fetched) gives a checker that passes everything, for the server to judge.
    pub fn new(schema: &str) -> Self {
        let ready = serde_json::from_str(schema).ok().and_then(Ready::new);
        Self { ready }
    }

    pub(crate) fn of(schema: Value) -> Self {
        let ready = Ready::new(schema);
        Self { ready }
    }

    /// Whether this checker passes everything because its schema could not be compiled.
    pub fn is_blind(&self) -> bool {
        self.ready.is_none()
    }

    /// Whether a check of these arguments is done in less than a millisecond.
    pub fn is_quick(&self, arguments: &Map<String, Value>) -> bool {
        self.ready.as_ref().is_none_or(|ready| {
            let cost = cost::of(&ready.graph, arguments);
            let steps = cost.map(|cost| ready.in_runs(cost.explained()));
            // What is not done at all is quickest.
            steps.is_none_or(|steps| steps <= QUICK_STEPS_MAX)
        })
    }

    /// `Ok(None)`: fine as they came. `Ok(Some)`: fine after values were read the only way the
    /// schema allows. `Err`: every violation at once.
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

    /// Whether the value satisfies the schema as it is; `false` where that cannot be told.
    pub(crate) fn accepts(&self, value: &Value) -> bool {
        let ready = self.ready.as_ref();
        ready.is_some_and(|ready| ready.is_valid(value) == Some(true))
    }
}

#[cfg(test)]
mod bound_tests;
#[cfg(test)]
mod tests;
