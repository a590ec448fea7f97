//! Comments: the descriptions and tags of a saved script.

use tree_sitter::Node;

use super::tag::{Tag, find_tags, lines_of};
use crate::compile::nodes;

/// Returns the description in the doc comment directly before a node.
pub(super) fn describe_before(node: Node<'_>, text: &str) -> Option<String> {
    describe(node.prev_named_sibling()?, text)
}

/// Returns the description in the first doc comment of a file.
pub(super) fn describe_first(root: Node<'_>, text: &str) -> Option<String> {
    nodes(root).find_map(|node| describe(node, text))
}

/// Returns the text of a doc comment before its first tag. Our tags have no text of their own: if there
/// is no text before the first tag, the text after it is the description.
fn describe(node: Node<'_>, text: &str) -> Option<String> {
    if node.kind() != "comment" || !text[node.byte_range()].starts_with("/**") {
        return None;
    }
    let (mut before, mut behind) = (Vec::new(), Vec::new());
    for line in lines_of(node, text) {
        let ours = find_tags(&line).filter(|it| Tag::of_name(it.name).is_some());
        let ours: Vec<_> = ours.collect();
        match (ours.first(), ours.last()) {
            (Some(first), Some(last)) => {
                if behind.is_empty() {
                    let marks = [' ', '\t', '(', '`', '*'];
                    before.push(line[..first.start].trim_end_matches(marks).to_owned());
                }
                behind.push(line[last.end..].trim_start().to_owned());
            }
            _ if line.starts_with('@') => break,
            _ if behind.is_empty() => before.push(line),
            _ => behind.push(line),
        }
    }
    let [before, behind] = [before, behind].map(|lines| lines.join("\n").trim().to_owned());
    Some(if before.is_empty() { behind } else { before })
}
