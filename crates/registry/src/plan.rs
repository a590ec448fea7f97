//! The difference between two lists of tools.

use std::collections::BTreeMap;

use tool::{Digest, ServerName, Tool};

use crate::{catalog::Record, snapshot::SurveyFailure};

/// The names of tools by the kind of their change.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Plan {
    /// Tools that are new.
    pub added: Vec<String>,
    /// Tools whose definition changed.
    pub changed: Vec<String>,
    /// Tools that were removed.
    pub removed: Vec<String>,
    /// Tools whose definition is unchanged.
    pub same: Vec<String>,
}

/// The changes of a commit for one server: one line of a report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Planned {
    /// The surveyed server.
    pub server: ServerName,
    /// The changes of its tools.
    pub plan: Plan,
    /// The previous and the current definition of each changed tool.
    pub altered: BTreeMap<String, (String, String)>,
    /// The server's version before and after, if it changed.
    pub version: Option<(String, String)>,
    /// The number of tokens that all definitions of the server would cost a model.
    pub tokens: u64,
    /// The reason why the survey failed and the last snapshot, if there is one, was kept.
    pub stale: Option<SurveyFailure>,
}

impl Planned {
    /// Says that no tool changed.
    pub(crate) fn unchanged(server: &ServerName, record: &Record) -> Self {
        Self {
            server: server.clone(),
            plan: Plan {
                same: record.tools.clone(),
                ..Plan::default()
            },
            altered: BTreeMap::new(),
            version: None,
            tokens: record.tokens,
            stale: record.stale.clone(),
        }
    }
}

/// Compares two lists by name and [`Tool::digest`]; order and white space are ignored.
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
