//! A compiled schema, asked only what is bounded.

use jsonschema::{PatternOptions, ValidationError, Validator};
use serde_json::Value;

use super::{
    cost::{self, Cost, STEPS_MAX},
    graph::Graph,
    violation::{self, Violation},
};
use crate::schema::Reading;

/// The size of a compiled pattern, in bytes. One of this size takes a few milliseconds to make.
const PATTERN_BYTES_MAX: usize = 1 << 20;
/// Steps back in a pattern that looks ahead or behind; some 0.2 ms.
const BACKTRACKS_MAX: usize = 10_000;
/// The validator's own limit of its runs, where patterns may not be finished.
const RUNS_MAX: u64 = 64;

/// A schema that was compiled, and what its checks can cost.
#[derive(Debug)]
pub(super) struct Ready {
    schema: Value,
    validator: Validator,
    pub(super) graph: Graph,
    /// Runs of the validator over everything, at most: once for each way in which the patterns
    /// might go that it cannot finish.
    runs: u64,
}

impl Ready {
    pub(super) fn new(schema: Value) -> Option<Self> {
        let graph = Graph::new(&schema)?;
        let (validator, runs) = compile(&schema)?;
        Some(Self {
            schema,
            validator,
            graph,
            runs,
        })
    }

    /// `None` if it would take too long to decide.
    pub(super) fn is_valid(&self, value: &Value) -> Option<bool> {
        self.cost(value)?;
        Some(self.validator.is_valid(value))
    }

    /// Every error; `None` where it would take too long to find them.
    pub(super) fn errors<'v>(&'v self, value: &'v Value) -> Option<Vec<ValidationError<'v>>> {
        let steps = self.cost(value)?.explained();
        let is_bounded = self.in_runs(steps) <= STEPS_MAX;
        is_bounded.then(|| self.validator.iter_errors(value).collect())
    }

    pub(super) fn violations(&self, value: &Value) -> Option<Vec<Violation>> {
        let reading = Reading::new(&self.schema);
        Some(violation::of_errors(&self.errors(value)?, &reading))
    }

    fn cost(&self, value: &Value) -> Option<Cost> {
        let cost = cost::of_value(&self.graph, value)?;
        (self.in_runs(cost.verdict) <= STEPS_MAX).then_some(cost)
    }

    pub(super) fn in_runs(&self, steps: u64) -> u64 {
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
