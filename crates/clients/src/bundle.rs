//! Bundles: the manifest in the folder that a bundle (`.mcpb`, before `.dxt`) was unpacked to.

use std::path::Path;

use serde_json::{Value, json};

use crate::{disk::read_file, document, document::Format, entry::ServerEntry, home::System};

/// The folders that a manifest may name, in the syntax of an editor.
const FOLDERS: [(&str, &str); 4] = [
    ("HOME", "${userHome}"),
    ("DESKTOP", "${userHome}/Desktop"),
    ("DOCUMENTS", "${userHome}/Documents"),
    ("DOWNLOADS", "${userHome}/Downloads"),
];

/// Returns true if a value is a manifest.
pub(crate) fn is_manifest(whole: &Value) -> bool {
    let has = |key: &str| whole.get(key).is_some();
    (has("manifest_version") || has("dxt_version")) && whole["server"].is_object()
}

/// Returns the server of a manifest. Claude Desktop has the answers to its questions in another folder;
/// a question without an answer or a default becomes an input.
pub(crate) fn entry_of(manifest: &Value, folder: Option<&Path>) -> ServerEntry {
    let settings = folder.and_then(read_settings).unwrap_or_default();
    let (mut texts, mut inputs) = (Vec::new(), Vec::new());
    let questions = manifest["user_config"].as_object();
    for (key, question) in questions.into_iter().flatten() {
        let answer = settings["userConfig"].get(key);
        let text = match answer.or_else(|| question.get("default")) {
            Some(Value::String(text)) => text.clone(),
            Some(Value::Array(texts)) => {
                let texts: Vec<&str> = texts.iter().filter_map(Value::as_str).collect();
                texts.join(",")
            }
            Some(value @ (Value::Bool(_) | Value::Number(_))) => value.to_string(),
            _ => format!("${{input:{key}}}"),
        };
        texts.push((format!("user_config.{key}"), text));
        let title = question.get("title").or(question.get("description"));
        inputs.push(json!({"id": key, "description": title}));
    }
    texts.extend(FOLDERS.map(|(name, text)| (name.to_owned(), text.to_owned())));
    let mut value = manifest["server"]["mcp_config"].clone();
    let own = value["platform_overrides"].get(System::of_build().node_name());
    if let (Some(Value::Object(own)), Some(members)) = (own.cloned(), value.as_object_mut()) {
        members.extend(own);
    }
    fill_in(&mut value, &texts);
    let name = manifest["name"].as_str().unwrap_or_default();
    ServerEntry {
        is_off: settings["isEnabled"] == false,
        project: folder.map(Path::to_owned),
        inputs,
        ..ServerEntry::pasted(name, value)
    }
}

fn read_settings(folder: &Path) -> Option<Value> {
    let id = folder.file_name()?.to_str()?;
    let settings = folder
        .parent()?
        .with_file_name("Claude Extensions Settings");
    let text = read_file(&settings.join(format!("{id}.json"))).ok()?;
    document::read(&text, Format::Json).ok()
}

/// Replaces `${NAME}` in every text of a value.
fn fill_in(value: &mut Value, texts: &[(String, String)]) {
    match value {
        Value::String(whole) => {
            for (name, text) in texts {
                *whole = whole.replace(&format!("${{{name}}}"), text);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| fill_in(item, texts)),
        Value::Object(members) => members.values_mut().for_each(|item| fill_in(item, texts)),
        _ => {}
    }
}
