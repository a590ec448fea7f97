//! The diff of a file, in which everything that looks secret is masked.

use std::{path::Path, time::Duration};

use printable::mask_lines;
use similar::{Algorithm, TextDiff, udiff::UnifiedHunkHeader};

/// The number of unchanged lines around a change that are shown with it.
const CONTEXT_LINES: usize = 2;

/// The time limit for computing the shortest difference; after it, a longer one is used.
const DIFF_TIME_MAX: Duration = Duration::from_millis(500);

/// Returns the difference between a file, which may not exist, and its planned text, in the format of
/// `diff -u`: masked lines, or nothing if nothing changes.
pub fn difference(path: &Path, before: Option<&str>, after: &str) -> String {
    let name = path.display().to_string();
    let old = before.map_or("/dev/null", |_| &name);
    let before = before.unwrap_or_default();
    let difference = TextDiff::configure()
        .algorithm(Algorithm::Patience)
        .timeout(DIFF_TIME_MAX)
        .diff_lines(before, after);
    let (old_lines, new_lines) = (mask_lines(before), mask_lines(after));
    let mut text = String::new();
    for (index, group) in difference.grouped_ops(CONTEXT_LINES).iter().enumerate() {
        if index == 0 {
            text += &format!("--- {old}\n+++ {name}\n");
        }
        text += &format!("{}\n", UnifiedHunkHeader::new(group));
        for change in group.iter().flat_map(|op| difference.iter_changes(op)) {
            // An option and its secret may be on two lines: each file is masked as a whole.
            let line = match (change.old_index(), change.new_index()) {
                (_, Some(at)) => new_lines.get(at),
                (at, None) => at.and_then(|at| old_lines.get(at)),
            };
            text += &format!("{}{}\n", change.tag(), line.map_or("", String::as_str));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::difference;

    #[test]
    fn a_difference_is_shown_without_secrets() {
        let before = "a\n\"TOKEN\": \"abcdef\"\nb\nc\n";
        let shown = difference("/x".as_ref(), Some(before), "a\nb\nnew\nc\n");
        let expected = "--- /x\n+++ /x\n@@ -1,4 +1,4 @@\n a\n-\"TOKEN\": \"***\"\n b\n+new\n c\n";
        assert_eq!(shown, expected);
        let shown = difference("/x".as_ref(), None, "a\n");
        assert!(shown.starts_with("--- /dev/null\n+++ /x\n"));
    }
}
