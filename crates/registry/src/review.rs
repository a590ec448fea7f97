//! Reviews: definitions that differ from the accepted ones.

use std::{cell::LazyCell, collections::BTreeSet};

use serde_json::json;
use tool::{Digest, ServerName};

use crate::{
    RegistryError,
    catalog::Records,
    limits::RESOURCES_REVIEWED_MAX,
    pin_book::{PinBook, PinTrouble},
    pins::{Definition, Pin, Presented, Standing, Subject},
    registry::Registry,
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
    /// True if models do not get the current definition until it is accepted.
    pub is_held: bool,
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
    fn of(server: &ServerName, definition: Definition<'_>) -> Self {
        Self {
            server: server.clone(),
            subject: definition.subject,
            digest: definition.digest,
        }
    }

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
    /// which change all the time, unless they are held for a sign.
    pub fn list_reviews(&self, server: Option<&ServerName>) -> Reviews {
        let (records, book) = Records::read_with_pins(self.disk());
        Reviews::collect(self, (&records, &book), server)
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
            let others = records.names_of_others(name);
            let kept = record.read_snapshot(self.disk());
            let Some((server, kept)) = name.parse::<ServerName>().ok().zip(kept) else {
                continue;
            };
            for it in kept.definitions() {
                let signs = it.signs(&others);
                if !signs.is_empty() {
                    found.push((ShownDefinition::of(&server, it), signs));
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
        let now = list_current(self, &records, shown);
        let changed = shown.iter().filter(|it| !now.contains(it));
        let changed: Vec<String> = changed.map(ShownDefinition::name).collect();
        if !changed.is_empty() {
            return Err(DecideError::Changed(changed));
        }
        for it in shown {
            let mut pins = book.of(it.server.as_str()).clone();
            pins.decide(&it.subject, &it.digest, is_accepted);
            book.set(it.server.as_str(), pins);
        }
        if book.trouble().is_some() && self.waits_for_nothing(&records, &book) {
            book.end_trouble();
        }
        let written = book.write_with(disk, &records);
        Ok(written.map_err(RegistryError::from)?)
    }

    /// Returns true if everything that `list_reviews` shows was refused: a user cannot decide on anything else.
    fn waits_for_nothing(&self, records: &Records, book: &PinBook) -> bool {
        let reviews = Reviews::collect(self, (records, book), None);
        reviews.more == 0 && reviews.list.iter().all(|it| it.is_refused)
    }
}

/// Returns the definitions of the servers of these, as they are now.
fn list_current(
    registry: &Registry,
    records: &Records,
    shown: &[ShownDefinition],
) -> Vec<ShownDefinition> {
    let servers: BTreeSet<&ServerName> = shown.iter().map(|it| &it.server).collect();
    let mut all = Vec::new();
    for server in servers {
        let record = records.servers.get(server.as_str());
        if let Some(kept) = record.and_then(|it| it.read_snapshot(registry.disk())) {
            let definitions = kept.definitions().into_iter();
            all.extend(definitions.map(|it| ShownDefinition::of(server, it)));
        }
    }
    all
}

impl Reviews {
    fn collect(
        registry: &Registry,
        (records, book): (&Records, &PinBook),
        server: Option<&ServerName>,
    ) -> Self {
        let wanted = |name: &&String| server.is_none_or(|server| server.as_str() == *name);
        let mut reviews = Self::default();
        for name in records.servers.keys().filter(wanted) {
            reviews.add(registry, (records, book), name);
        }
        reviews
    }

    /// Adds those of a server, if it is configured and pinned.
    fn add(&mut self, registry: &Registry, (records, book): (&Records, &PinBook), name: &str) {
        let pin = registry.rules_of(name).map(|it| it.pin);
        let Some(pin) = pin.filter(|pin| *pin != Pin::Off) else {
            return;
        };
        let kept = records.servers[name].read_snapshot(registry.disk());
        let (Some(kept), Ok(server)) = (kept, name.parse::<ServerName>()) else {
            return;
        };
        let pins = book.of(name);
        // Most servers have nothing to review.
        let others = LazyCell::new(|| records.names_of_others(name));
        let mut resources = 0;
        for it in kept.definitions() {
            let standing = pins.standing(&it.subject, &it.digest);
            let is_known = pins.knows(&it.subject);
            let is_resource = matches!(it.subject, Subject::Resource(_));
            let is_refused = standing == Standing::Refused;
            let presented = pins.present(&it.subject, &it.digest, pin);
            let is_quiet = is_resource && !is_known && presented == Presented::Current;
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
                is_held: presented != Presented::Current,
                signs: it.signs(&others),
                shown: ShownDefinition::of(&server, it),
            });
        }
    }
}
