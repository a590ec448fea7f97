//! The lock file of a team: the accepted definitions of every server, and the differences of the
//! present ones from them.

use std::collections::{BTreeMap, HashSet};

use serde::{Deserialize, Serialize};
use serde_json::{Value, value::RawValue};
use tool::{ChangeKind, Digest, ItemKind, OfferItem, ServerName, Tool, compare_definitions};

use crate::{
    catalog::Records,
    pin_book::read_format,
    pins::{Definition, Pin, Standing, Subject},
    registry::Registry,
    server_rules::ServerRules,
    snapshot::{News, SnapshotContent},
    steering::find_signs,
};

/// The format of the file that this version reads and writes.
const FORMAT: u32 = 1;

/// The content of a lock file: of each server its definitions, by subject.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolLock {
    format: u32,
    servers: BTreeMap<String, BTreeMap<String, LockedDefinition>>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct LockedDefinition {
    digest: String,
    /// The text as the server sent it; of instructions a string.
    definition: Box<RawValue>,
}

impl PartialEq for LockedDefinition {
    fn eq(&self, other: &Self) -> bool {
        self.digest == other.digest
    }
}

/// The reason why the text of a lock file cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct LockError(String);

/// The result of [`lock`].
#[derive(Debug)]
pub struct LockOutcome {
    /// The new content.
    pub lock: ToolLock,
    /// Definitions that nobody has accepted in their present form. The accepted form of those that
    /// changed is in the lock.
    pub waiting: Vec<String>,
    /// Servers whose definitions are unknown.
    pub unknown: Vec<String>,
}

/// One difference from the lock file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LockDifference {
    /// The server.
    pub server: String,
    /// The subject: `tool NAME`, `prompt NAME`, `template URI`, `skill URI` or `instructions`; empty for the whole
    /// server.
    pub subject: String,
    /// The effect; `None` if the server's definitions are unknown.
    pub kind: Option<ChangeKind>,
    /// The difference.
    pub text: String,
    /// The locked text and the present one, where both exist.
    #[serde(skip)]
    pub texts: Option<(String, String)>,
}

impl LockDifference {
    /// Returns `SERVER/TOOL`; for anything else `SERVER prompt NAME` and the like.
    pub fn name(&self) -> String {
        let server = &self.server;
        match self.subject.strip_prefix("tool ") {
            Some(tool) => format!("{server}/{tool}"),
            None => format!("{server} {}", self.subject).trim_end().to_owned(),
        }
    }
}

impl ToolLock {
    /// Parses the text of a lock file, and checks every digest.
    pub fn parse(text: &str) -> Result<Self, LockError> {
        if let Some(newer) = read_format(text.as_bytes()).filter(|format| *format > FORMAT) {
            let read = format!("this version reads format {FORMAT}");
            return Err(LockError(format!("it has format {newer}, and {read}")));
        }
        let lock = serde_json::from_str::<Self>(text);
        let lock = lock.map_err(|error| LockError(format!("it is no lock file: {error}")))?;
        for (server, definitions) in &lock.servers {
            for (subject, locked) in definitions {
                if digest_of(subject, locked.definition.get()) != Some(locked.digest.clone()) {
                    let name = format!("{server} {subject}");
                    let why = format!("the digest of `{name}` does not match its text");
                    return Err(LockError(why));
                }
            }
        }
        Ok(lock)
    }

    /// Returns the text of the file: a line for each definition, so that version control shows each
    /// change by itself.
    pub fn to_text(&self) -> String {
        let json = |text: &str| Value::from(text).to_string();
        let servers = self.servers.iter().map(|(server, definitions)| {
            let lines = definitions.iter().map(|(subject, it)| {
                let (subject, digest) = (json(subject), json(&it.digest));
                format!(
                    "   {subject}:\n    {{\"digest\":{digest},\n     \"definition\":{}}}",
                    it.definition
                )
            });
            let lines = lines.collect::<Vec<_>>().join(",\n");
            format!("  {}: {{\n{lines}\n  }}", json(server))
        });
        let servers = servers.collect::<Vec<_>>().join(",\n");
        format!("{{\"format\": {FORMAT},\n \"servers\": {{\n{servers}\n }}\n}}\n")
    }

    /// Returns the number of servers and of definitions.
    pub fn counts(&self) -> [usize; 2] {
        [
            self.servers.len(),
            self.servers.values().map(BTreeMap::len).sum(),
        ]
    }

    /// Returns the numbers of definitions that this lock adds, changes and removes.
    pub fn differs_from(&self, before: &Self) -> [usize; 3] {
        let (old, new) = (before.digests(), self.digests());
        let added = new.keys().filter(|key| !old.contains_key(*key)).count();
        let removed = old.keys().filter(|key| !new.contains_key(*key)).count();
        let is_changed = |key: &[&str; 2]| old.get(key).is_some_and(|old| *old != new[key]);
        let changed = new.keys().filter(|key| is_changed(key)).count();
        [added, changed, removed]
    }

    /// Returns the digests by server and subject.
    fn digests(&self) -> BTreeMap<[&str; 2], &str> {
        let rows = self.servers.iter().flat_map(|(server, definitions)| {
            let rows = definitions.iter();
            rows.map(|(subject, it)| ([server, subject.as_str()], it.digest.as_str()))
        });
        rows.collect()
    }

    /// Removes the servers that are not configured.
    pub fn retain(&mut self, is_configured: impl Fn(&str) -> bool) {
        self.servers.retain(|name, _| is_configured(name));
    }

    /// Returns the names of the servers.
    pub fn servers(&self) -> impl Iterator<Item = &str> {
        self.servers.keys().map(String::as_str)
    }
}

impl Default for ToolLock {
    fn default() -> Self {
        Self {
            format: FORMAT,
            servers: BTreeMap::new(),
        }
    }
}

/// Computes the digest that a definition of this subject has. `None` if it is none.
fn digest_of(subject: &str, text: &str) -> Option<String> {
    let item = |kind| Some(OfferItem::parse(kind, text).ok()?.digest().to_string());
    match subject.split(' ').next()? {
        "instructions" => {
            let text: String = serde_json::from_str(text).ok()?;
            Some(Digest::of_bytes(text.as_bytes()).to_string())
        }
        "tool" => Some(Tool::parse(text).ok()?.digest().to_string()),
        "prompt" => item(ItemKind::Prompt),
        "template" => item(ItemKind::Template),
        "skill" => item(ItemKind::Skill),
        "app" => item(ItemKind::App),
        _ => None,
    }
}

/// Returns the definitions of a server that a lock file has: not its resources, which come and go, and
/// no tools that the configuration denies.
fn lockable<'s>(rules: &ServerRules, mut all: Vec<Definition<'s>>) -> Vec<Definition<'s>> {
    let filter = rules.compile().ok();
    all.retain(|it| match &it.subject {
        Subject::Resource(_) => false,
        Subject::Tool(name) => !filter.iter().any(|it| it.refuses(&[name]).is_some()),
        _ => true,
    });
    all
}

/// Makes the lock of these servers from their last surveys; other servers keep what `before` has.
pub fn lock(registry: &Registry, before: &ToolLock, servers: &[ServerName]) -> LockOutcome {
    let (records, book) = Records::read_with_pins(registry.disk());
    let mut made = LockOutcome {
        lock: before.clone(),
        waiting: Vec::new(),
        unknown: Vec::new(),
    };
    for server in servers {
        let name = server.as_str();
        let record = records.servers.get(name);
        let content = record.and_then(|it| it.read_snapshot(registry.disk()));
        let Some((content, rules)) = content.zip(registry.rules_of(name)) else {
            made.unknown.push(name.to_owned());
            continue;
        };
        let pins = book.of(name);
        let mut locked = BTreeMap::new();
        for it in lockable(&rules, content.definitions()) {
            let is_accepted = rules.pin == Pin::Off
                || pins.standing(&it.subject, &it.digest) == Standing::Accepted;
            let subject = it.subject.to_string();
            let accepted = if is_accepted {
                Some(it.text.to_owned())
            } else {
                made.waiting.push(format!("{name} {subject}"));
                pins.definition_before(&it.subject).cloned()
            };
            let entry = accepted.and_then(|text| LockedDefinition::new(&it.subject, &text));
            locked.extend(entry.map(|entry| (subject, entry)));
        }
        made.lock.servers.insert(name.to_owned(), locked);
    }
    made
}

impl LockedDefinition {
    fn new(subject: &Subject, text: &str) -> Option<Self> {
        let json = match subject {
            Subject::Instructions => Value::from(text).to_string(),
            // White space outside of strings, such as line ends, does not count.
            _ => tool::minified(text),
        };
        Some(Self {
            digest: digest_of(&subject.to_string(), &json)?,
            definition: RawValue::from_string(json).ok()?,
        })
    }
}

/// Compares servers with the lock: with these surveys, or else with the last ones that were stored.
/// Most urgent first within a server.
pub fn verify(
    registry: &Registry,
    lock: &ToolLock,
    servers: &[String],
    surveys: Option<&[News]>,
) -> Vec<LockDifference> {
    let (records, _) = Records::read_with_pins(registry.disk());
    let mut found = Vec::new();
    for server in servers {
        let Some(rules) = registry.rules_of(server) else {
            let text = "no longer configured, or disabled".to_owned();
            let kind = Some(ChangeKind::Breaking);
            found.push(LockDifference::of(server, "", kind, text));
            continue;
        };
        let record = records.servers.get(server);
        let stored: Option<SnapshotContent>;
        let present = if let Some(surveys) = surveys {
            let news = surveys.iter().find(|it| it.server.as_str() == server);
            match news.map(|it| &it.outcome) {
                Some(Ok(snapshot)) => Ok(snapshot.definitions()),
                Some(Err(failure)) => Err(failure.to_string()),
                None => Err("not asked".to_owned()),
            }
        } else {
            stored = record.and_then(|it| it.read_snapshot(registry.disk()));
            let stale = record.and_then(|it| it.stale.as_ref());
            match (&stored, stale) {
                (_, Some(failure)) => Err(failure.to_string()),
                (Some(content), None) => Ok(content.definitions()),
                (None, None) => Err("it never listed its tools".to_owned()),
            }
        };
        match present {
            Ok(present) => {
                let others = records.names_of_others(server);
                let locked = lock.servers.get(server);
                let present = lockable(&rules, present);
                found.extend(compare(server, locked, &present, &others));
            }
            Err(why) => found.push(LockDifference::of(server, "", None, why)),
        }
    }
    found
}

impl LockDifference {
    fn of(server: &str, subject: &str, kind: Option<ChangeKind>, text: String) -> Self {
        Self {
            server: server.to_owned(),
            subject: subject.to_owned(),
            kind,
            text,
            texts: None,
        }
    }
}

fn compare(
    server: &str,
    locked: Option<&BTreeMap<String, LockedDefinition>>,
    present: &[Definition<'_>],
    others: &HashSet<&str>,
) -> Vec<LockDifference> {
    let nothing = BTreeMap::new();
    let locked = locked.unwrap_or(&nothing);
    let mut found = Vec::new();
    let mut seen = HashSet::new();
    for it in present {
        let subject = it.subject.to_string();
        // Of two definitions of one name only the first can be called.
        if !seen.insert(subject.clone()) {
            continue;
        }
        let before = locked.get(&subject);
        if before.is_some_and(|before| before.digest == it.digest) {
            continue;
        }
        let of = |kind, text| LockDifference::of(server, &subject, Some(kind), text);
        let before = before.map(|it| it.definition.get());
        let changed = |kind, text: &str| LockDifference {
            texts: before.map(|before| (before.to_owned(), it.text.to_owned())),
            ..of(kind, text.to_owned())
        };
        match (before, &it.subject) {
            (None, Subject::Instructions) => found.push(changed(ChangeKind::Wording, "added")),
            (None, _) => found.push(changed(ChangeKind::Additive, "added")),
            (_, Subject::Instructions) => found.push(changed(ChangeKind::Wording, "changed")),
            (Some(before), _) => {
                let all = compare_definitions(before, it.text).into_iter();
                found.extend(all.map(|it| changed(it.kind, &it.text)));
            }
        }
        // A text that seems to steer the model needs a person even if it is an addition.
        let value = |text: &str| serde_json::from_str(text).unwrap_or_else(|_| Value::from(text));
        let known = before.map(|before| find_signs(&value(before), others));
        let known = known.unwrap_or_default();
        let signs = find_signs(&value(it.text), others).into_iter();
        let signs = signs.filter(|sign| !known.contains(sign));
        found.extend(signs.map(|sign| of(ChangeKind::Wording, sign)));
    }
    for subject in locked.keys().filter(|subject| !seen.contains(*subject)) {
        let (kind, text) = (Some(ChangeKind::Breaking), "removed".to_owned());
        found.push(LockDifference::of(server, subject, kind, text));
    }
    found.sort_by_key(|it| std::cmp::Reverse(it.kind));
    found
}
