//! The small file that says what is there: the one thing a commit replaces.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use tool::{Annotations, Capability, Digest, Item, Offer, ServerName, Tool};

use crate::allow_deny::AllowDeny;
use crate::categories;
use crate::disk::{Disk, snapshot_path};
use crate::guess::Guess;
use crate::known_servers::Names;
use crate::limits::{CHANGE_KEPT_S, FORMAT};
use crate::pins::{HeldBy, Pin, Pins};
use crate::server_rules::{Rules, ServerRules};
use crate::snapshot::{Kept, is_false, part_transport, server_in};

/// Every configured server in numbers, without opening a single snapshot.
#[derive(Debug, Clone, Default)]
pub struct Catalog {
    /// In the configuration's order.
    pub servers: Vec<CatalogServer>,
}

/// One server of the [`Catalog`].
#[derive(Debug, Clone)]
pub struct CatalogServer {
    /// Its key in the configuration.
    pub name: ServerName,
    /// Its category: the configuration's, else by our rules.
    pub category: String,
    /// The configuration's tags, then those of our rules.
    pub tags: Vec<String>,
    /// Tools a search can find: neither denied nor hidden.
    pub tools: usize,
    /// Tokens that all of its definitions would cost a model up front.
    pub tokens: u64,
    /// The reason why the last survey failed, when it did.
    pub stale: Option<String>,
    /// Unix seconds; `None` for a server that was never surveyed.
    pub surveyed_at: Option<u64>,
    /// The protocol revision it spoke; empty when it was never surveyed.
    pub protocol: String,
    /// The transport that was found, where the configuration does not say it: `sse`.
    pub transport: Option<String>,
    /// It was seen to ask its clients for something where nothing says for which call.
    pub asks_clients: bool,
    /// What it offers besides tools; none: it was never asked.
    pub offer: Option<OfferNote>,
}

/// A note of what a server offers besides tools.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OfferNote {
    /// What it announced.
    pub capabilities: BTreeSet<Capability>,
    /// Of its prompts.
    pub prompts: ListNote,
    /// Of its resources and templates.
    pub resources: ListNote,
}

/// A note of a list.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListNote {
    /// The number of its elements.
    pub count: usize,
    /// Of all its elements in their order; empty of an empty list.
    pub digest: String,
}

impl OfferNote {
    /// Whether the server announced it.
    pub fn has(&self, capability: Capability) -> bool {
        self.capabilities.contains(&capability)
    }

    pub(crate) fn of(offer: &Offer) -> Self {
        let resources = offer.resources.iter().chain(&offer.templates);
        Self {
            capabilities: offer.capabilities.clone(),
            prompts: ListNote::of(offer.prompts.iter()),
            resources: ListNote::of(resources),
        }
    }
}

impl ListNote {
    fn of<'a>(items: impl Iterator<Item = &'a Item>) -> Self {
        let texts: Vec<&str> = items.map(Item::json).collect();
        let digest = Digest::of_bytes(texts.join("\n").as_bytes()).short(DIGEST_DIGITS);
        Self {
            count: texts.len(),
            digest: if texts.is_empty() {
                String::new()
            } else {
                digest
            },
        }
    }
}

/// Of a list's digest: two lists are never the same by chance.
const DIGEST_DIGITS: usize = 16;

impl Catalog {
    /// All tools a search can find.
    pub fn tools(&self) -> usize {
        self.servers.iter().map(|server| server.tools).sum()
    }

    pub(crate) fn new(rules: &Rules, filters: &[AllowDeny], records: &Records) -> Self {
        let servers = rules.servers.iter().zip(filters);
        let servers = servers.map(|(server_rules, filter)| {
            let record = records.servers.get(server_rules.name.as_str());
            CatalogServer::new(server_rules, filter, record)
        });
        Self {
            servers: servers.collect(),
        }
    }
}

impl CatalogServer {
    fn new(server_rules: &ServerRules, filter: &AllowDeny, record: Option<&Record>) -> Self {
        let nothing = Record::default();
        let known = record.unwrap_or(&nothing);
        let is_visible = |name: &&String| {
            !server_rules.hides(name)
                && filter.refuses(&[name]).is_none()
                && known.holds(name, server_rules.pin).is_none()
        };
        Self {
            name: server_rules.name.clone(),
            category: known.category(server_rules),
            tags: known.tags(server_rules),
            tools: known.tools.iter().filter(is_visible).count(),
            tokens: known.tokens,
            stale: known.stale.clone(),
            surveyed_at: record
                .filter(|known| known.snapshot.is_some())
                .map(|known| known.surveyed_at),
            protocol: known.protocol.clone(),
            transport: known.transport.clone(),
            asks_clients: known.asks_clients,
            offer: known.offer.clone(),
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
    /// Tools whose definition a survey found altered and that nobody has read since.
    pub(crate) changed: Vec<String>,
    /// The times of those surveys, in unix seconds; without one, the last survey's counts.
    #[serde(default)]
    pub(crate) changed_at: BTreeMap<String, u64>,
    pub(crate) tokens: u64,
    pub(crate) stale: Option<String>,
    pub(crate) surveyed_at: u64,
    pub(crate) protocol: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) transport: Option<String>,
    #[serde(default, skip_serializing_if = "is_false")]
    pub(crate) asks_clients: bool,
    /// The category by our rules; the configuration wins over it.
    pub(crate) category: Option<String>,
    pub(crate) tags: Vec<String>,
    #[serde(default)]
    pub(crate) aliases: Vec<String>,
    /// Its tools have categories of their own.
    #[serde(default)]
    pub(crate) mixed: bool,
    /// None where an earlier version wrote it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) pins: Option<Pins>,
    /// None where an earlier version asked for tools alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) offer: Option<OfferNote>,
}

impl Record {
    /// Whether a tool is kept out until somebody has accepted it.
    pub(crate) fn holds(&self, tool: &str, pin: Pin) -> Option<HeldBy> {
        self.pins.as_ref()?.holds(tool, pin)
    }

    /// What a tool claimed when it was accepted, where it is another by now and pins are kept.
    pub(crate) fn accepted_claims(&self, tool: &str, pin: Pin) -> Option<Annotations> {
        let pins = self.pins.as_ref().filter(|_| pin != Pin::Off)?;
        let before = Tool::parse(pins.definition_before(tool)?).ok()?;
        Some(before.annotations())
    }

    pub(crate) fn category(&self, server_rules: &ServerRules) -> String {
        let said = server_rules.category.as_ref().or(self.category.as_ref());
        said.cloned().unwrap_or_else(|| "utility".to_owned())
    }

    /// The configuration's category, else the tool's own where its server does many things, else
    /// the server's.
    pub(crate) fn category_of(&self, server_rules: &ServerRules, tool: &Tool) -> String {
        let own = || categories::of_tool(tool).map(str::to_owned);
        let own = (self.mixed && server_rules.category.is_none()).then(own);
        own.flatten().unwrap_or_else(|| self.category(server_rules))
    }

    /// The time at which a tool was found altered that nobody has read since.
    pub(crate) fn change_of(&self, tool: &str) -> Option<u64> {
        let at = || self.changed_at.get(tool).copied();
        let is_changed = self.changed.iter().any(|name| name == tool);
        is_changed.then(|| at().unwrap_or(self.surveyed_at))
    }

    /// Marks the tools that this survey found altered, and keeps the marks of the others: a
    /// second survey does not make them known. Marks of gone and long altered tools go.
    pub(crate) fn keep_changes(&mut self, before: &Self, altered: &[String]) {
        let now = self.surveyed_at;
        for tool in &self.tools {
            let at = if altered.contains(tool) {
                Some(now)
            } else {
                let at = before.change_of(tool);
                at.filter(|at| now.saturating_sub(*at) < CHANGE_KEPT_S)
            };
            if let Some(at) = at {
                self.changed.push(tool.clone());
                self.changed_at.insert(tool.clone(), at);
            }
        }
    }

    /// Takes the mark away of a tool that was read as it was altered then; whether it had one.
    pub(crate) fn forget_change(&mut self, tool: &str, at: u64) -> bool {
        let is_it = self.change_of(tool) == Some(at);
        if is_it {
            self.changed.retain(|name| name != tool);
            self.changed_at.remove(tool);
        }
        is_it
    }

    pub(crate) fn guess(&mut self, guess: Guess) {
        self.category = Some(guess.category);
        self.tags = guess.tags;
        self.aliases = guess.aliases;
        self.mixed = guess.mixed;
    }

    pub(crate) fn tags(&self, server_rules: &ServerRules) -> Vec<String> {
        let mut tags = server_rules.tags.clone();
        let more = self
            .tags
            .iter()
            .filter(|tag| !server_rules.tags.contains(tag));
        tags.extend(more.cloned());
        tags
    }
}

impl Records {
    /// The records on disk; put together from the snapshots where the file is damaged.
    pub(crate) fn read(disk: &Disk) -> Self {
        let Ok(bytes) = disk.read(CATALOG) else {
            return Self::default();
        };
        match serde_json::from_slice::<Self>(&bytes) {
            Ok(mut records) if records.format == FORMAT => {
                for record in records.servers.values_mut() {
                    part_transport(&mut record.protocol, &mut record.transport);
                }
                records
            }
            _ => Self::salvage_all(disk),
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
    fn salvage_all(disk: &Disk) -> Self {
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
        transport: kept.head.transport.clone(),
        asks_clients: kept.head.asks_clients,
        tools: kept
            .tools
            .iter()
            .map(|tool| tool.name().to_owned())
            .collect(),
        stale: Some("the catalog was damaged; this is the newest snapshot found".to_owned()),
        offer: kept
            .head
            .capabilities
            .is_some()
            .then(|| OfferNote::of(&kept.offer)),
        ..Record::default()
    };
    record.guess(Guess::new(names, &kept.tools));
    Some(record)
}

pub(crate) const CATALOG: &str = "catalog.json";
