//! Edits of a text, collected by place and applied together.

use std::ops::Range;

/// Inserted texts and blanked ranges; line numbers stay the same.
pub(crate) struct Edits<'a> {
    text: &'a str,
    blanks: Vec<(Range<usize>, bool)>,
    /// Sorted by place when they are applied; at one place they keep this order.
    insertions: Vec<(usize, String)>,
}

impl<'a> Edits<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        Self {
            text,
            blanks: Vec::new(),
            insertions: Vec::new(),
        }
    }

    /// Blanks a range except for its line ends.
    pub(crate) fn blank(&mut self, range: Range<usize>) {
        self.blanks.push((range, true));
    }

    /// Blanks a whole statement, and ends the statement before it.
    pub(crate) fn blank_statement(&mut self, range: Range<usize>) {
        self.insertions.push((range.start, ";".to_owned()));
        self.blank(range);
    }

    /// Blanks a range, and moves its line ends to a later place.
    pub(crate) fn blank_and_move_lines(&mut self, range: Range<usize>, to: usize) {
        let lines = self.text[range.clone()].matches('\n').count();
        self.blanks.push((range, false));
        self.insertions.push((to, "\n".repeat(lines)));
    }

    pub(crate) fn insert(&mut self, at: usize, text: &str) {
        self.insertions.push((at, text.to_owned()));
    }

    /// Inserts a text before all others at the same place.
    pub(crate) fn insert_behind(&mut self, at: usize, text: &str) {
        self.insertions.insert(0, (at, text.to_owned()));
    }

    /// Returns the text with all edits, and the places of inserted text.
    pub(crate) fn apply(mut self) -> (String, Vec<Insertion>) {
        // The sort is stable: at one place the edits keep their order.
        self.insertions.sort_by_key(|(at, _)| *at);
        self.blanks.sort_by_key(|(range, _)| range.start);
        let mut insertions = self.insertions.into_iter().peekable();
        let mut blanks = self.blanks.into_iter().peekable();
        let mut out = EditedText::new(self.text.len() + 64);
        let (mut blank_to, mut keeps_lines) = (0, true);
        for (at, c) in self.text.char_indices() {
            while let Some((_, text)) = insertions.next_if(|(place, _)| *place <= at) {
                out.insert(&text);
            }
            while let Some((range, keeps)) = blanks.next_if(|(range, _)| range.start <= at) {
                // A blanked range inside a range whose line ends move loses its own line ends, too.
                if at >= blank_to {
                    keeps_lines = keeps;
                }
                blank_to = blank_to.max(range.end);
            }
            match c {
                c if at >= blank_to => out.push(c),
                '\n' if keeps_lines => out.push('\n'),
                _ => out.push(' '),
            }
        }
        insertions.for_each(|(_, text)| out.insert(&text));
        (out.text, out.insertions)
    }
}

/// Inserted text on one line.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Insertion {
    /// Its line, from 1.
    pub(crate) line: u32,
    /// The column of its first character, from 1.
    pub(crate) column: u32,
    /// Its length.
    pub(crate) chars: u32,
}

/// The output so far, and the position of its end.
struct EditedText {
    text: String,
    line: u32,
    column: u32,
    insertions: Vec<Insertion>,
}

impl EditedText {
    fn new(capacity: usize) -> Self {
        Self {
            text: String::with_capacity(capacity),
            line: 1,
            column: 1,
            insertions: Vec::new(),
        }
    }

    fn push(&mut self, c: char) {
        self.text.push(c);
        if c == '\n' {
            (self.line, self.column) = (self.line + 1, 1);
        } else {
            self.column += 1;
        }
    }

    fn insert(&mut self, text: &str) {
        let (line, column) = (self.line, self.column);
        text.chars().for_each(|c| self.push(c));
        if line == self.line {
            self.insertions.push(Insertion {
                line,
                column,
                chars: self.column - column,
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Edits;

    #[test]
    fn lines_stay_where_they_are_or_go_where_they_may() {
        let mut edits = Edits::new("a: {\n b\n} => c");
        edits.blank_and_move_lines(1..9, 12);
        assert_eq!(edits.apply().0, "a         =>\n\n c");
        let mut edits = Edits::new("let a: {\nb } = 1");
        edits.blank(5..12);
        edits.insert(0, "(");
        edits.insert_behind(16, ")");
        assert_eq!(edits.apply().0, "(let a   \n    = 1)");
    }
}
