//! One tool that can be found, with the metadata of its server, our rules and a person's decisions.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::OnceLock;

use tool::{Annotations, Checker, Tool, ToolRef};

use crate::server_rules::Overlay;
use crate::words;

/// One tool of a [`Generation`](crate::Generation).
#[derive(Debug)]
pub struct Entry {
    /// Its address.
    pub at: ToolRef,
    /// The definition, as its server sent it.
    pub tool: Tool,
    /// Its category: the overlay's, else its own, else its server's.
    pub category: String,
    /// The server's tags, then the tool's own.
    pub tags: Vec<String>,
    /// Other names that people use for its server.
    pub(crate) aliases: Vec<String>,
    /// Sentences that it serves: see `requests.rs`.
    pub(crate) requests: Vec<Cow<'static, str>>,
    /// Additions by the configuration.
    pub overlay: Overlay,
    /// True if the server's last survey failed: the definition is from an earlier one.
    pub stale: bool,
    /// The time of the survey that found the definition changed, in unix seconds, if no person has
    /// reviewed it since.
    pub changed: Option<u64>,
    /// The annotations that a person accepted, if the definition has changed since.
    accepted: Option<Annotations>,
    signature: OnceLock<String>,
    purpose: OnceLock<String>,
    checker: OnceLock<Checker>,
    is_deprecated: OnceLock<bool>,
    is_destructive: OnceLock<bool>,
    name_stems: OnceLock<BTreeSet<String>>,
    server_stems: OnceLock<Vec<BTreeSet<String>>>,
}

/// The parts of an [`Entry`] besides the tool itself.
#[derive(Debug, Clone, Default)]
pub(crate) struct Context {
    pub(crate) category: String,
    pub(crate) tags: Vec<String>,
    pub(crate) aliases: Vec<String>,
    pub(crate) requests: Vec<Cow<'static, str>>,
    pub(crate) overlay: Overlay,
    pub(crate) stale: bool,
    pub(crate) changed: Option<u64>,
    pub(crate) accepted: Option<Annotations>,
}

impl Entry {
    pub(crate) fn new(at: ToolRef, tool: Tool, context: Context) -> Self {
        let Context {
            category,
            mut tags,
            aliases,
            requests,
            overlay,
            stale,
            changed,
            accepted,
        } = context;
        tags.extend(overlay.tags.iter().cloned());
        Self {
            category: overlay.category.clone().unwrap_or(category),
            at,
            tool,
            tags,
            aliases,
            requests,
            overlay,
            stale,
            changed,
            accepted,
            signature: OnceLock::new(),
            purpose: OnceLock::new(),
            checker: OnceLock::new(),
            is_deprecated: OnceLock::new(),
            is_destructive: OnceLock::new(),
            name_stems: OnceLock::new(),
            server_stems: OnceLock::new(),
        }
    }

    /// Returns the number of its example requests: sentences that it serves, by which a search finds it.
    pub fn count_requests(&self) -> usize {
        self.requests.len()
    }

    /// Stems of the words of the tool's name.
    pub(crate) fn name_stems(&self) -> &BTreeSet<String> {
        let stems = || words::stems(self.tool.name()).into_iter().collect();
        self.name_stems.get_or_init(stems)
    }

    /// The same of its server's name, and of each other that people have for it.
    pub(crate) fn server_stems(&self) -> &[BTreeSet<String>] {
        self.server_stems.get_or_init(|| {
            let own = std::iter::once(self.at.server.as_str());
            let names = own.chain(self.aliases.iter().map(String::as_str));
            names
                .map(|name| words::stems(name).into_iter().collect())
                .collect()
        })
    }

    /// `(owner: string, ...)`, made at the first question.
    pub fn signature(&self) -> &str {
        self.signature
            .get_or_init(|| tool::signature(&self.tool.input_schema(), &self.output_signature()))
    }

    /// ` -> {path, size}`, or nothing.
    pub fn output_signature(&self) -> String {
        let schema = self.tool.output_schema();
        schema.map(tool::output_signature).unwrap_or_default()
    }

    /// The first sentence of the description, made at the first question.
    pub fn purpose(&self) -> &str {
        let description = self.overlay.description.as_deref();
        self.purpose
            .get_or_init(|| tool::purpose(&self.tool, description))
    }

    /// The compiled input schema, made at the first question: that may take a millisecond.
    pub fn checker(&self) -> &Checker {
        self.checker
            .get_or_init(|| Checker::new(&self.tool.input_schema()))
    }

    /// Returns the checker if it was built: building one may take long enough to delay other tasks.
    pub fn ready_checker(&self) -> Option<&Checker> {
        self.checker.get()
    }

    /// The overlay's description, else the server's.
    pub fn description(&self) -> Cow<'_, str> {
        match &self.overlay.description {
            Some(description) => Cow::Borrowed(description),
            None => Cow::Owned(self.tool.description()),
        }
    }

    /// Returns true if the server declares it read-only, and declared so when the tool was accepted.
    pub fn is_read_only(&self) -> bool {
        self.claims().all(|claims| claims.read_only == Some(true))
    }

    /// Returns true if the server declares it destructive, or declared so when the tool was accepted; or,
    /// without a declaration, if its name begins with a destructive verb.
    pub fn is_destructive(&self) -> bool {
        self.claims().any(|claims| self.is_destructive_by(claims))
    }

    /// The current annotations and the accepted ones: a server cannot declare itself harmless later.
    fn claims(&self) -> impl Iterator<Item = Annotations> {
        [self.tool.annotations()].into_iter().chain(self.accepted)
    }

    fn is_destructive_by(&self, claims: Annotations) -> bool {
        match (claims.read_only, claims.destructive) {
            (Some(true), _) => false,
            (_, Some(destructive)) => destructive,
            (_, None) => *self
                .is_destructive
                .get_or_init(|| self.begins_with_a_destroying_verb()),
        }
    }

    /// Returns true if the definition says that it should not be used any more.
    pub fn is_deprecated(&self) -> bool {
        *self.is_deprecated.get_or_init(|| self.tool.is_deprecated())
    }

    fn begins_with_a_destroying_verb(&self) -> bool {
        let first = words::split(self.tool.name())
            .into_iter()
            .find(|word| !word.is_joined);
        first.is_some_and(|word| DESTROYING_VERBS.contains(&word.exact.as_str()))
    }
}

const DESTROYING_VERBS: [&str; 8] = [
    "delete", "destroy", "drop", "erase", "purge", "remove", "truncate", "wipe",
];
