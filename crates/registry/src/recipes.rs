//! Well-known servers, by their names: `registry/recipes.toml`.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;
use tool::fold;

use crate::categories::noise;

/// Category, tags and names of a server that is known before it says a word.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Recipe {
    pub(crate) category: String,
    pub(crate) tags: Vec<String>,
    /// Other names that people have for it.
    #[serde(default)]
    pub(crate) aliases: Vec<String>,
    /// Other names of the server, its package or its host.
    #[serde(default)]
    names: Vec<String>,
    /// Its name is too common a word to be part of another.
    #[serde(default)]
    whole: bool,
    /// Each of its tools has a category of its own.
    #[serde(default)]
    pub(crate) mixed: bool,
}

/// The names that a server goes by, the surest first.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Names<'a> {
    /// A person gave it.
    pub(crate) configured: &'a str,
    /// The package, program or host that the configuration names.
    pub(crate) program: &'a str,
    /// From `serverInfo`.
    pub(crate) server_name: &'a str,
}

impl Recipe {
    /// The recipe of a server: one that a name names whole, else one that a name holds; of
    /// several the longest, which says most (`google-calendar` before `google`).
    pub(crate) fn of(names: Names) -> Option<&'static Self> {
        let names = [names.configured, names.program, names.server_name].map(parts);
        let whole = |known: &Known, name: &[String]| known.parts == name;
        let held = |known: &Known, name: &[String]| {
            !known.recipe.whole && known.parts.iter().all(|part| name.contains(part))
        };
        let first = |is_it: fn(&Known, &[String]) -> bool, name: &Vec<String>| {
            let found = KNOWN.iter().filter(|known| is_it(known, name));
            found.max_by_key(|known| known.parts.concat().len())
        };
        let whole = names.iter().find_map(|name| first(whole, name));
        let [configured, program, server_name] = &names;
        let by_part = [program, configured, server_name];
        let found = whole.or_else(|| by_part.iter().find_map(|name| first(held, name)));
        found.map(|known| known.recipe)
    }
}

/// A recipe under one of its names.
#[derive(Debug)]
struct Known {
    parts: Vec<String>,
    recipe: &'static Recipe,
}

static RECIPES: LazyLock<BTreeMap<String, Recipe>> =
    LazyLock::new(|| toml::from_str(SOURCE).expect("a test reads the same embedded file"));

static KNOWN: LazyLock<Vec<Known>> = LazyLock::new(|| {
    let known = RECIPES.iter().flat_map(|(name, recipe)| {
        let names = std::iter::once(name).chain(&recipe.names);
        names.map(move |name| Known {
            parts: parts(name),
            recipe,
        })
    });
    known.filter(|known| !known.parts.is_empty()).collect()
});

/// The telling words of a name.
fn parts(name: &str) -> Vec<String> {
    let folded = fold(name).replace(|c: char| !c.is_alphanumeric(), "_");
    let parts = folded.split('_').filter(|part| !part.is_empty());
    let parts = parts.filter(|part| !noise().iter().any(|noise| noise == part));
    parts.map(str::to_owned).collect()
}

pub(crate) const SOURCE: &str = include_str!("../../../registry/recipes.toml");

#[cfg(test)]
mod tests {
    use super::*;
    use crate::categories;

    #[track_caller]
    fn check([configured, program, server_name]: [&str; 3], expected: Option<&str>) {
        let names = Names {
            configured,
            program,
            server_name,
        };
        let category = Recipe::of(names).map(|recipe| recipe.category.as_str());
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
        for (name, recipe) in &*RECIPES {
            assert!(
                categories::exists(&recipe.category),
                "{name}: {}",
                recipe.category
            );
            for name in std::iter::once(name).chain(&recipe.names) {
                let before = seen.insert(parts(name), name.clone());
                assert_eq!(before, None, "{name} stands twice");
            }
        }
    }
}
