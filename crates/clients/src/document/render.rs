//! Values written as text.

use serde_json::Value;

use super::slot::Slot;

/// Renders a value on one line.
pub(super) fn json_inline(value: &Value) -> String {
    match value {
        Value::Object(members) if !members.is_empty() => {
            let pair =
                |(key, value): (&String, &Value)| format!("{}: {}", quote(key), json_inline(value));
            let pairs: Vec<String> = members.iter().map(pair).collect();
            format!("{{ {} }}", pairs.join(", "))
        }
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(json_inline).collect();
            format!("[{}]", items.join(", "))
        }
        other => other.to_string(),
    }
}

/// Renders objects over several lines, the first of which is indented already.
pub(super) fn json_lines(value: &Value, indent: &str, step: &str, newline: &str) -> String {
    match value {
        Value::Object(members) if !members.is_empty() => {
            let inner = format!("{indent}{step}");
            let pair = |(key, value): (&String, &Value)| {
                let value = json_lines(value, &inner, step, newline);
                format!("{newline}{inner}{}: {value}", quote(key))
            };
            let pairs: Vec<String> = members.iter().map(pair).collect();
            format!("{{{}{newline}{indent}}}", pairs.join(","))
        }
        other => json_inline(other),
    }
}

pub(super) fn quote(text: &str) -> String {
    Value::from(text).to_string()
}

/// Renders an entry as lines that a person pastes into a YAML file, below the keys that lead to it.
pub(crate) fn render_yaml(slot: Slot<'_>, name: &str, entry: &Value) -> String {
    let mut lines: Vec<String> = Vec::new();
    for (depth, key) in slot.key.iter().enumerate() {
        lines.push(format!("{}{key}:", "  ".repeat(depth)));
    }
    let mut indent = "  ".repeat(slot.key.len());
    let mut lead = format!("{indent}- ");
    if !slot.list {
        lines.push(format!("{indent}{name}:"));
        lead = format!("{indent}  ");
    }
    indent.push_str("  ");
    for (key, value) in entry.as_object().into_iter().flatten() {
        lines.push(format!("{lead}{key}: {}", json_inline(value)));
        lead.clone_from(&indent);
    }
    lines.join("\n")
}
