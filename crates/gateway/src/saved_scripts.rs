//! The folder of saved scripts: each file is a tool of the server `scripts` (0031), which has the user's
//! own skills as well (0040).

use std::{
    collections::{BTreeMap, btree_map},
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
    time::SystemTime,
};

use fleet::{ServerInfo, Survey};
use script::{Interface, SCRIPT_BYTES_MAX};
use serde_json::json;
use tool::Tool;

use crate::saved_skills::{SavedSkills, list};

/// The most files that are read; a folder with more is not used as a folder of scripts.
const FILES_MAX: usize = 500;

/// The longest tool name that providers of models accept, in characters, without its server.
const NAME_CHARS_MAX: usize = 48;

/// The scripts at their last reading.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SavedScripts {
    /// True if the folder of scripts or that of skills exists.
    pub has_folder: bool,
    by_name: BTreeMap<String, Arc<SavedScript>>,
    /// The user's own skills.
    pub skills: SavedSkills,
    /// Files that are no valid tools, and folders that are no valid skills, each with the reason.
    pub mistakes: Vec<FileMistake>,
}

/// One script.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct SavedScript {
    pub(crate) text: String,
    pub(crate) interface: Interface,
    file: String,
}

/// A file that is no valid tool, or a folder that is no valid skill.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileMistake {
    /// Its name, with that of its folder: `scripts/report.ts`.
    pub file: String,
    /// The reason.
    pub why: String,
}

const SCRIPTS: &str = "scripts";

/// The folder of skills, beside that of scripts.
const SKILLS: &str = "skills";

impl SavedScripts {
    /// Reads the folder, and that of skills beside it. Invalid files are noted, and the others are used.
    pub fn read(folder: Option<&Path>) -> Self {
        let mut saved = Self::default();
        if let Some(folder) = folder {
            saved.read_scripts(folder);
            let note = |name: &str, why: &str| saved.note(SKILLS, name, why);
            let skills = SavedSkills::read(&folder.with_file_name(SKILLS), note);
            saved.has_folder |= skills.is_some();
            saved.skills = skills.unwrap_or_default();
        }
        saved
    }

    fn read_scripts(&mut self, folder: &Path) {
        let files = match list_scripts(folder) {
            Ok(files) => files,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return,
            Err(error) => {
                let why = format!("the folder cannot be read: {error}");
                return self.note(SCRIPTS, ".", &why);
            }
        };
        self.has_folder = true;
        for (name, file) in files.iter().take(FILES_MAX) {
            if let Err(why) = self.add(file, name) {
                self.note(SCRIPTS, name, &why);
            }
        }
        if files.len() > FILES_MAX {
            let why = format!("only the first {FILES_MAX} files are read");
            self.note(SCRIPTS, ".", &why);
        }
    }

    pub(crate) fn get(&self, name: &str) -> Option<Arc<SavedScript>> {
        self.by_name.get(name).cloned()
    }

    /// The number of saved scripts.
    pub fn count(&self) -> usize {
        self.by_name.len()
    }

    /// The survey that a server with these tools would produce.
    pub(crate) fn survey(&self) -> Survey {
        let tools = self.by_name.iter();
        let tools = tools.filter_map(|(name, script)| Tool::parse(&define(name, script)).ok());
        Survey {
            tools: tools.collect(),
            offer: self.skills.offer(),
            dropped: Vec::new(),
            about: ServerInfo {
                name: Some(SCRIPTS.to_owned()),
                offers_tools: true,
                capabilities: self.skills.offer().capabilities,
                ..ServerInfo::default()
            },
            time_to_live: None,
            asking_calls: Vec::new(),
            asked_at: SystemTime::now(),
        }
    }

    fn add(&mut self, file: &Path, file_name: &str) -> Result<(), String> {
        let name = file_name.rsplit_once('.').unwrap_or_default().0;
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
        if name.is_empty() || !name.chars().all(is_plain) || name.len() > NAME_CHARS_MAX {
            return Err(format!(
                "a tool has no such name; call it by letters, digits, `-` and `_`, \
                 {NAME_CHARS_MAX} at most"
            ));
        }
        let bytes = fs::metadata(file).map_err(|error| error.to_string())?.len();
        if bytes > SCRIPT_BYTES_MAX as u64 {
            return Err(script::Limit::Length.to_string());
        }
        let text = fs::read_to_string(file).map_err(|error| error.to_string())?;
        let interface = Interface::read(&text)?;
        match self.by_name.entry(name.to_owned()) {
            btree_map::Entry::Occupied(first) => {
                let first = &first.get().file;
                Err(format!(
                    "`{first}` is the tool `{name}` already; rename one"
                ))
            }
            btree_map::Entry::Vacant(place) => {
                place.insert(Arc::new(SavedScript {
                    text,
                    interface,
                    file: file_name.to_owned(),
                }));
                Ok(())
            }
        }
    }

    fn note(&mut self, folder: &str, name: &str, why: &str) {
        self.mistakes.push(FileMistake {
            file: format!("{folder}/{name}"),
            why: why.to_owned(),
        });
    }
}

/// Lists TypeScript and JavaScript files, by name, without declarations, which are for editors.
fn list_scripts(folder: &Path) -> io::Result<Vec<(String, PathBuf)>> {
    let mut files = list(folder)?;
    files.retain(|(name, file)| {
        let is_script = file.extension().is_some_and(|it| it == "ts" || it == "js");
        is_script && !name.ends_with(".d.ts") && !name.starts_with('.') && file.is_file()
    });
    Ok(files)
}

fn define(name: &str, script: &SavedScript) -> String {
    let Interface {
        description,
        input_schema,
        is_read_only,
        is_destructive,
        is_idempotent,
    } = &script.interface;
    let mut hints = json!({"readOnlyHint": is_read_only});
    // A hint that is left out is unknown: each call of the script is decided by itself.
    if *is_destructive {
        hints["destructiveHint"] = json!(true);
    }
    if *is_idempotent {
        hints["idempotentHint"] = json!(true);
    }
    let mut definition = json!({"name": name});
    if !description.is_empty() {
        definition["description"] = json!(description);
    }
    definition["inputSchema"] = input_schema.clone();
    definition["annotations"] = hints;
    definition.to_string()
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that fails says so")]
mod tests {
    use super::*;

    #[test]
    fn each_file_is_a_tool_or_says_why_not() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
        write(
            "report.ts",
            "/** Counts. @x\n @destructive */\nexport function main(args: { n?: number }) {}",
        );
        write("report.js", "1");
        write("odd name.ts", "1");
        write("broken.js", "const a = ;");
        write("types.d.ts", "declare const a: number;");
        write(".hidden.ts", "1");
        write("notes.md", "1");
        write("long.ts", &" ".repeat(SCRIPT_BYTES_MAX + 1));
        let saved = SavedScripts::read(Some(folder.path()));
        let survey = saved.survey();
        let tools: Vec<&str> = survey.tools.iter().map(Tool::json).collect();
        assert_eq!(
            tools,
            [
                r#"{"name":"report","inputSchema":{"type":"object","properties":{},"additionalProperties":false},"annotations":{"readOnlyHint":false}}"#
            ]
        );
        let mistakes: Vec<String> = saved
            .mistakes
            .iter()
            .map(|it| format!("{}: {}", it.file, it.why))
            .collect();
        let expected = [
            "scripts/broken.js: line 1, column 9: this is not valid TypeScript",
            "scripts/long.ts: length: a script has at most 256 KiB",
            "scripts/odd name.ts: a tool has no such name",
            "scripts/report.ts: `report.js` is the tool `report` already",
        ];
        assert_eq!(mistakes.len(), expected.len(), "{mistakes:?}");
        for (mistake, expected) in mistakes.iter().zip(expected) {
            assert!(mistake.starts_with(expected), "{mistake}");
        }
        fs::remove_file(folder.path().join("report.js")).unwrap();
        let survey = SavedScripts::read(Some(folder.path())).survey();
        assert_eq!(
            survey.tools[0].json(),
            r#"{"name":"report","description":"Counts. @x","inputSchema":{"type":"object","properties":{"n":{"type":"number"}},"additionalProperties":false},"annotations":{"readOnlyHint":false,"destructiveHint":true}}"#
        );
    }

    #[test]
    fn a_folder_that_is_not_there_has_no_scripts() {
        let folder = tempfile::tempdir().unwrap();
        let saved = SavedScripts::read(Some(&folder.path().join("scripts")));
        assert_eq!(saved, SavedScripts::default());
        assert!(SavedScripts::read(Some(folder.path())).has_folder);
    }
}
