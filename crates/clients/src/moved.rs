//! Servers whose address or package has changed: `registry/moved.toml`.

use std::sync::LazyLock;

use serde::Deserialize;

const SOURCE: &str = include_str!("../../../registry/moved.toml");

/// An address that no longer works.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MovedUrl {
    old: String,
    /// Its replacement.
    pub new: String,
    /// The reason why the old one ended.
    pub why: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Archived {
    name: String,
    instead: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    urls: Vec<MovedUrl>,
    packages: Vec<Archived>,
}

fn table() -> &'static Table {
    static TABLE: LazyLock<Table> =
        LazyLock::new(|| toml::from_str(SOURCE).expect("a test reads the same text"));
    &TABLE
}

/// Returns the replacement of an address that has ended.
pub fn moved_url(url: &str) -> Option<&'static MovedUrl> {
    let url = url.trim_end_matches('/');
    table()
        .urls
        .iter()
        .find(|moved| moved.old.eq_ignore_ascii_case(url))
}

/// Returns the replacement of a package that is archived; its version may follow an `@`.
pub fn archived_package(package: &str) -> Option<&'static str> {
    let same = |archived: &&Archived| {
        let rest = package.strip_prefix(archived.name.as_str());
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('@'))
    };
    table()
        .packages
        .iter()
        .find(same)
        .map(|archived| archived.instead.as_str())
}

#[cfg(test)]
mod tests {
    use super::{archived_package, moved_url, table};

    #[test]
    fn what_moved_is_known() {
        let moved = moved_url("https://mcp.atlassian.com/v1/sse/").unwrap();
        assert_eq!(moved.new, "https://mcp.atlassian.com/v2/mcp");
        assert!(moved_url(&moved.new).is_none());
        assert!(archived_package("@modelcontextprotocol/server-slack@1").is_some());
        assert!(archived_package("@modelcontextprotocol/server-slack-x").is_none());
        assert!(table().urls.iter().all(|url| moved_url(&url.new).is_none()));
    }
}
