//! Computes an upper bound of the cost of a check before it runs.
//!
//! A small schema can require unlimited work: in a chain of N definitions that each refer to the next
//! one twice, the work doubles N times. The count visits the same schemas for the same values as the
//! validator, but each pair of them only once.

use std::{
    cell::{Cell, RefCell},
    collections::HashMap,
};

use serde_json::{Map, Value};

use super::graph::{Graph, GraphNode, Role, size, text_size};

/// The most steps of one check. A step applies one schema to one value, or visits one value; it takes
/// about 50 ns and, if errors are collected, up to 300 bytes.
pub(super) const STEPS_MAX: u64 = 300_000;
/// The nesting limit of schemas and of values: the validator's stack is finite.
const DEPTH_MAX: u16 = 384;
/// The bytes of text that one state of a pattern matches in a step.
const STATE_BYTES_A_STEP: u64 = 64;

/// Upper bounds, in steps.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Cost {
    /// The steps to decide if the value is valid.
    pub(super) verdict: u64,
    /// The steps to collect every error.
    pub(super) errors: u64,
    /// The steps to copy the values that the errors refer to.
    copies: u64,
}

impl Cost {
    /// Returns the total steps to collect every error.
    pub(super) fn explained(self) -> u64 {
        self.verdict.saturating_add(self.errors)
    }

    fn add(&mut self, role: Role, other: Self) {
        self.verdict = self.verdict.saturating_add(other.verdict);
        let (errors, copies) = match role {
            Role::Required => (other.errors, other.copies),
            Role::Alternative => {
                let kept = other.errors.saturating_add(other.copies);
                (kept.saturating_add(other.verdict), 0)
            }
            Role::Condition => (other.verdict, 0),
        };
        self.errors = self.errors.saturating_add(errors);
        self.copies = self.copies.saturating_add(copies);
    }

    /// Returns the cost of a schema that checks its subschemas two more times: for their errors, and
    /// for the members that they evaluate.
    fn repeated(self) -> Self {
        let times = |steps: u64| steps.saturating_mul(3);
        Self {
            verdict: times(self.verdict),
            errors: times(self.errors.saturating_add(self.verdict)),
            copies: times(self.copies),
        }
    }
}

/// Computes the cost of a check of this value; `None` if it exceeds the limit.
pub(super) fn of(graph: &Graph, at: At<'_>) -> Option<Cost> {
    let count = Count {
        graph,
        known: RefCell::default(),
        sizes: RefCell::default(),
        steps_left: Cell::new(STEPS_MAX),
    };
    let cost = count.schema(0, at, 0)?;
    (cost.verdict <= STEPS_MAX).then_some(cost)
}

/// A value, or the name of a member, which schemas treat as a string.
#[derive(Debug, Clone, Copy)]
pub(super) enum At<'a> {
    Object(&'a Map<String, Value>),
    Array(&'a Vec<Value>),
    Text(&'a str),
    Other(&'a Value),
}

impl<'a> From<&'a Value> for At<'a> {
    fn from(value: &'a Value) -> Self {
        match value {
            Value::Object(members) => Self::Object(members),
            Value::Array(items) => Self::Array(items),
            Value::String(text) => Self::Text(text),
            other => Self::Other(other),
        }
    }
}

impl At<'_> {
    fn address(self) -> usize {
        match self {
            Self::Object(members) => std::ptr::from_ref(members).addr(),
            Self::Array(items) => std::ptr::from_ref(items).addr(),
            Self::Text(text) => text.as_ptr().addr(),
            Self::Other(value) => std::ptr::from_ref(value).addr(),
        }
    }

    fn len(self) -> u64 {
        match self {
            Self::Object(members) => members.len() as u64,
            Self::Array(items) => items.len() as u64,
            Self::Text(_) | Self::Other(_) => 0,
        }
    }
}

struct Count<'g> {
    graph: &'g Graph,
    /// Costs by schema and value; `None` while they are being counted. Only schemas with references to
    /// them are visited twice.
    known: RefCell<HashMap<(usize, usize), Option<Cost>>>,
    sizes: RefCell<HashMap<usize, u64>>,
    /// The computation itself is limited too.
    steps_left: Cell<u64>,
}

impl Count<'_> {
    fn schema(&self, schema: usize, at: At<'_>, depth: u16) -> Option<Cost> {
        if depth > DEPTH_MAX {
            return None;
        }
        let node = &self.graph.nodes[schema];
        if !node.is_shared {
            return self.count(node, at, depth);
        }
        let pair = (schema, at.address());
        if let Some(known) = self.known.borrow().get(&pair) {
            // A schema that is still being counted is part of a cycle.
            return *known;
        }
        self.known.borrow_mut().insert(pair, None);
        let cost = self.count(node, at, depth)?;
        self.known.borrow_mut().insert(pair, Some(cost));
        Some(cost)
    }

    fn count(&self, node: &GraphNode, at: At<'_>, depth: u16) -> Option<Cost> {
        let own = self.own(node, at);
        let visited = 1 + at.len();
        self.steps_left
            .set(self.steps_left.get().checked_sub(visited)?);
        let mut cost = Cost::default();
        let mut add = |role: Role, schema: usize, at: At<'_>| {
            cost.add(role, self.schema(schema, at, depth + 1)?);
            (cost.verdict <= STEPS_MAX).then_some(())
        };
        for (role, schema) in &node.same_value {
            add(*role, *schema, at)?;
        }
        if let At::Object(members) = at {
            for (name, member) in members {
                let named = node.members.get(name).into_iter();
                for schema in named.chain(&node.every_member) {
                    add(Role::Required, *schema, At::from(member))?;
                }
                for schema in &node.every_key {
                    add(Role::Required, *schema, At::Text(name))?;
                }
            }
        }
        if let At::Array(items) = at {
            for item in items {
                for (role, schema) in &node.every_item {
                    add(*role, *schema, At::from(item))?;
                }
            }
        }
        if node.repeats {
            cost = cost.repeated();
        }
        cost.add(Role::Required, own);
        Some(cost)
    }

    /// Computes the cost of a schema without its subschemas.
    fn own(&self, node: &GraphNode, at: At<'_>) -> Cost {
        let mut steps = node.own;
        match at {
            At::Object(members) => {
                if node.key_states > 0 {
                    let bytes: u64 = members.keys().map(|name| 1 + name.len() as u64).sum();
                    steps = steps.saturating_add(matching(node.key_states, bytes));
                }
                steps = steps.saturating_add(at.len());
            }
            At::Array(_) if node.compares_items => {
                steps = steps.saturating_add(self.size(at));
            }
            At::Text(text) if node.states > 0 => {
                steps = steps.saturating_add(matching(node.states, text.len() as u64));
            }
            _ => {}
        }
        let copies = if self.graph.has_alternatives {
            self.size(at).saturating_mul(node.keywords)
        } else {
            0
        };
        Cost {
            verdict: steps,
            errors: steps,
            copies,
        }
    }

    fn size(&self, at: At<'_>) -> u64 {
        let of_parts = || match at {
            At::Object(members) => members.iter().fold(1, |sum: u64, (name, member)| {
                let member = self.size(At::from(member));
                sum.saturating_add(text_size(name)).saturating_add(member)
            }),
            At::Array(items) => items.iter().fold(1, |sum: u64, item| {
                sum.saturating_add(self.size(At::from(item)))
            }),
            At::Text(text) => text_size(text),
            At::Other(value) => size(value),
        };
        if matches!(at, At::Text(_) | At::Other(_)) {
            return of_parts();
        }
        if let Some(known) = self.sizes.borrow().get(&at.address()) {
            return *known;
        }
        let size = of_parts();
        self.sizes.borrow_mut().insert(at.address(), size);
        size
    }
}

fn matching(states: u64, bytes: u64) -> u64 {
    1 + states.saturating_mul(bytes) / STATE_BYTES_A_STEP
}
