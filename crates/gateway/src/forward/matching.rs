//! Finds prompts and resources by words, and lists their names one a line, for a model.

use std::collections::BTreeSet;

use registry::KnownServer;
use tool::{ItemKind, OfferItem};

use super::{prompt_names::listed_name, server_uri};

/// The longest line, in characters.
const LINE_CHARS_MAX: usize = 200;

/// The kinds of items that are read as resources.
pub(crate) const RESOURCE_KINDS: [ItemKind; 3] =
    [ItemKind::Resource, ItemKind::Template, ItemKind::Skill];

/// Returns the kinds that the words of a request name, without skills: [`super::skill_lines`] finds
/// them.
pub(crate) fn kinds_named(query: &str) -> Vec<ItemKind> {
    let words = words(query);
    let has = |names: [&str; 2]| names.iter().any(|name| words.contains(*name));
    let mut kinds = Vec::new();
    if has(["prompt", "prompts"]) {
        kinds.push(ItemKind::Prompt);
    }
    if has(["resource", "resources"]) {
        kinds.extend([ItemKind::Resource, ItemKind::Template]);
    }
    kinds
}

/// Lists the items that match, those with most of the words first; all items if the query has no
/// words.
pub(crate) fn lines(seen: &[&KnownServer], kinds: &[ItemKind], query: &str) -> Vec<String> {
    let mut words = words(query);
    for own in ["prompt", "prompts", "resource", "resources"] {
        words.remove(own);
    }
    let mut found: Vec<(usize, String)> = Vec::new();
    for kind in kinds {
        for server in seen {
            for item in server.offer.list(*kind) {
                let line = line(*kind, server, item, seen);
                let lower = line.to_lowercase();
                let is_in = |word: &&String| lower.contains(word.as_str());
                let score = words.iter().filter(is_in).count();
                if score > 0 || words.is_empty() {
                    found.push((score, line));
                }
            }
        }
    }
    // Stable: lists keep their order.
    found.sort_by_key(|(score, _)| usize::MAX - score);
    found.into_iter().map(|(_, line)| line).collect()
}

fn words(query: &str) -> BTreeSet<String> {
    let words = query
        .split(|c: char| !c.is_alphanumeric())
        .filter(|word| word.len() > 1);
    words.map(str::to_lowercase).collect()
}

fn line(kind: ItemKind, server: &KnownServer, item: &OfferItem, seen: &[&KnownServer]) -> String {
    let (label, name) = match kind {
        ItemKind::Prompt => ("prompt", listed_name(&server.name, item.id())),
        ItemKind::Resource | ItemKind::App => ("resource", uri(kind, server, item, seen)),
        ItemKind::Template => ("resource template", uri(kind, server, item, seen)),
        ItemKind::Skill => return super::skills::line(server, item),
    };
    let title = item
        .text("title")
        .or_else(|| item.text("name"))
        .filter(|it| !name.contains(it.as_str()));
    let texts = [title, item.text("description")].into_iter().flatten();
    let says: Vec<String> = texts.filter(|text| !text.trim().is_empty()).collect();
    let line = if says.is_empty() {
        format!("[{label}] {name}")
    } else {
        format!("[{label}] {name} - {}", says.join(": "))
    };
    printable::one_line_of(&line, LINE_CHARS_MAX)
}

/// The URI, with its server if several servers have it.
fn uri(kind: ItemKind, server: &KnownServer, item: &OfferItem, seen: &[&KnownServer]) -> String {
    if super::owner::owners_listed(seen, kind, item.id()).len() > 1 {
        server_uri::write(&server.name, item.id())
    } else {
        item.id().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::{ItemKind, kinds_named};

    #[test]
    fn only_who_says_so_is_shown_prompts_and_resources() {
        let check = |query: &str, expected: &[ItemKind]| {
            assert_eq!(kinds_named(query), expected, "{query}");
        };
        check("create an issue", &[]);
        check("a Prompt for reviews", &[ItemKind::Prompt]);
        check("list resources", &[ItemKind::Resource, ItemKind::Template]);
        check("resourceful prompting", &[]);
    }
}
