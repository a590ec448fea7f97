//! Looks at the nodes of a script.

use tree_sitter::Node;

/// Why a script cannot be run.
#[derive(Debug)]
pub(crate) struct Unreadable {
    pub(crate) text: String,
    pub(crate) line: Option<u32>,
}

impl Unreadable {
    /// What is wrong with a node.
    pub(crate) fn at(node: Node<'_>, why: &str) -> Self {
        Self {
            text: why.to_owned(),
            line: Some(line_of(node)),
        }
    }
}

/// Every node, parents first; a script may be nested more deeply than a stack is.
pub(crate) fn nodes(root: Node<'_>) -> impl Iterator<Item = Node<'_>> {
    let mut open = vec![root];
    std::iter::from_fn(move || {
        let node = open.pop()?;
        let mut cursor = node.walk();
        let from = open.len();
        open.extend(node.children(&mut cursor));
        open[from..].reverse();
        Some(node)
    })
}

pub(crate) fn line_of(node: Node<'_>) -> u32 {
    u32::try_from(node.start_position().row + 1).unwrap_or(u32::MAX)
}

/// A child that is this word or sign.
pub(crate) fn token<'t>(node: Node<'t>, word: &str) -> Option<Node<'t>> {
    let mut cursor = node.walk();
    let mut children = node.children(&mut cursor);
    children.find(|child| !child.is_named() && child.kind() == word)
}
