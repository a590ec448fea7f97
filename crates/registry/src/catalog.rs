//! The file that lists all servers and their snapshots: the only file that a commit replaces.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use serde::{Deserialize, Serialize};
use tool::{Capability, Digest, Offer, OfferItem, ServerName, Tool};

use crate::allow_deny::AllowDeny;
use crate::categories;
use crate::disk::Disk;
use crate::known_servers::ServerNames;
use crate::limits::{CHANGE_KEPT_S, FORMAT};
use crate::pins::{LegacyPins, Pin, Pins, Presented, Subject};
use crate::server_rules::{Rules, ServerRules};
use crate::snapshot::{SnapshotContent, SnapshotHead, SurveyFailure, part_transport, split_name};
use crate::text_map::TextMap;

/// A summary of every configured server, read without opening a snapshot.
#[derive(Debug, Clone, Default)]
pub struct ServerCatalog {
    /// In the configuration's order.
    pub servers: Vec<CatalogServer>,
}

/// One server of the [`ServerCatalog`].
#[derive(Debug, Clone)]
pub struct CatalogServer {
    /// The server's key in the configuration.
    pub name: ServerName,
    /// The server's category: from the configuration, or else from the built-in rules.
    pub category: String,
    /// The tags from the configuration, then those from the built-in rules.
    pub tags: Vec<String>,
    /// The number of tools that a search can find: neither denied nor hidden.
    pub tools: usize,
    /// The number of tokens that all definitions of the server would cost a model.
    pub tokens: u64,
    /// The reason why the last survey failed, if it failed.
    pub stale: Option<SurveyFailure>,
    /// The time of the last survey in Unix seconds; `None` if the server was never surveyed.
    pub surveyed_at: Option<u64>,
    /// The negotiated protocol revision; empty if the server was never surveyed.
    pub protocol: String,
    /// The detected transport, if the configuration does not set it: `sse`.
    pub transport: Option<String>,
    /// The calls during which the server asked questions that name no call, such as `tools/call NAME`.
    pub asking_calls: Vec<String>,
    /// The server's prompts, resources and templates; `None` if they were never listed.
    pub offer: Option<OfferNote>,
}

/// A summary of a server's prompts, resources and templates.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OfferNote {
    /// The capabilities that the server announced.
    pub capabilities: BTreeSet<Capability>,
    /// A summary of its prompts.
    pub prompts: ListNote,
    /// A summary of its resources, templates and skills.
    pub resources: ListNote,
}

/// A summary of a list.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListNote {
    /// The number of elements in the list.
    pub count: usize,
    /// The digest of the elements in order; empty for an empty list.
    pub digest: String,
}

impl OfferNote {
    /// Returns true if the server announced the capability.
    pub fn has(&self, capability: Capability) -> bool {
        self.capabilities.contains(&capability)
    }

    pub(crate) fn of(offer: &Offer) -> Self {
        let resources = offer.resources.iter().chain(&offer.templates);
        let resources = resources.chain(&offer.skills).chain(&offer.apps);
        Self {
            capabilities: offer.capabilities.clone(),
            prompts: ListNote::of(offer.prompts.iter()),
            resources: ListNote::of(resources),
        }
    }
}

impl ListNote {
    fn of<'a>(items: impl Iterator<Item = &'a OfferItem>) -> Self {
        let texts: Vec<&str> = items.map(OfferItem::json).collect();
        let digest = || Digest::of_bytes(texts.join("\n").as_bytes()).short(DIGEST_DIGITS);
        Self {
            count: texts.len(),
            digest: (!texts.is_empty()).then(digest).unwrap_or_default(),
        }
    }
}

/// The number of digits in a list's digest. The digest signals a change of a list to clients; no
/// security check relies on it.
const DIGEST_DIGITS: usize = 16;

impl ServerCatalog {
    /// Returns the number of tools that a search can find on all servers.
    pub fn tools(&self) -> usize {
        self.servers.iter().map(|server| server.tools).sum()
    }

    pub(crate) fn new<'p>(
        rules: &Rules,
        filters: &[AllowDeny],
        records: &Records,
        pins_of: impl Fn(&str) -> &'p Pins,
    ) -> Self {
        let nothing = Record::default();
        let servers = rules.servers.iter().zip(filters);
        let servers = servers.map(|(server_rules, filter)| {
            let name = server_rules.name.as_str();
            let record = records.servers.get(name).unwrap_or(&nothing);
            CatalogServer::new(server_rules, filter, record, pins_of(name))
        });
        Self {
            servers: servers.collect(),
        }
    }
}

impl CatalogServer {
    fn new(server_rules: &ServerRules, filter: &AllowDeny, known: &Record, pins: &Pins) -> Self {
        // Read at every start, for every tool.
        let holds_nothing = pins.holds_nothing(server_rules.pin);
        let is_visible = |name: &&String| {
            let overlay = server_rules.overlays.get(*name);
            overlay.is_none_or(|it| !it.hidden)
                && !known.for_apps.contains(*name)
                && filter.refuses(&[name]).is_none()
                && (holds_nothing || !known.holds(name, pins, server_rules.pin))
        };
        Self {
            name: server_rules.name.clone(),
            category: known.category(server_rules),
            tags: known.tags(server_rules),
            tools: known.tools.iter().filter(is_visible).count(),
            tokens: known.tokens,
            stale: known.stale.clone(),
            surveyed_at: known.snapshot.as_ref().map(|_| known.surveyed_at),
            protocol: known.protocol.clone(),
            transport: known.transport.clone(),
            asking_calls: known.asking_calls.clone(),
            offer: known.offer_note(pins, server_rules.pin),
        }
    }
}

/// The content of `catalog.json`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Records {
    format: u32,
    pub(crate) servers: BTreeMap<String, Record>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Record {
    /// The name of the file in `snapshots/`; `None` if no survey ever succeeded.
    pub(crate) snapshot: Option<String>,
    pub(crate) tools: Vec<String>,
    /// The tools whose definition a survey found changed and that were not read since.
    pub(crate) changed: Vec<String>,
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub(crate) for_apps: BTreeSet<String>,
    /// The times of those surveys in Unix seconds; a tool without an entry has the time of the last
    /// survey.
    #[serde(default)]
    pub(crate) changed_at: BTreeMap<String, u64>,
    pub(crate) tokens: u64,
    pub(crate) stale: Option<SurveyFailure>,
    pub(crate) surveyed_at: u64,
    /// The time of the last request for the lists, in milliseconds since 1970.
    #[serde(default)]
    pub(crate) asked_ms: u64,
    pub(crate) protocol: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) transport: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) asking_calls: Vec<String>,
    /// The category from the built-in rules; the configuration overrides it.
    pub(crate) category: Option<String>,
    pub(crate) tags: Vec<String>,
    /// Other common names of the server.
    #[serde(default)]
    pub(crate) aliases: Vec<String>,
    /// True if each tool of the server has its own category.
    #[serde(default)]
    pub(crate) mixed: bool,
    /// The full digest of each tool; `None` if a version before `pins.json` wrote the record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) digests: Option<TextMap>,
    /// The pins in the format of that earlier version.
    #[serde(default, skip_serializing, rename = "pins")]
    pub(crate) legacy_pins: Option<LegacyPins>,
    /// `None` if the record was written by an earlier version, which listed only tools.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) offer: Option<OfferNote>,
}

impl Record {
    /// Makes the record of a server with this snapshot, without its cost and its time.
    pub(crate) fn new(
        file_name: String,
        names: ServerNames,
        head: &SnapshotHead,
        (tools, offer): (&[Tool], &Offer),
    ) -> Self {
        let mut record = Self {
            snapshot: Some(file_name),
            tools: tools.iter().map(|tool| tool.name().to_owned()).collect(),
            protocol: head.protocol.clone(),
            transport: head.transport.clone(),
            asking_calls: head.asking_calls.clone(),
            offer: head.capabilities.as_ref().map(|_| OfferNote::of(offer)),
            ..Self::default()
        };
        record.note_digests(tools);
        record.guess(names, tools);
        record
    }

    /// Returns true if no definition of a tool is shown until a user accepts it.
    fn holds(&self, tool: &str, pins: &Pins, pin: Pin) -> bool {
        let digest = self.digests.as_ref().and_then(|all| all.get(tool));
        let subject = Subject::Tool(tool.to_owned());
        let presented = pins.present(&subject, digest.unwrap_or_default(), pin);
        matches!(presented, Presented::Nothing(_))
    }

    pub(crate) fn note_digests(&mut self, tools: &[Tool]) {
        let digests = tools
            .iter()
            .map(|tool| (tool.name().to_owned(), tool.digest().to_string()));
        self.digests = Some(digests.collect());
        let for_apps = tools.iter().filter(|tool| !tool.is_for_models());
        self.for_apps = for_apps.map(|tool| tool.name().to_owned()).collect();
    }

    /// Reads the snapshot; returns `None` if the file is missing or damaged.
    pub(crate) fn read_snapshot(&self, disk: &Disk) -> Option<SnapshotContent> {
        SnapshotContent::load(disk, self.snapshot.as_deref()?).ok()
    }

    /// Returns the summary of the lists as clients see them; its digests also change with every
    /// decision.
    pub(crate) fn offer_note(&self, pins: &Pins, pin: Pin) -> Option<OfferNote> {
        let mut note = self.offer.clone()?;
        let state = pins.list_state(pin);
        for list in [&mut note.prompts, &mut note.resources] {
            if !list.digest.is_empty() {
                let both = format!("{} {state}", list.digest);
                list.digest = Digest::of_bytes(both.as_bytes()).short(DIGEST_DIGITS);
            }
        }
        Some(note)
    }

    pub(crate) fn category(&self, server_rules: &ServerRules) -> String {
        let said = server_rules.category.as_ref().or(self.category.as_ref());
        said.cloned().unwrap_or_else(|| "utility".to_owned())
    }

    /// Returns the category from the configuration, else the tool's own category if the server is
    /// mixed, else the server's category.
    pub(crate) fn category_of(&self, server_rules: &ServerRules, tool: &Tool) -> String {
        let own = || categories::of_tool(tool).map(str::to_owned);
        let own = (self.mixed && server_rules.category.is_none()).then(own);
        own.flatten().unwrap_or_else(|| self.category(server_rules))
    }

    /// Returns the time of the survey that found the tool changed, if the tool was not read since.
    pub(crate) fn change_of(&self, tool: &str) -> Option<u64> {
        let at = || self.changed_at.get(tool).copied();
        let is_changed = self.changed.iter().any(|name| name == tool);
        is_changed.then(|| at().unwrap_or(self.surveyed_at))
    }

    /// Marks the tools that this survey found changed, and keeps existing marks, since a survey
    /// does not count as reading a tool. Drops the marks of removed tools and of old changes.
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

    /// Removes the mark of a tool if its change has this time. Returns true if a mark was removed.
    pub(crate) fn forget_change(&mut self, tool: &str, at: u64) -> bool {
        let is_it = self.change_of(tool) == Some(at);
        if is_it {
            self.changed.retain(|name| name != tool);
            self.changed_at.remove(tool);
        }
        is_it
    }

    pub(crate) fn tags(&self, server_rules: &ServerRules) -> Vec<String> {
        let own = &server_rules.tags;
        let more = self.tags.iter().filter(|tag| !own.contains(tag));
        own.iter().chain(more).cloned().collect()
    }
}

impl Records {
    /// Reads the records from disk, or rebuilds them from the snapshots if the file is damaged.
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

    /// Returns the names of tools that other servers have, and this one has not.
    pub(crate) fn names_of_others(&self, server: &str) -> HashSet<&str> {
        let own = self.servers.get(server).into_iter();
        let own = own.flat_map(|record| record.tools.iter().map(String::as_str));
        self.names_besides(server, own)
    }

    /// Returns the names of tools that servers other than `server` have, without its `own`.
    pub(crate) fn names_besides<'t>(
        &self,
        server: &str,
        own: impl Iterator<Item = &'t str>,
    ) -> HashSet<&str> {
        let own: HashSet<String> = own.map(tool::fold).collect();
        let others = self.servers.iter().filter(|(other, _)| *other != server);
        let names = others.flat_map(|(_, record)| record.tools.iter().map(String::as_str));
        names
            .filter(|name| !own.contains(&tool::fold(name)))
            .collect()
    }

    /// Returns the names of the snapshot files in this catalog.
    pub(crate) fn files(&self) -> impl Iterator<Item = &str> {
        let records = self.servers.values();
        records.filter_map(|record| record.snapshot.as_deref())
    }

    /// Rebuilds the records from the newest valid snapshot of each server.
    fn salvage_all(disk: &Disk) -> Self {
        if disk.is_newly_damaged(CATALOG) {
            tracing::warn!("the catalog is damaged, taking each server's newest snapshot");
        }
        let mut records = Self::default();
        for path in disk.snapshots() {
            let file_name = path.rsplit('/').next().unwrap_or_default();
            if let Some((server, _)) = split_name(file_name)
                && !records.servers.contains_key(server)
                && let Some(record) = salvage(disk, server, file_name)
            {
                records.servers.insert(server.to_owned(), record);
            }
        }
        records
    }
}

fn salvage(disk: &Disk, server: &str, file_name: &str) -> Option<Record> {
    let kept = SnapshotContent::load(disk, file_name).ok()?;
    let names = [server, "", &kept.head.server_name];
    let lists = (kept.tools.as_slice(), &kept.offer);
    let why = "the catalog was damaged; this is the newest snapshot found";
    Some(Record {
        stale: Some(SurveyFailure::new(why)),
        ..Record::new(file_name.to_owned(), names, &kept.head, lists)
    })
}

pub(crate) const CATALOG: &str = "catalog.json";
