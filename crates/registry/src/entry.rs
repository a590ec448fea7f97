//! A tool that can be found, with the metadata of its server, the built-in rules and the user's
//! decisions.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::{Arc, OnceLock};

use tool::{Annotations, ArgumentSettings, Checker, Tool, ToolRef};

use crate::server_rules::Overlay;
use crate::words;
use crate::words::Operations;

/// A tool of a [`Generation`](crate::Generation).
#[derive(Debug)]
pub struct Entry {
    /// The tool's address.
    pub at: ToolRef,
    /// The definition, as its server sent it.
    pub tool: Tool,
    /// The category: from the overlay, else the tool's own, else the server's.
    pub category: String,
    /// The server's tags, followed by the tool's own.
    pub tags: Vec<String>,
    /// Other common names of the server.
    pub(crate) aliases: Vec<String>,
    /// The stems of the words of each name of the server's product.
    pub(crate) products: Arc<[BTreeSet<String>]>,
    /// Example requests that the tool serves; see `requests.rs`.
    pub(crate) requests: Vec<Cow<'static, str>>,
    /// Additions from the configuration.
    pub overlay: Overlay,
    /// The arguments that the configuration sets.
    pub argument_settings: ArgumentSettings,
    /// True if the server's last survey failed, so the definition is from an earlier survey.
    pub stale: bool,
    /// The time of the survey that found the definition changed, in Unix seconds, if it was not
    /// read since.
    pub changed: Option<u64>,
    /// True if this is the accepted definition, because the changed one is held for a sign that it steers
    /// the model.
    pub is_change_held: bool,
    /// Of a changed tool the annotations of the other definition: of the accepted one, or of the held
    /// one.
    pub(crate) other_claims: Option<Annotations>,
    pub(crate) computed: ComputedValues,
}

/// The values of an [`Entry`] that are computed on first use.
#[derive(Debug, Default)]
pub(crate) struct ComputedValues {
    signature: OnceLock<String>,
    purpose: OnceLock<String>,
    checker: OnceLock<Checker>,
    is_deprecated: OnceLock<bool>,
    is_destructive: OnceLock<bool>,
    name_stems: OnceLock<BTreeSet<String>>,
    operations: OnceLock<Operations>,
}

impl Entry {
    /// Makes an entry of a tool alone, without metadata.
    pub(crate) fn plain(at: ToolRef, tool: Tool) -> Self {
        Self {
            at,
            tool,
            category: String::new(),
            tags: Vec::new(),
            aliases: Vec::new(),
            products: Arc::default(),
            requests: Vec::new(),
            overlay: Overlay::default(),
            argument_settings: ArgumentSettings::default(),
            stale: false,
            changed: None,
            is_change_held: false,
            other_claims: None,
            computed: ComputedValues::default(),
        }
    }

    /// Returns the number of example requests, by which a search finds the tool.
    pub fn count_requests(&self) -> usize {
        self.requests.len()
    }

    pub(crate) fn name_stems(&self) -> &BTreeSet<String> {
        let stems = || words::stems(self.tool.name()).into_iter().collect();
        self.computed.name_stems.get_or_init(stems)
    }

    /// Returns what the tool does to a thing.
    pub(crate) fn operations(&self) -> Operations {
        let operations = &self.computed.operations;
        *operations.get_or_init(|| Operations::of_tool(&self.tool, self.purpose(), &self.requests))
    }

    /// Returns the signature, `(owner: string, ...)`. It is computed on first use.
    pub fn signature(&self) -> &str {
        let signature = &self.computed.signature;
        signature.get_or_init(|| tool::signature(&self.input_schema(), &self.output_signature()))
    }

    /// Returns the type of the output, such as ` -> {path, size}`, or an empty string.
    pub fn output_signature(&self) -> String {
        let schema = self.tool.output_schema();
        schema.map(tool::output_signature).unwrap_or_default()
    }

    /// Returns the first sentence of the description. It is computed on first use.
    pub fn purpose(&self) -> &str {
        let overlay = &self.overlay;
        let (title, description) = (overlay.title.as_deref(), overlay.description.as_deref());
        let purpose = &self.computed.purpose;
        purpose.get_or_init(|| tool::purpose(&self.tool, title, description, &overlay.tags))
    }

    /// Returns the input schema that a caller sees, without the arguments that the configuration sets.
    pub fn input_schema(&self) -> Cow<'_, str> {
        self.argument_settings.show(self.tool.input_schema())
    }

    /// Returns the compiled input schema of the server. It is compiled on first use, which may take a
    /// millisecond.
    pub fn checker(&self) -> &Checker {
        let checker = &self.computed.checker;
        checker.get_or_init(|| Checker::new(&self.tool.input_schema()))
    }

    /// Returns the checker if it was already built: building one may delay other tasks.
    pub fn ready_checker(&self) -> Option<&Checker> {
        self.computed.checker.get()
    }

    /// Returns the overlay's title, or else the server's.
    pub fn title(&self) -> Option<String> {
        self.overlay.title.clone().or_else(|| self.tool.title())
    }

    /// Returns the overlay's description, or else the server's.
    pub fn description(&self) -> Cow<'_, str> {
        match &self.overlay.description {
            Some(description) => Cow::Borrowed(description),
            None => Cow::Owned(self.tool.description()),
        }
    }

    /// Returns true if the tool declares itself read-only, and also did so when it was accepted.
    pub fn is_read_only(&self) -> bool {
        self.claims().all(|claims| claims.read_only == Some(true))
    }

    /// Returns true if the tool declares itself destructive, or did so when it was accepted.
    /// Without a declaration, returns true if its name begins with a destructive verb.
    pub fn is_destructive(&self) -> bool {
        self.claims().any(|claims| self.is_destructive_by(claims))
    }

    /// Returns the current annotations and the accepted ones, so a server cannot declare a tool
    /// harmless after it was accepted.
    fn claims(&self) -> impl Iterator<Item = Annotations> {
        [self.tool.annotations()]
            .into_iter()
            .chain(self.other_claims)
    }

    fn is_destructive_by(&self, claims: Annotations) -> bool {
        let begins_with_verb = || {
            let mut words = words::split(self.tool.name()).into_iter();
            let first = words.find(|word| !word.is_joined);
            first.is_some_and(|word| DESTROYING_VERBS.contains(&word.exact.as_str()))
        };
        let is_destructive = &self.computed.is_destructive;
        match (claims.read_only, claims.destructive) {
            (Some(true), _) => false,
            (_, Some(destructive)) => destructive,
            (_, None) => *is_destructive.get_or_init(begins_with_verb),
        }
    }

    /// Returns true if the overlay or the definition declares the tool deprecated.
    pub fn is_deprecated(&self) -> bool {
        let declared = &self.computed.is_deprecated;
        self.overlay.deprecated.is_some() || *declared.get_or_init(|| self.tool.is_deprecated())
    }
}

const DESTROYING_VERBS: [&str; 8] = [
    "delete", "destroy", "drop", "erase", "purge", "remove", "truncate", "wipe",
];
