//! The description of a tool (interface, section 5), and the list of a server's tools.

use std::sync::{Arc, LazyLock};

use excerpt::tokens;
use files::clock::{day_of, show_age};
use fleet::Availability;
use regex::Regex;
use registry::{Entry, KnownServer};
use serde_json::{Value, json};
use tool::ToolRef;

use super::{
    branches,
    error::shorten_home_paths,
    hit::{self, ServerMarks},
    room::{self, Form, Section},
    whole_lines,
};

/// The longest beginning of a description that is read, in characters; a million were seen.
const DESCRIPTION_CHARS_MAX: usize = 20_000;

/// The largest description that is shown whole, in tokens; a longer one is a guide.
const GUIDE_TOKENS_MIN: usize = 400;

/// The shown part of a guide, in tokens: the call that reads all of it takes the rest.
const GUIDE_TOKENS_SHOWN: usize = 330;

/// The longest title in a heading, in characters.
const TITLE_CHARS_MAX: usize = 100;

/// The longest reason why a server is down in a heading, in characters.
const DOWN_CHARS_MAX: usize = 300;

/// The longest name or version of a server in a heading, in characters.
const SERVER_CHARS_MAX: usize = 100;

/// The longest heading over a branch, in characters.
const HEADING_CHARS_MAX: usize = 400;

/// The cost of the note after a branch of which something was left out, in tokens.
const BRANCH_NOTE_TOKENS: usize = 160;

/// The facts about a tool that its definition does not have.
#[derive(Debug)]
pub(crate) struct ToolFacts {
    pub(crate) server: Option<Arc<KnownServer>>,
    /// The state of its server, if calls fail in it or tools may have changed.
    pub(crate) trouble: Option<Availability>,
    /// The last failure of its server.
    pub(crate) failure: Option<String>,
    /// The number of its calls.
    pub(crate) calls: u64,
    /// When the last call ended, in seconds since 1970.
    pub(crate) last_call: Option<u64>,
    /// The notes of the configuration: on the tool, then on its server.
    pub(crate) notes: Option<String>,
    /// The time of the description, in seconds since 1970.
    pub(crate) now: u64,
}

/// The amount that is shown of a tool.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Extent {
    /// The room, in tokens.
    pub(crate) room: usize,
    /// The description is shown whole, though it is a guide.
    pub(crate) is_full: bool,
}

/// The description of this extent; `instructions` are those of its server.
pub(crate) fn text(
    entry: &Entry,
    facts: &ToolFacts,
    instructions: Option<&str>,
    Extent { room, is_full }: Extent,
) -> String {
    let piece = |label, text: Option<String>, form| {
        Some(Section {
            label,
            text: text?,
            form,
        })
    };
    let description = entry.description();
    let description = match description.trim() {
        "" => None,
        all if is_full => piece("", Some(as_description(all)), Form::Prose),
        all => Some(begin_guide(&entry.at, all)),
    };
    let schema = |json: &str| printable::seen_json(&tool::minified(json)).into_owned();
    let (input, output) = (entry.input_schema(), entry.tool.output_schema());
    let example = example(entry).map(|it| printable::seen_json(&it.to_string()).into_owned());
    let says = instructions.map(as_description);
    let pieces = [
        description,
        piece("usage ", entry.overlay.usage.clone(), Form::Prose),
        piece("input ", Some(schema(&input)), Form::Schema),
        piece("output ", output.map(schema), Form::Schema),
        piece("example ", example, Form::Whole),
        piece("notes ", facts.notes.clone(), Form::Prose),
        piece("instructions of its server ", says, Form::Prose),
    ];
    let pieces: Vec<Section> = pieces.into_iter().flatten().collect();
    room::fit(&entry.at.to_string(), heading(entry, facts), &pieces, room)
}

/// The JSON form, for scripts.
pub(crate) fn json(entry: &Entry, facts: &ToolFacts) -> Value {
    let parse = |text: &str| serde_json::from_str::<Value>(text).unwrap_or_default();
    let server = facts.server.as_deref();
    json!({
        "name": entry.at.to_string(),
        "server": entry.at.server.as_str(),
        "server_version": server.map(|server| server.server_version.as_str()),
        "title": entry.title(),
        "description": entry.description(),
        "usage": entry.overlay.usage,
        "min_version": entry.overlay.min_version,
        "deprecated": entry.overlay.deprecated,
        "remarks": hit::list_remarks(entry, server),
        "signature": format!("{}{}", entry.at, entry.signature()),
        "category": entry.category,
        "tags": entry.tags,
        "changed": entry.changed.is_some(),
        "change_held": entry.is_change_held,
        "login_required": facts.trouble == Some(Availability::LoginRequired),
        "used": facts.calls,
        "last_used": facts.last_call,
        "input_schema": parse(&entry.input_schema()),
        "output_schema": entry.tool.output_schema().map(parse),
        "example": example(entry),
        "notes": facts.notes,
    })
}

/// One branch of a tool's schema: of its input, or after `output` of its output. The
/// error says what is wrong with the path.
pub(crate) fn branch(entry: &Entry, path: &str, room: usize) -> Result<String, String> {
    let (label, pointer, schema) = match path.strip_prefix("output") {
        Some(pointer) => {
            let schema = entry.tool.output_schema();
            let schema = schema.ok_or_else(|| "the tool declares no output".to_owned())?;
            ("output", pointer, tool::minified(schema))
        }
        None => {
            let pointer = path.strip_prefix("input").unwrap_or(path);
            ("input", pointer, tool::minified(&entry.input_schema()))
        }
    };
    let pointer = pointer.trim_start_matches('#');
    if !pointer.is_empty() && !pointer.starts_with('/') {
        return Err(format!("it begins with a slash: \"/{pointer}\""));
    }
    let found = branches::at(&schema, pointer)?;
    let found = printable::seen_json(found);
    let heading = format!("{} {label} {pointer}", entry.at);
    let heading = printable::one_line_of(&heading, HEADING_CHARS_MAX);
    let rest = room.saturating_sub(tokens::count(&heading) + BRANCH_NOTE_TOKENS);
    let shown = branches::cut(&found, rest);
    let mut text = format!("{heading}\n{}", shown.json);
    if shown.left_out_count > 0 {
        let name = entry.at.to_string();
        text = text + "\n" + &room::cut_line(&name, label, pointer, &shown);
    }
    Ok(whole_lines(text, room))
}

fn heading(entry: &Entry, facts: &ToolFacts) -> String {
    let mut heading = format!("{} - {}", entry.at, entry.category);
    if let Some(title) = find_title(entry) {
        heading.push_str(&format!("; title \"{title}\""));
    }
    if !entry.tags.is_empty() {
        heading.push_str(&format!("; tags {}", entry.tags.join(", ")));
    }
    if let Some(server) = &facts.server {
        let [name, version] = [&server.server_name, &server.server_version]
            .map(|text| printable::one_line_of(text, SERVER_CHARS_MAX));
        let named = format!("; server {name} {version}");
        heading.push_str(named.trim_end());
    }
    match facts.calls {
        0 => {}
        1 => heading.push_str("; used once"),
        count => heading.push_str(&format!("; used {count} times")),
    }
    if let Some(last) = facts.last_call {
        let age = show_age(facts.now.saturating_sub(last));
        heading.push_str(&format!(", last {age}"));
    }
    if let Some(trouble) = facts.trouble {
        heading.push_str(&format!("; {}", trouble.label()));
        let why = match (trouble, &facts.failure) {
            (Availability::LoginRequired, _) => format!("proxy login {}", entry.at.server),
            (_, Some(why)) => printable::one_line_of(&shorten_home_paths(why), DOWN_CHARS_MAX),
            (_, None) => String::new(),
        };
        if !why.is_empty() {
            heading.push_str(&format!(": {why}"));
        }
    }
    let is_outdated = |least: &&String| {
        let known = facts.server.as_ref();
        known.is_some_and(|it| it.is_older_than(least))
    };
    let least = entry.overlay.min_version.as_ref();
    if let Some(least) = least.filter(|least| !is_outdated(least)) {
        heading.push_str(&format!("; needs version {least}"));
    }
    for remark in hit::list_remarks(entry, facts.server.as_deref()) {
        heading.push_str(&format!("; {remark}"));
    }
    if let Some(changed) = entry.changed {
        let day = day_of(changed * 1_000);
        heading.push_str(&format!(" [changed since {day}]"));
    }
    if entry.is_change_held {
        let server = &entry.at.server;
        heading.push_str(&format!(
            " [change held: the new text seems to steer the model, this is the accepted one; a person decides: proxy review {server}]"
        ));
    }
    heading
}

/// The title of a tool on one line, unless it has the words of the name.
pub(crate) fn find_title(entry: &Entry) -> Option<String> {
    let title = entry.title()?;
    let is_name = tool::fold(&title).replace(' ', "_") == tool::fold(&entry.at.tool);
    (!is_name).then(|| printable::one_line_of(&title, TITLE_CHARS_MAX))
}

/// The tools of a server, one a line, then the instructions of the server, if they are given.
pub(crate) fn server<'e>(
    server: &KnownServer,
    tools: impl Iterator<Item = (&'e Entry, ServerMarks)>,
    instructions: Option<&str>,
) -> String {
    let count = printable::count_of(server.tools, "tool");
    let mut lines = vec![format!("{} - {count}; {}", server.name, server.category)];
    lines.extend(server.description.clone());
    lines.extend(tools.map(|(entry, marks)| hit::line(entry, &marks)));
    lines.extend(instructions.map(|says| instructions_line(server, says)));
    lines.join("\n")
}

pub(crate) fn instructions_line(server: &KnownServer, says: &str) -> String {
    format!("instructions of {}: {says}", server.name)
}

/// The description of a tool, or the beginning of a guide.
fn begin_guide(at: &ToolRef, description: &str) -> Section {
    let first = printable::first_chars(description, DESCRIPTION_CHARS_MAX);
    let mut text = as_description(first);
    let mut whole_chars = text.chars().count();
    if first.len() < description.len() || tokens::count(&text) > GUIDE_TOKENS_MIN {
        whole_chars = description.chars().count();
        text.truncate(room::beginning(&text, GUIDE_TOKENS_SHOWN).trim_end().len());
    }
    let more = json!({"name": at.to_string(), "full": true});
    let more = format!(". All of it: describe_tool {more}");
    Section {
        label: "",
        text,
        form: Form::Guide(whole_chars, more),
    }
}

/// A description as its server wrote it, without hidden characters, and with a mark before each line
/// that looks like one of ours.
fn as_description(text: &str) -> String {
    static OURS: LazyLock<Regex> = LazyLock::new(|| {
        let ours = r"(?m)^[ \t]*((?:input|output|example|usage|notes|instructions) |\[cut: |[a-z0-9-]+/\S+ - )";
        Regex::new(ours).expect("the pattern is ours")
    });
    let prose = printable::prose(text);
    OURS.replace_all(&prose, "| $1").into_owned()
}

/// A complete call that works: the overlay's arguments, else arguments generated from the schema.
fn example(entry: &Entry) -> Option<Value> {
    let mut configured = entry.overlay.example.clone();
    if let Some(given) = configured.as_mut().and_then(Value::as_object_mut) {
        entry.argument_settings.remove_from(given);
    }
    let arguments = configured.or_else(|| tool::example(&entry.input_schema()))?;
    Some(json!({"tool_name": entry.at.to_string(), "tool_input": arguments}))
}

#[cfg(test)]
mod tests {
    use super::as_description;

    #[test]
    fn a_description_forges_no_line_of_ours() {
        let check = |text: &str, shown: &str| assert_eq!(as_description(text), shown);
        check(
            "Input is\r\n\tread.\n\n- once",
            "Input is\n\tread.\n\n- once",
        );
        check("a\u{1b}[2Jb\u{202e}c\u{e0041}", "abc");
        check(
            "x\n input {}\nnotes: none\nexample {}\n[cut: all]",
            "x\n| input {}\nnotes: none\n| example {}\n| [cut: all]",
        );
        check("x\n\ngh/create - safe", "x\n\n| gh/create - safe");
    }
}
