//! Example requests: sentences that a person might type and that a tool serves. They are texts of the
//! tool, beside its definition: a search matches them, and nothing shows them to a model.
//!
//! Requests of known servers are part of the program (`registry/requests`). Others are written by
//! `proxy enrich` and stored beside the catalog, with the digest of the definition that they are for.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::sync::LazyLock;

use serde::{Deserialize, Serialize};
use tool::{Digest, Tool, ToolRef};

use crate::disk::Disk;
use crate::known_servers::parts;
use crate::limits::{REQUEST_CHARS_MAX, REQUESTS_MAX};

/// The file next to the catalog.
pub(crate) const FILE: &str = "requests.json";

/// The requests of the tools of all servers.
#[derive(Debug, Clone, Default)]
pub(crate) struct RequestBook {
    /// The requests that are part of the program count too.
    pub(crate) is_shipped_used: bool,
    pub(crate) stored: StoredRequests,
}

/// By the tool's address, which a rename of its server changes (`rename.rs`).
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct StoredRequests {
    tools: BTreeMap<String, ToolRequests>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct ToolRequests {
    /// Of the definition that they were written for.
    digest: String,
    requests: Vec<String>,
}

impl StoredRequests {
    /// A missing or damaged file reads as empty: requests can be written again.
    pub(crate) fn read(disk: &Disk) -> Self {
        let bytes = disk.read(FILE).unwrap_or_default();
        serde_json::from_slice(&bytes).unwrap_or_default()
    }

    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("texts are always JSON")
    }

    /// Sets the requests of a tool. Texts are put on one line and shortened; those beyond the limit are
    /// left out.
    pub(crate) fn set(&mut self, at: &ToolRef, digest: &Digest, requests: &[String]) {
        let texts = requests.iter();
        let texts = texts.map(|text| printable::one_line_of(text, REQUEST_CHARS_MAX));
        let requests = texts.filter(|it| !it.is_empty()).take(REQUESTS_MAX);
        let requests = requests.collect();
        let digest = digest.to_string();
        self.tools
            .insert(at.to_string(), ToolRequests { digest, requests });
    }

    pub(crate) fn retain(&mut self, is_kept: impl Fn(&str, &str) -> bool) {
        self.tools.retain(|at, it| is_kept(at, &it.digest));
    }

    fn of(&self, at: &ToolRef, tool: &Tool) -> &[String] {
        let found = self.tools.get(&at.to_string());
        let found = found.filter(|it| it.digest == tool.digest().to_string());
        found.map_or(&[], |it| &it.requests)
    }
}

/// The shipped requests of one server, by tool.
pub(crate) type ServerRequests = HashMap<&'static str, Vec<&'static str>>;

impl RequestBook {
    /// The shipped requests of a server that has one of these names.
    pub(crate) fn of_server<'a>(&self, names: impl Iterator<Item = &'a str>) -> ServerRequests {
        let mut tools = ServerRequests::new();
        if !self.is_shipped_used {
            return tools;
        }
        let sections = names.filter_map(|name| SHIPPED.get(&parts(name)));
        let sections: BTreeMap<usize, &str> = sections.flatten().copied().collect();
        for section in sections.into_values() {
            let lines = section.lines();
            for (tool, request) in lines.filter_map(|line| line.split_once('\t')) {
                tools.entry(tool).or_default().push(request);
            }
        }
        tools
    }

    /// The requests of a tool, at most `REQUESTS_MAX`: stored ones, then shipped ones.
    pub(crate) fn of_tool(
        &self,
        shipped: &ServerRequests,
        at: &ToolRef,
        tool: &Tool,
    ) -> Vec<Cow<'static, str>> {
        let stored = self.stored.of(at, tool).iter();
        let stored = stored.map(|text| Cow::Owned(text.clone()));
        let shipped = shipped.get(tool.name()).into_iter().flatten();
        let shipped = shipped.map(|text| Cow::Borrowed(*text));
        stored.chain(shipped).take(REQUESTS_MAX).collect()
    }
}

/// The numbers of servers, and their lines.
type ShippedLines = Vec<(usize, &'static str)>;

/// Returns the sections of a file, without `= `. A first search waits for this, and `str::split` is slow.
fn sections(file: &'static str) -> impl Iterator<Item = &'static str> {
    const BEGIN: &str = "\n= ";
    let mut begins = memchr::memmem::find_iter(file.as_bytes(), BEGIN).peekable();
    std::iter::from_fn(move || {
        let begin = begins.next()? + BEGIN.len();
        let end = begins.peek().copied().unwrap_or(file.len());
        Some(&file[begin..end])
    })
}

/// `registry/requests`: a line `= NAME | NAME...` begins a server; each other line is a tool, a tab
/// and a request. By the informative words of a name, the number of each server and its lines.
static SHIPPED: LazyLock<HashMap<Vec<String>, ShippedLines>> = LazyLock::new(|| {
    let mut shipped: HashMap<_, ShippedLines> = HashMap::new();
    let files = [
        include_str!("../../../registry/requests/known.tsv"),
        include_str!("../../../registry/requests/captured.tsv"),
    ];
    for (number, section) in files.into_iter().flat_map(sections).enumerate() {
        let (names, lines) = section.split_once('\n').unwrap_or((section, ""));
        for name in names.split(" | ").map(parts).filter(|it| !it.is_empty()) {
            shipped.entry(name).or_default().push((number, lines));
        }
    }
    shipped
});
