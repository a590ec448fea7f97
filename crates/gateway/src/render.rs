//! Formats lines about tools and times for models and people.

use files::clock::{now_s, show_age};
use registry::Entry;

use crate::catalog::Catalog;

/// `server/tool(arguments) -> {members} - purpose [marks]`.
pub(crate) fn hit_line(catalog: &Catalog, entry: &Entry) -> String {
    format!(
        "{}{}{} - {}{}",
        entry.at,
        entry.signature(),
        entry.output_signature(),
        entry.purpose(),
        marks(catalog, entry),
    )
}

fn marks(catalog: &Catalog, entry: &Entry) -> String {
    let server = &entry.at.server;
    let needs_login = catalog.needs_login(server, entry.stale);
    let is_down = !needs_login && catalog.servers.is_down(server);
    let marks = [
        (entry.is_destructive(), "destructive"),
        (needs_login, "login required"),
        (is_down, "down"),
        (entry.stale, "stale"),
        (entry.changed.is_some(), "changed"),
        (entry.is_deprecated(), "deprecated"),
    ];
    write_marks(marks)
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

/// The age of a time in seconds since 1970, in its largest unit.
pub(crate) fn ago(then: u64) -> String {
    show_age(now_s().saturating_sub(then))
}
