//! Registries of MCP: servers by words or by name, from an address with the API v0.1 or from a file. They
//! are asked only when a person asks.

use std::{collections::BTreeMap, fs, io, path::PathBuf};

use recipes::{ListedServer, ListedWay, read_listed};
use reqwest::Url;
use serde_json::Value;
use tool::ServerName;

use crate::{
    fetch::{self, FetchError},
    naming::name_of_command,
};

/// The registry of the MCP project.
pub const OFFICIAL: &str = "https://registry.modelcontextprotocol.io";

/// The most words of a request that a registry is asked for, each by itself: it compares one text with
/// names.
const WORDS_MAX: usize = 3;

/// The most pages that are read for one word.
const PAGES_MAX: usize = 3;

/// The servers of one page.
const PAGE_SERVERS: &str = "100";

/// The largest file, in bytes.
const FILE_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// A registry.
#[derive(Debug, Clone)]
pub enum RegistrySource {
    /// One at an address.
    Address(Url),
    /// A file: the answer of a registry, a list of `server.json`, or one of them.
    File(PathBuf),
}

/// The reason why a registry has no answer, for people.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct CatalogueError(String);

impl From<FetchError> for CatalogueError {
    fn from(error: FetchError) -> Self {
        Self(error.to_string())
    }
}

impl RegistrySource {
    /// Reads an address, or the path of a file. Without a text, it is the official registry.
    pub fn parse(text: Option<&str>) -> Result<Self, CatalogueError> {
        let text = text.unwrap_or(OFFICIAL);
        if !text.contains("://") {
            return Ok(Self::File(text.into()));
        }
        let mut url = fetch::parse(text)?;
        url.set_query(None);
        if let Ok(mut path) = url.path_segments_mut() {
            path.pop_if_empty();
        }
        for end in ["/servers", "/v0.1"] {
            if let Some(path) = url.path().strip_suffix(end).map(str::to_owned) {
                url.set_path(&path);
            }
        }
        Ok(Self::Address(url))
    }

    /// Returns the address or the path.
    pub fn shown(&self) -> String {
        match self {
            Self::Address(url) => url.as_str().trim_end_matches('/').to_owned(),
            Self::File(path) => path.display().to_string(),
        }
    }

    /// Returns the servers whose names or descriptions have the words, those with most of them first;
    /// all of a file, if there are no words.
    pub async fn search(&self, words: &str) -> Result<Vec<ListedServer>, CatalogueError> {
        let words: Vec<String> = words.split_whitespace().map(str::to_lowercase).collect();
        let mut found: BTreeMap<String, ListedServer> = BTreeMap::new();
        let mut take = |list: &Value| {
            for server in elements(list).iter().filter_map(|it| read_listed(it).ok()) {
                found.entry(server.name.clone()).or_insert(server);
            }
        };
        match self {
            Self::File(path) => take(&read_file(path)?),
            Self::Address(base) => {
                let mut asked: Vec<&str> = words.iter().map(String::as_str).collect();
                asked.truncate(WORDS_MAX);
                if asked.is_empty() {
                    asked.push("");
                }
                for word in asked {
                    let mut cursor = None;
                    for _ in 0..PAGES_MAX {
                        let address = list_address(base, word, cursor.as_deref());
                        let page = fetch::json(&address).await?;
                        take(&page);
                        cursor = page["metadata"]["nextCursor"].as_str().map(str::to_owned);
                        if cursor.as_deref().is_none_or(str::is_empty) || word.is_empty() {
                            break;
                        }
                    }
                }
            }
        }
        let score = |it: &ListedServer| {
            let text = format!("{} {}", it.name, it.description).to_lowercase();
            let named = words.iter().filter(|word| text.contains(word.as_str()));
            named.count()
        };
        let mut found: Vec<ListedServer> = found.into_values().collect();
        found.retain(|it| !it.status.starts_with("deleted"));
        found.retain(|it| words.is_empty() || score(it) > 0);
        found.sort_by_key(|it| std::cmp::Reverse(score(it)));
        Ok(found)
    }

    /// Returns a server by its name, or by the part after the `/` if one server has it, in this version
    /// or the latest.
    pub async fn find(
        &self,
        name: &str,
        version: Option<&str>,
    ) -> Result<ListedServer, CatalogueError> {
        let name = if name.contains('/') {
            name.to_owned()
        } else {
            self.whole_name(name).await?
        };
        let unknown = |hint: &str| {
            let asked = version.map_or(name.clone(), |version| format!("{name}@{version}"));
            self.unknown(&asked, hint)
        };
        let json = match self {
            Self::Address(base) => {
                let address = server_address(base, &name, version.unwrap_or("latest"));
                fetch::json(&address).await.map_err(|error| match error {
                    FetchError::Missing(_) => unknown("\nhint: proxy recipes --registry WORDS"),
                    error => error.into(),
                })?
            }
            Self::File(path) => {
                let list = read_file(path)?;
                let is_meant = |it: &Value| {
                    let server = it.get("server").unwrap_or(it);
                    server["name"] == *name
                        && version.is_none_or(|version| server["version"] == *version)
                };
                let mut meant = elements(&list);
                meant.retain(is_meant);
                let is_latest = |it: &Value| it.to_string().contains(r#""isLatest":true"#);
                meant.sort_by_key(is_latest);
                meant.pop().ok_or_else(|| unknown(""))?
            }
        };
        let answered = |what| CatalogueError(format!("the registry answered with {what}"));
        let server = read_listed(&json).map_err(answered)?;
        if server.name != name || version.is_some_and(|version| server.version != version) {
            let other = format!("{} {}", server.name, server.version);
            return Err(answered(printable::one_line(&other)));
        }
        Ok(server)
    }

    async fn whole_name(&self, own: &str) -> Result<String, CatalogueError> {
        let found = self.search(own).await?.into_iter().map(|it| it.name);
        let found: Vec<String> = found
            .filter(|it| it.rsplit('/').next() == Some(own))
            .collect();
        match found.as_slice() {
            [one] => Ok(one.clone()),
            [] => {
                let word = printable::quote_word(own);
                let hint = format!("\nhint: proxy recipes --registry {word}");
                Err(self.unknown(own, &hint))
            }
            several => {
                let adding = several.iter().take(5);
                let adding = adding.map(|it| format!("proxy add registry:{it}"));
                let hint = adding.collect::<Vec<_>>().join(", or ");
                Err(CatalogueError(format!(
                    "`{own}` is the name of several servers\nhint: {hint}"
                )))
            }
        }
    }

    fn unknown(&self, name: &str, hint: &str) -> CatalogueError {
        let (here, name) = (self.shown(), printable::one_line(name));
        CatalogueError(format!("{here} has no server `{name}`{hint}"))
    }
}

/// Proposes the name of a listed server in the configuration.
pub fn name_of_listed(server: &ListedServer) -> Option<ServerName> {
    let own = server.name.rsplit('/').next().unwrap_or_default();
    name_of_command(&["npx", own])
}

/// Chooses the way by its kind, or the first.
pub fn choose_way<'s>(
    server: &'s ListedServer,
    kind: Option<&str>,
) -> Result<&'s ListedWay, String> {
    let kind_of = |way: &ListedWay| way.recipe.kind.as_str();
    let mut ways = server.ways.iter();
    let chosen = ways.find(|way| kind.is_none_or(|kind| kind_of(way) == kind));
    chosen.ok_or_else(|| {
        let there: Vec<&str> = server.ways.iter().map(kind_of).collect();
        let reasons = server.left_out.iter();
        let reasons = reasons.map(|why| format!("\n  {}", printable::one_line(why)));
        let (name, reasons): (_, String) = (&server.name, reasons.collect());
        match there.join(", or --via ").as_str() {
            "" => format!("`{name}` cannot be started or reached from here{reasons}"),
            there => format!("`{name}` has no such way\nhint: --via {there}"),
        }
    })
}

fn elements(list: &Value) -> Vec<Value> {
    match list.get("servers").unwrap_or(list) {
        Value::Array(all) => all.clone(),
        one => vec![one.clone()],
    }
}

fn read_file(path: &PathBuf) -> Result<Value, CatalogueError> {
    let read = || -> io::Result<Value> {
        if fs::metadata(path)?.len() > FILE_BYTES_MAX {
            return Err(io::Error::other(format!(
                "it has over {FILE_BYTES_MAX} bytes"
            )));
        }
        Ok(serde_json::from_slice(&fs::read(path)?)?)
    };
    read().map_err(|error| CatalogueError(format!("{}: {error}", path.display())))
}

fn list_address(base: &Url, word: &str, cursor: Option<&str>) -> Url {
    let mut url = extended(base, &["v0.1", "servers"]);
    let mut query = url.query_pairs_mut();
    query
        .append_pair("version", "latest")
        .append_pair("limit", PAGE_SERVERS);
    if !word.is_empty() {
        query.append_pair("search", word);
    }
    if let Some(cursor) = cursor {
        query.append_pair("cursor", cursor);
    }
    drop(query);
    url
}

fn server_address(base: &Url, name: &str, version: &str) -> Url {
    extended(base, &["v0.1", "servers", name, "versions", version])
}

fn extended(base: &Url, parts: &[&str]) -> Url {
    let mut url = base.clone();
    if let Ok(mut path) = url.path_segments_mut() {
        path.pop_if_empty().extend(parts);
    }
    url
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_extended_by_the_api() {
        let check = |text: &str, expected: &str| {
            let RegistrySource::Address(base) = RegistrySource::parse(Some(text)).unwrap() else {
                panic!("{text}");
            };
            let url = server_address(&base, "io.github.a/b", "1.0.0+x");
            assert_eq!(url.as_str(), expected);
        };
        let rest = "v0.1/servers/io.github.a%2Fb/versions/1.0.0+x";
        check("https://r.example", &format!("https://r.example/{rest}"));
        check(
            "https://r.example/mcp/",
            &format!("https://r.example/mcp/{rest}"),
        );
        check(
            "https://r.example/v0.1/servers",
            &format!("https://r.example/{rest}"),
        );
        let base = Url::parse("https://r.example").unwrap();
        assert_eq!(
            list_address(&base, "a&b", Some("x:1")).as_str(),
            "https://r.example/v0.1/servers?version=latest&limit=100&search=a%26b&cursor=x%3A1"
        );
    }
}
