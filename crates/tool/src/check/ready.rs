//! A compiled schema whose checks run only if their cost is within limits.

use jsonschema::{PatternOptions, ValidationError, Validator};
use serde_json::Value;

use super::{
    cost::{self, At, Cost, STEPS_MAX},
    graph::Graph,
    nullable::admit_null,
    violation::{self, Violation},
};
use crate::schema::SchemaReader;

/// The largest compiled pattern, in bytes. A pattern of this size compiles in a few milliseconds.
const PATTERN_BYTES_MAX: usize = 1 << 20;
/// The most backtracking steps of a pattern with lookaround; about 0.2 ms.
const BACKTRACKS_MAX: usize = 10_000;
/// The validator's own limit of runs for patterns that reach the backtracking limit.
const RUNS_MAX: u64 = 64;

/// A compiled schema, and the graph from which the cost of a check is computed.
#[derive(Debug)]
pub(super) struct Ready {
    schema: Value,
    validator: Validator,
    pub(super) graph: Graph,
    /// The most runs of the validator over the whole value: more than one if a pattern may reach the
    /// backtracking limit.
    runs: u64,
}

impl Ready {
    pub(super) fn new(mut schema: Value) -> Option<Self> {
        admit_null(&mut schema);
        let graph = Graph::new(&schema)?;
        let (validator, runs) = compile(&schema)?;
        Some(Self {
            schema,
            validator,
            graph,
            runs,
        })
    }

    /// Returns `None` if the check would take too long.
    pub(super) fn is_valid(&self, value: &Value) -> Option<bool> {
        self.cost(value)?;
        Some(self.validator.is_valid(value))
    }

    /// Returns every error, or `None` if that would take too long.
    pub(super) fn errors<'v>(&'v self, value: &'v Value) -> Option<Vec<ValidationError<'v>>> {
        let steps = self.cost(value)?.explained();
        let is_bounded = self.in_runs(steps) <= STEPS_MAX;
        is_bounded.then(|| self.validator.iter_errors(value).collect())
    }

    pub(super) fn violations(&self, value: &Value) -> Option<Vec<Violation>> {
        Some(violation::of_errors(&self.errors(value)?, &self.reader()))
    }

    pub(super) fn reader(&self) -> SchemaReader<'_> {
        SchemaReader::new(&self.schema)
    }

    fn cost(&self, value: &Value) -> Option<Cost> {
        let cost = cost::of(&self.graph, At::from(value))?;
        (self.in_runs(cost.verdict) <= STEPS_MAX).then_some(cost)
    }

    pub(super) fn in_runs(&self, steps: u64) -> u64 {
        steps.saturating_mul(self.runs)
    }
}

/// Compiles a validator, and returns it with the most runs of a check. Patterns are matched in linear
/// time if possible; if one of them has lookaround, all are matched by bounded backtracking.
fn compile(schema: &Value) -> Option<(Validator, u64)> {
    // Formats are annotations by default in the newest draft, and servers disagree about valid URIs:
    // rejecting a value that the server accepts is worse than sending a value that it rejects.
    let options = || {
        jsonschema::options()
            .offline()
            .should_validate_formats(false)
    };
    let linear = PatternOptions::regex().size_limit(PATTERN_BYTES_MAX);
    if let Ok(validator) = options().with_pattern_options(linear).build(schema) {
        return Some((validator, 1));
    }
    let backtracking = PatternOptions::fancy_regex()
        .backtrack_limit(BACKTRACKS_MAX)
        .size_limit(PATTERN_BYTES_MAX);
    let validator = options().with_pattern_options(backtracking).build(schema);
    Some((validator.ok()?, RUNS_MAX))
}
