//! Reviews: definitions that differ from the accepted ones.

use std::{
    cell::LazyCell,
    collections::{BTreeMap, HashSet},
};

use serde_json::{Value, json};
use tool::{Digest, ServerName};

use crate::{
    RegistryError,
    catalog::{Record, Records},
    limits::RESOURCES_REVIEWED_MAX,
    pin_book::{PinBook, PinTrouble},
    pins::{Definition, Pin, Standing, Subject},
    registry::Registry,
    snapshot::SnapshotContent,
    steering::find_signs,
};

/// A definition that nobody has accepted in its current form.
#[derive(Debug, Clone)]
pub struct Review {
    /// The definition to decide on, as it is now.
    pub shown: ShownDefinition,
    /// The accepted definition, if it is known.
    pub before: Option<String>,
    /// The current definition.
    pub now: String,
    /// True if another definition was accepted under its name; false for a new definition.
    pub is_changed: bool,
    /// The current definition was refused.
    pub is_refused: bool,
    /// The parts that may be intended to steer a model.
    pub signs: Vec<String>,
}

/// A definition of a server that was shown to a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShownDefinition {
    /// The server that has it.
    pub server: ServerName,
    /// The tool, prompt or other text.
    pub subject: Subject,
    /// The full digest, 64 hexadecimal digits.
    pub digest: String,
}

impl ShownDefinition {
    /// `SERVER/TOOL`; of anything else `SERVER prompt NAME`, `SERVER instructions` and the like.
    pub fn name(&self) -> String {
        let server = &self.server;
        match &self.subject {
            Subject::Tool(tool) => format!("{server}/{tool}"),
            other => format!("{server} {other}"),
        }
    }
}

/// Returns one digest for a list of definitions: of each its server, its subject and its digest.
pub fn digest_of_definitions<'s>(list: impl IntoIterator<Item = [&'s str; 3]>) -> String {
    let rows: Vec<[&str; 3]> = list.into_iter().collect();
    Digest::of_bytes(json!(rows).to_string().as_bytes()).to_string()
}

/// The definitions that wait for a review.
#[derive(Debug, Default)]
pub struct Reviews {
    /// The reviews, sorted by server name.
    pub list: Vec<Review>,
    /// The number of waiting resources beyond the limit of the list.
    pub more: usize,
}

/// The reason why a decision failed.
#[derive(Debug, thiserror::Error)]
pub enum DecideError {
    /// These definitions changed after they were shown, or were removed.
    #[error("changed since it was shown: {}", .0.join(", "))]
    Changed(Vec<String>),
    /// Decisions cannot be written.
    #[error("{0}")]
    Pins(PinTrouble),
    /// The registry folder could not be written.
    #[error(transparent)]
    Registry(#[from] RegistryError),
}

impl Registry {
    /// The definitions that differ from the accepted ones, of one server or of all. Servers that are not
    /// configured or not pinned are left out, and so are new resources of servers with `pin = "warn"`,
    /// which change all the time.
    pub fn list_reviews(&self, server: Option<&ServerName>) -> Reviews {
        let (records, book) = Records::read_with_pins(self.disk());
        let wanted = |name: &&String| server.is_none_or(|server| server.as_str() == *name);
        let mut reviews = Reviews::default();
        for name in records.servers.keys().filter(wanted) {
            if let Some(pin) = pin_of(self, name) {
                reviews.add(self, (&records, &book), name, pin);
            }
        }
        reviews
    }

    /// The reason why nothing counts as accepted, if the pins were lost or cannot be read and a definition
    /// waits for a decision.
    pub fn pin_trouble(&self) -> Option<PinTrouble> {
        let trouble = self.book().trouble().cloned()?;
        if matches!(trouble, PinTrouble::Replaced(_)) {
            let (records, book) = Records::read_with_pins(self.disk());
            if self.waits_for_nothing(&records, &book) {
                return None;
            }
        }
        Some(trouble)
    }

    /// The parts of the current definitions that may be intended to steer a model.
    pub fn list_signs(&self) -> Vec<(ShownDefinition, Vec<String>)> {
        let (records, _) = Records::read_with_pins(self.disk());
        let mut found = Vec::new();
        for (name, record) in &records.servers {
            let others = names_of_others(&records, name);
            let kept = record.read_snapshot(self.disk());
            let Some((server, kept)) = name.parse::<ServerName>().ok().zip(kept) else {
                continue;
            };
            for it in kept.definitions() {
                let signs = signs_of(&it, &others);
                if !signs.is_empty() {
                    let shown = ShownDefinition {
                        server: server.clone(),
                        subject: it.subject,
                        digest: it.digest,
                    };
                    found.push((shown, signs));
                }
            }
        }
        found
    }

    /// Accepts or refuses definitions exactly as they were shown: if one of them is something else by
    /// now, nothing is decided. Durable when it returns; waits for another writer's turn.
    pub fn decide(&self, shown: &[ShownDefinition], is_accepted: bool) -> Result<(), DecideError> {
        let disk = self.disk();
        let _turn = disk.take_turn().map_err(RegistryError::from)?;
        let (records, mut book) = Records::read_with_pins(disk);
        if let Some(trouble) = book.trouble().filter(|it| !it.is_writable()) {
            return Err(DecideError::Pins(trouble.clone()));
        }
        let now = Current::read(self, &records, shown);
        let changed = shown.iter().filter(|it| !now.has(it));
        let changed: Vec<String> = changed.map(ShownDefinition::name).collect();
        if !changed.is_empty() {
            return Err(DecideError::Changed(changed));
        }
        for it in shown {
            let mut pins = book.of(it.server.as_str()).clone();
            pins.decide(&it.subject, &it.digest, is_accepted);
            book.set(it.server.as_str(), pins);
        }
        if self.waits_for_nothing(&records, &book) {
            book.end_trouble();
        }
        let written = book.write_with(disk, &records);
        Ok(written.map_err(RegistryError::from)?)
    }

    fn waits_for_nothing(&self, records: &Records, book: &PinBook) -> bool {
        let mut reviews = Reviews::default();
        if book.trouble().is_some() {
            for name in records.servers.keys() {
                // A user cannot decide on an item that `list_reviews` never shows.
                if let Some(pin) = pin_of(self, name) {
                    reviews.add(self, (records, book), name, pin);
                }
            }
        }
        reviews.more == 0 && reviews.list.iter().all(|it| it.is_refused)
    }
}

/// The definitions of some servers as they are now.
struct Current(BTreeMap<String, SnapshotContent>);

impl Current {
    fn read(registry: &Registry, records: &Records, shown: &[ShownDefinition]) -> Self {
        let mut servers = BTreeMap::new();
        for name in shown.iter().map(|it| it.server.as_str()) {
            let record = records.servers.get(name);
            if !servers.contains_key(name)
                && let Some(kept) = record.and_then(|it| it.read_snapshot(registry.disk()))
            {
                servers.insert(name.to_owned(), kept);
            }
        }
        Self(servers)
    }

    fn has(&self, shown: &ShownDefinition) -> bool {
        let kept = self.0.get(shown.server.as_str());
        let all = kept.map(SnapshotContent::definitions).unwrap_or_default();
        all.iter()
            .any(|it| it.subject == shown.subject && it.digest == shown.digest)
    }
}

impl Reviews {
    fn add(
        &mut self,
        registry: &Registry,
        (records, book): (&Records, &PinBook),
        name: &str,
        pin: Pin,
    ) {
        let kept = records.servers[name].read_snapshot(registry.disk());
        let (Some(kept), Ok(server)) = (kept, name.parse::<ServerName>()) else {
            return;
        };
        let pins = book.of(name);
        // Most servers have nothing to review.
        let others = LazyCell::new(|| names_of_others(records, name));
        let mut resources = 0;
        for it in kept.definitions() {
            let standing = pins.standing(&it.subject, &it.digest);
            let is_known = pins.knows(&it.subject);
            let is_resource = matches!(it.subject, Subject::Resource(_));
            let is_refused = standing == Standing::Refused;
            let is_quiet = is_resource && !is_known && !is_refused && pin == Pin::Warn;
            if standing == Standing::Accepted || is_quiet {
                continue;
            }
            resources += usize::from(is_resource);
            if resources > RESOURCES_REVIEWED_MAX && is_resource {
                self.more += 1;
                continue;
            }
            self.list.push(Review {
                before: pins.definition_before(&it.subject).cloned(),
                now: it.text.to_owned(),
                is_changed: is_known,
                is_refused,
                signs: signs_of(&it, &others),
                shown: ShownDefinition {
                    server: server.clone(),
                    subject: it.subject,
                    digest: it.digest,
                },
            });
        }
    }
}

/// Returns the treatment of a server's unaccepted definitions; `None` if it is not configured or not
/// pinned.
fn pin_of(registry: &Registry, server: &str) -> Option<Pin> {
    let pin = registry.rules_of(server)?.pin;
    (pin != Pin::Off).then_some(pin)
}

fn signs_of(definition: &Definition<'_>, others: &HashSet<&str>) -> Vec<String> {
    let value = match definition.subject {
        Subject::Instructions => Value::from(definition.text),
        _ => serde_json::from_str(definition.text).unwrap_or_default(),
    };
    find_signs(&value, others)
}

/// Returns the names of tools that other servers have, and this one has not.
pub(crate) fn names_of_others<'r>(records: &'r Records, name: &str) -> HashSet<&'r str> {
    let others = records.servers.iter().filter(|(other, _)| *other != name);
    let names = others.flat_map(|(_, record)| record.tools.iter().map(String::as_str));
    let own = records.servers.get(name).map(names_of).unwrap_or_default();
    names
        .filter(|name| !own.contains(&tool::fold(name)))
        .collect()
}

fn names_of(record: &Record) -> HashSet<String> {
    record.tools.iter().map(|name| tool::fold(name)).collect()
}
