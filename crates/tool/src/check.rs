//! The check of a call's arguments against its tool's input schema.

mod coerce;
mod cost;
mod finding;
mod graph;
mod pattern;
mod violation;

use jsonschema::{PatternOptions, ValidationError, Validator};
use serde_json::{Map, Value};

use crate::schema::Reading;

use cost::{Cost, STEPS_MAX};
use graph::Graph;
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

#[derive(Debug)]
struct Ready {
    schema: Value,
    validator: Validator,
    graph: Graph,
    /// How often the validator may go over everything: once for each way in which the patterns
    /// might go that it cannot finish.
    runs: u64,
}

/// Steps of a check that take less time than to hand it to another thread is worth.
const QUICK_STEPS_MAX: u64 = 1_000;
/// The size of a compiled pattern, in bytes. One of this size takes a few milliseconds to make.
const PATTERN_BYTES_MAX: usize = 1 << 20;
/// Steps back in a pattern that looks ahead or behind; some 0.2 ms.
const BACKTRACKS_MAX: usize = 10_000;
/// The validator's own limit of its runs, where patterns may not be finished.
const RUNS_MAX: u64 = 64;

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

impl Ready {
    fn new(schema: Value) -> Option<Self> {
        let graph = Graph::new(&schema)?;
        let (validator, runs) = compile(&schema)?;
        Some(Self {
            schema,
            validator,
            graph,
            runs,
        })
    }

    /// `None` where it would take too long to tell.
    fn is_valid(&self, value: &Value) -> Option<bool> {
        self.cost(value)?;
        Some(self.validator.is_valid(value))
    }

    /// Every error; `None` where it would take too long to find them.
    fn errors<'v>(&'v self, value: &'v Value) -> Option<Vec<ValidationError<'v>>> {
        let steps = self.cost(value)?.explained();
        let is_bounded = self.in_runs(steps) <= STEPS_MAX;
        is_bounded.then(|| self.validator.iter_errors(value).collect())
    }

    fn violations(&self, value: &Value) -> Option<Vec<Violation>> {
        let reading = Reading::new(&self.schema);
        Some(violation::of_errors(&self.errors(value)?, &reading))
    }

    fn cost(&self, value: &Value) -> Option<Cost> {
        let cost = cost::of_value(&self.graph, value)?;
        (self.in_runs(cost.verdict) <= STEPS_MAX).then_some(cost)
    }

    fn in_runs(&self, steps: u64) -> u64 {
        steps.saturating_mul(self.runs)
    }
}

/// A validator, and how many runs it may take. Patterns are matched in linear time where they
/// can be; where one looks ahead or behind, all of them by trying, with an end to it.
fn compile(schema: &Value) -> Option<(Validator, u64)> {
    // Formats are annotations by default in the newest draft, and servers differ in what they
    // take for a URI: refusing what the server would take is worse than letting it answer.
    let options = || {
        jsonschema::options()
            .offline()
            .should_validate_formats(false)
    };
    let linear = PatternOptions::regex().size_limit(PATTERN_BYTES_MAX);
    if let Ok(validator) = options().with_pattern_options(linear).build(schema) {
        return Some((validator, 1));
    }
    let trying = PatternOptions::fancy_regex()
        .backtrack_limit(BACKTRACKS_MAX)
        .size_limit(PATTERN_BYTES_MAX);
    let validator = options().with_pattern_options(trying).build(schema);
    Some((validator.ok()?, RUNS_MAX))
}

#[cfg(test)]
mod bound_tests;
#[cfg(test)]
mod tests;
