//! Registries of MCP: servers by words or by name, from an address with the API v0.1. They are asked only
//! when a person asks.

use std::collections::BTreeMap;

use recipes::{ListedServer, Recipe, read_listed};
use reqwest::Url;
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

/// The servers of one answer.
const PAGE_SERVERS: &str = "100";

/// A registry, by its address.
#[derive(Debug, Clone)]
pub struct RegistrySource(Url);

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
    /// Reads an address. Without a text, it is the official registry.
    pub fn parse(text: Option<&str>) -> Result<Self, CatalogueError> {
        let mut url = fetch::parse(text.unwrap_or(OFFICIAL))?;
        url.set_query(None);
        Ok(Self(url))
    }

    /// Returns the address.
    pub fn shown(&self) -> String {
        self.0.as_str().trim_end_matches('/').to_owned()
    }

    /// Returns the servers whose names or descriptions have the words, those with most of them first.
    pub async fn search(&self, words: &str) -> Result<Vec<ListedServer>, CatalogueError> {
        let words: Vec<String> = words.split_whitespace().map(str::to_lowercase).collect();
        let mut found: BTreeMap<String, ListedServer> = BTreeMap::new();
        for word in words.iter().take(WORDS_MAX) {
            let page = fetch::json(&list_address(&self.0, word)).await?;
            let servers = page["servers"].as_array().into_iter().flatten();
            for server in servers.filter_map(|it| read_listed(it).ok()) {
                found.entry(server.name.clone()).or_insert(server);
            }
        }
        let score = |it: &ListedServer| {
            let text = format!("{} {}", it.name, it.description).to_lowercase();
            let named = words.iter().filter(|word| text.contains(word.as_str()));
            named.count()
        };
        let mut found: Vec<ListedServer> = found.into_values().collect();
        found.retain(|it| it.status != "deleted" && score(it) > 0);
        found.sort_by_key(|it| std::cmp::Reverse(score(it)));
        Ok(found)
    }

    /// Returns a server by its name, in this version or the latest.
    pub async fn find(
        &self,
        name: &str,
        version: Option<&str>,
    ) -> Result<ListedServer, CatalogueError> {
        let unknown = || {
            let (here, name) = (self.shown(), printable::one_line(name));
            let version = version.map_or_else(String::new, |version| format!("@{version}"));
            let own = printable::quote_word(name.rsplit('/').next().unwrap_or_default());
            CatalogueError(format!(
                "{here} has no server `{name}{version}`\nhint: proxy add --list --registry {own}"
            ))
        };
        if !name.contains('/') {
            return Err(unknown());
        }
        let address = server_address(&self.0, name, version.unwrap_or("latest"));
        let json = fetch::json(&address).await.map_err(|error| match error {
            FetchError::Missing(_) => unknown(),
            error => error.into(),
        })?;
        let answered = |what| CatalogueError(format!("the registry answered with {what}"));
        let server = read_listed(&json).map_err(answered)?;
        if server.name != name || version.is_some_and(|version| server.version != version) {
            let other = format!("{} {}", server.name, server.version);
            return Err(answered(printable::one_line(&other)));
        }
        Ok(server)
    }
}

/// Proposes the name of a listed server in the configuration.
pub fn name_of_listed(server: &ListedServer) -> Option<ServerName> {
    let own = server.name.rsplit('/').next().unwrap_or_default();
    name_of_command(&["npx", own])
}

/// Chooses the way by its kind, or the first.
pub fn choose_way<'s>(server: &'s ListedServer, kind: Option<&str>) -> Result<&'s Recipe, String> {
    let kind_of = |way: &Recipe| way.kind.as_str();
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

fn list_address(base: &Url, word: &str) -> Url {
    let mut url = extended(base, &["v0.1", "servers"]);
    url.query_pairs_mut()
        .append_pair("version", "latest")
        .append_pair("limit", PAGE_SERVERS)
        .append_pair("search", word);
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
            let base = RegistrySource::parse(Some(text)).unwrap().0;
            let url = server_address(&base, "io.github.a/b", "1.0.0+x");
            assert_eq!(url.as_str(), expected);
        };
        let rest = "v0.1/servers/io.github.a%2Fb/versions/1.0.0+x";
        check("https://r.example", &format!("https://r.example/{rest}"));
        check(
            "https://r.example/mcp/",
            &format!("https://r.example/mcp/{rest}"),
        );
        let base = Url::parse("https://r.example").unwrap();
        assert_eq!(
            list_address(&base, "a&b").as_str(),
            "https://r.example/v0.1/servers?version=latest&limit=100&search=a%26b"
        );
    }
}
