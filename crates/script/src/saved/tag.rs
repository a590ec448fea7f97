//! The tags of a saved script: `@readOnly`, `@destructive`, `@idempotent`.
//!
//! Tags are read in comments of every form, anywhere in the file. In doubt the stricter reading
//! applies: `@readOnly` and `@destructive` count in any comment of the file; `@idempotent`, which
//! allows a call to be repeated, counts only if it is certainly a tag of the script; and a file with
//! anything that looks like a misspelt tag is refused.

use tree_sitter::Node;

use crate::{
    compile::{Unreadable, nodes},
    message::ScriptPosition,
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tag {
    ReadOnly,
    Destructive,
    Idempotent,
}

/// The most letters by which a misspelling differs from a tag's name.
const SLIP_MAX: usize = 2;

/// Words after a tag that would negate it: a tag has no value.
const VALUES: [&str; 7] = ["false", "true", "no", "not", "never", "off", "none"];

impl Tag {
    const ALL: [Self; 3] = [Self::ReadOnly, Self::Destructive, Self::Idempotent];

    const fn name(self) -> &'static str {
        match self {
            Self::ReadOnly => "readOnly",
            Self::Destructive => "destructive",
            Self::Idempotent => "idempotent",
        }
    }

    pub(super) fn of_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.name() == name)
    }

    /// Returns the tag that a name certainly stands for, in other letter case or in MCP's spelling:
    /// `@readonly`, `@readOnlyHint`.
    fn near(name: &str) -> Option<Self> {
        let letters = name.chars().filter(|it| it.is_alphanumeric());
        let folded: String = letters.flat_map(char::to_lowercase).collect();
        let folded = folded.strip_suffix("hint").unwrap_or(&folded);
        let is_near =
            |it: &Self| strsim::osa_distance(folded, &it.name().to_lowercase()) <= SLIP_MAX;
        Self::ALL.into_iter().find(is_near)
    }
}

/// Returns the lines of a comment of any form, without its markers and invisible characters.
pub(super) fn lines_of(comment: Node<'_>, text: &str) -> impl Iterator<Item = String> {
    let text = &text[comment.byte_range()];
    let inner = text.trim_start_matches('/').trim_start_matches('*');
    let inner = inner.strip_suffix("*/").unwrap_or(inner);
    inner.lines().map(|line| {
        let line = line.trim();
        let line = line.strip_prefix('*').unwrap_or(line).trim();
        let is_seen = |c: &char| *c == '\t' || !printable::is_hidden(*c);
        line.chars().filter(is_seen).collect()
    })
}

/// A tag `@name` in a line.
#[derive(Debug)]
pub(super) struct FoundTag<'l> {
    pub(super) name: &'l str,
    /// The byte offset of its `@`.
    pub(super) start: usize,
    /// The byte offset after it.
    pub(super) end: usize,
}

/// Finds the tags in a line; `a@b` and `node/@types` are not tags.
pub(super) fn find_tags(line: &str) -> impl Iterator<Item = FoundTag<'_>> {
    let is_of_name = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-');
    line.match_indices('@').filter_map(move |(start, _)| {
        let before = line[..start].chars().next_back();
        if before.is_some_and(|c| is_of_name(c) || matches!(c, '.' | '/')) {
            return None;
        }
        let rest = &line[start + 1..];
        let length = rest.find(|c| !is_of_name(c)).unwrap_or(rest.len());
        (length > 0).then(|| FoundTag {
            name: &rest[..length],
            start,
            end: start + 1 + length,
        })
    })
}

/// Reads the tags of a script whose `main` is in this statement.
pub(super) fn read_tags(
    root: Node<'_>,
    main: Option<Node<'_>>,
    text: &str,
) -> Result<Vec<Tag>, Unreadable> {
    let about = comments_about(root, main);
    let mut tags = Vec::new();
    for node in nodes(root).filter(|it| it.kind() == "comment") {
        let is_about = about.contains(&node);
        let first = node.start_position().row + 1;
        for (at, line) in lines_of(node, text).enumerate() {
            let read = read_line(&line, is_about);
            tags.extend(read.map_err(|text| Unreadable {
                text,
                place: Some(ScriptPosition {
                    line: u32::try_from(first + at).unwrap_or(u32::MAX),
                    column: None,
                }),
            })?);
        }
    }
    Ok(tags)
}

/// Returns the comments about the script: those directly before `main`, else those at the beginning of
/// the file.
fn comments_about<'t>(root: Node<'t>, main: Option<Node<'t>>) -> Vec<Node<'t>> {
    let is_comment = |it: &Node<'t>| it.kind() == "comment";
    let before = |it: &Node<'t>| it.prev_named_sibling();
    let of_main: Vec<_> = std::iter::successors(main.and_then(|it| before(&it)), before)
        .take_while(is_comment)
        .collect();
    if !of_main.is_empty() {
        return of_main;
    }
    let mut cursor = root.walk();
    let (comments, statements): (Vec<_>, Vec<_>) =
        root.named_children(&mut cursor).partition(is_comment);
    let is_of_other = statements
        .first()
        .is_none_or(|it| matches!(it.kind(), "function_declaration" | "class_declaration"));
    let first = statements.first().map_or(0, Node::start_byte);
    let is_first = |it: &Node<'t>| it.end_byte() <= first;
    comments
        .into_iter()
        .filter(|it| !is_of_other && is_first(it))
        .collect()
}

fn read_line(line: &str, is_about: bool) -> Result<Vec<Tag>, String> {
    let mut tags = Vec::new();
    let mut follows_tag_at = 0;
    for found in find_tags(line) {
        let name = found.name;
        let Some(tag) = Tag::of_name(name) else {
            match Tag::near(name) {
                Some(near) => {
                    return Err(format!(
                        "`@{name}` is not a tag; did you mean `@{}`?",
                        near.name()
                    ));
                }
                None => continue,
            }
        };
        let behind =
            line[found.end..].trim_start_matches(|c: char| !c.is_alphanumeric() && c != '@');
        let word = behind.split(|c: char| !c.is_alphanumeric()).next();
        let word = word.unwrap_or_default().to_lowercase();
        if VALUES.contains(&word.as_str()) {
            return Err(format!(
                "`@{name}` takes no value; remove \"{word}\", or the tag"
            ));
        }
        let between = line[follows_tag_at..found.start].trim_end_matches([' ', '*', '`', '(']);
        let is_apart = !between.contains(char::is_alphanumeric)
            || between.ends_with(['.', '!', '?', ',', ';', ':']);
        if tag == Tag::Idempotent && !(is_about && is_apart) {
            return Err(format!(
                "`@{name}` is not used as a tag here; put it on a line of its own in the comment before `main`"
            ));
        }
        tags.push(tag);
        follows_tag_at = found.end;
    }
    Ok(tags)
}
