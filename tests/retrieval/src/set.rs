//! A retrieval set: tools, requests with their answers, and a registry made of the tools.

use std::collections::BTreeMap;
use std::error::Error;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use registry::{Generation, Hit, News, Options, Overlay, Registry, Rules, ServerRules, Snapshot};
use serde_json::{Value, json};
use tool::{ServerName, Tool, ToolRef};

/// A result whose error is for a person.
pub type SetResult<T> = Result<T, Box<dyn Error>>;

/// The name of a tool in the set: its server and its own name.
pub type ToolName = (String, String);

/// One request; an empty `relevant` means that no tool can serve it.
#[derive(Debug, Clone)]
pub struct JudgedQuery {
    pub id: String,
    pub text: String,
    pub kind: String,
    pub relevant: Vec<ToolName>,
}

impl JudgedQuery {
    /// Reads the queries of a file with one JSON object per line.
    pub fn read(path: &Path) -> SetResult<Vec<Self>> {
        lines(path)?.iter().map(Self::of).collect()
    }

    fn of(json: &Value) -> SetResult<Self> {
        let text = |key: &str| json[key].as_str().unwrap_or_default().to_owned();
        Ok(Self {
            id: text("id"),
            text: text("query"),
            kind: text("kind"),
            relevant: serde_json::from_value(json["relevant"].clone())?,
        })
    }
}

/// Reads the JSON values of a file with one value per line.
pub fn lines(path: &Path) -> SetResult<Vec<Value>> {
    let text = fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    Ok(lines.map(serde_json::from_str).collect::<Result<_, _>>()?)
}

/// Reads the tools that real servers listed, from files with one snapshot `{"name", "tools"}` each.
pub fn listed_tools(folder: &Path) -> SetResult<Vec<Value>> {
    let files = fs::read_dir(folder)?.map(|file| Ok(file?.path()));
    let mut files: Vec<_> = files.collect::<Result<_, std::io::Error>>()?;
    files.sort();
    let mut tools = Vec::new();
    for file in files {
        let snapshot: Value = serde_json::from_str(&fs::read_to_string(&file)?)?;
        for tool in snapshot["tools"].as_array().into_iter().flatten() {
            tools.push(json!({
                "server": snapshot["name"],
                "name": tool["name"],
                "description": tool["description"],
                "input_schema": tool["inputSchema"],
            }));
        }
    }
    Ok(tools)
}

/// The texts of a tool that are compared with a request, besides the words of its definition.
#[derive(Debug, Clone, Copy, Default)]
pub struct Texts {
    /// The meaning of its definition.
    pub meaning: bool,
    /// The example requests that are part of the program.
    pub requests: bool,
}

/// A set of tools in a registry folder of its own, with server names that a configuration allows.
#[derive(Debug)]
pub struct Catalogue {
    folder: tempfile::TempDir,
    servers: BTreeMap<ServerName, (String, Vec<Tool>)>,
}

impl Catalogue {
    /// Creates a catalogue of these tools.
    pub fn of(tools: &[Value]) -> SetResult<Self> {
        let mut known: BTreeMap<String, ServerName> = BTreeMap::new();
        let mut servers: BTreeMap<ServerName, (String, Vec<Tool>)> = BTreeMap::new();
        for tool in tools {
            let server = tool["server"].as_str().unwrap_or_default();
            let number = known.len();
            let name = known
                .entry(server.to_owned())
                .or_insert_with(|| allowed(server, number, &servers));
            let json = json!({
                "name": tool["name"],
                "description": tool["description"],
                "inputSchema": tool["input_schema"],
            });
            let (_, list) = servers
                .entry(name.clone())
                .or_insert_with(|| (server.to_owned(), Vec::new()));
            list.push(Tool::parse(&json.to_string())?);
        }
        let catalogue = Self {
            folder: tempfile::tempdir()?,
            servers,
        };
        let registry = catalogue.registry(&[], Texts::default())?;
        registry.commit(catalogue.news(), false, 0)?;
        Ok(catalogue)
    }

    /// Returns the number of servers.
    pub fn servers(&self) -> usize {
        self.servers.len()
    }

    /// Returns a generation of all tools.
    pub fn generation(&self, texts: Texts) -> SetResult<Arc<Generation>> {
        let registry = self.registry(&[], texts)?;
        registry.embed_tools(THREADS, &|_, _| true)?;
        Ok(registry.generation()?)
    }

    /// Returns a generation without these tools.
    pub fn without(&self, tools: &[ToolName], texts: Texts) -> SetResult<Arc<Generation>> {
        Ok(self.registry(tools, texts)?.generation()?)
    }

    /// Opens the registry of all tools except the hidden ones.
    pub fn registry(&self, hidden: &[ToolName], texts: Texts) -> SetResult<Registry> {
        let servers = self.servers.iter().map(|(server, (said, _))| {
            let of_server = hidden.iter().filter(|(name, _)| name == said);
            let overlays = of_server.map(|(_, tool)| (tool.clone(), hide()));
            ServerRules {
                overlays: overlays.collect(),
                ..ServerRules::plain(server.clone())
            }
        });
        let servers = servers.collect();
        let options = Options {
            embeds: texts.meaning,
            has_requests: texts.requests,
            ..Options::default()
        };
        let stand = Rules {
            servers,
            ..Rules::default()
        };
        Ok(Registry::open_with(self.folder.path(), stand, options)?)
    }

    /// Adds example requests to tools, as `proxy enrich` does, from lines `WAY, tab, SERVER/TOOL,
    /// tab, REQUEST`.
    pub fn enrich(&self, requests: &str) -> SetResult<()> {
        let mut texts: BTreeMap<ToolName, Vec<String>> = BTreeMap::new();
        for line in requests.lines() {
            let (tool, request) =
                split_request(line).ok_or_else(|| format!("not a request: {line}"))?;
            texts.entry(tool).or_default().push(request.to_owned());
        }
        let mut made = Vec::new();
        for (server, (said, tools)) in &self.servers {
            for tool in tools {
                let name = (said.clone(), tool.name().to_owned());
                if let Some(texts) = texts.remove(&name) {
                    let at = ToolRef::new(server.clone(), tool.name());
                    made.push((at, tool.digest(), texts));
                }
            }
        }
        Ok(self
            .registry(&[], Texts::default())?
            .store_requests(&made)?)
    }

    fn news(&self) -> Vec<News> {
        let news = self.servers.iter().map(|(server, (said, tools))| News {
            server: server.clone(),
            asked_ms: 0,
            outcome: Ok(Snapshot {
                server: server.clone(),
                tools: tools.clone(),
                offer: tool::Offer::default(),
                server_name: said.clone(),
                server_version: String::new(),
                instructions: None,
                protocol: String::new(),
                transport: None,
                asking_calls: Vec::new(),
                tokens: 0,
                surveyed_at: 0,
            }),
        });
        news.collect()
    }

    /// Returns the tools of a hit, by the names in the set.
    pub fn named(&self, hit: &Hit) -> Vec<ToolName> {
        let name = |at: &ToolRef| (self.servers[&at.server].0.clone(), at.tool.clone());
        std::iter::once(&hit.entry.at)
            .chain(&hit.also)
            .map(name)
            .collect()
    }
}

fn split_request(line: &str) -> Option<(ToolName, &str)> {
    let (_, rest) = line.split_once('\t')?;
    let (tool, request) = rest.split_once('\t')?;
    let (server, tool) = tool.split_once('/')?;
    Some(((server.to_owned(), tool.to_owned()), request))
}

/// The number of threads that compute embeddings.
const THREADS: usize = 2;

fn hide() -> Overlay {
    Overlay {
        hidden: true,
        ..Overlay::default()
    }
}

fn allowed(
    server: &str,
    number: usize,
    taken: &BTreeMap<ServerName, (String, Vec<Tool>)>,
) -> ServerName {
    let lower = server.to_lowercase();
    let plain: String = lower
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '-' })
        .collect();
    let plain: String = plain.trim_matches('-').chars().take(26).collect();
    let name = plain.parse().ok().filter(|name| !taken.contains_key(name));
    name.unwrap_or_else(|| {
        format!("s{number}-{}", plain.chars().take(20).collect::<String>())
            .parse()
            .expect("letters, digits and `-`")
    })
}
