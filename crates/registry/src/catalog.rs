//! The small file that says what is there: the one thing a commit replaces.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use tool::{ServerName, Tool};

use crate::categories::{self, Guess};
use crate::disk::{Disk, snapshot_path};
use crate::limits::FORMAT;
use crate::recipes::Names;
use crate::shelf::{Gate, Shelf, Shelved};
use crate::snapshot::{Kept, server_in};

/// What is on the shelf, without opening a single snapshot.
#[derive(Debug, Clone, Default)]
pub struct Catalog {
    /// In the configuration's order.
    pub servers: Vec<CatalogServer>,
}

#[derive(Debug, Clone)]
pub struct CatalogServer {
    pub name: ServerName,
    pub category: String,
    pub tags: Vec<String>,
    /// Tools a search can find: neither denied nor hidden.
    pub tools: usize,
    pub tokens: u64,
    /// Why the last survey failed, when it did.
    pub stale: Option<String>,
    /// Unix seconds; `None` for a server that was never surveyed.
    pub surveyed_at: Option<u64>,
    /// The protocol revision it spoke; empty when it was never surveyed.
    pub protocol: String,
}

impl Catalog {
    /// All tools a search can find.
    pub fn tools(&self) -> usize {
        self.servers.iter().map(|server| server.tools).sum()
    }

    pub(crate) fn new(shelf: &Shelf, gates: &[Gate], records: &Records) -> Self {
        let servers = shelf.servers.iter().zip(gates);
        let servers = servers.map(|(shelved, gate)| {
            let record = records.servers.get(shelved.name.as_str());
            CatalogServer::new(shelved, gate, record)
        });
        Self {
            servers: servers.collect(),
        }
    }
}

impl CatalogServer {
    fn new(shelved: &Shelved, gate: &Gate, record: Option<&Record>) -> Self {
        let nothing = Record::default();
        let known = record.unwrap_or(&nothing);
        let is_visible = |name: &&String| !shelved.hides(name) && gate.refuses(name).is_none();
        Self {
            name: shelved.name.clone(),
            category: known.category(shelved),
            tags: known.tags(shelved),
            tools: known.tools.iter().filter(is_visible).count(),
            tokens: known.tokens,
            stale: known.stale.clone(),
            surveyed_at: record
                .filter(|known| known.snapshot.is_some())
                .map(|known| known.surveyed_at),
            protocol: known.protocol.clone(),
        }
    }
}

/// `catalog.json`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Records {
    format: u32,
    pub(crate) servers: BTreeMap<String, Record>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Record {
    /// The file in `snapshots/`; absent when no survey ever succeeded.
    pub(crate) snapshot: Option<String>,
    pub(crate) tools: Vec<String>,
    /// Tools whose definition the last fresh survey found altered.
    pub(crate) changed: Vec<String>,
    pub(crate) tokens: u64,
    pub(crate) stale: Option<String>,
    pub(crate) surveyed_at: u64,
    pub(crate) protocol: String,
    /// What our rules say; the configuration wins over it.
    pub(crate) category: Option<String>,
    pub(crate) tags: Vec<String>,
    #[serde(default)]
    pub(crate) aliases: Vec<String>,
    /// Its tools have categories of their own.
    #[serde(default)]
    pub(crate) mixed: bool,
}

impl Record {
    pub(crate) fn category(&self, shelved: &Shelved) -> String {
        let said = shelved.category.as_ref().or(self.category.as_ref());
        said.cloned().unwrap_or_else(|| "utility".to_owned())
    }

    /// What the configuration says, else the tool's own where its server does many things, else
    /// the server's.
    pub(crate) fn category_of(&self, shelved: &Shelved, tool: &Tool) -> String {
        let own = || categories::of_tool(tool).map(str::to_owned);
        let own = (self.mixed && shelved.category.is_none()).then(own);
        own.flatten().unwrap_or_else(|| self.category(shelved))
    }

    pub(crate) fn guess(&mut self, guess: Guess) {
        self.category = Some(guess.category);
        self.tags = guess.tags;
        self.aliases = guess.aliases;
        self.mixed = guess.mixed;
    }

    pub(crate) fn tags(&self, shelved: &Shelved) -> Vec<String> {
        let mut tags = shelved.tags.clone();
        let more = self.tags.iter().filter(|tag| !shelved.tags.contains(tag));
        tags.extend(more.cloned());
        tags
    }
}

impl Records {
    /// What is on disk; put together from the snapshots where the file is damaged.
    pub(crate) fn read(disk: &Disk) -> Self {
        let Ok(bytes) = disk.read(CATALOG) else {
            return Self::default();
        };
        match serde_json::from_slice::<Self>(&bytes) {
            Ok(records) if records.format == FORMAT => records,
            _ => Self::salvaged(disk),
        }
    }

    pub(crate) fn to_text(&self) -> String {
        let records = Self {
            format: FORMAT,
            servers: self.servers.clone(),
        };
        serde_json::to_string(&records).expect("maps with text keys are always JSON")
    }

    /// Files of snapshots that this catalog names.
    pub(crate) fn files(&self) -> impl Iterator<Item = &str> {
        self.servers
            .values()
            .filter_map(|record| record.snapshot.as_deref())
    }

    /// The newest snapshot of each server that still proves whole.
    fn salvaged(disk: &Disk) -> Self {
        tracing::warn!("the catalog is damaged, taking each server's newest snapshot");
        let mut records = Self::default();
        for path in disk.snapshots() {
            let file_name = path.rsplit('/').next().unwrap_or_default();
            let Some(server) = server_in(file_name) else {
                continue;
            };
            if records.servers.contains_key(server) {
                continue;
            }
            if let Some(record) = salvage(disk, server, file_name) {
                records.servers.insert(server.to_owned(), record);
            }
        }
        records
    }
}

fn salvage(disk: &Disk, server: &str, file_name: &str) -> Option<Record> {
    let bytes = disk.read(&snapshot_path(file_name)).ok()?;
    let kept = Kept::read(file_name, &bytes).ok()?;
    let names = Names {
        configured: server,
        program: "",
        server_name: &kept.head.server_name,
    };
    let mut record = Record {
        snapshot: Some(file_name.to_owned()),
        protocol: kept.head.protocol.clone(),
        tools: kept
            .tools
            .iter()
            .map(|tool| tool.name().to_owned())
            .collect(),
        stale: Some("the catalog was damaged; this is the newest snapshot found".to_owned()),
        ..Record::default()
    };
    record.guess(Guess::new(names, &kept.tools));
    Some(record)
}

pub(crate) const CATALOG: &str = "catalog.json";
