//! A fixed text that is searched for in long texts.

use std::sync::OnceLock;

use memchr::memmem::Finder;

/// A fixed text that is searched for in long texts. The search is prepared once, which takes longer than
/// a search in a short text.
#[derive(Debug)]
pub struct Literal {
    text: &'static str,
    finder: OnceLock<Finder<'static>>,
}

impl Literal {
    /// Creates the literal, for a `static`.
    pub const fn new(text: &'static str) -> Self {
        let finder = OnceLock::new();
        Self { text, finder }
    }

    /// Returns true if `text` contains it.
    pub fn is_in(&self, text: &str) -> bool {
        let finder = self.finder.get_or_init(|| Finder::new(self.text));
        finder.find(text.as_bytes()).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::Literal;

    #[test]
    fn a_literal_is_found_in_every_place() {
        static LITERAL: Literal = Literal::new("\"uri\"");
        let found = ["\"uri\"", "{\"uri\":1}", "é\"uri\""];
        assert!(found.iter().all(|text| LITERAL.is_in(text)));
        assert!(!["", "uri", "\"uri"].iter().any(|text| LITERAL.is_in(text)));
    }
}
