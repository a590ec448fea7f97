//! One tool on one line.

use excerpt::tokens;
use fleet::Availability;
use registry::{Entry, KnownServer};

/// The most tokens of a hit (interface, section 4).
const TOKENS_MAX: usize = 90;

/// The characters of an argument's description in a note, tried in this order until the hit fits.
const NOTE_CHARS: [usize; 3] = [120, 60, 0];

/// The state of a tool's server, as far as a hit marks it.
#[derive(Debug, Clone, Default)]
pub(crate) struct ServerMarks {
    /// The state of the server, if calls fail in it or tools may have changed.
    pub(crate) trouble: Option<Availability>,
    /// The server reports an older version than the tool needs.
    pub(crate) is_outdated: bool,
    /// The node of a cluster that would run the server, and is not connected.
    pub(crate) absent_node: Option<String>,
}

/// `server/tool(arguments) -> {members} - purpose [marks]`.
pub(crate) fn line(entry: &Entry, server: &ServerMarks) -> String {
    let node = server.absent_node.as_ref();
    let node = node.map_or_else(String::new, |node| format!(" [on {node}]"));
    let trouble = server.trouble.map(Availability::label);
    let marks = write_marks([
        (entry.is_destructive(), "destructive"),
        (server.trouble.is_some(), trouble.unwrap_or_default()),
        (server.is_outdated, "outdated"),
        (entry.changed.is_some(), "changed"),
        (entry.is_change_held, "change held"),
        (entry.is_deprecated(), "deprecated"),
    ]);
    format!(
        "{}{}{} - {}{node}{marks}",
        entry.at,
        entry.signature(),
        entry.output_signature(),
        entry.purpose(),
    )
}

/// The remarks of the configuration on a tool: its successor, and a version that its server lacks, with
/// the next step.
pub(crate) fn list_remarks(entry: &Entry, server: Option<&KnownServer>) -> Vec<String> {
    let (at, overlay) = (&entry.at, &entry.overlay);
    let deprecated = overlay.deprecated.as_ref();
    let deprecated = deprecated.map(|instead| format!("{at} is deprecated: {instead}"));
    let least = overlay.min_version.as_ref();
    let outdated = least.zip(server);
    let outdated = outdated.filter(|(least, it)| it.is_older_than(least));
    let outdated = outdated.map(|(least, known)| {
        let name = &at.server;
        let version = printable::one_line_of(&known.server_version, 40);
        format!(
            "{at} needs version {least} of its server, which reports {version}: update it, then \
             `proxy reindex {name}`"
        )
    });
    deprecated.into_iter().chain(outdated).collect()
}

/// Appends notes about the arguments that calls often have wrong to a hit, as many as fit:
/// `; often wrong: start: date-time, "with offset"`.
pub(crate) fn with_notes(mut line: String, entry: &Entry, wrong: &[String]) -> String {
    let schema = entry.input_schema();
    let mut begin = "; often wrong: ";
    for path in wrong {
        let mut longer = NOTE_CHARS.into_iter().filter_map(|chars_max| {
            let note = tool::argument_note(&schema, path, entry.signature(), chars_max)?;
            Some(format!("{line}{begin}{note}"))
        });
        if let Some(longer) = longer.find(|longer| tokens::count(longer) <= TOKENS_MAX) {
            (line, begin) = (longer, "; ");
        }
    }
    line
}

/// The marks of a tool from its definition: `destructive`, `deprecated`.
pub(crate) fn marks_of_definition(entry: &Entry) -> Vec<String> {
    let marks = [
        (entry.is_destructive(), "destructive"),
        (entry.is_change_held, "change held"),
        (entry.is_deprecated(), "deprecated"),
    ];
    let set = marks.into_iter().filter(|(is_set, _)| *is_set);
    set.map(|(_, mark)| mark.to_owned()).collect()
}

fn write_marks(marks: impl IntoIterator<Item = (bool, &'static str)>) -> String {
    let set = marks.into_iter().filter(|(is_set, _)| *is_set);
    set.fold(String::new(), |text, (_, mark)| text + " [" + mark + "]")
}
