//! Comments that document: `/** ... */`.

use tree_sitter::Node;

use crate::compile::nodes;

/// What a comment says.
#[derive(Debug, Default)]
pub(super) struct Comment {
    /// Up to the first tag.
    pub(super) description: String,
    /// The names of its tags: `readOnly` of `@readOnly`.
    pub(super) tags: Vec<String>,
}

/// The one directly before a node.
pub(super) fn comment_before(node: Node<'_>, text: &str) -> Option<Comment> {
    let before = node.prev_named_sibling()?;
    read(before, text)
}

/// The first of a file.
pub(super) fn first_comment(root: Node<'_>, text: &str) -> Option<Comment> {
    nodes(root).find_map(|node| read(node, text))
}

fn read(node: Node<'_>, text: &str) -> Option<Comment> {
    let text = &text[node.byte_range()];
    let inner = text.strip_prefix("/**")?.strip_suffix("*/")?;
    if node.kind() != "comment" {
        return None;
    }
    let lines = inner.lines().map(|line| {
        let line = line.trim();
        line.strip_prefix('*').unwrap_or(line).trim()
    });
    let mut comment = Comment::default();
    let mut described = Vec::new();
    for line in lines {
        match line.strip_prefix('@') {
            Some(tag) => {
                let name = tag.split_whitespace().next().unwrap_or_default();
                comment.tags.push(name.to_owned());
            }
            // What follows a tag belongs to it.
            None if comment.tags.is_empty() => described.push(line),
            None => {}
        }
    }
    let description = described.join("\n").trim().to_owned();
    Some(Comment {
        description,
        ..comment
    })
}
