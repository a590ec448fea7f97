//! Edits of a text by place, and its lines.

use std::ops::Range;

/// Bytes that go, and the text that comes in their place.
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

/// The text with all edits made. Where two begin at one place, the first comes first.
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

/// The line end that the text has, `\n` where it has none.
pub(super) fn newline_of(text: &str) -> &'static str {
    match text.find('\n') {
        Some(at) if text[..at].ends_with('\r') => "\r\n",
        _ => "\n",
    }
}

/// Where the line of this place begins.
pub(super) fn line_start(text: &str, at: usize) -> usize {
    text[..at].rfind('\n').map_or(0, |newline| newline + 1)
}

/// Where the line of this place ends, before its line end.
pub(super) fn line_end(text: &str, at: usize) -> usize {
    let end = text[at..]
        .find('\n')
        .map_or(text.len(), |newline| at + newline);
    if text[at..end].ends_with('\r') {
        end - 1
    } else {
        end
    }
}

/// Where the next line begins, or the text ends.
pub(super) fn next_line(text: &str, at: usize) -> usize {
    text[at..]
        .find('\n')
        .map_or(text.len(), |newline| at + newline + 1)
}

/// The white space that the line of this place begins with.
pub(super) fn indent_of(text: &str, at: usize) -> &str {
    let line = &text[line_start(text, at)..];
    let end = line.find(|c| c != ' ' && c != '\t').unwrap_or(line.len());
    &line[..end]
}

/// What one step of indentation is in this text: that of its first line that has some.
pub(super) fn indent_step(text: &str) -> &str {
    text.lines()
        .map(|line| &line[..line.len() - line.trim_start_matches([' ', '\t']).len()])
        .zip(text.lines())
        .find(|(indent, line)| {
            !indent.is_empty() && !line.trim().is_empty() && !line.trim_start().starts_with('*')
        })
        .map_or("  ", |(indent, _)| {
            if indent.starts_with('\t') {
                "\t"
            } else {
                indent
            }
        })
}

/// The line of this place, counted from 1.
pub(super) fn line_number(text: &str, at: usize) -> usize {
    text.bytes().take(at).filter(|&byte| byte == b'\n').count() + 1
}
