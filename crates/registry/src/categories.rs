//! Categories of servers and tools, derived from their words by `registry/categories.toml`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use serde::Deserialize;
use tool::Tool;

use crate::words;

/// Returns the category of one tool of a mixed server.
pub(crate) fn of_tool(tool: &Tool) -> Option<&'static str> {
    by_words(std::slice::from_ref(tool))
}

/// Returns the general category that contains a specific one.
pub fn within(category: &str) -> Option<&'static str> {
    RULES.category.get(category)?.within.as_deref()
}

/// Returns every category of the built-in rules.
pub(crate) fn list() -> impl Iterator<Item = &'static str> {
    RULES.category.keys().map(String::as_str)
}

#[cfg(test)]
pub(crate) fn exists(category: &str) -> bool {
    RULES.category.contains_key(category)
}

/// Returns the words that carry no information in server names.
pub(crate) fn noise() -> &'static [String] {
    &RULES.noise
}

/// The content of `registry/categories.toml`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Rules {
    /// Words that carry no information in server names (`mcp`, `server`).
    noise: Vec<String>,
    category: BTreeMap<String, Rule>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Rule {
    within: Option<String>,
    /// Stems are compared, so one form of a word is enough.
    words: Vec<String>,
    #[serde(skip)]
    stems: Vec<String>,
}

/// Returns the category whose words occur in the most tools, if they occur in at least half of
/// them.
pub(crate) fn by_words(tools: &[Tool]) -> Option<&'static str> {
    let counts = words_of(tools);
    let score = |rule: &Rule| -> usize {
        let stems = rule.stems.iter();
        stems.filter_map(|stem| counts.get(stem)).sum()
    };
    let scored = RULES
        .category
        .iter()
        .map(|(category, rule)| (score(rule), category));
    // On a tie, selects the alphabetically first category: `max_by_key` alone returns the last one.
    let (best, category) = scored.rev().max_by_key(|(score, _)| *score)?;
    (best * 2 >= tools.len().max(2)).then_some(category.as_str())
}

/// Counts the tools in which each stem occurs. Stems of tool names count twice.
fn words_of(tools: &[Tool]) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for tool in tools {
        let description = tool.description();
        let description = printable::first_chars(&description, DESCRIPTION_CHARS);
        for text in [tool.name(), description] {
            let stems: BTreeSet<String> = words::stems(text).into_iter().collect();
            for stem in stems {
                *counts.entry(stem).or_default() += 1;
            }
        }
    }
    counts
}

static RULES: LazyLock<Rules> = LazyLock::new(|| {
    let mut rules: Rules = toml::from_str(SOURCE).expect("a test reads the same embedded file");
    for rule in rules.category.values_mut() {
        let stems = rule.words.iter().flat_map(|word| words::stems(word));
        rule.stems = stems.collect();
    }
    rules
});

pub(crate) const SOURCE: &str = include_str!("../../../registry/categories.toml");

/// The number of characters of a description that are read: the first sentences state the purpose.
const DESCRIPTION_CHARS: usize = 300;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::tools;

    #[test]
    fn finer_categories_lie_within_coarse_ones() {
        assert_eq!(within("databases"), Some("data"));
        assert_eq!(within("data"), None);
        for (category, rule) in &RULES.category {
            if let Some(coarse) = &rule.within {
                assert!(exists(coarse) && within(coarse).is_none(), "{category}");
            }
        }
    }

    #[test]
    fn a_tool_of_a_server_of_many_things_is_filed_by_its_own_words() {
        let of = |name: &str| of_tool(&tools(&[name])[0]);
        assert_eq!(of("send_mail_message"), Some("communication"));
        assert_eq!(of("create_calendar_event"), Some("time"));
        assert_eq!(of("frobnicate"), None);
    }
}
