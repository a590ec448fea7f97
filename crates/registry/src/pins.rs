//! Pins: the accepted definitions of a server, and the changes since they were accepted.

use std::{
    cell::LazyCell,
    collections::{BTreeMap, BTreeSet, HashSet},
    fmt,
};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use tool::{Annotations, Digest, ItemKind, Offer, OfferItem, Tool};

use crate::{
    limits::{ACCEPTED_RESOURCES_MAX, REFUSALS_MAX},
    steering::find_signs,
    text_map::TextMap,
};

/// The treatment of definitions that differ from the accepted ones.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pin {
    /// The definitions are used, and a review lists them; one with a sign that it steers the model is
    /// held, and models get the accepted definition in its place.
    #[default]
    Warn,
    /// The definitions are neither shown nor callable until a user accepts them.
    Hold,
    /// Definitions are not compared.
    Off,
}

impl Pin {
    /// Returns the value in the configuration.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Warn => "warn",
            Self::Hold => "hold",
            Self::Off => "off",
        }
    }
}

/// A part of a server's offer that a model reads and that has its own pin.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Subject {
    /// The server's instructions to its client.
    Instructions,
    /// The tool of this name.
    Tool(String),
    /// The prompt of this name.
    Prompt(String),
    /// The resource of this URI.
    Resource(String),
    /// The resource template of this URI template.
    Template(String),
    /// The skill whose `SKILL.md` has this URI.
    Skill(String),
    /// The app of this URI: the domains and permissions that it needs.
    App(String),
}

/// Formats a subject as `instructions`, `tool NAME`, `prompt NAME`, `resource URI`, `template
/// URI`, `skill URI` or `app URI`. All subjects of a server have different texts.
impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Instructions => f.write_str("instructions"),
            Self::Tool(name) => write!(f, "tool {name}"),
            Self::Prompt(name) => write!(f, "prompt {name}"),
            Self::Resource(uri) => write!(f, "resource {uri}"),
            Self::Template(uri) => write!(f, "template {uri}"),
            Self::Skill(uri) => write!(f, "skill {uri}"),
            Self::App(uri) => write!(f, "app {uri}"),
        }
    }
}

impl Subject {
    pub(crate) fn of_item(kind: ItemKind, id: &str) -> Self {
        match kind {
            ItemKind::Prompt => Self::Prompt(id.to_owned()),
            ItemKind::Resource => Self::Resource(id.to_owned()),
            ItemKind::Template => Self::Template(id.to_owned()),
            ItemKind::Skill => Self::Skill(id.to_owned()),
            ItemKind::App => Self::App(id.to_owned()),
        }
    }

    /// Returns the digest that a definition of this subject has; `None` if the text is none.
    fn digest_of(&self, text: &str) -> Option<String> {
        let item = |kind| Some(OfferItem::parse(kind, text).ok()?.digest().to_string());
        match self {
            Self::Instructions => Some(digest_of_instructions(text)),
            Self::Tool(_) => Some(Tool::parse(text).ok()?.digest().to_string()),
            Self::Prompt(_) => item(ItemKind::Prompt),
            Self::Resource(_) => item(ItemKind::Resource),
            Self::Template(_) => item(ItemKind::Template),
            Self::Skill(_) => item(ItemKind::Skill),
            Self::App(_) => item(ItemKind::App),
        }
    }
}

/// The reason why a definition is blocked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HeldBy {
    /// `pin = "hold"`: the definition is new or differs from the accepted one.
    Pin,
    /// A user refused the definition.
    Refusal,
    /// The definition is new or differs from the accepted one, and has a sign that it steers the model.
    Sign,
}

/// The definition that models get of a subject.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Presented<'p> {
    /// The current one.
    Current,
    /// The accepted one, of this text, because the current one is held for a sign.
    Accepted(&'p str),
    /// None.
    Nothing(HeldBy),
}

/// A current definition.
#[derive(Debug)]
pub(crate) struct Definition<'s> {
    pub(crate) subject: Subject,
    /// The full digest of 64 digits.
    pub(crate) digest: String,
    pub(crate) text: &'s str,
}

impl Definition<'_> {
    /// Returns the signs that the definition steers the model; `others` are the tools of other servers.
    pub(crate) fn signs(&self, others: &HashSet<&str>) -> Vec<String> {
        let value = match self.subject {
            Subject::Instructions => Value::from(self.text),
            _ => serde_json::from_str(self.text).unwrap_or_default(),
        };
        find_signs(&value, others)
    }

    /// Returns the formatted subject and the digest.
    fn pin(&self) -> (String, String) {
        (self.subject.to_string(), self.digest.clone())
    }
}

/// Returns all definitions of a server that have a pin.
pub(crate) fn definitions<'s>(
    tools: &'s [Tool],
    offer: &'s Offer,
    instructions: Option<&'s str>,
) -> Vec<Definition<'s>> {
    let instructions = instructions.filter(|text| !text.trim().is_empty());
    let mut all: Vec<Definition<'s>> = Vec::new();
    all.extend(instructions.map(|text| Definition {
        subject: Subject::Instructions,
        digest: digest_of_instructions(text),
        text,
    }));
    all.extend(tools.iter().map(|tool| Definition {
        subject: Subject::Tool(tool.name().to_owned()),
        digest: tool.digest().to_string(),
        text: tool.json(),
    }));
    for kind in ItemKind::ALL {
        all.extend(offer.list(kind).iter().map(|item| Definition {
            subject: Subject::of_item(kind, item.id()),
            digest: item.digest().to_string(),
            text: item.json(),
        }));
    }
    all
}

pub(crate) fn digest_of_instructions(text: &str) -> String {
    Digest::of_bytes(text.as_bytes()).to_string()
}

/// The review state of a definition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Standing {
    Accepted,
    Waiting,
    Refused,
}

/// The pins of one server. Digests have all 64 digits; the keys of the maps are formatted
/// [`Subject`]s.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Pins {
    accepted: TextMap,
    /// The refused definitions: if a server returns to one of them, it is still refused.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    refused: BTreeMap<String, Vec<String>>,
    /// The accepted definitions of subjects that have changed since.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    before: BTreeMap<String, String>,
    /// The digests of the definitions that were not accepted when they were last compared, and have a
    /// sign that they steer the model; `None` in a file of an earlier version.
    #[serde(skip_serializing_if = "Option::is_none")]
    steering: Option<BTreeMap<String, String>>,
    /// The number of decisions so far, which distinguishes lists before and after a decision.
    decisions: u64,
    /// The time of the last survey or decision, in Unix seconds.
    pub(crate) at: u64,
}

/// The decisions about the definitions of one server, as nodes of a cluster share them. The keys are formatted
/// [`Subject`]s, and digests have 64 digits.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SharedPins {
    /// The accepted definition of each subject.
    pub accepted: BTreeMap<String, String>,
    /// The refused definitions.
    pub refused: BTreeMap<String, Vec<String>>,
}

impl SharedPins {
    /// Adds refusals of this node, which hold against what others accepted.
    fn keep_refusals(&mut self, own: &BTreeMap<String, Vec<String>>) {
        for (subject, digests) in own {
            let refused = self.refused.entry(subject.clone()).or_default();
            let new = digests.iter().filter(|it| !refused.contains(it));
            let new: Vec<String> = new.cloned().collect();
            refused.extend(new);
            let accepted = self.accepted.get(subject);
            if accepted.is_some_and(|it| digests.iter().any(|no| it.starts_with(no.as_str()))) {
                self.accepted.remove(subject);
            }
        }
    }
}

impl Pins {
    /// The decisions that nodes share.
    pub(crate) fn shared(&self) -> SharedPins {
        SharedPins {
            accepted: self.accepted.to_map(),
            refused: self.refused.clone(),
        }
    }

    /// Takes the decisions of other nodes in place of its own. With `keeps_refusals`, definitions that were
    /// refused here stay so. Returns true if a decision changed; then the signs are to be noted again.
    pub(crate) fn adopt(&mut self, shared: &SharedPins, keeps_refusals: bool) -> bool {
        let mut shared = shared.clone();
        if keeps_refusals {
            shared.keep_refusals(&self.refused);
        }
        if shared == self.shared() {
            return false;
        }
        self.accepted = shared.accepted.into();
        self.refused = shared.refused;
        self.decisions += 1;
        true
    }

    /// Accepts all current definitions, at the first survey of a server.
    pub(crate) fn of(now: &[Definition<'_>]) -> Self {
        Self {
            accepted: now.iter().map(Definition::pin).collect(),
            ..Self::default()
        }
    }

    /// Imports the pins that an earlier version stored in the catalog: 16 digits of each digest,
    /// for tools only. 64 bits do not prove that a definition is the accepted one, but that version
    /// compared the definitions itself: tools that it marked as open stay open, and the rest of the
    /// snapshot was accepted. The accepted definitions of changed tools were stored in full.
    pub(crate) fn of_legacy(legacy: &LegacyPins, now: &[Definition<'_>]) -> Self {
        let is_open = |subject: &Subject| match subject {
            Subject::Tool(name) => legacy.open.contains_key(name),
            _ => false,
        };
        let kept = now.iter().filter(|it| !is_open(&it.subject));
        let mut pins = Self {
            accepted: kept.map(Definition::pin).collect(),
            ..Self::default()
        };
        for (name, json) in &legacy.before {
            if let Ok(tool) = Tool::parse(json) {
                let key = Subject::Tool(name.clone()).to_string();
                if pins.accepted.get(&key).is_none() {
                    pins.accepted.insert(&key, &tool.digest().to_string());
                }
                pins.before.insert(key, json.clone());
            }
        }
        // A short digest may refuse more than intended, but never less.
        for (name, digest) in &legacy.refused {
            let key = Subject::Tool(name.clone()).to_string();
            pins.refused.insert(key, vec![digest.clone()]);
        }
        for it in now {
            let Subject::Tool(name) = &it.subject else {
                continue;
            };
            if legacy.open.get(name) == Some(&true) {
                let (key, digest) = it.pin();
                pins.refused.insert(key, vec![digest]);
            }
        }
        pins
    }

    pub(crate) fn standing(&self, subject: &Subject, digest: &str) -> Standing {
        let key = subject.to_string();
        if self.accepted.get(&key) == Some(digest) {
            return Standing::Accepted;
        }
        let refused = self.refused.get(&key);
        if refused.is_some_and(|all| all.iter().any(|it| digest.starts_with(it.as_str()))) {
            return Standing::Refused;
        }
        Standing::Waiting
    }

    /// Updates the pins after a survey; `before` contains the definitions before it.
    pub(crate) fn follow(&mut self, before: &[Definition<'_>], now: &[Definition<'_>]) {
        let digests = now.iter().map(|it| (&it.subject, it.digest.as_str()));
        let digests: BTreeMap<&Subject, &str> = digests.collect();
        for it in before {
            let after = digests.get(&it.subject);
            // Resources often come and go, but a removed tool must be compared if it is added
            // again.
            let is_gone_for_good = after.is_none() && matches!(it.subject, Subject::Resource(_));
            let is_as_before = after.is_some_and(|digest| *digest == it.digest);
            let is_accepted = self.standing(&it.subject, &it.digest) == Standing::Accepted;
            if is_accepted && !is_as_before && !is_gone_for_good {
                self.before
                    .insert(it.subject.to_string(), it.text.to_owned());
            }
        }
        for it in now {
            if self.standing(&it.subject, &it.digest) == Standing::Accepted {
                self.before.remove(&it.subject.to_string());
            }
        }
    }

    /// Accepts or refuses this definition.
    pub(crate) fn decide(&mut self, subject: &Subject, digest: &str, is_accepted: bool) {
        let key = subject.to_string();
        if let Some(refused) = self.refused.get_mut(&key) {
            refused.retain(|it| !digest.starts_with(it.as_str()));
        }
        if is_accepted {
            self.before.remove(&key);
            self.accepted.insert(&key, digest);
        } else {
            if self.accepted.get(&key) == Some(digest) {
                self.accepted.remove(&key);
            }
            let refused = self.refused.entry(key).or_default();
            refused.push(digest.to_owned());
            let surplus = refused.len().saturating_sub(REFUSALS_MAX);
            refused.drain(..surplus);
        }
        self.refused.retain(|_, all| !all.is_empty());
        self.decisions += 1;
    }

    /// Removes accepted resources that no longer exist, if there are too many.
    pub(crate) fn bound(&mut self, now: &[Definition<'_>]) {
        let is_resource = |key: &str| key.starts_with("resource ");
        let names = self.accepted.iter().map(|(key, _)| key);
        let count = names.filter(|key| is_resource(key)).count();
        if count > ACCEPTED_RESOURCES_MAX {
            let there: BTreeSet<String> = now.iter().map(|it| it.subject.to_string()).collect();
            self.accepted
                .retain(|key| !is_resource(key) || there.contains(key));
        }
    }

    /// Notes which of the current definitions have a sign and are not accepted. To be called whenever
    /// the definitions or the accepted digests change.
    pub(crate) fn note_signs<'o>(
        &mut self,
        now: &[Definition<'_>],
        others: impl FnOnce() -> HashSet<&'o str>,
    ) {
        // Most servers have nothing that is not accepted.
        let others = LazyCell::new(others);
        let steers = |it: &&Definition<'_>| {
            self.standing(&it.subject, &it.digest) != Standing::Accepted
                && !it.signs(&others).is_empty()
        };
        self.steering = Some(now.iter().filter(steers).map(Definition::pin).collect());
    }

    /// Returns true if signs were never looked for though a definition may be held for one.
    pub(crate) fn lacks_signs(&self) -> bool {
        self.steering.is_none()
    }

    pub(crate) fn definition_before(&self, subject: &Subject) -> Option<&String> {
        self.before.get(&subject.to_string())
    }

    /// Returns true if any definition of this subject was ever accepted.
    pub(crate) fn knows(&self, subject: &Subject) -> bool {
        self.accepted.get(&subject.to_string()).is_some()
    }

    /// Returns true if [`Pins::present`] blocks nothing, whatever the definition.
    pub(crate) fn holds_nothing(&self, pin: Pin) -> bool {
        match pin {
            Pin::Off => true,
            Pin::Warn => {
                self.refused.is_empty() && self.steering.as_ref().is_none_or(BTreeMap::is_empty)
            }
            Pin::Hold => false,
        }
    }

    /// Returns what models get in place of this definition. A definition that is held for a sign is
    /// replaced by the accepted one, if its text is still known.
    pub(crate) fn present(&self, subject: &Subject, digest: &str, pin: Pin) -> Presented<'_> {
        match (pin, self.standing(subject, digest)) {
            (Pin::Off, _) | (_, Standing::Accepted) => Presented::Current,
            (_, Standing::Refused) => Presented::Nothing(HeldBy::Refusal),
            (Pin::Hold, Standing::Waiting) => Presented::Nothing(HeldBy::Pin),
            (Pin::Warn, Standing::Waiting) => {
                let steering = self.steering.as_ref();
                let steering = steering.and_then(|all| all.get(&subject.to_string()));
                if steering.is_none_or(|it| it != digest) {
                    return Presented::Current;
                }
                let accepted = self.accepted_text(subject);
                accepted.map_or(Presented::Nothing(HeldBy::Sign), Presented::Accepted)
            }
        }
    }

    /// Returns the text of the accepted definition of a subject that changed since. `None` if only its
    /// digest is known: another node of a cluster accepted it.
    fn accepted_text(&self, subject: &Subject) -> Option<&str> {
        let before = self.definition_before(subject)?;
        let digest = subject.digest_of(before)?;
        let is_accepted = self.accepted.get(&subject.to_string()) == Some(digest.as_str());
        is_accepted.then_some(before.as_str())
    }

    /// Returns the annotations of a tool when it was accepted, if the tool changed since and pins
    /// are on.
    pub(crate) fn accepted_claims(&self, tool: &str, pin: Pin) -> Option<Annotations> {
        if pin == Pin::Off {
            return None;
        }
        let before = self.definition_before(&Subject::Tool(tool.to_owned()))?;
        Some(Tool::parse(before).ok()?.annotations())
    }

    /// Returns a text that changes if a decision may hide or show items of lists.
    pub(crate) fn list_state(&self, pin: Pin) -> String {
        format!("{} {}", pin.as_str(), self.decisions)
    }
}

/// The pins of a server in the format of versions before `pins.json`, which stored them in the
/// catalog.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct LegacyPins {
    refused: BTreeMap<String, String>,
    before: BTreeMap<String, String>,
    /// Tools that differ from their accepted definition; true if the change was refused.
    open: BTreeMap<String, bool>,
}
