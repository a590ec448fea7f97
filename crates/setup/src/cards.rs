//! The cards of the MCP servers of a host (SEP-2127): where they are, before anything connects to them. A
//! card is a claim of the host; the person sees it, and the server is asked afterwards.

use recipes::{ListedServer, read_listed};
use reqwest::Url;
use serde_json::{Value, json};

use crate::fetch::{self, FetchError};

/// The list of all cards of a host, as the extension and the standard that it follows name it.
const CATALOGS: [&str; 2] = [
    "/.well-known/mcp/catalog.json",
    "/.well-known/ai-catalog.json",
];

/// A card without a list: the paths of earlier drafts, which many hosts have.
const CARDS: [&str; 3] = [
    "/.well-known/mcp/server-card.json",
    "/.well-known/mcp-server-card.json",
    "/.well-known/mcp.json",
];

const CARD_TYPE: &str = "application/mcp-server-card+json";

/// The most cards that are read of one list.
const CARDS_MAX: usize = 20;

/// A server that a host names.
#[derive(Debug, Clone)]
pub struct HostCard {
    /// The address of the card.
    pub place: String,
    /// The server; its ways are remote.
    pub server: ListedServer,
    /// True if it is reached at the host that was asked.
    pub is_here: bool,
}

/// Returns the address if it names a host and nothing of it, so that it may be the name of a site.
pub fn bare_host(text: &str) -> Option<Url> {
    let url = fetch::parse(text).ok()?;
    let is_bare = url.path() == "/" && url.query().is_none() && url.fragment().is_none();
    is_bare.then_some(url)
}

/// Reads the cards of a host. A host without cards, or one that cannot be reached, has none.
pub async fn discover(host: &Url) -> Vec<HostCard> {
    for path in CATALOGS {
        let Ok(list) = fetch_at(host, path).await else {
            return Vec::new();
        };
        let cards = of_catalog(host, &list.unwrap_or_default()).await;
        if !cards.is_empty() {
            return cards;
        }
    }
    for path in CARDS {
        if let Ok(Some(card)) = fetch_at(host, path).await
            && let Ok(place) = host.join(path)
            && let Some(card) = read_card(host, &place, &card)
        {
            return vec![card];
        }
    }
    Vec::new()
}

/// Reads a document, if there is one. Fails if the host cannot be reached.
async fn fetch_at(host: &Url, path: &str) -> Result<Option<Value>, FetchError> {
    let Ok(url) = host.join(path) else {
        return Ok(None);
    };
    let fetched = fetch::json(&url).await;
    if let Err(FetchError::Http { why, .. }) = &fetched
        && !why.starts_with("HTTP")
        && !why.contains("no JSON")
    {
        return fetched.map(Some);
    }
    // A page for people is as good as nothing.
    Ok(fetched.ok())
}

async fn of_catalog(host: &Url, list: &Value) -> Vec<HostCard> {
    let entries = list["entries"].as_array().into_iter().flatten();
    let is_card = |it: &&Value| it["type"] == CARD_TYPE || it["mediaType"] == CARD_TYPE;
    let mut cards = Vec::new();
    for entry in entries.filter(is_card).take(CARDS_MAX) {
        let place = entry["url"].as_str().and_then(|it| host.join(it).ok());
        let place = place.filter(|it| fetch::parse(it.as_str()).is_ok() && may_name(host, it));
        let card = match (&place, entry.get("data")) {
            (_, Some(inline)) => Some(inline.clone()),
            (Some(place), None) => fetch::json(place).await.ok(),
            (None, None) => None,
        };
        let place = place.unwrap_or_else(|| host.clone());
        cards.extend(card.and_then(|card| read_card(host, &place, &card)));
    }
    cards
}

/// A host elsewhere does not send us to this machine.
fn may_name(host: &Url, other: &Url) -> bool {
    other.scheme() == "https" || host.scheme() == "http"
}

/// Reads a card; of an earlier draft, `transport.endpoint` is the address.
fn read_card(host: &Url, place: &Url, card: &Value) -> Option<HostCard> {
    let mut card = card.clone();
    if card.get("remotes").is_none() {
        let transport = &card["transport"];
        let addresses = [&transport["endpoint"], &transport["url"], &card["url"]];
        let address = addresses.into_iter().find_map(Value::as_str)?;
        let kind = match transport["type"].as_str() {
            Some("sse") => "sse",
            _ => "streamable-http",
        };
        let url = place.join(address).ok()?;
        card["remotes"] = json!([{"type": kind, "url": url.as_str()}]);
    }
    // A card describes no programs.
    card["packages"] = json!([]);
    if !card["name"].as_str().is_some_and(|it| it.contains('/')) {
        let named = card["name"].as_str();
        let named = named.or(card["serverInfo"]["name"].as_str());
        let mut name = named.unwrap_or("server").to_owned();
        name.retain(|c| c.is_ascii_alphanumeric() || "-._".contains(c));
        card["name"] = json!(format!("{}/{name}", host.host_str()?));
    }
    let server = read_listed(&card).ok()?;
    let addresses = server.ways.iter().filter_map(|way| match &way.recipe.way {
        recipes::StartMethod::Remote { url, .. } => Some(url.as_str()),
        recipes::StartMethod::Command(_) => None,
    });
    let mut urls = addresses.filter_map(|it| Url::parse(it).ok());
    let url = urls.next()?;
    may_name(host, &url).then(|| HostCard {
        place: place.to_string(),
        is_here: url.origin() == host.origin(),
        server,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_name_of_a_site_is_looked_up() {
        for (text, is_bare) in [
            ("https://a.example", true),
            ("https://a.example/", true),
            ("https://a.example/mcp", false),
            ("https://a.example?x=1", false),
            ("http://a.example", false),
            ("http://127.0.0.1:8000", true),
        ] {
            assert_eq!(bare_host(text).is_some(), is_bare, "{text}");
        }
    }

    #[test]
    fn cards_of_every_draft_name_an_address() {
        let host = Url::parse("https://a.example").unwrap();
        let place = host.join("/.well-known/mcp.json").unwrap();
        let check = |card: &Value, expected: Option<(&str, &str, bool)>| {
            let read = read_card(&host, &place, card);
            let found = read.as_ref().map(|it| {
                let recipes::StartMethod::Remote { url, .. } = &it.server.ways[0].recipe.way else {
                    panic!("{it:?}");
                };
                (it.server.name.as_str(), url.as_str(), it.is_here)
            });
            assert_eq!(found, expected, "{card}");
        };
        let remote = |url: &str| json!([{"type": "streamable-http", "url": url}]);
        check(
            &json!({"name": "example.a/weather", "version": "1", "description": "W.", "remotes": remote("https://b.example/mcp")}),
            Some(("example.a/weather", "https://b.example/mcp", false)),
        );
        check(
            &json!({"serverInfo": {"name": "Books API"}, "transport": {"type": "streamable-http", "endpoint": "/mcp"}}),
            Some(("a.example/BooksAPI", "https://a.example/mcp", true)),
        );
        check(
            &json!({"name": "x/y", "remotes": remote("http://127.0.0.1:1/mcp")}),
            None,
        );
        check(
            &json!({"name": "x/y", "packages": [{"registryType": "npm", "identifier": "evil", "version": "1"}]}),
            None,
        );
        check(&json!({"remotes": []}), None);
    }
}
