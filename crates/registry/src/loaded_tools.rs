//! A generation without its index: the tools of every snapshot, divided into visible, hidden and
//! denied tools.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::sync::Arc;

use tool::{
    Annotations, Capability, Digest, ItemKind, Offer, OfferItem, ServerName, Tool, ToolRef,
};

use crate::allow_deny::AllowDeny;
use crate::catalog::{OfferNote, Record, Records};
use crate::disk::Disk;
use crate::entry::Entry;
use crate::guess::rules_digest;
use crate::known_servers;
use crate::limits::SCHEMA_VERSION;
use crate::pin_book::PinBook;
use crate::pins::{HeldBy, Pin, Pins, Presented, Subject, digest_of_instructions};
use crate::requests::{RequestBook, ServerRequests};
use crate::server_rules::{Overlay, Rules, ServerRules};
use crate::snapshot::{SnapshotContent, SurveyFailure};
use crate::words;

/// Everything in a generation except its index.
#[derive(Debug, Default)]
pub(crate) struct LoadedTools {
    pub(crate) visible: Vec<Arc<Entry>>,
    pub(crate) hidden: Vec<Arc<Entry>>,
    pub(crate) denied: Vec<(ToolRef, DeniedBy)>,
    pub(crate) servers: Vec<Arc<KnownServer>>,
    pub(crate) disabled: Vec<ServerName>,
    pub(crate) digests: DocumentDigests,
}

/// The digest of each server's documents in the index.
pub(crate) type DocumentDigests = BTreeMap<String, String>;

/// The reason why a tool is denied.
#[derive(Debug, Clone)]
pub(crate) enum DeniedBy {
    /// A rule, as it appears in the configuration.
    Rule(String),
    /// The tool is blocked until a user accepts it.
    Held(HeldBy),
}

/// A tool of the built-in server `proxy`.
#[derive(Debug, Clone)]
pub struct BuiltIn {
    /// Its definition.
    pub tool: Tool,
    /// The capability that at least one server must announce for the tool to exist.
    pub needs: Option<Capability>,
}

/// Creates a tool that is always available.
impl From<Tool> for BuiltIn {
    fn from(tool: Tool) -> Self {
        Self { tool, needs: None }
    }
}

/// A server according to its snapshot.
#[derive(Debug, Clone)]
pub struct KnownServer {
    /// The server's key in the configuration.
    pub name: ServerName,
    /// The server's category: from the configuration, or else from the built-in rules.
    pub category: String,
    /// The tags from the configuration, then those from the built-in rules.
    pub tags: Vec<String>,
    /// The description from the configuration.
    pub description: Option<String>,
    /// The name from `serverInfo`.
    pub server_name: String,
    /// The version from `serverInfo`.
    pub server_version: String,
    /// Other names of the server: its program, the name that it reports, and those of its recipe.
    pub(crate) other_names: Vec<String>,
    /// Its features and uses, from the configuration, or else from its recipe.
    pub(crate) about: Option<String>,
    /// The negotiated protocol revision; empty if the server was never surveyed.
    pub protocol: String,
    /// The server's instructions to its client.
    pub instructions: Option<String>,
    /// The prompts, resources and templates that are not blocked.
    pub offer: Arc<Offer>,
    /// The prompts, resources, templates and instructions that are blocked until a user accepts
    /// them.
    pub withheld: BTreeMap<Subject, HeldBy>,
    /// True if a definition that nobody has accepted is blocked.
    pub holds_new: bool,
    /// A summary of the lists; `None` if they were never requested.
    pub offer_note: Option<OfferNote>,
    /// The number of tools that a search can find.
    pub tools: usize,
    /// The number of tokens that all definitions of the server would cost a model.
    pub tokens: u64,
    /// The reason why the last survey failed, if it failed.
    pub stale: Option<SurveyFailure>,
    /// The time of the last survey, in Unix seconds.
    pub surveyed_at: Option<u64>,
    /// The reason why the snapshot could not be read; its tools are missing until the next survey.
    pub damaged: Option<String>,
}

/// The data of a server that only searches read.
struct Searched<'a> {
    products: Arc<[BTreeSet<String>]>,
    requests: ServerRequests,
    book: &'a RequestBook,
}

/// The category of the tools of the built-in server.
pub const BUILT_IN_CATEGORY: &str = "utility";

impl LoadedTools {
    /// Reads every snapshot. A server with a damaged file is marked as damaged and has no tools.
    pub(crate) fn read(
        disk: &Disk,
        rules: &Rules,
        filters: &[AllowDeny],
        (records, book, requests): (&Records, &PinBook, &RequestBook),
        built_in: &[BuiltIn],
    ) -> Self {
        let mut loaded = Self {
            disabled: rules.disabled.clone(),
            ..Self::default()
        };
        let nothing = Record::default();
        for (server_rules, filter) in rules.servers.iter().zip(filters) {
            let name = server_rules.name.as_str();
            let record = records.servers.get(name).unwrap_or(&nothing);
            let kept = (book.of(name), Some(requests));
            loaded.add(disk, (server_rules, filter), record, kept);
        }
        loaded.add_built_in(built_in);
        loaded.visible.sort_by(|a, b| a.at.cmp(&b.at));
        loaded
    }

    /// Reads the snapshot of one server, without the data that only searches read: a first call does not
    /// wait for the table of known servers.
    pub(crate) fn read_one(
        disk: &Disk,
        rules: (&ServerRules, &AllowDeny),
        record: &Record,
        pins: &Pins,
    ) -> Self {
        let mut loaded = Self::default();
        loaded.add(disk, rules, record, (pins, None));
        loaded
    }

    /// Returns the tool of this name; of hidden ones too.
    pub(crate) fn find(&self, tool: &str) -> Option<&Arc<Entry>> {
        let mut all = self.visible.iter().chain(&self.hidden);
        all.find(|entry| entry.at.tool == tool)
    }

    fn add(
        &mut self,
        disk: &Disk,
        (server_rules, filter): (&ServerRules, &AllowDeny),
        record: &Record,
        (pins, requests): (&Pins, Option<&RequestBook>),
    ) {
        let file_name = record.snapshot.as_deref();
        let kept = file_name.map(|file_name| SnapshotContent::load(disk, file_name));
        let mut server = KnownServer::new(server_rules, record, pins);
        let kept = kept.transpose().unwrap_or_else(|why| {
            tracing::warn!(server = %server_rules.name, %why, "damaged snapshot");
            server.damaged = Some(why);
            None
        });
        if let Some(SnapshotContent { head, .. }) = &kept {
            server.server_name.clone_from(&head.server_name);
            server.server_version.clone_from(&head.server_version);
            server.protocol.clone_from(&head.protocol);
            server.instructions.clone_from(&head.instructions);
        }
        if requests.is_some() {
            server.know(&server_rules.program);
            server.about = server.description.clone().or(server.about);
        }
        if let Some(kept) = kept {
            server.offer = Arc::new(kept.offer);
            server.withhold(pins, server_rules.pin);
            let (denied, visible) = (self.denied.len(), self.visible.len());
            let searched = requests.map(|book| Searched {
                products: server.product_names(),
                requests: book.of_server(server.names()),
                book,
            });
            let rules = (server_rules, filter);
            let searched = searched.as_ref();
            server.tools = self.sort(rules, record, (pins, searched), kept.tools);
            if searched.is_some() {
                let requests = self.visible[visible..].iter().flat_map(|it| &it.requests);
                let requests: Vec<&str> = requests.map(|it| &**it).collect();
                let held = self.denied[denied..].iter();
                let held = held.filter(|(_, by)| matches!(by, DeniedBy::Held(_)));
                let held = held.map(|(at, _)| &at.tool);
                let accepted = self.visible[visible..]
                    .iter()
                    .filter(|it| it.is_change_held);
                let accepted = accepted.map(|it| &it.at.tool);
                let pinned = [held.collect(), accepted.collect()];
                let digest = digest(server_rules, record, pinned, &requests);
                self.digests.insert(server_rules.name.to_string(), digest);
            }
        }
        self.servers.push(Arc::new(server));
    }

    /// Sorts a server's tools into visible, hidden and denied ones, and returns the number of
    /// visible tools.
    fn sort(
        &mut self,
        (server_rules, filter): (&ServerRules, &AllowDeny),
        record: &Record,
        (pins, searched): (&Pins, Option<&Searched<'_>>),
        tools: Vec<Tool>,
    ) -> usize {
        let before = self.visible.len();
        let tags = record.tags(server_rules);
        for tool in tools {
            let at = ToolRef::new(server_rules.name.clone(), tool.name());
            if let Some(rule) = filter.refuses(&[tool.name()]) {
                let rule = DeniedBy::Rule(rule.in_configuration("tools."));
                self.denied.push((at, rule));
                continue;
            }
            let (tool, other_claims, is_change_held) = match present(tool, pins, server_rules.pin) {
                Ok(presented) => presented,
                Err(held) => {
                    self.denied.push((at, DeniedBy::Held(held)));
                    continue;
                }
            };
            let overlay = server_rules.overlays.get(tool.name()).cloned();
            let overlay = overlay.unwrap_or_default();
            let category = overlay.category.clone();
            let entry = Entry {
                argument_settings: server_rules.argument_settings_of(&overlay, &tool),
                category: category.unwrap_or_else(|| record.category_of(server_rules, &tool)),
                tags: tags.iter().chain(&overlay.tags).cloned().collect(),
                aliases: record.aliases.clone(),
                products: searched.map_or_else(Arc::default, |it| Arc::clone(&it.products)),
                requests: searched
                    .map_or_else(Vec::new, |it| it.book.of_tool(&it.requests, &at, &tool)),
                overlay,
                stale: record.stale.is_some(),
                // A model that reads the accepted definition has not read the change.
                changed: record.change_of(tool.name()).filter(|_| !is_change_held),
                is_change_held,
                other_claims,
                ..Entry::plain(at, tool)
            };
            let place = if entry.overlay.hidden || !entry.tool.is_for_models() {
                &mut self.hidden
            } else {
                &mut self.visible
            };
            place.push(Arc::new(entry));
        }
        self.visible.len() - before
    }

    fn add_built_in(&mut self, built_in: &[BuiltIn]) {
        let has = |needed: Capability| self.servers.iter().any(|it| it.offer.has(needed));
        let is_of_use = |it: &&BuiltIn| it.needs.is_none_or(has);
        let tools = built_in.iter().filter(is_of_use).map(|it| &it.tool);
        let tools: Vec<&Tool> = tools.collect();
        if tools.is_empty() {
            return;
        }
        let server = ServerName::built_in();
        let names: BTreeSet<String> = words::stems(server.as_str()).into_iter().collect();
        let products: Arc<[BTreeSet<String>]> = Arc::from([names]);
        for tool in &tools {
            let at = ToolRef::new(server.clone(), tool.name());
            self.visible.push(Arc::new(Entry {
                category: BUILT_IN_CATEGORY.to_owned(),
                products: Arc::clone(&products),
                ..Entry::plain(at, Tool::clone(tool))
            }));
        }
        let texts: Vec<&str> = tools.iter().map(|tool| tool.json()).collect();
        let digest = Digest::of_bytes(format!("{SCHEMA_VERSION} {texts:?}").as_bytes()).short(16);
        self.digests.insert(server.to_string(), digest);
    }
}

impl KnownServer {
    fn new(server_rules: &ServerRules, record: &Record, pins: &Pins) -> Self {
        Self {
            name: server_rules.name.clone(),
            category: record.category(server_rules),
            tags: record.tags(server_rules),
            description: server_rules.description.clone(),
            server_name: String::new(),
            server_version: String::new(),
            other_names: Vec::new(),
            about: None,
            protocol: String::new(),
            instructions: None,
            offer: Arc::default(),
            withheld: BTreeMap::new(),
            holds_new: false,
            offer_note: record.offer_note(pins, server_rules.pin),
            tools: 0,
            tokens: record.tokens,
            stale: record.stale.clone(),
            surveyed_at: record.snapshot.as_ref().map(|_| record.surveyed_at),
            damaged: None,
        }
    }

    /// Removes everything that a pin or a refusal blocks, and puts the accepted definition in place of
    /// one that is held for a sign.
    fn withhold(&mut self, pins: &Pins, pin: Pin) {
        let mut withheld = BTreeMap::new();
        let mark = format!("[the changed text is held: `proxy review {}`]", self.name);
        let is_told = |text: &&String| !text.trim().is_empty();
        if let Some(text) = self.instructions.as_ref().filter(is_told) {
            let subject = Subject::Instructions;
            match pins.present(&subject, &digest_of_instructions(text), pin) {
                Presented::Current => {}
                Presented::Accepted(text) => self.instructions = Some(format!("{mark} {text}")),
                Presented::Nothing(by) => {
                    self.instructions = None;
                    withheld.insert(subject, by);
                }
            }
        }
        let offer = Arc::make_mut(&mut self.offer);
        for (kind, list) in [
            (ItemKind::Prompt, &mut offer.prompts),
            (ItemKind::Resource, &mut offer.resources),
            (ItemKind::Template, &mut offer.templates),
            (ItemKind::Skill, &mut offer.skills),
            (ItemKind::App, &mut offer.apps),
        ] {
            list.retain_mut(|item| {
                let subject = Subject::of_item(kind, item.id());
                match pins.present(&subject, &item.digest().to_string(), pin) {
                    Presented::Current => true,
                    Presented::Accepted(text) => match OfferItem::parse(kind, text) {
                        Ok(accepted) => {
                            *item = accepted.with_mark(kind, &mark);
                            true
                        }
                        Err(_) => false,
                    },
                    Presented::Nothing(by) => {
                        withheld.insert(subject, by);
                        false
                    }
                }
            });
        }
        self.withheld = withheld;
        self.holds_new = pin == Pin::Hold;
    }

    /// Returns true if the server reports a version older than `least`; false if it reports none, or
    /// one without numbers.
    pub fn is_older_than(&self, least: &str) -> bool {
        let reported = read_version(&self.server_version);
        !reported.is_empty() && reported < read_version(least)
    }

    fn names(&self) -> impl Iterator<Item = &str> {
        let others = self.other_names.iter().map(String::as_str);
        std::iter::once(self.name.as_str()).chain(others)
    }

    /// Returns the stems of the words that tell in each of its names; of a package's the last part.
    fn product_names(&self) -> Arc<[BTreeSet<String>]> {
        let names = self.names().map(|name| {
            let name = name.rsplit('/').next().unwrap_or(name);
            let parts = known_servers::parts(name);
            let stems = parts.iter().flat_map(|it| words::stems(it));
            stems.collect::<BTreeSet<String>>()
        });
        let names: BTreeSet<BTreeSet<String>> = names.collect();
        names.into_iter().filter(|it| !it.is_empty()).collect()
    }

    /// Adds the names and the description from the server's recipe, if it has one.
    fn know(&mut self, program: &str) {
        self.other_names = vec![program.to_owned(), self.server_name.clone()];
        let names = [self.name.as_str(), program, &self.server_name];
        let Some(known) = known_servers::known(names) else {
            return;
        };
        self.other_names.push(known.name.clone());
        let names = known.names.iter().chain(&known.aliases);
        self.other_names.extend(names.cloned());
        let recipe = recipes::recipe_of(known);
        self.about = recipe.map(|it| format!("{} ({})", it.what, it.verbs.join(" ")));
    }
}

/// Returns the definition of a tool that models get, the annotations of the one that they do not get
/// and that rules heed as well, and true if the current definition is held.
fn present(tool: Tool, pins: &Pins, pin: Pin) -> Result<(Tool, Option<Annotations>, bool), HeldBy> {
    let subject = Subject::Tool(tool.name().to_owned());
    // The digest of the text that was read, which may differ from the one in the catalog.
    match pins.present(&subject, &tool.digest().to_string(), pin) {
        Presented::Current => {
            let accepted = pins.accepted_claims(tool.name(), pin);
            Ok((tool, accepted, false))
        }
        Presented::Accepted(text) => {
            let accepted = Tool::parse(text).map_err(|_| HeldBy::Sign)?;
            Ok((accepted, Some(tool.annotations()), true))
        }
        Presented::Nothing(by) => Err(by),
    }
}

/// Returns the numbers of a version, `v1.4.0-beta.2` as 1, 4; final zeros do not count, nor does the
/// text after `-` or `+`.
fn read_version(version: &str) -> Vec<u64> {
    let release = version.trim_start_matches(['v', 'V']);
    let release = release.split(['-', '+', ' ']).next().unwrap_or_default();
    let numbers = release.split('.').map_while(|part| part.parse().ok());
    let mut numbers: Vec<u64> = numbers.collect();
    while numbers.last() == Some(&0) {
        numbers.pop();
    }
    numbers
}

/// Returns a digest that changes if a document of this server changes: with its tools, its
/// configuration, and the indexing rules.
fn digest(
    server_rules: &ServerRules,
    record: &Record,
    [held, accepted]: [Vec<&String>; 2],
    requests: &[&str],
) -> String {
    let ServerRules {
        name,
        program: _,
        description: _,
        category: _,
        tags: _,
        allow,
        deny,
        pin: _,
        overlays,
        arguments,
    } = server_rules;
    let overlays = overlays.iter();
    let overlays = overlays.map(|(tool, overlay)| (tool, overlay_text(overlay)));
    let overlays: Vec<(&String, String)> = overlays.collect();
    let (category, tags) = (record.category(server_rules), record.tags(server_rules));
    let made_of = (
        (SCHEMA_VERSION, rules_digest()),
        (name.as_str(), &record.snapshot, &record.aliases),
        (category, tags, allow, deny, overlays),
    );
    let held = text_of(held.is_empty(), &held);
    let accepted = text_of(accepted.is_empty(), &("accepted", accepted));
    let requests = text_of(requests.is_empty(), &requests);
    let arguments = text_of(arguments.is_empty(), arguments);
    Digest::of_bytes(format!("{made_of:?}{held}{accepted}{requests}{arguments}").as_bytes())
        .short(16)
}

/// Returns the parts of an overlay that are searched or that decide if a tool is searched.
fn overlay_text(overlay: &Overlay) -> String {
    let Overlay {
        title,
        description,
        tags,
        category,
        usage,
        notes,
        example: _,
        min_version: _,
        deprecated: _,
        hidden,
        arguments,
    } = overlay;
    let text = format!("{:?}", (description, tags, category, notes, hidden));
    let added = text_of(title.is_none() && usage.is_none(), &(title, usage));
    text + &added + &text_of(arguments.is_empty(), arguments)
}

/// Returns no text for an empty part, so that a new part leaves the digests of servers without it.
fn text_of(is_empty: bool, part: &impl Debug) -> String {
    if is_empty {
        String::new()
    } else {
        format!("{part:?}")
    }
}
