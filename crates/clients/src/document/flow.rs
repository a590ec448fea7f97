//! Entries between brackets with commas.
//!
//! An entry that is added by `insert` and then removed by `remove` leaves the original bytes.

use std::ops::Range;

use super::lines::{Edit, indent_of, indent_step, line_start, newline_of};

/// The inside of a pair of brackets.
#[derive(Debug)]
pub(super) struct Flow<'a> {
    pub(super) text: &'a str,
    /// The range after the opening bracket, up to the closing one.
    pub(super) inside: Range<usize>,
    pub(super) items: Vec<Range<usize>>,
}

/// The form in which an entry is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Layout {
    /// On one line with the others.
    Inline,
    /// On lines of its own, the first with this indentation.
    Lines(String),
}

impl Flow<'_> {
    pub(super) fn layout(&self) -> Layout {
        let inside = &self.text[self.inside.clone()];
        match self.items.last() {
            Some(_) if !inside.contains('\n') => Layout::Inline,
            Some(last) if self.begins_line(last.start) => {
                Layout::Lines(indent_of(self.text, last.start).to_owned())
            }
            _ => {
                let own = indent_of(self.text, self.inside.start);
                Layout::Lines(format!("{own}{}", indent_step(self.text)))
            }
        }
    }

    /// Inserts an entry after the last.
    pub(super) fn insert(&self, item: &str, layout: &Layout) -> Vec<Edit> {
        let newline = newline_of(self.text);
        let lead = match layout {
            Layout::Inline => " ".to_owned(),
            Layout::Lines(indent) => format!("{newline}{indent}"),
        };
        let Some(last) = self.items.last() else {
            return self.insert_first(item, layout);
        };
        let in_lines = *layout != Layout::Inline;
        let behind = |at: usize| self.tail(at).filter(|_| in_lines).unwrap_or(at);
        match self.comma(last.end) {
            Some(comma) => vec![Edit::insert(behind(comma + 1), format!("{lead}{item},"))],
            None => match behind(last.end) {
                at if at == last.end => vec![Edit::insert(at, format!(",{lead}{item}"))],
                at => vec![
                    Edit::insert(last.end, ","),
                    Edit::insert(at, format!("{lead}{item}")),
                ],
            },
        }
    }

    fn insert_first(&self, item: &str, layout: &Layout) -> Vec<Edit> {
        let newline = newline_of(self.text);
        let inside = &self.text[self.inside.clone()];
        let own = indent_of(self.text, self.inside.start);
        let Layout::Lines(indent) = layout else {
            return vec![Edit::insert(self.inside.start, item)];
        };
        // The empty line tells `remove` that the line end after the entry was there before.
        let (blank, end) = match inside {
            "" => ("", format!("{newline}{own}")),
            inside if inside == format!("{newline}{own}") => (newline, String::new()),
            _ => ("", String::new()),
        };
        let text = format!("{blank}{newline}{indent}{item}{end}");
        vec![Edit::insert(self.inside.start, text)]
    }

    /// Removes an entry, with the comma that it needed and the comment at the end of its line.
    pub(super) fn remove(&self, index: usize) -> Vec<Edit> {
        let item = &self.items[index];
        let comma = self.comma(item.end);
        let end = comma.map_or(item.end, |comma| comma + 1);
        if self.items.len() == 1 {
            return self.remove_only(item, end);
        }
        let is_line = self.begins_line(item.start);
        let end = self.tail(end).filter(|_| is_line).unwrap_or(end);
        let mut edits = Vec::new();
        let last_without_comma = index + 1 == self.items.len() && comma.is_none();
        let before = index
            .checked_sub(1)
            .and_then(|before| self.comma(self.items[before].end));
        if let (true, Some(comma)) = (last_without_comma, before) {
            edits.push(Edit::delete(comma..comma + 1));
        }
        edits.push(Edit::delete(if is_line || index > 0 {
            self.lead_for(index, end)..end
        } else {
            item.start..self.skip_blanks(end)
        }));
        edits
    }

    fn remove_only(&self, item: &Range<usize>, end: usize) -> Vec<Edit> {
        let newline = newline_of(self.text);
        let own = indent_of(self.text, self.inside.start);
        let before = &self.text[self.inside.start..item.start];
        let behind = &self.text[end..self.inside.end];
        if before.trim().is_empty() && behind == format!("{newline}{own}") {
            let ends = before.matches('\n').count();
            let kept = if ends > 1 { behind } else { "" };
            return vec![Edit {
                span: self.inside.clone(),
                text: kept.to_owned(),
            }];
        }
        let start = if self.begins_line(item.start) {
            self.lead_for(0, end)
        } else {
            item.start
        };
        vec![Edit::delete(start..end)]
    }

    /// Returns the place of the comma after an entry.
    fn comma(&self, end: usize) -> Option<usize> {
        let at = self.skip_trivia(end);
        (at < self.inside.end && self.text[at..].starts_with(',')).then_some(at)
    }

    /// Returns true if only white space precedes this place on its line.
    fn begins_line(&self, at: usize) -> bool {
        let start = line_start(self.text, at);
        start > self.inside.start && self.text[start..at].trim().is_empty()
    }

    /// Returns the start of the white space before this place, including its line end.
    fn lead(&self, at: usize) -> usize {
        let trimmed = self.text[..at].trim_end_matches([' ', '\t']);
        let trimmed = trimmed.strip_suffix('\n').unwrap_or(trimmed);
        trimmed.strip_suffix('\r').unwrap_or(trimmed).len()
    }

    /// Returns the same for an entry. If a comment ends the line before the entry, and something
    /// follows the entry, the line end stays: otherwise the following text would become part of the
    /// comment.
    fn lead_for(&self, index: usize, end: usize) -> usize {
        let item = &self.items[index];
        let rest = &self.text[self.skip_blanks(end)..];
        let from = match index.checked_sub(1) {
            Some(before) => self
                .comma(self.items[before].end)
                .map_or(self.items[before].end, |at| at + 1),
            None => self.inside.start,
        };
        if !rest.starts_with(['\n', '\r']) && self.ends_in_line_comment(from, item.start) {
            return item.start;
        }
        self.lead(item.start)
    }

    /// Returns true if the text between the places ends with a comment that goes to the end of its
    /// line.
    fn ends_in_line_comment(&self, from: usize, to: usize) -> bool {
        let (mut at, mut in_line) = (from, false);
        loop {
            let rest = &self.text[at..];
            let next = at + (rest.len() - rest.trim_start().len());
            match self.skip_comment(next).filter(|end| *end <= to) {
                Some(end) => {
                    let newlines = &self.text[end..to];
                    in_line =
                        !self.text[next..].starts_with("/*") && newlines.matches('\n').count() == 1;
                    at = end;
                }
                None => return in_line,
            }
        }
    }

    fn skip_blanks(&self, at: usize) -> usize {
        let rest = &self.text[at..];
        at + (rest.len() - rest.trim_start_matches([' ', '\t']).len())
    }

    /// Returns the end of the comments after this place, if the rest of the line is empty.
    fn tail(&self, at: usize) -> Option<usize> {
        let (mut at, mut end) = (at, at);
        loop {
            let next = self.skip_blanks(at);
            if next >= self.inside.end {
                return None;
            }
            if self.text[next..].starts_with(['\n', '\r']) {
                return Some(end);
            }
            at = self.skip_comment(next)?;
            if self.text[next..at].contains('\n') {
                return None;
            }
            end = at;
        }
    }

    fn skip_comment(&self, at: usize) -> Option<usize> {
        let rest = &self.text[at..];
        if rest.starts_with("//") {
            let end = rest.find('\n').unwrap_or(rest.len());
            return Some(at + rest[..end].trim_end_matches('\r').len());
        }
        let end = rest.starts_with("/*").then(|| rest.find("*/"))?;
        end.map(|end| at + end + 2)
    }

    fn skip_trivia(&self, mut at: usize) -> usize {
        loop {
            let rest = &self.text[at..];
            let next = at + (rest.len() - rest.trim_start().len());
            match self.skip_comment(next) {
                Some(end) => at = end,
                None => return next,
            }
        }
    }
}
