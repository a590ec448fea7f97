//! The state that the page shows: collections of rows by key, and the differences between two states.

use std::collections::BTreeMap;

use daemon::status::ClientStatus;
use gateway::api::ServerRow;
use serde::Serialize;
use serde_json::Value;
use telemetry::CallCount;

/// Collections of rows, each by the key of the row.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct State {
    pub(crate) daemon: BTreeMap<String, DaemonRow>,
    pub(crate) servers: BTreeMap<String, ServerRow>,
    pub(crate) clients: BTreeMap<String, ClientStatus>,
    /// The calls in flight.
    pub(crate) running: BTreeMap<String, RunningRow>,
    /// Everything that needs a person.
    pub(crate) attention: BTreeMap<String, AttentionRow>,
    /// The calls of the last hour, by the minute since 1970.
    pub(crate) minutes: BTreeMap<String, CallCount>,
    /// The calls since the daemon started.
    pub(crate) totals: BTreeMap<String, CallCount>,
}

/// The daemon.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct DaemonRow {
    pub(crate) version: String,
    pub(crate) pid: u32,
    pub(crate) config_mistakes: Option<String>,
    /// False in the first state of a tab: changed definitions, idle rules and minutes follow.
    pub(crate) is_whole: bool,
    /// It changes with the configuration.
    pub(crate) config_number: u64,
    /// It changes with the known tools.
    pub(crate) catalog_number: u64,
}

/// A call in flight.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct RunningRow {
    pub(crate) id: u64,
    pub(crate) tool: String,
    pub(crate) client: String,
    pub(crate) transport: &'static str,
    pub(crate) since_ms: u64,
    /// The call of the script that makes it.
    pub(crate) parent: Option<u64>,
}

/// Something that needs a person.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct AttentionRow {
    /// `question`, `login`, `review`, `down`, `mistakes`, `rule` or `pins`.
    pub(crate) kind: &'static str,
    pub(crate) server: Option<String>,
    pub(crate) title: String,
    pub(crate) detail: String,
    /// A command.
    pub(crate) next_step: Option<String>,
    pub(crate) since_at: Option<u64>,
    pub(crate) count: Option<usize>,
    /// A question that can be answered here.
    pub(crate) question: Option<QuestionForm>,
}

/// A question, for `POST /api/v1/questions/{id}`.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct QuestionForm {
    pub(crate) id: u64,
    /// The schema of the answer, if it is a form.
    pub(crate) schema: Option<Value>,
    /// The address to visit, if it is not.
    pub(crate) address: Option<String>,
}

/// One difference between two states.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct RowChange {
    /// The collection and the key.
    at: [String; 2],
    /// The row; null: it is gone.
    value: Value,
}

impl State {
    /// Returns the differences that turn this state into another.
    pub(crate) fn changes_to(&self, new: &Self) -> Vec<RowChange> {
        let mut changes = Vec::new();
        compare("daemon", &self.daemon, &new.daemon, &mut changes);
        compare("servers", &self.servers, &new.servers, &mut changes);
        compare("clients", &self.clients, &new.clients, &mut changes);
        compare("running", &self.running, &new.running, &mut changes);
        compare("attention", &self.attention, &new.attention, &mut changes);
        compare("minutes", &self.minutes, &new.minutes, &mut changes);
        compare("totals", &self.totals, &new.totals, &mut changes);
        changes
    }
}

fn compare<R: PartialEq + Serialize>(
    collection: &str,
    old: &BTreeMap<String, R>,
    new: &BTreeMap<String, R>,
    changes: &mut Vec<RowChange>,
) {
    let mut add = |key: &str, value| {
        let at = [collection.to_owned(), key.to_owned()];
        changes.push(RowChange { at, value });
    };
    for key in old.keys().filter(|key| !new.contains_key(*key)) {
        add(key, Value::Null);
    }
    for (key, row) in new.iter().filter(|(key, row)| old.get(*key) != Some(row)) {
        add(key, serde_json::to_value(row).unwrap_or_default());
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn state(totals: u64, running: &[u64]) -> State {
        let row = |id: &u64| {
            let row = RunningRow {
                id: *id,
                tool: "git/log".to_owned(),
                client: String::new(),
                transport: "stdio",
                since_ms: 0,
                parent: None,
            };
            (id.to_string(), row)
        };
        let count = CallCount {
            calls: totals,
            errors: 0,
        };
        State {
            totals: BTreeMap::from([("totals".to_owned(), count)]),
            running: running.iter().map(row).collect(),
            ..State::default()
        }
    }

    #[test]
    fn changes_name_the_rows_that_differ() {
        let changes = state(1, &[1, 2]).changes_to(&state(2, &[2, 3]));
        let at = |change: &RowChange| (change.at.join("/"), change.value.is_null());
        let at: Vec<_> = changes.iter().map(at).collect();
        let expected = [
            ("running/1", true),
            ("running/3", false),
            ("totals/totals", false),
        ];
        assert_eq!(at, expected.map(|(key, gone)| (key.to_owned(), gone)));
        assert_eq!(changes[2].value, json!({"calls": 2, "errors": 0}));
        assert_eq!(state(1, &[1]).changes_to(&state(1, &[1])), []);
    }
}
