//! Describes one tool for a person: its call, its arguments, an example.

use gateway::api::DescribedTool;
use serde_json::Value;

use crate::commands::search::show_marks;

/// The widest column for the types of arguments, in characters.
const TYPE_CHARS_MAX: usize = 40;

pub(super) fn render(tool: &DescribedTool) -> String {
    let (described, purpose) = (&tool.description, &tool.purpose);
    let text = |key: &str| described[key].as_str().unwrap_or_default().trim();
    let texts = |key: &str| {
        let texts = described[key].as_array().into_iter().flatten();
        texts.map(|it| it.as_str().unwrap_or_default())
    };
    let name = text("name");
    let mut parts = vec![format!("{name} - {purpose}{}", show_marks(&tool.marks))];
    let description = text("description");
    if description.trim_end_matches('.') != purpose && !description.is_empty() {
        let lines = description.lines().map(|line| format!("  {line}"));
        parts.push(lines.collect::<Vec<_>>().join("\n"));
    }
    parts.extend(texts("remarks").map(|it| format!("Note: {it}")));
    if !text("usage").is_empty() {
        parts.push(text("usage").to_owned());
    }
    let schema = described["input_schema"].to_string();
    let arguments = tool::parameters(&schema);
    parts.push(usage(name, &arguments));
    if !arguments.is_empty() {
        parts.push(table(&arguments, &tool::parameter_types(&schema)).join("\n"));
    }
    if let Some(example) = described["example"]["tool_input"].as_object() {
        let words = spell(example);
        parts.push(format!("Example: proxy call {name} {words}"));
    }
    if let Some(notes) = described["notes"].as_str() {
        parts.push(format!("Notes: {notes}"));
    }
    let category = text("category");
    let mut facts = match &tool.title {
        Some(title) => format!("Title {title}; category {category}"),
        None => format!("Category {category}"),
    };
    let tags: Vec<&str> = texts("tags").collect();
    if !tags.is_empty() {
        facts.push_str(&format!(", tags {}", tags.join(", ")));
    }
    if let Some(version) = Some(text("server_version")).filter(|it| !it.is_empty()) {
        facts.push_str(&format!("; server version {version}"));
    }
    if let Some(least) = described["min_version"].as_str() {
        facts.push_str(&format!("; needs {least} or newer"));
    }
    facts.push_str(&format!("; called {} times", described["used"]));
    parts.push(format!(
        "{facts}\nAll of its schema: the same with `--json`"
    ));
    parts.join("\n\n")
}

/// `Usage: proxy call git/log repo=STRING [count=INTEGER]`.
fn usage(name: &str, arguments: &[tool::Parameter]) -> String {
    let word = |it: &tool::Parameter| {
        let pair = format!("{}={}", it.name, it.name.to_uppercase());
        if it.required {
            pair
        } else {
            format!("[{pair}]")
        }
    };
    let words: Vec<String> = arguments.iter().map(word).collect();
    format!("Usage: proxy call {name} {}", words.join(" "))
        .trim_end()
        .to_owned()
}

fn table(arguments: &[tool::Parameter], types: &[String]) -> Vec<String> {
    let types = types
        .iter()
        .map(|it| printable::first_chars(it, TYPE_CHARS_MAX));
    let types: Vec<&str> = types.collect();
    let width = |texts: &mut dyn Iterator<Item = usize>| texts.max().unwrap_or_default();
    let names = width(&mut arguments.iter().map(|it| it.name.chars().count()));
    let widest = width(&mut types.iter().map(|it| it.chars().count()));
    let row = |(it, type_text): (&tool::Parameter, &str)| {
        let mut about = printable::one_line(&it.description);
        if !it.enum_values.is_empty() && !type_text.contains(&it.enum_values[0]) {
            about.push_str(&format!(" ({})", it.enum_values.join(", ")));
        }
        let needed = if it.required { "required" } else { "        " };
        format!(
            "  {:names$}  {type_text:widest$}  {needed}  {about}",
            it.name
        )
        .trim_end()
        .to_owned()
    };
    arguments.iter().zip(types).map(row).collect()
}

/// Arguments in shell syntax: pairs if each value is plain, else one JSON object.
fn spell(arguments: &serde_json::Map<String, Value>) -> String {
    let plain = |text: &str| {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:@%+,".contains(c);
        !text.is_empty() && text.chars().all(is_plain)
    };
    let pair = |(name, value): (&String, &Value)| match value {
        // Text that is JSON by itself would be parsed as JSON.
        Value::String(text) if plain(text) && serde_json::from_str::<Value>(text).is_err() => {
            Some(format!("{name}={text}"))
        }
        Value::Number(_) | Value::Bool(_) => Some(format!("{name}={value}")),
        _ => None,
    };
    let pairs: Option<Vec<String>> = arguments.iter().map(pair).collect();
    match pairs {
        Some(pairs) => pairs.join(" "),
        None => {
            let json = Value::Object(arguments.clone()).to_string();
            printable::quote_word(&json)
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::spell;

    #[test]
    fn an_example_is_spelled_as_a_shell_takes_it() {
        let check = |arguments: serde_json::Value, words: &str| {
            assert_eq!(spell(arguments.as_object().unwrap()), words);
        };
        check(
            json!({"path": "/a/b.md", "limit": 3}),
            "path=/a/b.md limit=3",
        );
        check(json!({"q": "it's"}), r#"'{"q":"it'\''s"}'"#);
        check(json!({"id": "42"}), r#"'{"id":"42"}'"#);
        check(json!({"list": ["a"]}), r#"'{"list":["a"]}'"#);
        check(json!({}), "");
    }
}
