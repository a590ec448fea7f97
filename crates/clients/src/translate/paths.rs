//! Paths relative to a client's folder or to a project, made absolute.

use std::path::{Component, Path, PathBuf};

use super::words::Words;
use crate::{Home, disk::read_file, entry::ServerEntry, server::TranslatedServer};

/// Sets the working folder of a server to its project's folder if any path in the server is
/// relative to that.
pub(super) fn make_absolute(
    server: &mut TranslatedServer,
    entry: &ServerEntry,
    home: &Home,
    remarks: &mut Vec<String>,
) {
    let project = entry.project.as_deref();
    if let Some(cwd) = server.cwd.take() {
        server.cwd = match (absolute(&cwd, home), project) {
            (Some(cwd), _) => Some(cwd),
            (None, Some(project)) => Some(join(project, &cwd)),
            (None, None) => {
                remarks.push(format!(
                    "its folder `{cwd}` is relative to the folder in which its client was started: \
                    write an absolute path"
                ));
                Some(cwd)
            }
        };
    }
    let base = server
        .cwd
        .clone()
        .map(PathBuf::from)
        .or_else(|| project.map(Path::to_owned));
    let is_relative = |word: &str| {
        let dotted =
            word == "." || word == ".." || word.starts_with("./") || word.starts_with("../");
        let is_there = || {
            !word.starts_with(['-', '@', '/', '$', '~'])
                && project.is_some_and(|project| project.join(word).exists())
        };
        dotted || is_there()
    };
    if let Some(command) = server.command.take() {
        let begins_here = command.contains('/')
            && absolute(&command, home).is_none()
            && !command.starts_with('$');
        server.command = Some(match &base {
            Some(base) if begins_here => join(base, &command),
            _ => {
                if begins_here {
                    remarks.push(format!(
                        "its program `{command}` is relative to the folder in \
                        which its client was started: write an absolute path"
                    ));
                }
                command
            }
        });
    }
    if server.cwd.is_some()
        || server.is_per_client
        || !server.args.iter().any(|arg| is_relative(arg))
    {
        return;
    }
    match project {
        Some(project) => server.cwd = Some(project.to_string_lossy().into_owned()),
        None => remarks.push(
            "its arguments are relative to the folder in which its client was started: write \
            absolute paths, or set `cwd`"
                .to_owned(),
        ),
    }
}

/// Returns the path if it begins at the root, at the home folder or with a variable.
fn absolute(path: &str, home: &Home) -> Option<String> {
    if path == "~" {
        return Some(home.folder().to_string_lossy().into_owned());
    }
    if let Some(rest) = path.strip_prefix("~/") {
        return Some(home.folder().join(rest).to_string_lossy().into_owned());
    }
    let is_drive = path.as_bytes().get(1) == Some(&b':');
    (path.starts_with(['/', '\\', '$']) || is_drive).then(|| path.to_owned())
}

/// Joins the paths and removes `.` and `..`.
fn join(base: &Path, path: &str) -> String {
    let mut joined = PathBuf::new();
    for part in base.join(path).components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => drop(joined.pop()),
            part => joined.push(part),
        }
    }
    joined.to_string_lossy().into_owned()
}

/// Reads the variables of a file next to the entry. Imports their current values, because other
/// users may be able to write to that file, but only we can read ours.
pub(super) fn read_env_file(server: &mut TranslatedServer, file: &str, words: &mut Words<'_>) {
    let path = match (absolute(file, words.home), words.project()) {
        (Some(path), _) => PathBuf::from(path),
        (None, Some(project)) => PathBuf::from(join(project, file)),
        (None, None) => PathBuf::from(file),
    };
    let text = match read_file(&path) {
        Ok(text) => text,
        Err(why) => {
            words.remarks.push(format!(
                "the file with its variables cannot be read ({why})"
            ));
            return;
        }
    };
    for line in text.lines() {
        let line = line.trim();
        let line = line.strip_prefix("export ").unwrap_or(line);
        let Some((name, value)) = line.split_once('=').filter(|_| !line.starts_with('#')) else {
            continue;
        };
        let (name, value) = (name.trim(), value.trim());
        let quoted = |mark: char| value.strip_prefix(mark)?.strip_suffix(mark);
        let value = quoted('"').or_else(|| quoted('\'')).unwrap_or(value);
        if server.env.iter().all(|(set, _)| set != name) {
            let value = value.replace("${", "$${");
            server.env.push((name.to_owned(), value));
        }
    }
    let remark = format!("the current variables of {} were imported", path.display());
    words.remarks.push(remark);
}
