//! The state that readers see between two commits: tools, their names, and the index over them.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use tool::{ServerName, ToolRef};

use crate::embedding::{self, Embeddings, LazyEncoder, Similar, Vector};
use crate::entry::Entry;
use crate::index::Index;
use crate::known_servers::is_same;
use crate::limits::EMBEDDED_TOOLS_MAX;
use crate::loaded_tools::{DeniedBy, KnownServer, LoadedTools};
use crate::names::{FindError, NameIndex, fold_title};

/// The tools as readers see them between two commits.
#[derive(Debug)]
pub struct Generation {
    tools: LoadedTools,
    names: NameIndex,
    /// The positions of the tools by title; built for the first name that is no tool's.
    titles: OnceLock<HashMap<String, Vec<usize>>>,
    denied: NameIndex,
    pub(crate) index: Index,
    pub(crate) embeddings: Embeddings,
    encoder: LazyEncoder,
    owners: Owners,
}

/// The server of each visible tool.
#[derive(Debug, Default)]
struct Owners {
    /// The names of the servers, in the order of the tools.
    names: Vec<ServerName>,
    /// The index in [`Self::names`] of each tool's server.
    of: Vec<u32>,
    built_in: Option<u32>,
}

impl Owners {
    fn of(visible: &[Arc<Entry>]) -> Self {
        let mut owners = Self::default();
        for tools in visible.chunk_by(|a, b| a.at.server == b.at.server) {
            let server = &tools[0].at.server;
            let place = u32::try_from(owners.names.len()).expect("fewer servers than tools");
            owners.built_in = owners.built_in.or(server.is_built_in().then_some(place));
            owners.names.push(server.clone());
            owners.of.resize(owners.of.len() + tools.len(), place);
        }
        owners
    }
}

impl Generation {
    pub(crate) fn new(
        tools: LoadedTools,
        index: Index,
        kept: &embedding::StoredVectors,
        encoder: LazyEncoder,
    ) -> Self {
        let all = tools.visible.iter().chain(&tools.hidden);
        let refs = all.map(|entry| &entry.at);
        let built_in = [ServerName::built_in()];
        let configured = tools.servers.iter().map(|server| &server.name);
        let configured = configured.chain(&tools.disabled);
        let servers = || configured.clone().chain(&built_in);
        Self {
            names: NameIndex::new(refs, servers()),
            titles: OnceLock::new(),
            denied: NameIndex::new(tools.denied.iter().map(|(at, _)| at), servers()),
            embeddings: Embeddings::of(&tools.visible, &tools.servers, kept),
            owners: Owners::of(&tools.visible),
            tools,
            index,
            encoder,
        }
    }

    /// Returns the visible tools, sorted by server and then by tool.
    pub fn entries(&self) -> impl ExactSizeIterator<Item = &Entry> {
        self.tools.visible.iter().map(|entry| &**entry)
    }

    /// Returns the tools that can be called: the visible ones, then the hidden ones.
    pub fn callable(&self) -> impl Iterator<Item = &Entry> {
        let all = self.tools.visible.iter().chain(&self.tools.hidden);
        all.map(|entry| &**entry)
    }

    /// Returns the tools that rules or pins block.
    pub fn blocked(&self) -> impl Iterator<Item = &ToolRef> {
        self.tools.denied.iter().map(|(at, _)| at)
    }

    /// Returns the servers in the order of the configuration.
    pub fn servers(&self) -> &[Arc<KnownServer>] {
        &self.tools.servers
    }

    pub(crate) fn is_configured(&self, server: &str) -> bool {
        let enabled = self.tools.servers.iter().map(|server| &server.name);
        let mut all = enabled.chain(&self.tools.disabled);
        all.any(|name| name.as_str() == server)
    }

    /// Returns a server by its name.
    pub fn server(&self, name: &ServerName) -> Option<&Arc<KnownServer>> {
        let mut servers = self.tools.servers.iter();
        servers.find(|server| server.name == *name)
    }

    /// Returns the servers that `asked` refers to: the server with this name in any spelling, or
    /// else all servers with this program name, reported name or common name (`ripgrep` for
    /// `mcp-ripgrep`).
    pub fn servers_named(&self, asked: &str) -> Vec<&Arc<KnownServer>> {
        let folded = tool::fold(asked);
        let own = |server: &&Arc<KnownServer>| tool::fold(server.name.as_str()) == folded;
        if let Some(server) = self.tools.servers.iter().find(own) {
            return vec![server];
        }
        let is_called = |server: &&Arc<KnownServer>| {
            let mut names = server.other_names.iter().map(String::as_str);
            is_same(server.name.as_str(), asked) || names.any(|name| is_same(name, asked))
        };
        self.tools.servers.iter().filter(is_called).collect()
    }

    /// Returns the tool that `asked` refers to, as a name or else as a title. Blocks while titles are
    /// read, once, if it is no name.
    pub fn find(&self, asked: &str) -> Result<&Arc<Entry>, FindError> {
        let error = match self.find_by_name(asked) {
            Err(error @ FindError::Unknown { .. }) => error,
            found => return found,
        };
        match self.names.mean_title(asked, self.titles()).as_slice() {
            [] => Err(error),
            [place] => Ok(self.entry(*place)),
            places => Err(self.doubt(asked, places)),
        }
    }

    fn titles(&self) -> &HashMap<String, Vec<usize>> {
        self.titles.get_or_init(|| {
            let mut titles: HashMap<String, Vec<usize>> = HashMap::new();
            let entries = self.tools.visible.iter().chain(&self.tools.hidden);
            for (place, entry) in entries.enumerate() {
                let title = entry.title().map(|it| fold_title(&it));
                if let Some(title) = title.filter(|it| !it.is_empty()) {
                    titles.entry(title).or_default().push(place);
                }
            }
            titles
        })
    }

    fn doubt(&self, asked: &str, places: &[usize]) -> FindError {
        let candidates = places.iter().map(|place| self.names.at(*place).clone());
        FindError::Ambiguous {
            asked: asked.trim().to_owned(),
            candidates: candidates.collect(),
        }
    }

    /// Returns the tool with the name `asked` in any spelling, including hidden tools. The name of a
    /// server with a single tool refers to that tool.
    pub fn find_by_name(&self, asked: &str) -> Result<&Arc<Entry>, FindError> {
        if self.names.exact(asked).is_none()
            && let Some(place) = self.denied.exact(asked)
        {
            return Err(refuse(&self.tools.denied[place]));
        }
        match self.names.mean(asked).as_slice() {
            [] => self.find_elsewhere(asked.trim()),
            [place] => Ok(self.entry(*place)),
            places => Err(self.doubt(asked, places)),
        }
    }

    /// Returns the tool that `asked` refers to, even if the tool is denied, blocked or unknown to
    /// its server. Returns `None` if the name begins with no configured server and matches no tool
    /// of any server.
    pub fn intended(&self, asked: &str) -> Option<ToolRef> {
        match self.find(asked) {
            Ok(entry) => Some(entry.at.clone()),
            Err(FindError::Denied { at, .. } | FindError::Held { at, .. }) => Some(at),
            Err(FindError::Unknown { .. } | FindError::Ambiguous { .. }) => {
                self.names.claimed(asked)
            }
        }
    }

    /// Returns the tool with this canonical name.
    pub(crate) fn named(&self, asked: &str) -> Option<&Arc<Entry>> {
        self.names.full(asked).map(|place| self.entry(place))
    }

    fn find_elsewhere(&self, asked: &str) -> Result<&Arc<Entry>, FindError> {
        if let Some(place) = self.denied.mean(asked).first() {
            return Err(refuse(&self.tools.denied[*place]));
        }
        self.only_tool_of(asked).ok_or_else(|| FindError::Unknown {
            asked: asked.to_owned(),
            server: self.names.server(asked).cloned(),
        })
    }

    fn only_tool_of(&self, server: &str) -> Option<&Arc<Entry>> {
        let folded = tool::fold(server);
        let is_its = |entry: &&Arc<Entry>| tool::fold(entry.at.server.as_str()) == folded;
        let mut tools = self.tools.visible.iter().filter(is_its);
        let first = tools.next()?;
        tools.next().is_none().then_some(first)
    }

    fn entry(&self, place: usize) -> &Arc<Entry> {
        let visible = &self.tools.visible;
        visible
            .get(place)
            .unwrap_or_else(|| &self.tools.hidden[place - visible.len()])
    }

    /// Returns the position of the tool that `asked` refers to among the visible tools.
    pub(crate) fn visible_place(&self, asked: &str) -> Option<u32> {
        match *self.names.mean(asked) {
            [place] if place < self.tools.visible.len() => u32::try_from(place).ok(),
            _ => None,
        }
    }

    pub(crate) fn visible(&self) -> &[Arc<Entry>] {
        &self.tools.visible
    }

    /// Returns true if the visible tool at this position is a built-in tool.
    pub(crate) fn is_built_in(&self, place: u32) -> bool {
        self.owners.built_in == Some(self.owners.of[place as usize])
    }

    /// Counts these visible tools by server, sorted by count in descending order.
    pub(crate) fn count_by_server(
        &self,
        places: impl Iterator<Item = u32>,
    ) -> Vec<(ServerName, usize)> {
        let mut counts = vec![0; self.owners.names.len()];
        for place in places {
            counts[self.owners.of[place as usize] as usize] += 1;
        }
        let counts = self.owners.names.iter().cloned().zip(counts);
        most_first(counts.filter(|(_, count)| *count > 0))
    }

    /// Returns the number of tools and servers that [`crate::Registry::embed_tools`] would embed;
    /// until then only their words are searched.
    pub fn unembedded(&self) -> usize {
        self.embedded().map_or(0, |_| self.embeddings.missing())
    }

    /// Returns the number of visible tools with an embedding, and of all visible tools; `None` if
    /// embeddings are off or there are too many tools.
    pub fn embedded(&self) -> Option<(usize, usize)> {
        let tools = self.tools.visible.len();
        let has_say = self.encoder.is_on() && tools <= EMBEDDED_TOOLS_MAX;
        has_say.then(|| (self.embeddings.known(), tools))
    }

    /// Returns the number of visible tools that have example requests.
    pub fn with_requests(&self) -> usize {
        let tools = self.tools.visible.iter();
        tools.filter(|it| it.count_requests() > 0).count()
    }

    /// Returns the embedding of a text, and the similarity of each visible tool and of each server
    /// to it; `None` if embeddings are not used.
    pub(crate) fn similar(&self, text: &str) -> Option<(Vector, Similar)> {
        let encoder = self.encoder.get().filter(|_| self.embeddings.is_known())?;
        let vector = encoder.encode(text);
        let vector =
            vector.inspect_err(|error| tracing::warn!(%error, "a request has no embedding"));
        let vector = Vector::of(&vector.ok()?);
        let similar = self.embeddings.similar(&vector)?;
        Some((vector, similar))
    }

    pub(crate) fn near(&self, asked: &str) -> Vec<ToolRef> {
        self.names.near(asked)
    }
}

/// Sorts by count in descending order, then by key.
pub(crate) fn most_first<T: Ord>(counts: impl IntoIterator<Item = (T, usize)>) -> Vec<(T, usize)> {
    let mut counts: Vec<(T, usize)> = counts.into_iter().collect();
    counts.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    counts
}

fn refuse((at, by): &(ToolRef, DeniedBy)) -> FindError {
    let at = at.clone();
    match by.clone() {
        DeniedBy::Rule(rule) => FindError::Denied { at, rule },
        DeniedBy::Held(by) => FindError::Held { at, by },
    }
}
