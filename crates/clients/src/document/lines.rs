//! Edits of a text by place, and its lines.

use std::ops::Range;

/// A range of bytes, and the text that replaces it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Edit {
    pub(super) span: Range<usize>,
    pub(super) text: String,
}

impl Edit {
    pub(super) fn insert(at: usize, text: impl Into<String>) -> Self {
        Self {
            span: at..at,
            text: text.into(),
        }
    }

    pub(super) fn delete(span: Range<usize>) -> Self {
        Self {
            span,
            text: String::new(),
        }
    }
}

/// Returns the text with all edits made. If two begin at the same place, the first comes first.
pub(super) fn apply(text: &str, mut edits: Vec<Edit>) -> String {
    edits.sort_by_key(|edit| edit.span.start);
    let mut edited = String::with_capacity(text.len());
    let mut at = 0;
    for Edit { span, text: new } in edits {
        if span.start > at {
            edited.push_str(&text[at..span.start]);
        }
        edited.push_str(&new);
        at = at.max(span.end);
    }
    edited.push_str(&text[at..]);
    edited
}

/// Returns the line end of the text, `\n` if it has none.
pub(super) fn newline_of(text: &str) -> &'static str {
    match text.find('\n') {
        Some(at) if text[..at].ends_with('\r') => "\r\n",
        _ => "\n",
    }
}

/// Returns the start of the line of this place.
pub(super) fn line_start(text: &str, at: usize) -> usize {
    text[..at].rfind('\n').map_or(0, |newline| newline + 1)
}

/// Returns the white space that the line of this place begins with.
pub(super) fn indent_of(text: &str, at: usize) -> &str {
    let line = &text[line_start(text, at)..];
    let end = line.find(|c| c != ' ' && c != '\t').unwrap_or(line.len());
    &line[..end]
}

/// Returns one step of indentation: that of the first line of the text that has some.
pub(super) fn indent_step(text: &str) -> &str {
    for line in text.lines() {
        let indent = indent_of(line, 0);
        let rest = line.trim();
        if !indent.is_empty() && !rest.is_empty() && !rest.starts_with('*') {
            return if indent.starts_with('\t') {
                "\t"
            } else {
                indent
            };
        }
    }
    "  "
}

/// Returns the line of this place, counted from 1.
pub(super) fn line_number(text: &str, at: usize) -> usize {
    text.bytes().take(at).filter(|&byte| byte == b'\n').count() + 1
}
