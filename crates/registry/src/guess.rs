//! Guesses the category and tags of a server that has none in the configuration.

use std::sync::LazyLock;

use tool::{Digest, Tool};

use crate::catalog::Record;
use crate::categories;
use crate::known_servers::{ServerNames, known};

impl Record {
    /// Sets the category, the tags and the other names of a server, by a recipe for one of its names, or
    /// else by the words of its tools.
    pub(crate) fn guess(&mut self, names: ServerNames, tools: &[Tool]) {
        let Some(known) = known(names) else {
            let category = categories::by_words(tools).unwrap_or(OTHERWISE);
            self.category = Some(category.to_owned());
            return;
        };
        let names = std::iter::once(&known.name).chain(&known.aliases);
        self.category = Some(known.category.clone());
        self.tags.clone_from(&known.tags);
        self.aliases = names.cloned().collect();
        self.mixed = known.mixed;
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
        let mut record = Record::default();
        record.guess(["x", "", "y"], &tools(names));
        assert_eq!(record.category.as_deref(), Some(expected));
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
