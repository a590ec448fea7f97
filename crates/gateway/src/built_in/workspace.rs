//! Files that scripts of one caller keep for later scripts, in a folder of ours.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use files::{is_file_name, open_to_append, own_folder, private_folder, write_whole};
use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::caller::Caller;

/// The largest total size of the files of one workspace, in bytes.
const BYTES_MAX: u64 = 64 * 1024 * 1024;

/// The largest number of files of one workspace.
const FILES_MAX: usize = 10_000;

/// The deepest nesting of folders.
const DEPTH_MAX: usize = 16;

/// The longest name of a file or folder, in bytes.
const NAME_BYTES_MAX: usize = 200;

/// Allows one change at a time: existing files are counted before more is written.
static CHANGE: Mutex<()> = Mutex::new(());

/// The largest number of workspaces in one state folder: any client name creates one, and each has
/// 64 MiB.
const WORKSPACES_MAX: usize = 256;

#[derive(Debug, Clone)]
pub(crate) struct Workspace {
    folder: PathBuf,
}

impl Workspace {
    /// The workspace of a caller, below the state folder.
    pub(crate) fn of(state_dir: &Path, caller: &Caller) -> Self {
        let all = state_dir.join("workspaces");
        Self {
            folder: all.join(caller.folder_name()),
        }
    }

    /// Runs a request of a script; an error is a sentence for the script's author. Blocks.
    pub(crate) fn act(&self, verb: &str, path: &str, text: Option<&str>) -> Result<Value, String> {
        let wanted =
            || text.ok_or_else(|| format!("workspace.{verb}(path, text): text is missing"));
        match verb {
            "read" => self.read(path).map(Value::from),
            "list" => self.list(path),
            "exists" => Ok(self.place(path)?.exists().into()),
            "write" => self.write(path, wanted()?, false).map(|()| Value::Null),
            "append" => self.write(path, wanted()?, true).map(|()| Value::Null),
            "remove" => {
                let removed = fs::remove_file(self.place(path)?).map_err(explain(path));
                removed.map(|()| Value::Null)
            }
            other => Err(format!("there is no workspace.{other}")),
        }
    }

    fn read(&self, path: &str) -> Result<String, String> {
        fs::read_to_string(self.place(path)?).map_err(explain(path))
    }

    fn write(&self, path: &str, text: &str, is_more: bool) -> Result<(), String> {
        let place = self.place(path)?;
        let _one = CHANGE.lock();
        self.make(&place).map_err(explain(path))?;
        let all = self.files().map_err(explain(path))?;
        let is_it = |(known, _): &&(String, u64)| self.folder.join(known) == place;
        let old = all.iter().find(is_it);
        if old.is_none() && all.len() >= FILES_MAX {
            return Err(format!("the workspace has {FILES_MAX} files; remove some"));
        }
        let replaced = old.filter(|_| !is_more).map_or(0, |(_, bytes)| *bytes);
        let bytes: u64 = all.iter().map(|(_, bytes)| bytes).sum();
        if bytes - replaced + text.len() as u64 > BYTES_MAX {
            let mib = BYTES_MAX / (1024 * 1024);
            return Err(format!(
                "the workspace holds at most {mib} MiB; remove some files"
            ));
        }
        let written = if is_more {
            open_to_append(&place)
                .and_then(|mut file| io::Write::write_all(&mut file, text.as_bytes()))
        } else {
            write_whole(&place, text.as_bytes())
        };
        written.map_err(explain(path))
    }

    fn list(&self, path: &str) -> Result<Value, String> {
        let below = if matches!(path, "" | "." | "/") {
            String::new()
        } else {
            self.place(path)?;
            format!("{}/", path.trim_end_matches('/'))
        };
        let files = self.files().map_err(explain(path))?;
        let within = files.iter().filter(|(name, _)| name.starts_with(&below));
        let list = within.map(|(name, bytes)| json!({"path": name, "bytes": bytes}));
        Ok(list.collect())
    }

    /// Resolves a path that stays in the folder: no part of it may be a link, either.
    fn place(&self, path: &str) -> Result<PathBuf, String> {
        let parts: Vec<&str> = path.split('/').collect();
        let is_name = |part: &&str| {
            is_file_name(part)
                && !part.starts_with('.')
                && part.len() <= NAME_BYTES_MAX
                && !part.contains('\\')
        };
        if parts.len() > DEPTH_MAX || !parts.iter().all(is_name) {
            return Err(format!(
                "\"{}\" is no path in the workspace; write one such as notes/today.md",
                printable::first_chars(path, 100)
            ));
        }
        let mut place = self.folder.clone();
        for part in parts {
            place.push(part);
            if fs::symlink_metadata(&place).is_ok_and(|about| about.is_symlink()) {
                return Err(format!("\"{path}\" leads through a link"));
            }
        }
        Ok(place)
    }

    /// Creates the folders above a file.
    fn make(&self, place: &Path) -> io::Result<()> {
        let wrong = |error: files::FolderError| io::Error::other(error.to_string());
        let all = self.folder.parent().unwrap_or(&self.folder);
        own_folder(all).map_err(wrong)?;
        if !self.folder.exists() && fs::read_dir(all)?.count() >= WORKSPACES_MAX {
            let why = format!(
                "there are {WORKSPACES_MAX} workspaces; a person can remove old ones from {}",
                all.display()
            );
            return Err(io::Error::other(why));
        }
        private_folder(&self.folder).map_err(wrong)?;
        match place.parent() {
            Some(parent) => fs::create_dir_all(parent),
            None => Ok(()),
        }
    }

    /// Lists every file with its size, by path, without links.
    fn files(&self) -> io::Result<Vec<(String, u64)>> {
        let mut files = Vec::new();
        let mut open = vec![self.folder.clone()];
        while let Some(folder) = open.pop() {
            let entries = match fs::read_dir(&folder) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                entries => entries?,
            };
            for entry in entries {
                let entry = entry?;
                let kind = entry.file_type()?;
                if kind.is_dir() {
                    open.push(entry.path());
                } else if kind.is_file()
                    && let Ok(name) = entry.path().strip_prefix(&self.folder)
                {
                    let parts = name.iter().map(|part| part.to_string_lossy());
                    let name = parts.collect::<Vec<_>>().join("/");
                    files.push((name, entry.metadata()?.len()));
                }
            }
        }
        files.sort();
        Ok(files)
    }
}

fn explain(path: &str) -> impl Fn(io::Error) -> String {
    move |error| match error.kind() {
        io::ErrorKind::NotFound => {
            format!("\"{path}\" is not in the workspace; workspace.list() shows what is")
        }
        io::ErrorKind::InvalidData => format!("\"{path}\" is no text"),
        _ => format!("\"{path}\": {error}"),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that fails says so")]
mod tests {
    use super::*;

    fn workspace() -> (tempfile::TempDir, Workspace) {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join("workspaces").join("one");
        (home, Workspace { folder })
    }

    #[test]
    fn what_is_written_is_read_listed_and_removed() {
        let (_home, at) = workspace();
        assert_eq!(at.act("list", "", None).unwrap(), json!([]));
        at.act("write", "a/b.txt", Some("one")).unwrap();
        at.act("append", "a/b.txt", Some("two")).unwrap();
        at.act("append", "c", Some("x")).unwrap();
        assert_eq!(at.act("read", "a/b.txt", None).unwrap(), "onetwo");
        let listed = json!([{"path": "a/b.txt", "bytes": 6}, {"path": "c", "bytes": 1}]);
        assert_eq!(at.act("list", "", None).unwrap(), listed);
        assert_eq!(at.act("list", "a", None).unwrap(), json!([listed[0]]));
        at.act("remove", "c", None).unwrap();
        let gone = at.act("read", "c", None).unwrap_err();
        assert!(gone.contains("workspace.list()"), "{gone}");
    }

    #[test]
    fn a_state_folder_has_so_many_workspaces_and_no_more() {
        let (_home, at) = workspace();
        at.act("write", "a", Some("x")).unwrap();
        let all = at.folder.parent().unwrap();
        for number in 1..WORKSPACES_MAX {
            fs::create_dir(all.join(number.to_string())).unwrap();
        }
        at.act("write", "b", Some("x")).unwrap();
        let other = Workspace {
            folder: all.join("other"),
        };
        let why = other.act("write", "a", Some("x")).unwrap_err();
        assert!(why.contains("there are 256 workspaces"), "{why}");
        assert!(!other.folder.exists());
    }

    #[test]
    fn no_path_leads_out() {
        let (_home, at) = workspace();
        at.act("write", "here", Some("")).unwrap();
        #[cfg(unix)]
        std::os::unix::fs::symlink("..", at.folder.join("link")).unwrap();
        let out = [
            "../x",
            "/etc/passwd",
            "a/../../x",
            "",
            ".",
            "a//b",
            "a\\b",
            ".git/config",
        ];
        #[cfg(unix)]
        let further = ["link/x"];
        #[cfg(windows)]
        let further = [
            "C:/x",
            "C:x",
            "a/C:",
            "here:stream",
            "NUL",
            "nul.txt",
            "here.",
        ];
        for path in out.into_iter().chain(further) {
            assert!(at.act("write", path, Some("x")).is_err(), "{path}");
            assert!(at.act("read", path, None).is_err(), "{path}");
        }
    }

    #[test]
    fn it_does_not_grow_beyond_its_bound() {
        let (_home, at) = workspace();
        let half = "x".repeat(usize::try_from(BYTES_MAX / 2 + 1).unwrap());
        at.act("write", "a", Some(&half)).unwrap();
        at.act("write", "a", Some(&half)).unwrap();
        let full = at.act("write", "b", Some(&half)).unwrap_err();
        assert!(full.contains("at most 64 MiB"), "{full}");
    }
}
