//! `describe_tool`: everything about a tool that its signature leaves out.

use registry::{Entry, Generation};
use serde_json::{Value, json, value::RawValue};

use super::{Front, Reply, ToolError, execute_dynamic_tool::find, loose::Loose};
use crate::config::Client;

/// Tools in one answer (interface, section 5).
const TOOLS_MAX: usize = 5;

const SIGNATURE: &str = "(name: string)";

/// The longest description shown, in characters; a million were seen.
const DESCRIPTION_CHARS_MAX: usize = 20_000;

impl Front {
    pub(super) async fn describe_tool(
        &self,
        arguments: Option<&RawValue>,
        client: &Client,
    ) -> Result<Reply, ToolError> {
        let arguments = Loose::read(arguments);
        let names = names(&arguments)?;
        let generation = self.generation().await?;
        if let [name] = names.as_slice() {
            let entry = find(&generation, name, client)?;
            return Ok(Reply::text(&text(self, &generation, entry)));
        }
        let texts: Vec<String> = names
            .iter()
            .map(|name| match find(&generation, name, client) {
                Ok(entry) => text(self, &generation, entry),
                Err(error) => error.to_string(),
            })
            .collect();
        Ok(Reply::text(&texts.join("\n\n")))
    }

    /// The JSON form, for scripts.
    pub fn describe_json(&self, generation: &Generation, entry: &Entry) -> Value {
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
            "used": self.usage.count(&entry.at),
            "input_schema": parse(&entry.tool.input_schema()),
            "output_schema": entry.tool.output_schema().map(parse),
            "example": example(entry),
            "notes": entry.overlay.notes,
        })
    }
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
    let refuse = |message: &str| {
        Err(ToolError::own_input(
            super::DESCRIBE,
            "name",
            message,
            SIGNATURE,
        ))
    };
    match names.len() {
        0 => refuse("missing; expected the name of a tool"),
        count if count > TOOLS_MAX => {
            refuse(&format!("{count} names; at most {TOOLS_MAX} at once"))
        }
        _ => Ok(names),
    }
}

/// The text form (interface, section 5).
pub(super) fn text(front: &Front, generation: &Generation, entry: &Entry) -> String {
    let mut lines = vec![heading(front, generation, entry)];
    let description = entry.description();
    if !description.trim().is_empty() {
        lines.push(shortened(description.trim()));
    }
    lines.push(format!(
        "input {}",
        tool::minified(&entry.tool.input_schema())
    ));
    lines.extend(
        entry
            .tool
            .output_schema()
            .map(|it| format!("output {}", tool::minified(it))),
    );
    lines.extend(example(entry).map(|example| format!("example {example}")));
    lines.extend(
        entry
            .overlay
            .notes
            .as_ref()
            .map(|notes| format!("notes {notes}")),
    );
    lines.join("\n")
}

fn heading(front: &Front, generation: &Generation, entry: &Entry) -> String {
    let mut heading = format!("{} - {}", entry.at, entry.category);
    if !entry.tags.is_empty() {
        heading.push_str(&format!("; tags {}", entry.tags.join(", ")));
    }
    if let Some(server) = generation.server(&entry.at.server) {
        let named = format!("; server {} {}", server.server_name, server.server_version);
        heading.push_str(named.trim_end());
    }
    match front.usage.count(&entry.at) {
        0 => {}
        1 => heading.push_str("; used once"),
        count => heading.push_str(&format!("; used {count} times")),
    }
    if let Some(why) = front.failure(&entry.at.server) {
        heading.push_str(&format!("; down: {why}"));
    }
    heading
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(DESCRIPTION_CHARS_MAX) {
        Some((at, _)) => {
            let whole = text.chars().count();
            format!(
                "{}… [cut: {DESCRIPTION_CHARS_MAX} of {whole} characters]",
                &text[..at]
            )
        }
        None => text.to_owned(),
    }
}

/// A whole call that works: the overlay's arguments, else some made from the schema.
fn example(entry: &Entry) -> Option<Value> {
    let configured = entry.overlay.example.clone();
    let arguments = configured.or_else(|| tool::example(&entry.tool.input_schema()))?;
    Some(json!({"tool_name": entry.at.to_string(), "tool_input": arguments}))
}
