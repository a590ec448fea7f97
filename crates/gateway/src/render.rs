//! Lines about tools and times, as models and people read them.

use std::time::{SystemTime, UNIX_EPOCH};

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

/// The marks that a tool has by its definition, ` [destructive] [deprecated]`.
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

/// How long ago a time in seconds since 1970 is, in the largest unit.
pub(crate) fn ago(then: u64) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let seconds = now.map_or(0, |it| it.as_secs()).saturating_sub(then);
    match seconds {
        0..60 => "just now".to_owned(),
        60..3_600 => format!("{} min ago", seconds / 60),
        3_600..86_400 => format!("{} h ago", seconds / 3_600),
        _ => format!("{} d ago", seconds / 86_400),
    }
}
