//! Access to the nodes of a script.

use tree_sitter::Node;

use crate::message::ScriptPosition;

/// The reason why a script cannot be run.
#[derive(Debug)]
pub(crate) struct Unreadable {
    pub(crate) text: String,
    pub(crate) place: Option<ScriptPosition>,
}

impl Unreadable {
    pub(crate) fn at(node: Node<'_>, script: &str, why: &str) -> Self {
        Self {
            text: why.to_owned(),
            place: Some(place_of(node, script)),
        }
    }
}

/// Returns every node, parents first, without recursion: a script may be nested more deeply than the
/// stack allows.
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

pub(super) fn place_of(node: Node<'_>, script: &str) -> ScriptPosition {
    let start = node.start_position();
    let line = script.get(node.start_byte() - start.column..node.start_byte());
    let column = line.map(|before| before.chars().count() + 1);
    ScriptPosition {
        line: line_of(node),
        column: column.and_then(|it| u32::try_from(it).ok()),
    }
}

pub(super) fn line_of(node: Node<'_>) -> u32 {
    u32::try_from(node.start_position().row + 1).unwrap_or(u32::MAX)
}

/// Returns the child that is this keyword or symbol.
pub(crate) fn token<'t>(node: Node<'t>, word: &str) -> Option<Node<'t>> {
    let mut cursor = node.walk();
    let mut children = node.children(&mut cursor);
    children.find(|child| !child.is_named() && child.kind() == word)
}
