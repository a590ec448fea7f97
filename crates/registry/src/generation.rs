//! What every reader sees between two commits: tools, their names, the index over them.

use std::sync::Arc;

use tool::{Digest, ServerName, Tool, ToolRef};

use crate::catalog::{Record, Records};
use crate::categories::rules_digest;
use crate::disk::{Disk, snapshot_path};
use crate::entry::{Context, Entry};
use crate::index::Index;
use crate::limits::{MEANINGS_MAX, NEAREST_MAX, SCHEMA_VERSION};
use crate::meaning::{self, LazyEncoder, Meanings, Vector};
use crate::names::{FindError, Meant, Names};
use crate::search::{Found, Query, lesson_words, search};
use crate::shelf::{Gate, Overlay, Shelf, Shelved};
use crate::snapshot::{Head, Kept};

#[derive(Debug)]
pub struct Generation {
    stock: Stock,
    names: Names,
    denied: Names,
    index: Index,
    meanings: Meanings,
    encoder: LazyEncoder,
}

/// One server as its snapshot shows it.
#[derive(Debug, Clone)]
pub struct KnownServer {
    pub name: ServerName,
    pub category: String,
    pub tags: Vec<String>,
    /// From `serverInfo`.
    pub server_name: String,
    pub server_version: String,
    pub protocol: String,
    pub instructions: Option<String>,
    /// Tools a search can find.
    pub tools: usize,
    pub tokens: u64,
    /// Why the last survey failed, when it did.
    pub stale: Option<String>,
    /// Unix seconds.
    pub surveyed_at: Option<u64>,
    /// Why the snapshot could not be read; its tools are missing until the next survey.
    pub damaged: Option<String>,
}

impl Generation {
    pub(crate) fn new(
        stock: Stock,
        index: Index,
        kept: &meaning::Kept,
        encoder: LazyEncoder,
    ) -> Self {
        let refs = stock
            .visible
            .iter()
            .chain(&stock.hidden)
            .map(|entry| &entry.at);
        Self {
            names: Names::new(refs),
            denied: Names::new(stock.denied.iter().map(|(at, _)| at)),
            meanings: Meanings::of(&stock.visible, kept),
            stock,
            index,
            encoder,
        }
    }

    /// Visible tools, sorted by server, then by tool.
    pub fn entries(&self) -> impl ExactSizeIterator<Item = &Entry> {
        self.stock.visible.iter().map(|entry| &**entry)
    }

    /// In the configuration's order.
    pub fn servers(&self) -> &[KnownServer] {
        &self.stock.servers
    }

    pub fn server(&self, name: &ServerName) -> Option<&KnownServer> {
        self.stock
            .servers
            .iter()
            .find(|server| server.name == *name)
    }

    /// The tool that `asked` names, in any spelling; hidden ones too. The name of a server that
    /// has a single tool stands for that tool.
    pub fn find(&self, asked: &str) -> Result<&Entry, FindError> {
        match self.names.mean(asked) {
            Meant::One(place) => Ok(self.entry(place)),
            Meant::Several(places) => Err(FindError::Ambiguous {
                asked: asked.trim().to_owned(),
                candidates: places
                    .iter()
                    .map(|place| self.names.at(*place).clone())
                    .collect(),
            }),
            Meant::Nothing => self.find_elsewhere(asked.trim()),
        }
    }

    /// Ranks tools against a query. Never fails: when nothing fits, the answer says so.
    pub fn search(&self, query: &Query) -> Found {
        search(self, query)
    }

    /// The words of a request that may be kept for [`Lessons`](crate::Lessons).
    pub fn lesson_words(&self, request: &str) -> Vec<String> {
        lesson_words(self, request)
    }

    fn find_elsewhere(&self, asked: &str) -> Result<&Entry, FindError> {
        let denied = match self.denied.mean(asked) {
            Meant::One(place) => Some(place),
            Meant::Several(places) => places.first().copied(),
            Meant::Nothing => None,
        };
        if let Some(place) = denied {
            let (at, rule) = self.stock.denied[place].clone();
            return Err(FindError::Denied { at, rule });
        }
        self.only_tool_of(asked).ok_or_else(|| FindError::Unknown {
            asked: asked.to_owned(),
            near: self.near_or_alike(asked),
        })
    }

    /// Names that look like the asked one, and the tool that its words would find.
    fn near_or_alike(&self, asked: &str) -> Vec<ToolRef> {
        let mut near = self.names.near(asked);
        let query = Query {
            limit: 1,
            ..Query::words(asked)
        };
        let found = self.search(&query);
        if let Some(hit) = found
            .hits
            .first()
            .filter(|hit| !near.contains(&hit.entry.at))
        {
            near.truncate(NEAREST_MAX - 1);
            near.push(hit.entry.at.clone());
        }
        near
    }

    fn only_tool_of(&self, server: &str) -> Option<&Entry> {
        let folded = tool::fold(server);
        let mut tools = self
            .entries()
            .filter(|entry| tool::fold(entry.at.server.as_str()) == folded);
        let first = tools.next()?;
        tools.next().is_none().then_some(first)
    }

    fn entry(&self, place: usize) -> &Entry {
        let visible = &self.stock.visible;
        visible
            .get(place)
            .unwrap_or_else(|| &self.stock.hidden[place - visible.len()])
    }

    /// The position among the visible tools of the one that `asked` names.
    pub(crate) fn visible_place(&self, asked: &str) -> Option<usize> {
        match self.names.mean(asked) {
            Meant::One(place) if place < self.stock.visible.len() => Some(place),
            _ => None,
        }
    }

    pub(crate) fn visible(&self) -> &[Arc<Entry>] {
        &self.stock.visible
    }

    pub(crate) fn index(&self) -> &Index {
        &self.index
    }

    /// Whether there are tools that [`crate::Registry::give_meaning`] would give one; until then
    /// words alone decide about them.
    pub fn wants_meaning(&self) -> bool {
        let tools = self.stock.visible.len();
        self.encoder.is_on() && tools <= MEANINGS_MAX && self.meanings.missing() > 0
    }

    pub(crate) fn has_meaning(&self, place: usize) -> bool {
        self.meanings.has(place)
    }

    /// How alike each visible tool and a text are; `None` where meaning has no say.
    pub(crate) fn similar(&self, text: &str) -> Option<Vec<f32>> {
        let encoder = self.encoder.get().filter(|_| self.meanings.is_known())?;
        let vector = encoder.encode(text);
        let vector = vector.inspect_err(|error| tracing::warn!(%error, "a request has no meaning"));
        self.meanings.similar(&Vector::of(&vector.ok()?))
    }

    pub(crate) fn near(&self, asked: &str) -> Vec<ToolRef> {
        self.names.near(asked)
    }
}

/// Everything a generation is made of but its index.
#[derive(Debug, Default)]
pub(crate) struct Stock {
    pub(crate) visible: Vec<Arc<Entry>>,
    hidden: Vec<Arc<Entry>>,
    denied: Vec<(ToolRef, String)>,
    servers: Vec<KnownServer>,
    /// Per server, what its documents in the index are made of.
    pub(crate) digests: Vec<(ServerName, String)>,
}

impl Stock {
    /// Reads every snapshot; a server whose file is damaged is left out and says so.
    pub(crate) fn read(
        disk: &Disk,
        shelf: &Shelf,
        gates: &[Gate],
        records: &Records,
        built_in: &[Tool],
    ) -> Self {
        let mut stock = Self::default();
        let nothing = Record::default();
        for (shelved, gate) in shelf.servers.iter().zip(gates) {
            let record = records
                .servers
                .get(shelved.name.as_str())
                .unwrap_or(&nothing);
            stock.add(disk, shelved, gate, record);
        }
        stock.add_built_in(built_in);
        stock.visible.sort_by(|a, b| a.at.cmp(&b.at));
        stock
    }

    fn add(&mut self, disk: &Disk, shelved: &Shelved, gate: &Gate, record: &Record) {
        let kept = record
            .snapshot
            .as_deref()
            .map(|file_name| read_kept(disk, file_name));
        let mut server = KnownServer::new(shelved, record);
        match kept {
            Some(Ok(kept)) => {
                server.describe(&kept.head);
                server.tools = self.shelve(shelved, gate, record, kept.tools);
                self.digests
                    .push((shelved.name.clone(), digest(shelved, record)));
            }
            Some(Err(why)) => {
                tracing::warn!(server = %shelved.name, %why, "damaged snapshot");
                server.damaged = Some(why);
            }
            None => {}
        }
        self.servers.push(server);
    }

    /// Sorts one server's tools into visible, hidden and denied; answers how many are visible.
    fn shelve(
        &mut self,
        shelved: &Shelved,
        gate: &Gate,
        record: &Record,
        tools: Vec<Tool>,
    ) -> usize {
        let before = self.visible.len();
        let tags = record.tags(shelved);
        for tool in tools {
            let at = ToolRef::new(shelved.name.clone(), tool.name());
            if let Some(rule) = gate.refuses(tool.name()) {
                self.denied.push((at, rule));
                continue;
            }
            let context = Context {
                category: record.category_of(shelved, &tool),
                tags: tags.clone(),
                aliases: record.aliases.clone(),
                overlay: shelved
                    .overlays
                    .get(tool.name())
                    .cloned()
                    .unwrap_or_default(),
                stale: record.stale.is_some(),
                changed: record.changed.iter().any(|name| name == tool.name()),
            };
            let place = if context.overlay.hidden {
                &mut self.hidden
            } else {
                &mut self.visible
            };
            place.push(Arc::new(Entry::new(at, tool, context)));
        }
        self.visible.len() - before
    }

    fn add_built_in(&mut self, tools: &[Tool]) {
        if tools.is_empty() {
            return;
        }
        let server = ServerName::built_in();
        for tool in tools {
            let at = ToolRef::new(server.clone(), tool.name());
            let context = Context {
                category: "utility".to_owned(),
                ..Context::default()
            };
            self.visible
                .push(Arc::new(Entry::new(at, tool.clone(), context)));
        }
        let texts: Vec<&str> = tools.iter().map(Tool::json).collect();
        let digest = Digest::of_bytes(format!("{SCHEMA_VERSION} {texts:?}").as_bytes()).short(16);
        self.digests.push((server, digest));
    }
}

impl KnownServer {
    fn new(shelved: &Shelved, record: &Record) -> Self {
        Self {
            name: shelved.name.clone(),
            category: record.category(shelved),
            tags: record.tags(shelved),
            server_name: String::new(),
            server_version: String::new(),
            protocol: String::new(),
            instructions: None,
            tools: 0,
            tokens: record.tokens,
            stale: record.stale.clone(),
            surveyed_at: record.snapshot.as_ref().map(|_| record.surveyed_at),
            damaged: None,
        }
    }

    fn describe(&mut self, head: &Head) {
        self.server_name.clone_from(&head.server_name);
        self.server_version.clone_from(&head.server_version);
        self.protocol.clone_from(&head.protocol);
        self.instructions.clone_from(&head.instructions);
    }
}

fn read_kept(disk: &Disk, file_name: &str) -> Result<Kept, String> {
    let bytes = disk
        .read(&snapshot_path(file_name))
        .map_err(|error| error.to_string())?;
    Kept::read(file_name, &bytes)
}

/// Changes whenever a document of this server would: with its tools, with what the
/// configuration says about it, and with how we index.
fn digest(shelved: &Shelved, record: &Record) -> String {
    let Shelved {
        name,
        program: _,
        category: _,
        tags: _,
        allow,
        deny,
        overlays,
    } = shelved;
    let overlays: Vec<(&String, String)> = overlays
        .iter()
        .map(|(tool, overlay)| (tool, overlay_text(overlay)))
        .collect();
    let made_of = (
        (SCHEMA_VERSION, rules_digest()),
        (name.as_str(), &record.snapshot, &record.aliases),
        (
            record.category(shelved),
            record.tags(shelved),
            allow,
            deny,
            overlays,
        ),
    );
    Digest::of_bytes(format!("{made_of:?}").as_bytes()).short(16)
}

/// What of an overlay is searched or decides whether a tool is searched at all.
fn overlay_text(overlay: &Overlay) -> String {
    let Overlay {
        description,
        tags,
        category,
        notes,
        example: _,
        hidden,
    } = overlay;
    format!("{:?}", (description, tags, category, notes, hidden))
}
