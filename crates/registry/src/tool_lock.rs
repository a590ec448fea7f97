//! The lock file of a team: the accepted definitions of every server, in the format of an export, and the
//! differences of the present ones from them.

use std::collections::{BTreeMap, HashSet};

use serde::{Deserialize, Serialize};
use serde_json::{Value, value::RawValue};
use tool::{
    ChangeKind, ItemKind, Offer, OfferItem, ServerName, Tool, compare_definitions, minified,
};

use crate::{
    catalog::Records,
    pin_book::read_format,
    pins::{Definition, Pin, Standing, Subject},
    registry::Registry,
    server_rules::ServerRules,
    snapshot::{News, Snapshot, SnapshotContent},
    steering::find_signs,
};

/// The format of the file that this version reads and writes.
const FORMAT: u32 = 2;

/// The content of a lock file: of each server a snapshot of its definitions, as text.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ToolLock {
    servers: BTreeMap<String, String>,
}

#[derive(Deserialize)]
struct LockFile<'a> {
    #[serde(borrow)]
    servers: BTreeMap<String, &'a RawValue>,
}

/// The reason why the text of a lock file cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct LockError(String);

/// The result of [`lock`].
#[derive(Debug, Default)]
pub struct LockOutcome {
    /// The new content.
    pub lock: ToolLock,
    /// Definitions that nobody has accepted in their present form. The accepted form of those that
    /// changed is in the lock.
    pub waiting: Vec<String>,
    /// Servers whose definitions are unknown; they keep what the file had.
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
    /// Parses the text of a lock file.
    pub fn parse(text: &str) -> Result<Self, LockError> {
        let format = read_format(text.as_bytes());
        if let Some(other) = format.filter(|format| *format != FORMAT) {
            let read = format!("this version reads format {FORMAT}");
            return Err(LockError(format!("it has format {other}, and {read}")));
        }
        let refuse = |why: String| LockError(format!("it is no lock file: {why}"));
        let file = serde_json::from_str::<LockFile<'_>>(text);
        let file = file.map_err(|error| refuse(error.to_string()))?;
        let servers = file.servers.into_iter().map(|(server, snapshot)| {
            let snapshot = snapshot.get();
            match SnapshotContent::parse(snapshot.as_bytes()) {
                Ok(_) => Ok((server, snapshot.to_owned())),
                Err(why) => Err(refuse(format!("{server}: {why}"))),
            }
        });
        let servers = servers.collect::<Result<_, _>>()?;
        Ok(Self { servers })
    }

    /// Returns the text of the file: a line for each definition, so that version control shows each
    /// change by itself.
    pub fn to_text(&self) -> String {
        let servers = self.servers.iter();
        let servers = servers.map(|(name, text)| format!("{}: {text}", Value::from(name.as_str())));
        let servers: Vec<String> = servers.collect();
        let servers = servers.join(",\n");
        format!("{{\"format\": {FORMAT}, \"servers\": {{\n{servers}\n}}}}\n")
    }

    /// Returns the names of the servers.
    pub fn servers(&self) -> impl Iterator<Item = &str> {
        self.servers.keys().map(String::as_str)
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

/// Makes the lock of these servers from their last surveys.
pub fn lock(registry: &Registry, before: &ToolLock, servers: &[ServerName]) -> LockOutcome {
    let (records, book) = Records::read_with_pins(registry.disk());
    let mut made = LockOutcome::default();
    for server in servers {
        let name = server.as_str();
        let record = records.servers.get(name);
        let content = record.and_then(|it| it.read_snapshot(registry.disk()));
        let Some((content, rules)) = content.zip(registry.rules_of(name)) else {
            let kept = before.servers.get(name);
            let kept = kept.map(|text| (name.to_owned(), text.clone()));
            made.lock.servers.extend(kept);
            made.unknown.push(name.to_owned());
            continue;
        };
        let pins = book.of(name);
        let mut accepted = Snapshot::empty(server.clone());
        for it in lockable(&rules, content.definitions()) {
            let is_accepted = rules.pin == Pin::Off
                || pins.standing(&it.subject, &it.digest) == Standing::Accepted;
            if is_accepted {
                accepted.add(&it.subject, it.text);
            } else {
                made.waiting.push(format!("{name} {}", it.subject));
                if let Some(text) = pins.definition_before(&it.subject) {
                    accepted.add(&it.subject, text);
                }
            }
        }
        let text = accepted.to_text().trim_end().to_owned();
        made.lock.servers.insert(name.to_owned(), text);
    }
    made
}

impl Snapshot {
    /// Makes a snapshot without definitions, versions and times, which no review is about.
    fn empty(server: ServerName) -> Self {
        Self {
            server,
            tools: Vec::new(),
            offer: Offer::default(),
            server_name: String::new(),
            server_version: String::new(),
            instructions: None,
            protocol: String::new(),
            transport: None,
            asking_calls: Vec::new(),
            tokens: 0,
            surveyed_at: 0,
        }
    }

    fn add(&mut self, subject: &Subject, text: &str) {
        // Version control may change line ends.
        let json = minified(text);
        let item = |kind| OfferItem::parse(kind, &json);
        match subject {
            Subject::Instructions => self.instructions = Some(text.to_owned()),
            Subject::Tool(_) => self.tools.extend(Tool::parse(&json)),
            Subject::Prompt(_) => self.offer.prompts.extend(item(ItemKind::Prompt)),
            Subject::Resource(_) => {}
            Subject::Template(_) => self.offer.templates.extend(item(ItemKind::Template)),
            Subject::Skill(_) => self.offer.skills.extend(item(ItemKind::Skill)),
            Subject::App(_) => self.offer.apps.extend(item(ItemKind::App)),
        }
    }
}

/// Compares these servers, as they answered just now, with the lock. Most urgent first within a server.
pub fn verify(
    registry: &Registry,
    lock: &ToolLock,
    servers: &[String],
    surveys: &[News],
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
        let news = surveys.iter().find(|it| it.server.as_str() == server);
        let snapshot = match news.map(|it| &it.outcome) {
            Some(Ok(snapshot)) => snapshot,
            Some(Err(failure)) => {
                found.push(LockDifference::of(server, "", None, failure.to_string()));
                continue;
            }
            None => {
                found.push(LockDifference::of(server, "", None, "not asked".to_owned()));
                continue;
            }
        };
        let locked = lock.servers.get(server);
        let locked = locked.and_then(|text| SnapshotContent::parse(text.as_bytes()).ok());
        let locked = locked.as_ref().map(SnapshotContent::definitions);
        let present = lockable(&rules, snapshot.definitions());
        let others = records.names_of_others(server);
        found.extend(compare(
            server,
            &locked.unwrap_or_default(),
            &present,
            &others,
        ));
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
    locked: &[Definition<'_>],
    present: &[Definition<'_>],
    others: &HashSet<&str>,
) -> Vec<LockDifference> {
    let locked: BTreeMap<&Subject, &Definition<'_>> =
        locked.iter().map(|it| (&it.subject, it)).collect();
    let mut found = Vec::new();
    let mut seen = HashSet::new();
    for it in present {
        let subject = it.subject.to_string();
        // Of two definitions of one name only the first can be called.
        if !seen.insert(subject.clone()) {
            continue;
        }
        let before = locked.get(&it.subject);
        if before.is_some_and(|before| before.digest == it.digest) {
            continue;
        }
        let of = |kind, text| LockDifference::of(server, &subject, Some(kind), text);
        let before = before.map(|it| it.text);
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
    let subjects = locked.keys().map(ToString::to_string);
    for subject in subjects.filter(|subject| !seen.contains(subject)) {
        let (kind, text) = (Some(ChangeKind::Breaking), "removed".to_owned());
        found.push(LockDifference::of(server, &subject, kind, text));
    }
    found.sort_by_key(|it| std::cmp::Reverse(it.kind));
    found
}
