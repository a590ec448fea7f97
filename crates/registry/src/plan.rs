//! The difference between two lists of tools.

use std::collections::BTreeMap;

use tool::{Digest, ServerName, Tool};

use crate::snapshot::SurveyFailure;

/// Names of tools by the kind of their change. Pure data: nothing is read or written here.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Plan {
    /// Tools that were not there before.
    pub added: Vec<String>,
    /// Tools with another definition than before.
    pub changed: Vec<String>,
    /// Tools that are there no more.
    pub removed: Vec<String>,
    /// Tools as they were.
    pub same: Vec<String>,
}

/// The changes of a commit for one server: one line of a report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Planned {
    /// The server surveyed.
    pub server: ServerName,
    /// The changes of its tools.
    pub plan: Plan,
    /// The changed tools' definitions, before and now.
    pub altered: BTreeMap<String, (String, String)>,
    /// Tokens that all of its definitions would cost a model up front.
    pub tokens: u64,
    /// The reason why the last snapshot was kept (or that there is none) instead of a fresh one.
    pub stale: Option<SurveyFailure>,
}

/// Compares two lists by name and [`Tool::digest`]; order and white space do not count.
pub fn plan(old: &[Tool], new: &[Tool]) -> Plan {
    let before = digests(old);
    let after = digests(new);
    let mut plan = Plan::default();
    for (name, digest) in &after {
        let list = match before.get(name) {
            None => &mut plan.added,
            Some(known) if known == digest => &mut plan.same,
            Some(_) => &mut plan.changed,
        };
        list.push((*name).to_owned());
    }
    let gone = before.keys().filter(|name| !after.contains_key(*name));
    plan.removed = gone.map(|name| (*name).to_owned()).collect();
    plan
}

fn digests(tools: &[Tool]) -> BTreeMap<&str, Digest> {
    tools
        .iter()
        .map(|tool| (tool.name(), tool.digest()))
        .collect()
}
