//! Values written as text.

use serde_json::Value;

/// On one line.
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

/// Objects over several lines, the first of which is indented already.
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
    // DEL may stand in JSON as it is, and not in TOML; escaped it may in both.
    Value::from(text).to_string().replace('\u{7f}', "\\u007f")
}

pub(super) fn toml_key(key: &str) -> String {
    let is_bare = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if !key.is_empty() && key.chars().all(is_bare) {
        key.to_owned()
    } else {
        quote(key)
    }
}

/// TOML has no null: such members are left out.
pub(super) fn toml_inline(value: &Value) -> String {
    match value {
        Value::Object(members) if members.is_empty() => "{}".to_owned(),
        Value::Object(members) => {
            let filled = members.iter().filter(|(_, value)| !value.is_null());
            let pairs: Vec<String> = filled
                .map(|(key, value)| format!("{} = {}", toml_key(key), toml_inline(value)))
                .collect();
            format!("{{ {} }}", pairs.join(", "))
        }
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(toml_inline).collect();
            format!("[{}]", items.join(", "))
        }
        Value::String(text) => quote(text),
        other => other.to_string(),
    }
}

/// The members of a table in block style, each at the same indentation.
pub(super) fn yaml_block(value: &Value, indent: &str, newline: &str) -> String {
    let Value::Object(members) = value else {
        return json_inline(value);
    };
    let pair = |(key, value): (&String, &Value)| match value {
        Value::Object(inner) if !inner.is_empty() => {
            let deeper = format!("{indent}  ");
            let block = yaml_block(value, &deeper, newline);
            format!("{}:{newline}{deeper}{block}", yaml_text(key))
        }
        Value::String(text) => format!("{}: {}", yaml_text(key), yaml_text(text)),
        other => format!("{}: {}", yaml_text(key), json_inline(other)),
    };
    let pairs: Vec<String> = members.iter().map(pair).collect();
    pairs.join(&format!("{newline}{indent}"))
}

/// Plain where nobody can read it as anything but this text.
pub(super) fn yaml_text(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/_-.".contains(c);
    let starts_well = text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '/');
    let is_word = ["true", "false", "null", "yes", "no", "on", "off", "y", "n"]
        .contains(&text.to_ascii_lowercase().as_str());
    if starts_well && !is_word && text.chars().all(is_plain) {
        text.to_owned()
    } else {
        quote(text)
    }
}
