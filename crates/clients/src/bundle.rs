//! Bundles (`.mcpb`, before `.dxt`): a zip with a manifest, or the folder it was unpacked to.

use std::{error::Error, fs, io::Read as _, path::Path};

use serde_json::{Map, Value, json};

use crate::{
    disk::read_file,
    document::{self, Format},
    entry::{Bundle, EntryPlace, ServerEntry},
    home::System,
    table::{ClientProgram, EntryScope, Variables},
};

const MANIFEST: &str = "manifest.json";

/// The largest manifest: one has a page or two, and the sizes that a zip declares may be false.
const MANIFEST_BYTES_MAX: u64 = 1 << 20;

/// Returns true if a value is a manifest.
pub(crate) fn is_manifest(whole: &Value) -> bool {
    let has = |key: &str| whole.get(key).is_some();
    (has("manifest_version") || has("dxt_version")) && whole["server"].is_object()
}

/// Returns the server of a manifest.
pub(crate) fn entry_of(manifest: &Value, bundle: Bundle) -> ServerEntry {
    let server = &manifest["server"];
    let mut value = server["mcp_config"]
        .as_object()
        .cloned()
        .unwrap_or_default();
    let own = System::of_build().node_name();
    if let Some(Value::Object(overrides)) = value.remove("platform_overrides") {
        let own = overrides.get(own).and_then(Value::as_object);
        value.extend(own.cloned().into_iter().flatten());
    }
    if value.get("command").is_none() {
        value.extend(start_of(server));
    }
    let name = manifest["name"].as_str().unwrap_or_default();
    let questions = manifest.get("user_config").cloned().unwrap_or_default();
    let mut entry = ServerEntry::pasted(name, Value::Object(value));
    entry.variables = Variables::Braces;
    entry.bundle = Some(Bundle {
        questions,
        ..bundle
    });
    entry
}

/// Returns the start of a bundle that declares only its type.
fn start_of(server: &Value) -> Map<String, Value> {
    let point = server["entry_point"].as_str().unwrap_or_default();
    let point = format!("${{__dirname}}/{point}");
    let start = match server["type"].as_str() {
        Some("node") => json!({"command": "node", "args": [point]}),
        Some("python") => json!({"command": "python3", "args": [point]}),
        Some("uv") => {
            json!({"command": "uv", "args": ["run", "--directory", "${__dirname}", point]})
        }
        _ => json!({"command": point}),
    };
    start.as_object().cloned().unwrap_or_default()
}

/// Reads the server of a bundle that is still packed.
pub(crate) fn read_packed(path: &Path) -> Result<ServerEntry, Box<dyn Error>> {
    let mut archive = zip::ZipArchive::new(files::open_to_read(path)?)?;
    let manifest = archive.by_name(MANIFEST)?;
    let mut text = String::new();
    manifest
        .take(MANIFEST_BYTES_MAX)
        .read_to_string(&mut text)?;
    let whole = document::read(&text, Format::Json)?;
    if !is_manifest(&whole) {
        return Err("its manifest.json does not describe a bundle".into());
    }
    Ok(entry_of(&whole, Bundle::default()))
}

/// Reads the bundles that a client unpacked. The answers to their questions are in a folder beside
/// them.
pub(crate) fn read_installed(
    client: &'static ClientProgram,
    folder: &Path,
) -> (Vec<ServerEntry>, Vec<String>) {
    let (mut entries, mut mistakes) = (Vec::new(), Vec::new());
    let answers = folder.with_file_name("Claude Extensions Settings");
    let folders = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut folders: Vec<_> = folders.map(|folder| folder.path()).collect();
    folders.sort();
    for folder in folders
        .iter()
        .filter(|folder| folder.join(MANIFEST).is_file())
    {
        let id = folder.file_name().unwrap_or_default().to_string_lossy();
        match read_unpacked(client, folder, &answers.join(format!("{id}.json"))) {
            Ok(entry) => entries.extend(entry),
            Err(why) => mistakes.push(why),
        }
    }
    (entries, mistakes)
}

fn read_unpacked(
    client: &'static ClientProgram,
    folder: &Path,
    answers: &Path,
) -> Result<Option<ServerEntry>, String> {
    let path = folder.join(MANIFEST);
    let manifest = document::read(&read_file(&path)?, Format::Json);
    let manifest = manifest.map_err(|error| format!("{}: {error}", path.display()))?;
    let settings = match read_file(answers) {
        Ok(text) => document::read(&text, Format::Json).unwrap_or_default(),
        Err(_) => Value::Null,
    };
    if !is_manifest(&manifest) {
        return Ok(None);
    }
    let bundle = Bundle {
        folder: Some(folder.to_owned()),
        questions: Value::Null,
        answers: settings.get("userConfig").cloned().unwrap_or_default(),
    };
    let mut entry = entry_of(&manifest, bundle);
    entry.is_off = settings.get("isEnabled") == Some(&Value::Bool(false));
    entry.place = Some(EntryPlace {
        client,
        file: path,
        scope: EntryScope::User,
        is_removable: false,
        format: Format::Json,
        key: Vec::new(),
        list: false,
    });
    Ok(Some(entry))
}
