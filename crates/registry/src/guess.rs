//! Guesses the category and tags of a server that has none in the configuration.

use std::sync::LazyLock;

use tool::{Digest, Tool};

use crate::categories;
use crate::known_servers::{ServerNames, known};

/// The category and tags of a server according to the built-in rules.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Guess {
    pub(crate) category: String,
    pub(crate) tags: Vec<String>,
    /// Other common names of the server.
    pub(crate) aliases: Vec<String>,
    /// True if each tool of the server has its own category.
    pub(crate) mixed: bool,
}

impl Guess {
    /// Derives the guess from a recipe for one of the names, or else from the words of the tools.
    pub(crate) fn new(names: ServerNames, tools: &[Tool]) -> Self {
        match known(names) {
            Some(known) => Self {
                category: known.category.clone(),
                tags: known.tags.clone(),
                aliases: std::iter::once(&known.name)
                    .chain(&known.aliases)
                    .cloned()
                    .collect(),
                mixed: known.mixed,
            },
            None => Self {
                category: categories::by_words(tools).unwrap_or(OTHERWISE).to_owned(),
                tags: Vec::new(),
                aliases: Vec::new(),
                mixed: false,
            },
        }
    }
}

/// Returns a digest of the rules. Values derived with other rules are recomputed.
pub(crate) fn rules_digest() -> &'static str {
    static DIGEST: LazyLock<String> = LazyLock::new(|| {
        let sources = [RULES_VERSION, categories::SOURCE, recipes::SOURCE].concat();
        Digest::of_bytes(sources.as_bytes()).short(16)
    });
    &DIGEST
}

/// The version of the code that applies the rules: raise it if the same rules give other values.
const RULES_VERSION: &str = "2";

const OTHERWISE: &str = "utility";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::tools;

    #[track_caller]
    fn check(names: &[&str], expected: &str) {
        let nobody = ServerNames {
            configured: "x",
            program: "",
            server_name: "y",
        };
        assert_eq!(Guess::new(nobody, &tools(names)).category, expected);
    }

    #[test]
    fn a_server_that_no_recipe_knows_is_filed_by_what_its_tools_speak_of() {
        check(&["send_email", "list_inbox"], "communication");
        check(
            &["run_query", "describe_table", "list_schemas"],
            "databases",
        );
        check(&["frobnicate"], "utility");
        check(&[], "utility");
    }
}
