//! The file `.proxy.toml` of a project, which may narrow what a client sees.

use printable::{LetterCase, Pattern};
use std::path::{Path, PathBuf};

use files::read_text_within;
use gateway::{PROJECT_FILE, ProjectRule};

use crate::{MistakePlace, lines::LineIndex};

/// The largest file that is read, in bytes.
const FILE_BYTES_MAX: usize = 64 * 1024;

/// Reads the file in a folder or the nearest folder above it. A project ends at the folder of its
/// repository (`.git`). Returns `None` if there is no such file. The error names its mistake and the place.
pub fn read_project(folder: &Path) -> Result<Option<ProjectRule>, String> {
    let Some(file) = find(folder) else {
        return Ok(None);
    };
    let fail = |place: &str, why: &str| format!("{}{place}: {why}", file.display());
    let text = read_text_within(&file, FILE_BYTES_MAX);
    let text = text.map_err(|error| fail("", &error.to_string()))?;
    let read: Result<ProjectRule, toml::de::Error> = toml::from_str(&text);
    let rule = read.map_err(|error| {
        let place = error.span().map_or_else(String::new, |span| {
            match LineIndex::new(&text).place(span.start) {
                MistakePlace::Line { line, column } => format!(":{line}:{column}"),
                _ => String::new(),
            }
        });
        fail(&place, error.message())
    })?;
    for glob in rule.allow.iter().chain(&rule.deny) {
        Pattern::new(glob, LetterCase::Ignored)
            .map_err(|error| fail("", &format!("`{glob}` is no pattern: {error}")))?;
    }
    Ok(Some(rule))
}

fn find(folder: &Path) -> Option<PathBuf> {
    for folder in folder.ancestors() {
        let file = folder.join(PROJECT_FILE);
        if file.is_file() {
            return Some(file);
        }
        if folder.join(".git").exists() {
            return None;
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn the_nearest_file_of_the_project_counts() {
        let folder = tempfile::tempdir().unwrap();
        let inner = folder.path().join("a/b");
        fs::create_dir_all(&inner).unwrap();
        let write = |at: &str, text: &str| fs::write(folder.path().join(at), text).unwrap();
        let read = || read_project(&inner);
        write(PROJECT_FILE, "profile = \"work\"\ndeny = [\"finance\"]\n");
        let rule = read().unwrap().unwrap();
        assert_eq!(rule.profile.as_deref(), Some("work"));
        assert_eq!(rule.deny, ["finance"]);
        fs::create_dir(folder.path().join("a/.git")).unwrap();
        assert_eq!(read(), Ok(None));
        write("a/.proxy.toml", "max_tokens = 300\nalow = [\"x\"]\n");
        let error = read().unwrap_err();
        assert!(
            error.contains(".proxy.toml:2:1: unknown field `alow`"),
            "{error}"
        );
        write("a/.proxy.toml", "allow = [\"[\"]\n");
        assert!(read().unwrap_err().contains("`[` is no pattern"));
    }
}
