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
        let found = absolute(&cwd, home);
        server.cwd = Some(found.unwrap_or_else(|| place("folder", &cwd, project, remarks)));
    }
    let base = server.cwd.as_deref().map(Path::new).or(project);
    if let Some(command) = &server.command
        && command.contains('/')
        && absolute(command, home).is_none()
    {
        server.command = Some(place("program", command, base, remarks));
    }
    let is_relative = |word: &str| {
        let dotted =
            word == "." || word == ".." || word.starts_with("./") || word.starts_with("../");
        let is_there = || {
            !word.starts_with(['-', '@', '/', '$', '~'])
                && project.is_some_and(|project| project.join(word).exists())
        };
        dotted || is_there()
    };
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

/// Returns a relative path from its base; adds a remark if the base is not known.
fn place(what: &str, path: &str, base: Option<&Path>, remarks: &mut Vec<String>) -> String {
    if let Some(base) = base {
        return join(base, path);
    }
    remarks.push(format!(
        "its {what} `{path}` is relative to the folder in which its client was started: write an \
        absolute path"
    ));
    path.to_owned()
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
