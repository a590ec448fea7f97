//! The names that rules of the configuration can match.

use std::collections::{BTreeMap, BTreeSet};

use tool::{ServerName, parameters};

use crate::catalog::Records;
use crate::categories;
use crate::disk::Disk;
use crate::server_rules::{Rules, ServerRules};

/// The names of the arguments of each tool of a server.
pub type ToolArguments = BTreeMap<String, Vec<String>>;

/// The tools of the configured servers, and all categories.
#[derive(Debug, Clone, Default)]
pub struct KnownNames {
    /// The servers in the order of the configuration, disabled ones last; `None` for tools that
    /// were not listed yet.
    pub tools: Vec<(ServerName, Option<Vec<String>>)>,
    /// The arguments of the tools of servers whose arguments the configuration sets.
    pub arguments: BTreeMap<ServerName, ToolArguments>,
    /// The categories of servers and tools, and those of the built-in rules.
    pub categories: BTreeSet<String>,
}

impl KnownNames {
    /// Creates the names from the configuration alone.
    pub fn of_rules(rules: &Rules) -> Self {
        Self::new(rules, &Records::default())
    }

    /// Reads the snapshots of servers whose arguments the configuration sets.
    pub(crate) fn read(rules: &Rules, records: &Records, disk: &Disk) -> Self {
        let servers = rules.servers.iter().filter(|it| it.sets_arguments());
        let list = |rules: &ServerRules| {
            let record = records.servers.get(rules.name.as_str())?;
            let kept = record.read_snapshot(disk)?;
            let tools = kept.tools.iter().map(|tool| {
                let names = parameters(&tool.input_schema()).into_iter();
                (tool.name().to_owned(), names.map(|it| it.name).collect())
            });
            Some((rules.name.clone(), tools.collect()))
        };
        Self {
            arguments: servers.filter_map(list).collect(),
            ..Self::new(rules, records)
        }
    }

    fn new(rules: &Rules, records: &Records) -> Self {
        let of = |rules: &ServerRules| {
            let record = records.servers.get(rules.name.as_str());
            let record = record.filter(|record| record.surveyed_at > 0);
            (rules.name.clone(), record.map(|it| it.tools.clone()))
        };
        let disabled = rules.disabled.iter().map(|name| (name.clone(), None));
        let configured = rules.servers.iter().flat_map(|rules| {
            let overlays = rules.overlays.values();
            let overlays = overlays.filter_map(|overlay| overlay.category.clone());
            rules.category.clone().into_iter().chain(overlays)
        });
        let records = records.servers.values();
        let guessed = records.filter_map(|it| it.category.clone());
        let known = categories::list().map(str::to_owned);
        Self {
            tools: rules.servers.iter().map(of).chain(disabled).collect(),
            arguments: BTreeMap::new(),
            categories: configured.chain(guessed).chain(known).collect(),
        }
    }
}
