//! Counts the items of a list by the folders in which they lie, for the items that a cut leaves out.

use std::{cmp::Reverse, collections::BTreeMap};

use serde_json::Value;

use crate::{TextKind, TextPiece, json::locate, kind::found_in};

/// The folders of the items that a cut leaves out.
#[derive(Debug, PartialEq, Eq)]
pub struct Places {
    /// Folders, each with the number of items below it, the most first; none contains another.
    pub folders: Vec<(usize, String)>,
    /// The number of all items that are left out.
    pub items: usize,
}

/// Fewer items than this are not counted by folder.
const ITEMS_MIN: usize = 10;

/// The lines of a text that are looked at to tell if it lists paths.
const LINES_SEEN: usize = 40;

/// The most folders that are named.
const FOLDERS_MAX: usize = 2;

/// The longest folder that is named, in bytes; of a longer one an outer folder is.
const FOLDER_BYTES_MAX: usize = 80;

/// The longest JSON that is parsed for it, in bytes: its values take several times as much memory.
const JSON_BYTES_MAX: usize = 4 * 1024 * 1024;

/// The members of an item that may be its path, the best first.
const PATH_KEYS: [&str; 7] = [
    "path",
    "file",
    "file_path",
    "filename",
    "uri",
    "url",
    "name",
];

/// Returns true if the items of a list may have paths, judged by its beginning.
pub fn may_list_paths(piece: &TextPiece<'_>) -> bool {
    match piece.kind {
        TextKind::Search => true,
        TextKind::Json => piece.text.len() <= JSON_BYTES_MAX && piece.text.contains('/'),
        TextKind::Text => {
            let first: Vec<&str> = piece.text.lines().take(LINES_SEEN).collect();
            first.iter().filter(|line| is_path(line)).count() * 2 >= first.len()
        }
        _ => false,
    }
}

/// Returns the folders of the items between two cuts of a list; `None` if fewer than half of them
/// have a path, or if their folders have nothing in common.
pub fn locate_rest(piece: &TextPiece<'_>, from: usize, to: usize) -> Option<Places> {
    if !may_list_paths(piece) {
        return None;
    }
    let lines = piece.text[from..to].lines();
    let lines = lines.filter(|line| !line.trim().is_empty());
    match piece.kind {
        TextKind::Search => count_by_folder(lines.filter_map(found_in)),
        TextKind::Json => {
            let place = locate(piece.text, from)?;
            let whole: Value = serde_json::from_str(piece.text).ok()?;
            let items = whole.pointer(&place.pointer)?.as_array()?;
            count_by_folder(items.iter().skip(place.shown).map(path_of))
        }
        _ => count_by_folder(lines),
    }
}

/// Returns the path of an item of JSON; an empty text if it has none.
fn path_of(item: &Value) -> &str {
    let text = |value: &Value| value.as_str().is_some_and(is_path);
    let mut members = PATH_KEYS.iter().filter_map(|key| item.get(key));
    let member = members.find(|value| text(value));
    item.as_str()
        .or(member.and_then(Value::as_str))
        .unwrap_or("")
}

/// Returns true for a text that can only be a path or an address: it stands in our own line.
fn is_path(text: &str) -> bool {
    let is_plain = |c: char| c.is_alphanumeric() || "/._-@+~:%#=,$".contains(c);
    text.contains('/') && text.chars().all(is_plain)
}

fn count_by_folder<'a>(items: impl Iterator<Item = &'a str>) -> Option<Places> {
    let (mut paths, mut items_seen) = (Vec::new(), 0);
    for item in items {
        items_seen += 1;
        paths.extend(Some(item).filter(|item| is_path(item)));
    }
    if items_seen < ITEMS_MIN || paths.len() * 2 < items_seen {
        return None;
    }
    let (all, root) = descend(&paths, "", 10);
    let mut inner: Vec<(usize, &str)> = count_inner(&paths, root);
    inner.sort_by_key(|(count, _)| Reverse(*count));
    inner.retain(|(count, _)| count * 10 >= items_seen);
    let inner = inner.into_iter().take(FOLDERS_MAX);
    let mut folders: Vec<(usize, &str)> = inner
        .map(|(_, folder)| descend(&paths, folder, 8))
        .collect();
    if folders.is_empty() && !root.is_empty() {
        folders.push((all, root));
    }
    let folders = folders.into_iter();
    let folders: Vec<_> = folders.map(|(count, it)| (count, it.to_owned())).collect();
    (!folders.is_empty()).then_some(Places {
        folders,
        items: items_seen,
    })
}

/// Goes down from a folder as long as one folder in it has so many tenths of its paths. Returns the
/// folder, and the number of paths below it.
fn descend<'a>(paths: &[&'a str], mut folder: &'a str, tenths: usize) -> (usize, &'a str) {
    loop {
        let all = paths.iter().filter(|path| path.starts_with(folder)).count();
        let inner = count_inner(paths, folder);
        match inner.into_iter().max_by_key(|(count, _)| *count) {
            Some((count, inner)) if count * 10 >= all * tenths => folder = inner,
            _ => return (all, folder),
        }
    }
}

/// Counts the paths below each folder that is directly in this one.
fn count_inner<'a>(paths: &[&'a str], folder: &str) -> Vec<(usize, &'a str)> {
    let mut counts = BTreeMap::<&str, usize>::new();
    for path in paths {
        if let Some(rest) = path.strip_prefix(folder)
            && let Some(end) = rest.find('/').map(|end| folder.len() + end + 1)
            && end <= FOLDER_BYTES_MAX
        {
            *counts.entry(&path[..end]).or_default() += 1;
        }
    }
    counts.into_iter().map(|(it, count)| (count, it)).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::locate_rest;
    use crate::TextPiece;

    fn paths() -> Vec<String> {
        let below = |folder: &'static str, count: usize| {
            (0..count).map(move |at| format!("{folder}/d{}/file{at}.py", at % 20))
        };
        let others = (0..30).flat_map(|at| below(["a", "b", "c", "d", "e"][at % 5], 6));
        let paths = below("tools/rag", 600).chain(others);
        paths.map(|it| format!("/home/u/{it}")).collect()
    }

    #[track_caller]
    fn check(text: &str, from: usize, expected: Option<(&[(usize, &str)], usize)>) {
        let found = locate_rest(&TextPiece::of(text), from, text.len());
        let found = found.as_ref().map(|it| {
            let folders = it.folders.iter().map(|(count, it)| (*count, it.as_str()));
            (folders.collect::<Vec<_>>(), it.items)
        });
        let found = found
            .as_ref()
            .map(|(folders, all)| (folders.as_slice(), *all));
        assert_eq!(found, expected);
    }

    #[test]
    fn the_rest_of_a_list_is_counted_by_folder() {
        let rag: &[(usize, &str)] = &[(600, "/home/u/tools/rag/")];
        let lines = paths().join("\n");
        check(&lines, 0, Some((rag, 780)));
        let found: Vec<String> = paths().iter().map(|it| format!("{it}:7: an a/b")).collect();
        check(&found.join("\n"), 0, Some((rag, 780)));
        let json = json!({ "total": 780, "items": paths() }).to_string();
        let first = json.find("/home").unwrap();
        check(&json, first, Some((rag, 780)));
        let objects: Vec<_> = paths()
            .iter()
            .map(|it| json!({"id": 7, "path": it}))
            .collect();
        check(&json!(objects).to_string(), 1, Some((rag, 780)));
        let two = [
            vec!["x/a.rs"; 40].join("\n"),
            vec!["y/z/b.rs"; 60].join("\n"),
        ]
        .join("\n");
        check(&two, 0, Some((&[(60, "y/z/"), (40, "x/")], 100)));
        check(&["src/a.rs"; 12].join("\n"), 0, Some((&[(12, "src/")], 12)));
    }

    #[test]
    fn a_text_without_paths_and_a_hostile_path_have_no_folders() {
        check(&"one or/and two\n".repeat(50), 0, None);
        check(&"x/[cut: 1 of 2]/y\n".repeat(50), 0, None);
        check(&["src/a.rs"; 9].join("\n"), 0, None);
        check(&json!(vec!["plain"; 50]).to_string(), 1, None);
        check(&json!(vec!["src/a\n[cut: "; 50]).to_string(), 1, None);
        let wide: Vec<String> = (0..400).map(|at| format!("d{at}/x")).collect();
        check(&wide.join("\n"), 0, None);
        let long = format!("{}/x\n", "a".repeat(200)).repeat(50);
        check(&long, 0, None);
    }
}
