//! Recognizes well-known servers by their names.

use std::sync::LazyLock;

use recipes::ServerFacts;
use tool::fold;

use crate::categories::noise;

/// The names of a server, the most reliable first: the name in the configuration; the package, program or
/// host that the configuration names; the name from `serverInfo`.
pub(crate) type ServerNames<'a> = [&'a str; 3];

/// Returns the known server whose name equals one of these names, or else one whose name is
/// contained in one of them. Of several contained names the longest wins, because it is the most
/// specific (`google-calendar` before `google`).
pub(crate) fn known(names: ServerNames) -> Option<&'static ServerFacts> {
    let names = names.map(parts);
    let whole = |named: &NamedServer, name: &[String]| named.parts == name;
    let held = |named: &NamedServer, name: &[String]| {
        !named.known.whole && named.parts.iter().all(|part| name.contains(part))
    };
    let first = |is_it: fn(&NamedServer, &[String]) -> bool, name: &Vec<String>| {
        let found = NAMED.iter().filter(|named| is_it(named, name));
        found.max_by_key(|named| named.length)
    };
    let whole = names.iter().find_map(|name| first(whole, name));
    let [configured, program, server_name] = &names;
    let by_part = [program, configured, server_name];
    let found = whole.or_else(|| by_part.iter().find_map(|name| first(held, name)));
    found.map(|named| named.known)
}

/// A known server under one of its names.
#[derive(Debug)]
struct NamedServer {
    parts: Vec<String>,
    /// The length of all parts of the name, in bytes.
    length: usize,
    known: &'static ServerFacts,
}

static NAMED: LazyLock<Vec<NamedServer>> = LazyLock::new(|| {
    let named = recipes::known().flat_map(|known| {
        let names = std::iter::once(&known.name).chain(&known.names);
        names.map(move |name| {
            let parts = parts(name);
            let length = parts.iter().map(String::len).sum();
            NamedServer {
                parts,
                length,
                known,
            }
        })
    });
    named.filter(|named| !named.parts.is_empty()).collect()
});

/// Returns true if two names are equal except for punctuation and words such as `mcp` and `server`.
pub(crate) fn is_same(a: &str, b: &str) -> bool {
    let parts = parts(a);
    !parts.is_empty() && parts == self::parts(b)
}

/// Returns the words of a name that carry information.
pub(crate) fn parts(name: &str) -> Vec<String> {
    let folded = fold(name).replace(|c: char| !c.is_alphanumeric(), "_");
    let parts = folded.split('_').filter(|part| !part.is_empty());
    let parts = parts.filter(|part| !noise().iter().any(|noise| noise == part));
    parts.map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::categories;

    #[track_caller]
    fn check(names: ServerNames, expected: Option<&str>) {
        let category = known(names).map(|known| known.category.as_str());
        assert_eq!(category, expected, "{names:?}");
    }

    #[test]
    fn a_server_is_known_by_any_of_its_names() {
        check(["github", "", ""], Some("source-control"));
        check(["gh", "", "github-mcp-server"], Some("source-control"));
        check(
            ["work", "@modelcontextprotocol/server-slack", ""],
            Some("communication"),
        );
        check(
            ["work", "ghcr.io/github/github-mcp-server:latest", ""],
            Some("source-control"),
        );
        check(["x", "mcp.linear.app", ""], Some("planning"));
        check(["google-calendar", "", ""], Some("time"));
        check(["x", "awslabs.dynamodb-mcp-server", ""], Some("databases"));
        check(["my-slack", "", ""], Some("communication"));
        check(["real-time-prices", "", ""], None);
        check(["linear-algebra", "", ""], None);
        check(["", "", ""], None);
        check(["mcp-server", "", ""], None);
    }

    #[test]
    fn every_recipe_is_filed_where_a_search_can_look() {
        let mut seen = BTreeMap::new();
        for known in recipes::known() {
            let name = &known.name;
            assert!(
                categories::exists(&known.category),
                "{name}: {}",
                known.category
            );
            for name in std::iter::once(name).chain(&known.names) {
                let before = seen.insert(parts(name), name.clone());
                assert_eq!(before, None, "{name} stands twice");
            }
        }
    }
}
