//! The card of this address: what a client reads before it connects (SEP-2127). It names no server, no
//! tool and no client.

use hyper::{
    Response, StatusCode,
    header::{CACHE_CONTROL, HeaderValue},
    http::request::Parts,
};
use jsonrpc::mcp::Revision;
use serde_json::{Value, json};

use super::{
    body::{Body, JSON},
    gate::Gate,
};

/// The paths of the card: that of the extension, and the one that earlier drafts had.
const CARD_PATHS: [&str; 2] = ["/mcp/server-card", "/.well-known/mcp/server-card.json"];

/// The path of the list of all cards of a host.
const CATALOG_PATH: &str = "/.well-known/mcp/catalog.json";

const CARD_TYPE: &str = "application/mcp-server-card+json";
const SCHEMA: &str = "https://static.modelcontextprotocol.io/schemas/v1/server-card.schema.json";
const DESCRIPTION: &str =
    "All of one person's MCP servers behind three tools: search, describe, execute.";

/// Returns true if the path is one of these documents.
pub(super) fn is_of_card(path: &str) -> bool {
    path == CATALOG_PATH || CARD_PATHS.contains(&path)
}

/// Returns the document at this path, with our public address, or else the one by which it was asked for;
/// the gate has checked that it is one of ours.
pub(super) fn describe(head: &Parts, gate: &Gate) -> Response<Body> {
    let base = gate.origin(head);
    let name = reverse(base.split_once("://").map_or("", |(_, host)| host));
    let (document, kind) = if head.uri.path() == CATALOG_PATH {
        (catalog(&base, &name), JSON)
    } else {
        (card(&base, &name, gate.takes_tokens()), CARD_TYPE)
    };
    let mut response = Body::whole(document.to_string().into()).respond(StatusCode::OK, kind);
    let caching = HeaderValue::from_static("public, max-age=3600");
    response.headers_mut().insert(CACHE_CONTROL, caching);
    response
}

fn card(base: &str, name: &str, takes_tokens: bool) -> Value {
    let revisions: Vec<String> = Revision::KNOWN.iter().map(ToString::to_string).collect();
    let mut remote = json!({
        "type": "streamable-http",
        "url": format!("{base}/mcp"),
        "supportedProtocolVersions": revisions,
    });
    if takes_tokens {
        let token =
            json!({"description": "a token of this proxy", "isRequired": true, "isSecret": true});
        remote["headers"] = json!([{"name": "Authorization", "value": "Bearer {token}", "isRequired": true,
            "isSecret": true, "variables": {"token": token}}]);
    }
    json!({
        "$schema": SCHEMA,
        "name": format!("{name}/proxy"),
        "title": "proxy",
        "description": DESCRIPTION,
        "version": env!("CARGO_PKG_VERSION"),
        "remotes": [remote],
    })
}

fn catalog(base: &str, name: &str) -> Value {
    let publisher: Vec<&str> = name.rsplit('.').collect();
    json!({
        "specVersion": "draft",
        "entries": [{
            "identifier": format!("urn:air:{}:proxy", publisher.join(".")),
            "displayName": "proxy",
            "type": CARD_TYPE,
            "url": format!("{base}{}", CARD_PATHS[0]),
        }],
    })
}

/// A host name in reverse order, without its port; an address of this machine or network is `localhost`.
fn reverse(host: &str) -> String {
    let name = host.rsplit_once(':').map_or(host, |(name, _)| name);
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '.';
    let is_address = name.ends_with(|c: char| c.is_ascii_digit() || c == ']');
    if name.is_empty() || is_address || !name.chars().all(is_name) {
        return "localhost".to_owned();
    }
    name.rsplit('.').collect::<Vec<_>>().join(".")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_card_has_the_name_of_its_host_and_says_if_a_token_is_needed() {
        for (host, expected) in [
            ("tools.example.com:8443", "com.example.tools"),
            ("localhost:1", "localhost"),
            ("127.0.0.1:1", "localhost"),
            ("[::1]:1", "localhost"),
        ] {
            assert_eq!(reverse(host), expected);
        }
        assert!(DESCRIPTION.len() <= 100);
        let open = card("http://localhost:1", "localhost", false);
        assert_eq!(open["remotes"][0]["url"], "http://localhost:1/mcp");
        assert!(open["remotes"][0].get("headers").is_none());
        let guarded = card("https://a.example", "example.a", true);
        assert_eq!(guarded["remotes"][0]["headers"][0]["isRequired"], true);
        let all = catalog("https://a.example", "example.a");
        assert_eq!(all["entries"][0]["identifier"], "urn:air:a.example:proxy");
    }
}
