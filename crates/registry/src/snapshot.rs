//! A server's answers to `tools/list` and its other lists, as a file.

use std::collections::BTreeSet;
use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use tool::{Capability, Digest, ItemKind, Offer, OfferItem, ServerName, Tool};

use crate::disk::{Disk, snapshot_path};
use crate::limits::FORMAT;
use crate::pins::{Definition, definitions};

/// The last known answer of one server.
#[derive(Debug, Clone)]
pub struct Snapshot {
    /// The server that was surveyed.
    pub server: ServerName,
    /// Sorted by name, each name once.
    pub tools: Vec<Tool>,
    /// Prompts, resources and templates.
    pub offer: Offer,
    /// From `serverInfo`.
    pub server_name: String,
    /// From `serverInfo`.
    pub server_version: String,
    /// The server's instructions to its client.
    pub instructions: Option<String>,
    /// The protocol revision that was spoken.
    pub protocol: String,
    /// The detected transport, if the configuration does not set it: `sse`.
    pub transport: Option<String>,
    /// The calls during which the server asked questions that name no call, such as `tools/call NAME`.
    pub asking_calls: Vec<String>,
    /// Tokens that all of its definitions would cost a model up front.
    pub tokens: u64,
    /// Unix seconds.
    pub surveyed_at: u64,
}

/// The news of one server: a fresh survey, or why there is none.
#[derive(Debug, Clone)]
pub struct News {
    /// The server that was to be surveyed.
    pub server: ServerName,
    /// The time at which the server was asked, in milliseconds since 1970: of two surveys of a
    /// server, in whatever process and order they end, the one that asked later counts.
    pub asked_ms: u64,
    /// The survey, or why there is none.
    pub outcome: Result<Snapshot, SurveyFailure>,
}

/// Why a survey brought nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "KeptFailure")]
pub struct SurveyFailure {
    /// A sentence without a full stop.
    pub why: String,
    /// The next step, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// A person has to log in first.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub needs_login: bool,
}

impl SurveyFailure {
    /// A failure of which no more is known.
    pub fn new(why: impl Into<String>) -> Self {
        Self {
            why: why.into(),
            hint: None,
            needs_login: false,
        }
    }
}

impl fmt::Display for SurveyFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.why)?;
        match &self.hint {
            Some(hint) => write!(f, " (hint: {hint})"),
            None => Ok(()),
        }
    }
}

/// A [`SurveyFailure`] as `catalog.json` has it: earlier versions wrote its text alone.
#[derive(Deserialize)]
#[serde(untagged)]
enum KeptFailure {
    Text(String),
    Parts {
        why: String,
        #[serde(default)]
        hint: Option<String>,
        #[serde(default)]
        needs_login: bool,
    },
}

impl From<KeptFailure> for SurveyFailure {
    fn from(kept: KeptFailure) -> Self {
        match kept {
            KeptFailure::Text(why) => Self::new(why),
            KeptFailure::Parts {
                why,
                hint,
                needs_login,
            } => Self {
                why,
                hint,
                needs_login,
            },
        }
    }
}

impl Snapshot {
    /// Sorted, and one tool a name: of two definitions of one name only the first can be called.
    pub(crate) fn in_order(mut self) -> Self {
        self.tools.sort_by(|a, b| a.name().cmp(b.name()));
        self.tools
            .dedup_by(|later, first| later.name() == first.name());
        self
    }

    /// The file's text: the same tools give the same bytes, one tool a line, each as it was sent.
    ///
    /// Costs and times are left to the catalog, so an unchanged server keeps its file.
    pub fn to_text(&self) -> String {
        let head = serde_json::to_string(&self.head()).expect("a struct of texts is always JSON");
        let tools: Vec<&str> = self.tools.iter().map(Tool::json).collect();
        let tools = tools.join(",\n");
        let lists = ItemKind::ALL
            .map(|kind| write_list(kind, self.offer.list(kind)))
            .concat();
        format!("{{\"head\":{head},\n\"tools\":[\n{tools}\n]{lists}}}\n")
    }

    pub(crate) fn head(&self) -> SnapshotHead {
        SnapshotHead {
            format: FORMAT,
            server_name: self.server_name.clone(),
            server_version: self.server_version.clone(),
            protocol: self.protocol.clone(),
            transport: self.transport.clone(),
            asking_calls: self.asking_calls.clone(),
            instructions: self.instructions.clone(),
            capabilities: Some(self.offer.capabilities.clone()),
        }
    }

    /// Everything that has a pin.
    pub(crate) fn definitions(&self) -> Vec<Definition<'_>> {
        definitions(&self.tools, &self.offer, self.instructions.as_deref())
    }

    /// The content-addressed name of the file that holds `text`.
    pub(crate) fn file_name(server: &ServerName, text: &str) -> String {
        format!("{server}-{}.json", Digest::of_bytes(text.as_bytes()))
    }
}

/// Nothing of an empty list.
fn write_list(kind: ItemKind, items: &[OfferItem]) -> String {
    if items.is_empty() {
        return String::new();
    }
    let items: Vec<&str> = items.iter().map(OfferItem::json).collect();
    format!(",\n\"{}\":[\n{}\n]", kind.list_key(), items.join(",\n"))
}

/// The content of a snapshot file; the rest of a [`Snapshot`] stands in the catalog.
#[derive(Debug)]
pub(crate) struct SnapshotContent {
    pub(crate) head: SnapshotHead,
    pub(crate) tools: Vec<Tool>,
    pub(crate) offer: Offer,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct SnapshotHead {
    format: u32,
    pub(crate) server_name: String,
    pub(crate) server_version: String,
    pub(crate) protocol: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) transport: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) asking_calls: Vec<String>,
    pub(crate) instructions: Option<String>,
    /// `None` if an earlier version, which only listed tools, wrote it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) capabilities: Option<BTreeSet<Capability>>,
}

impl SnapshotContent {
    /// Everything that has a pin.
    pub(crate) fn definitions(&self) -> Vec<Definition<'_>> {
        definitions(&self.tools, &self.offer, self.head.instructions.as_deref())
    }

    /// Checks that a snapshot file matches the digest in its name, without parsing its content.
    pub(crate) fn prove(disk: &Disk, file_name: &str) -> Result<(), String> {
        check_digest(file_name, &read_file(disk, file_name)?)
    }

    /// Reads a snapshot file of this folder.
    pub(crate) fn load(disk: &Disk, file_name: &str) -> Result<Self, String> {
        Self::read(file_name, &read_file(disk, file_name)?)
    }

    /// Reads a snapshot file and proves that it is the one its name promises.
    pub(crate) fn read(file_name: &str, bytes: &[u8]) -> Result<Self, String> {
        check_digest(file_name, bytes)?;
        Self::parse(bytes)
    }

    /// Parses the text of a snapshot.
    pub(crate) fn parse(bytes: &[u8]) -> Result<Self, String> {
        let mut file: SnapshotFile<'_> =
            serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
        part_transport(&mut file.head.protocol, &mut file.head.transport);
        // A proxy of an earlier version took in definitions that are refused by now.
        let parse = |raw: &&RawValue| Tool::parse(raw.get()).ok();
        let tools: Vec<Tool> = file.tools.iter().filter_map(parse).collect();
        let items = |kind, list: &[&RawValue]| -> Vec<OfferItem> {
            let parse = |raw: &&RawValue| OfferItem::parse(kind, raw.get()).ok();
            list.iter().filter_map(parse).collect()
        };
        let offer = Offer {
            capabilities: file.head.capabilities.clone().unwrap_or_default(),
            prompts: items(ItemKind::Prompt, &file.prompts),
            resources: items(ItemKind::Resource, &file.resources),
            templates: items(ItemKind::Template, &file.templates),
            skills: items(ItemKind::Skill, &file.skills),
            apps: items(ItemKind::App, &file.apps),
        };
        Ok(Self {
            head: file.head,
            tools,
            offer,
        })
    }
}

fn read_file(disk: &Disk, file_name: &str) -> Result<Vec<u8>, String> {
    let bytes = disk.read(&snapshot_path(file_name));
    bytes.map_err(|error| error.to_string())
}

fn check_digest(file_name: &str, bytes: &[u8]) -> Result<(), String> {
    let (_, promised) = split_name(file_name).ok_or("its name carries no digest")?;
    if Digest::of_bytes(bytes).short(promised.len()) == promised {
        Ok(())
    } else {
        Err("its content is not what its name promises".to_owned())
    }
}

/// Takes the transport out of a revision as an earlier version wrote it: `2024-11-05+sse`.
pub(crate) fn part_transport(protocol: &mut String, transport: &mut Option<String>) {
    if let Some((revision, behind)) = protocol.split_once('+') {
        *transport = Some(behind.to_owned());
        *protocol = revision.to_owned();
    }
}

#[derive(Deserialize)]
struct SnapshotFile<'a> {
    head: SnapshotHead,
    #[serde(borrow)]
    tools: Vec<&'a RawValue>,
    #[serde(borrow, default)]
    prompts: Vec<&'a RawValue>,
    #[serde(borrow, default)]
    resources: Vec<&'a RawValue>,
    #[serde(borrow, default, rename = "resourceTemplates")]
    templates: Vec<&'a RawValue>,
    #[serde(borrow, default)]
    skills: Vec<&'a RawValue>,
    #[serde(borrow, default)]
    apps: Vec<&'a RawValue>,
}

/// The name that a snapshot file has for another server.
pub(crate) fn renamed(file_name: &str, to: &ServerName) -> Option<String> {
    let (_, digest) = split_name(file_name)?;
    Some(format!("{to}-{digest}.json"))
}

/// Splits the name of a snapshot file into its server and its digest.
pub(crate) fn split_name(file_name: &str) -> Option<(&str, &str)> {
    let (server, digest) = file_name.strip_suffix(".json")?.rsplit_once('-')?;
    let is_digest = [DIGEST_DIGITS, LEGACY_DIGEST_DIGITS].contains(&digest.len());
    is_digest.then_some((server, digest))
}

/// The full digest: a server controls the hashed text, and could find two texts with the same short digest.
const DIGEST_DIGITS: usize = 64;

/// The digits in file names of an earlier version; the next survey replaces these files.
const LEGACY_DIGEST_DIGITS: usize = 12;
