//! The form of a text apart from its content: byte order mark, line ends, and the end of its last line.
//! An editor of TOML normalizes them, so they are removed before an edit and restored after it.

use similar::{Algorithm, capture_diff_slices};

const MARK: char = '\u{feff}';

/// Returns the text without a byte order mark, each line ended by `\n`.
pub fn strip(text: &str) -> String {
    text.trim_start_matches(MARK).replace("\r\n", "\n")
}

/// Returns the edited text in the form of the text before: lines that stay keep their ends, and a
/// new line gets that of the line above it.
pub fn restore(before: &str, edited: &str) -> String {
    let mut text = String::new();
    if before.starts_with(MARK) {
        text.push(MARK);
    }
    let Some(first) = before.trim_start_matches(MARK).split_inclusive('\n').next() else {
        return text + edited;
    };
    if before.contains('\r') {
        let ends = line_ends(before, edited);
        let mut end = is_crlf(first);
        for (line, of_line) in edited.lines().zip(ends) {
            end = of_line.unwrap_or(end);
            text.push_str(line);
            text.push_str(if end { "\r\n" } else { "\n" });
        }
    } else {
        text.push_str(edited);
    }
    if !before.ends_with('\n') && text.ends_with('\n') {
        text.pop();
        if text.ends_with('\r') {
            text.pop();
        }
    }
    text
}

/// For each edited line, whether it ends with `\r\n`; `None` for a new line.
fn line_ends(before: &str, edited: &str) -> Vec<Option<bool>> {
    let old: Vec<&str> = before.trim_start_matches(MARK).lines().collect();
    let ends: Vec<bool> = before.split_inclusive('\n').map(is_crlf).collect();
    let new: Vec<&str> = edited.lines().collect();
    let mut of_lines = vec![None; new.len()];
    for op in capture_diff_slices(Algorithm::Myers, &old, &new) {
        for (old, new) in op.old_range().zip(op.new_range()) {
            of_lines[new] = Some(ends[old]);
        }
    }
    of_lines
}

fn is_crlf(line: &str) -> bool {
    line.ends_with("\r\n")
}
