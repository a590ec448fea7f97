//! One tool on one line.

use registry::Entry;

/// The state of a tool's server, as far as a hit marks it.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ServerMarks {
    pub(crate) needs_login: bool,
    pub(crate) is_down: bool,
}

/// `server/tool(arguments) -> {members} - purpose [marks]`.
pub(crate) fn line(entry: &Entry, server: ServerMarks) -> String {
    let marks = write_marks([
        (entry.is_destructive(), "destructive"),
        (server.needs_login, "login required"),
        (server.is_down && !server.needs_login, "down"),
        (entry.stale, "stale"),
        (entry.changed.is_some(), "changed"),
        (entry.is_deprecated(), "deprecated"),
    ]);
    format!(
        "{}{}{} - {}{marks}",
        entry.at,
        entry.signature(),
        entry.output_signature(),
        entry.purpose(),
    )
}

/// The marks of a tool from its definition, ` [destructive] [deprecated]`.
pub(crate) fn marks_of_definition(entry: &Entry) -> String {
    write_marks([
        (entry.is_destructive(), "destructive"),
        (entry.is_deprecated(), "deprecated"),
    ])
}

fn write_marks(marks: impl IntoIterator<Item = (bool, &'static str)>) -> String {
    let set = marks.into_iter().filter(|(is_set, _)| *is_set);
    set.fold(String::new(), |text, (_, mark)| text + " [" + mark + "]")
}
