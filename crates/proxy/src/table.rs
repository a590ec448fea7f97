//! Tables and sentences for people, no wider than the terminal.

use std::{env, io};

use comfy_table::{Cell, ContentArrangement, Row, Table, presets};

/// Columns between two cells.
const GAP: u16 = 2;

/// A table with a heading.
pub(crate) fn render_table<const N: usize>(head: [&str; N], rows: Vec<[String; N]>) -> String {
    render_within(find_width(), Some(head), rows)
}

/// A table without a heading.
pub(crate) fn render_rows<const N: usize>(rows: Vec<[String; N]>) -> String {
    render_within(find_width(), None, rows)
}

/// Returns the text without lines wider than the terminal. A line that is too wide is broken at spaces,
/// and its rest is indented `hang` columns further than the line. A word that is too wide by itself,
/// such as a path or an address, stays whole.
pub(crate) fn wrap(text: &str, hang: usize) -> String {
    wrap_within(find_width(), text, hang)
}

/// The variable `COLUMNS`, else the terminal's width. Without either, as in a file or a pipe, a row or a
/// sentence is one line however long, so that programs can read it.
fn find_width() -> Option<u16> {
    let told = env::var("COLUMNS").ok();
    let told = told.and_then(|it| it.parse().ok()).filter(|it| *it > 0);
    told.or_else(|| {
        let (width, _) = terminal_size::terminal_size_of(io::stdout())?;
        Some(width.0)
    })
}

/// Cells that do not fit are wrapped at words.
fn render_within<const N: usize>(
    width: Option<u16>,
    head: Option<[&str; N]>,
    rows: Vec<[String; N]>,
) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    if let Some(width) = width {
        table.set_width(width);
        table.set_content_arrangement(ContentArrangement::Dynamic);
    }
    // Names and errors come from servers: each stays in its cell.
    let line = |cells: [String; N]| Row::from(cells.map(|it| Cell::new(printable::one_line(&it))));
    table.add_rows(head.map(|head| line(head.map(str::to_owned))));
    table.add_rows(rows.into_iter().map(line));
    let last = N.saturating_sub(1);
    for (number, column) in table.column_iter_mut().enumerate() {
        column.set_padding((0, if number == last { 0 } else { GAP }));
    }
    table.trim_fmt()
}

fn wrap_within(width: Option<u16>, text: &str, hang: usize) -> String {
    let Some(width) = width.map(usize::from) else {
        return text.to_owned();
    };
    let lines = text.split('\n').map(|line| wrap_line(width, line, hang));
    lines.collect::<Vec<_>>().join("\n")
}

fn wrap_line(width: usize, line: &str, hang: usize) -> String {
    let count = |text: &str| text.chars().count();
    let indent = count(line) - count(line.trim_start()) + hang;
    let (mut wrapped, mut column) = (String::new(), 0);
    let mut rest = line.trim_end();
    while !rest.is_empty() {
        // The next word with the spaces before it, which are dropped at the start of a line.
        let bare = rest.trim_start();
        let end = bare.find(char::is_whitespace).unwrap_or(bare.len());
        let (word, next) = rest.split_at(rest.len() - bare.len() + end);
        if column > indent && column + count(word) > width {
            wrapped.push_str(&format!("\n{:indent$}{}", "", word.trim_start()));
            column = indent + count(word.trim_start());
        } else {
            wrapped.push_str(word);
            column += count(word);
        }
        rest = next;
    }
    wrapped
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;

    use super::*;

    fn rows() -> Vec<[String; 3]> {
        [
            ["7", "2026-11-22 10:00:00", "added read_file, write_file, list_directory, move_file, search_files, get_file_info"],
            ["12", "2026-11-23 11:30:00", "removed a_tool_whose_name_is_longer_than_its_column_can_ever_be_made"],
        ]
        .map(|row| row.map(str::to_owned))
        .into()
    }

    #[test]
    fn a_table_keeps_to_the_width_of_the_terminal() {
        assert_snapshot!(render_within(Some(60), Some(["no", "when", "what"]), rows()), @"
        no  when                 what
        7   2026-11-22 10:00:00  added read_file, write_file,
                                 list_directory, move_file,
                                 search_files, get_file_info
        12  2026-11-23 11:30:00  removed a_tool_whose_name_is_longer
                                 _than_its_column_can_ever_be_made
        ");
        for width in [20, 40, 80, 120] {
            let table = render_within(Some(width), None, rows());
            let widest = table.lines().map(|line| line.chars().count()).max();
            assert!(widest <= Some(width.into()), "{width}: {table}");
        }
    }

    #[test]
    fn without_a_terminal_a_row_is_one_line_and_nothing_is_lost() {
        let table = render_within(None, Some(["no", "when", "what"]), rows());
        assert_eq!(table.lines().count(), 3);
        for row in rows() {
            assert!(row.iter().all(|cell| table.contains(cell)), "{table}");
        }
    }

    #[test]
    fn a_sentence_is_broken_at_spaces_and_no_word_is() {
        let text = "saved, about: 12 tokens of definitions in 3 sessions\n\n  \
            x: see https://example.com/a/path/wider/than/a/line and more";
        assert_snapshot!(wrap_within(Some(30), text, 2), @"
        saved, about: 12 tokens of
          definitions in 3 sessions

          x: see
            https://example.com/a/path/wider/than/a/line
            and more
        ");
        assert_eq!(wrap_within(None, text, 2), text);
        assert_eq!(wrap_within(Some(200), text, 2), text);
        let columns = "a  b   c\n   d";
        assert_eq!(wrap_within(Some(8), columns, 2), columns);
        for width in 1..60 {
            let wrapped = wrap_within(Some(width), text, 4);
            let words = |text: &str| {
                text.split_whitespace()
                    .map(str::to_owned)
                    .collect::<Vec<_>>()
            };
            assert_eq!(words(&wrapped), words(text), "{width}");
        }
    }

    #[test]
    fn a_cell_of_a_stranger_makes_no_row_of_its_own() {
        let row = ["a\nb".to_owned(), "\u{1b}[31m".to_owned()];
        let table = render_within(None, None, vec![row]);
        assert_eq!(table.lines().count(), 1);
        assert!(!table.contains('\u{1b}'), "{table:?}");
    }
}
