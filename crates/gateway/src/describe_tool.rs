//! `describe_tool`: everything about a tool that its signature leaves out.

mod branches;
mod hits;
mod room;
mod server;

use std::sync::{Arc, LazyLock};

use excerpt::tokens;
use regex::Regex;
use registry::{Entry, Generation, KnownServer, Registry};
use room::{Form, Piece};
use serde_json::{Value, json, value::RawValue};
use tokio::task::spawn_blocking;
use tracing::warn;

use crate::{
    call_context::CallContext, catalog::Catalog, definitions::DESCRIBE, error::ToolError,
    instructions_told::InstructionsTold, loose::Loose, render::ago, reply::Reply,
};

pub(crate) use hits::fit_hits;
pub(crate) use room::whole_lines;
pub(crate) use server::describe_server;

/// Tools in one answer (interface, section 5).
const TOOLS_MAX: usize = 5;

const SIGNATURE: &str = "(name: string, path?: string)";

/// The longest description shown, in characters; a million were seen.
const DESCRIPTION_CHARS_MAX: usize = 20_000;

/// The longest reason why a server is down in a heading, in characters.
const DOWN_CHARS_MAX: usize = 300;

/// The longest name or version of a server in a heading, in characters.
const SERVER_CHARS_MAX: usize = 100;

/// The cost of the blank line between answers of several tools, in tokens.
const BETWEEN_TOKENS: usize = 2;

pub(crate) async fn describe_tool(
    catalog: &Catalog,
    arguments: Option<&RawValue>,
    context: &CallContext,
) -> Result<Reply, ToolError> {
    let client = &*context.policy;
    let told = context.told.as_deref();
    let arguments = Loose::read(arguments);
    let names = names(&arguments)?;
    let room = catalog.settings().room(client);
    if let [name] = names.as_slice() {
        let entry = &match catalog.resolve(name, client).await {
            Ok(found) => found,
            Err(error) => {
                let text = server::describe_server(catalog, name, error, context).await?;
                return Ok(Reply::text(&whole_lines(text, room)));
            }
        };
        let path = arguments.text(&["path"]).filter(|path| !path.is_empty());
        return Ok(Reply::text(&match path {
            Some(path) => branch(entry, &path, room)?,
            None => describe(catalog, entry, told, room).await?,
        }));
    }
    let room = (room / names.len()).saturating_sub(BETWEEN_TOKENS);
    let mut texts = Vec::new();
    for name in &names {
        texts.push(match catalog.resolve(name, client).await {
            Ok(entry) => describe(catalog, &entry, told, room).await?,
            Err(error) => {
                let page = server::describe_server(catalog, name, error, context).await;
                whole_lines(page.unwrap_or_else(|error| error.to_string()), room)
            }
        });
    }
    Ok(Reply::text(&texts.join("\n\n")))
}

/// The text form of one tool (interface, section 5) in a room of so many tokens, built off the event
/// loop: an example for an untrusted schema has to be searched for. Marks its change as read.
pub(crate) async fn describe(
    catalog: &Catalog,
    entry: &Arc<Entry>,
    told: Option<&InstructionsTold>,
    room: usize,
) -> Result<String, ToolError> {
    let server = catalog.registry.known_server(&entry.at.server);
    let heading = heading(catalog, server.as_deref(), entry);
    let instructions = server.and_then(|server| told?.long(&server));
    let notes = notes(catalog, entry);
    let (entry, registry) = (Arc::clone(entry), catalog.registry.clone());
    let describing = spawn_blocking(move || {
        let text = text(heading, &entry, (notes, instructions), room);
        note_read(&registry, &entry);
        text
    });
    describing
        .await
        .map_err(|error| ToolError::Internal(error.to_string()))
}

/// The JSON form, for scripts.
pub(crate) fn describe_json(catalog: &Catalog, generation: &Generation, entry: &Entry) -> Value {
    let parse = |text: &str| serde_json::from_str::<Value>(text).unwrap_or_default();
    let server = generation.server(&entry.at.server);
    json!({
        "name": entry.at.to_string(),
        "server": entry.at.server.as_str(),
        "server_version": server.map(|server| server.server_version.as_str()),
        "title": entry.tool.title(),
        "description": entry.description(),
        "signature": format!("{}{}", entry.at, entry.signature()),
        "category": entry.category,
        "tags": entry.tags,
        "changed": entry.changed.is_some(),
        "login_required": catalog.needs_login(&entry.at.server, entry.stale),
        "used": catalog.usage.count(&entry.at),
        "last_used": catalog.usage.last(&entry.at),
        "input_schema": parse(&entry.tool.input_schema()),
        "output_schema": entry.tool.output_schema().map(parse),
        "example": example(entry),
        "notes": notes(catalog, entry),
    })
}

/// The notes of the person for the model: on the tool, then on its server.
fn notes(catalog: &Catalog, entry: &Entry) -> Option<String> {
    let settings = catalog.settings();
    let server = settings.server(&entry.at.server);
    let server = server.and_then(|server| server.notes.clone());
    let notes = [entry.overlay.notes.clone(), server];
    let notes: Vec<String> = notes.into_iter().flatten().collect();
    (!notes.is_empty()).then(|| notes.join(" "))
}

fn names(arguments: &Loose) -> Result<Vec<String>, ToolError> {
    let asked = arguments
        .texts(&["name", "tool_name", "names", "tool", "tools"])
        .unwrap_or_default();
    let split = asked.iter().flat_map(|names| names.split(','));
    let names: Vec<String> = split
        .map(|name| name.trim().to_owned())
        .filter(|name| !name.is_empty())
        .collect();
    let refuse = |message: &str| Err(ToolError::own_input(DESCRIBE, "name", message, SIGNATURE));
    match names.len() {
        0 => refuse("missing; expected the name of a tool"),
        count if count > TOOLS_MAX => {
            refuse(&format!("{count} names; at most {TOOLS_MAX} at once"))
        }
        _ => Ok(names),
    }
}

/// Removes the mark of a changed definition after it was shown. A mark that cannot be removed stays.
fn note_read(registry: &Registry, entry: &Entry) {
    let Some(changed) = entry.changed else { return };
    if let Err(error) = registry.note_read(&[(entry.at.clone(), changed)]) {
        warn!(tool = %entry.at, %error, "still marked as changed");
    }
}

/// The text form in a room of so many tokens.
fn text(
    heading: String,
    entry: &Entry,
    (notes, instructions): (Option<String>, Option<String>),
    room: usize,
) -> String {
    let piece = |label, text: String, form| Piece { label, text, form };
    let mut pieces = Vec::new();
    let description = entry.description();
    if !description.trim().is_empty() {
        let description = as_description(description.trim());
        pieces.push(piece("", description, Form::Prose));
    }
    let schema = |json: &str| printable::seen_json(&tool::minified(json)).into_owned();
    let input = schema(&entry.tool.input_schema());
    pieces.push(piece("input ", input, Form::Schema));
    let output = entry.tool.output_schema();
    pieces.extend(output.map(|it| piece("output ", schema(it), Form::Schema)));
    let example = example(entry).map(|it| printable::seen_json(&it.to_string()).into_owned());
    pieces.extend(example.map(|it| piece("example ", it, Form::Whole)));
    pieces.extend(notes.map(|it| piece("notes ", it, Form::Prose)));
    let instructions = instructions.map(|it| as_description(&it));
    pieces.extend(instructions.map(|it| piece("instructions of its server ", it, Form::Prose)));
    room::fit(&entry.at.to_string(), heading, &pieces, room)
}

/// One branch of a tool's schema: of its input, or after `output` of its output.
fn branch(entry: &Entry, path: &str, room: usize) -> Result<String, ToolError> {
    let wrong = |why: &str| ToolError::own_input(DESCRIBE, "path", why, SIGNATURE);
    let (label, pointer, schema) = match path.strip_prefix("output") {
        Some(pointer) => ("output", pointer, entry.tool.output_schema()),
        None => ("input", path.strip_prefix("input").unwrap_or(path), None),
    };
    let schema = match (label, schema) {
        ("output", None) => return Err(wrong("the tool declares no output")),
        (_, Some(schema)) => tool::minified(schema),
        (_, None) => tool::minified(&entry.tool.input_schema()),
    };
    let pointer = pointer.trim_start_matches('#');
    if !pointer.is_empty() && !pointer.starts_with('/') {
        return Err(wrong(&format!("it begins with a slash: \"/{pointer}\"")));
    }
    let found = branches::at(&schema, pointer).map_err(|why| wrong(&why))?;
    let found = printable::seen_json(found);
    let heading = printable::one_line_of(
        &format!("{} {label} {pointer}", entry.at),
        HEADING_CHARS_MAX,
    );
    let rest = room.saturating_sub(tokens::count(&heading) + BRANCH_NOTE_TOKENS);
    let shown = branches::cut(&found, rest);
    let mut lines = vec![heading, shown.json.clone()];
    if shown.left_out_count > 0 {
        lines.push(room::cut_line(
            &entry.at.to_string(),
            label,
            pointer,
            &shown,
        ));
    }
    Ok(whole_lines(lines.join("\n"), room))
}

/// The longest heading over a branch, in characters.
const HEADING_CHARS_MAX: usize = 400;

/// The cost of the note after a branch of which something was left out, in tokens.
const BRANCH_NOTE_TOKENS: usize = 160;

fn heading(catalog: &Catalog, server: Option<&KnownServer>, entry: &Entry) -> String {
    let mut heading = format!("{} - {}", entry.at, entry.category);
    if !entry.tags.is_empty() {
        heading.push_str(&format!("; tags {}", entry.tags.join(", ")));
    }
    if let Some(server) = server {
        let [name, version] = [&server.server_name, &server.server_version]
            .map(|text| printable::one_line_of(text, SERVER_CHARS_MAX));
        let named = format!("; server {name} {version}");
        heading.push_str(named.trim_end());
    }
    match catalog.usage.count(&entry.at) {
        0 => {}
        1 => heading.push_str("; used once"),
        count => heading.push_str(&format!("; used {count} times")),
    }
    if let Some(last) = catalog.usage.last(&entry.at) {
        heading.push_str(&format!(", last {}", ago(last)));
    }
    if catalog.needs_login(&entry.at.server, entry.stale) {
        let server = &entry.at.server;
        heading.push_str(&format!("; login required: proxy login {server}"));
    } else if let Some(why) = catalog.failure(&entry.at.server) {
        let why = printable::one_line_of(&why, DOWN_CHARS_MAX);
        heading.push_str(&format!("; down: {why}"));
    }
    if let Some(changed) = entry.changed {
        let day = files::clock::day_of(changed * 1_000);
        heading.push_str(&format!(" [changed since {day}]"));
    }
    heading
}

/// A description as its server wrote it, without hidden characters, and with a mark before each line
/// that looks like one of ours.
fn as_description(text: &str) -> String {
    static OURS: LazyLock<Regex> = LazyLock::new(|| {
        let ours =
            r"(?m)^[ \t]*((?:input|output|example|notes|instructions) |\[cut: |[a-z0-9-]+/\S+ - )";
        Regex::new(ours).expect("the pattern is ours")
    });
    let first = printable::first_chars(text, DESCRIPTION_CHARS_MAX);
    let prose = printable::prose(first);
    let marked = OURS.replace_all(&prose, "| $1");
    if first.len() == text.len() {
        return marked.into_owned();
    }
    let whole = text.chars().count();
    format!("{marked}… [cut: {DESCRIPTION_CHARS_MAX} of {whole} characters]")
}

/// A complete call that works: the overlay's arguments, else arguments generated from the schema.
fn example(entry: &Entry) -> Option<Value> {
    let configured = entry.overlay.example.clone();
    let arguments = configured.or_else(|| tool::example(&entry.tool.input_schema()))?;
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
