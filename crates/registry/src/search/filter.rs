//! The category, server and tags that restrict a query.

use tool::fold;

use crate::Entry;
use crate::search::query::Query;

/// The conditions of a query that a tool must meet whatever its score.
#[derive(Debug)]
pub(super) struct Filter {
    category: Option<String>,
    server: Option<String>,
    tags: Vec<String>,
}

impl Filter {
    pub(super) fn of(query: &Query) -> Self {
        let said = |text: &Option<String>| {
            text.as_deref()
                .map(fold)
                .filter(|text| !text.is_empty() && text != "*")
        };
        Self {
            category: said(&query.category),
            server: said(&query.server),
            tags: query.tags.iter().map(|tag| fold(tag)).collect(),
        }
    }

    pub(super) fn is_set(&self) -> bool {
        self.category.is_some() || self.server.is_some() || !self.tags.is_empty()
    }

    pub(super) fn admits(&self, entry: &Entry) -> bool {
        if !self.is_set() {
            return true;
        }
        let server = fold(entry.at.server.as_str());
        let category = self.category.as_ref().is_none_or(|asked| {
            let within = crate::categories::within(&entry.category);
            *asked == server
                || *asked == fold(&entry.category)
                || within.is_some_and(|coarse| fold(coarse) == *asked)
        });
        let has = |tag: &String| entry.tags.iter().any(|known| fold(known) == *tag);
        category
            && self.server.as_ref().is_none_or(|asked| *asked == server)
            && self.tags.iter().all(has)
    }
}
