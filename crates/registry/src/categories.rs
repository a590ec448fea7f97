//! Which category and tags a server gets when the configuration names none.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;
use tool::{Tool, fold};

use crate::words;

/// What our rules make of one server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Guess {
    pub(crate) category: String,
    pub(crate) tags: Vec<String>,
}

impl Guess {
    /// By the name a person gave the server, else by the name it gives itself, else by the
    /// words of its tools.
    pub(crate) fn new(configured: &str, server_name: &str, tools: &[Tool]) -> Self {
        let rules = &*RULES;
        rules
            .by_name(configured)
            .or_else(|| rules.by_name(server_name))
            .or_else(|| rules.by_words(tools))
            .unwrap_or_else(|| Self {
                category: OTHERWISE.to_owned(),
                tags: Vec::new(),
            })
    }
}

/// `registry/categories.toml`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Rules {
    /// Words that say nothing about a server (`mcp`, `server`).
    noise: Vec<String>,
    category: BTreeMap<String, Rule>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Rule {
    /// Well-known servers, each with its tags.
    servers: BTreeMap<String, Vec<String>>,
    /// Stems are compared, so one form of a word is enough.
    words: Vec<String>,
}

impl Rules {
    fn by_name(&self, name: &str) -> Option<Guess> {
        let bare = self.without_noise(name);
        let exact = |known: &str| self.without_noise(known) == bare;
        let inside = |known: &str| {
            let known = self.without_noise(known);
            known.iter().all(|part| bare.contains(part))
        };
        self.first_server(exact)
            .or_else(|| self.first_server(inside))
    }

    fn first_server(&self, is_it: impl Fn(&str) -> bool) -> Option<Guess> {
        let servers = self.category.iter().flat_map(|(category, rule)| {
            rule.servers
                .iter()
                .map(move |(server, tags)| (category, server, tags))
        });
        // The longest name says most: `google-calendar` before `google`.
        let found = servers.filter(|(_, server, _)| is_it(server));
        let (category, _, tags) = found.max_by_key(|(_, server, _)| server.len())?;
        Some(Guess {
            category: category.clone(),
            tags: tags.clone(),
        })
    }

    fn by_words(&self, tools: &[Tool]) -> Option<Guess> {
        let counts = words_of(tools);
        let score = |rule: &Rule| -> usize {
            let stems = rule.words.iter().flat_map(|word| words::stems(word));
            stems.filter_map(|stem| counts.get(&stem)).sum()
        };
        let scored = self
            .category
            .iter()
            .map(|(category, rule)| (score(rule), category));
        // Of equal scores the first category in the alphabet: `max_by_key` alone takes the last.
        let (best, category) = scored.rev().max_by_key(|(score, _)| *score)?;
        (best * 2 >= tools.len().max(2)).then(|| Guess {
            category: category.clone(),
            tags: Vec::new(),
        })
    }

    fn without_noise(&self, name: &str) -> Vec<String> {
        let folded = fold(name).replace([' ', '.', '/', '@'], "_");
        let parts = folded.split('_').filter(|part| !part.is_empty());
        let parts = parts.filter(|part| !self.noise.iter().any(|noise| noise == part));
        parts.map(str::to_owned).collect()
    }
}

/// In how many tools each stem stands, names counted twice.
fn words_of(tools: &[Tool]) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for tool in tools {
        let description: String = tool.description().chars().take(DESCRIPTION_CHARS).collect();
        for text in [tool.name(), &description] {
            let mut stems = words::stems(text);
            stems.sort();
            stems.dedup();
            for stem in stems {
                *counts.entry(stem).or_default() += 1;
            }
        }
    }
    counts
}

static RULES: LazyLock<Rules> = LazyLock::new(|| {
    toml::from_str(include_str!("../../../registry/categories.toml"))
        .expect("a test reads the same embedded file")
});

const OTHERWISE: &str = "utility";

/// A purpose stands in the first sentences; the rest is about other things too.
const DESCRIPTION_CHARS: usize = 300;

#[cfg(test)]
mod tests {
    use super::*;

    fn tools(names: &[&str]) -> Vec<Tool> {
        let json = |name: &&str| format!(r#"{{"name":"{name}"}}"#);
        names
            .iter()
            .map(|name| Tool::parse(&json(name)).unwrap())
            .collect()
    }

    #[track_caller]
    fn check(configured: &str, server_name: &str, names: &[&str], expected: &str) {
        assert_eq!(
            Guess::new(configured, server_name, &tools(names)).category,
            expected
        );
    }

    #[test]
    fn a_server_is_known_by_its_name_or_by_what_its_tools_speak_of() {
        check("github", "", &[], "source-control");
        check("gh", "github-mcp-server", &[], "source-control");
        check("my-slack", "", &[], "communication");
        check("google-calendar", "", &[], "time");
        check("x", "y", &["send_email", "list_inbox"], "communication");
        check(
            "x",
            "y",
            &["run_query", "describe_table", "list_schemas"],
            "databases",
        );
        check("x", "y", &["frobnicate"], "utility");
        check("x", "y", &[], "utility");
    }

    #[test]
    fn every_server_stands_in_one_category() {
        let mut seen = BTreeMap::new();
        for (category, rule) in &RULES.category {
            for server in rule.servers.keys() {
                let before = seen.insert(server.clone(), category.clone());
                assert_eq!(before, None, "{server} stands twice");
            }
        }
    }
}
