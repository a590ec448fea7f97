//! Tables for people.

/// A line a row, each column as wide as its widest cell.
pub(crate) fn render_table<const N: usize>(head: [&str; N], rows: Vec<[String; N]>) -> String {
    // Names and errors come from strangers: each stays in its cell.
    let rows = rows
        .into_iter()
        .map(|row| row.map(|cell| printable::one_line(&cell)));
    let rows: Vec<[String; N]> = [head.map(str::to_owned)].into_iter().chain(rows).collect();
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max();
    let widths: Vec<usize> = (0..N).map(|column| width(column).unwrap_or(0)).collect();
    let line = |row: &[String; N]| {
        let cells = row.iter().zip(&widths);
        let cells: Vec<String> = cells
            .map(|(cell, width)| format!("{cell:<width$}"))
            .collect();
        cells.join("  ").trim_end().to_owned()
    };
    rows.iter().map(line).collect::<Vec<_>>().join("\n")
}
