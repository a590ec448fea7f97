//! The clients on a machine, their files, and the servers that those list.

use std::{
    fs,
    path::{Path, PathBuf},
};

use serde_json::Value;

use crate::{
    Home, bundle,
    client_file::ClientFile,
    disk::{read_file, read_open},
    document::{self, Format, at},
    entry::{EntryPlace, ServerEntry, is_marked_disabled, refuse_many},
    table::{self, ClientProgram, ConfigFile, DisabledList, EntryScope},
    translate::is_server,
};

/// A client that is installed on this machine.
#[derive(Debug)]
pub struct Installed {
    /// The client.
    pub client: &'static ClientProgram,
    /// Its existing files.
    pub files: Vec<ClientFile>,
    /// The file that our entry goes into; it may not exist.
    pub main: Option<ClientFile>,
}

/// The servers in a client's files, and the files that could not be read.
#[derive(Debug, Default)]
pub struct ClientEntries {
    /// The servers, as they are listed.
    pub entries: Vec<ServerEntry>,
    /// Files that could not be read, each with the reason.
    pub mistakes: Vec<String>,
}

/// Returns the installed clients, in the order of the table.
pub fn find(home: &Home) -> Vec<Installed> {
    let is_there = |client: &&ClientProgram| {
        let mut marks = client.marks.iter();
        marks.any(|mark| home.resolve(mark).is_some_and(|path| path.exists()))
    };
    let look = |client: &'static ClientProgram| Installed {
        client,
        files: client
            .files
            .iter()
            .flat_map(|file| find_file(client, file, home))
            .collect(),
        main: find_main(client, home),
    };
    table::list().iter().filter(is_there).map(look).collect()
}

fn find_file(
    client: &'static ClientProgram,
    file: &'static ConfigFile,
    home: &Home,
) -> Vec<ClientFile> {
    let paths = paths_of(file, home).flat_map(|(_, path)| spread(&path));
    let mut found: Vec<ClientFile> = Vec::new();
    for path in paths.filter(|path| path.is_file()) {
        if found.iter().all(|it| it.path != path) {
            found.push(ClientFile { client, file, path });
        }
    }
    found
}

/// Returns the places of a file whose variables are set, each with its path.
fn paths_of(
    file: &'static ConfigFile,
    home: &Home,
) -> impl Iterator<Item = (&'static str, PathBuf)> {
    let places = file.places.iter();
    places.filter_map(|place| Some((place.as_str(), home.resolve(place)?)))
}

/// Returns the paths that match a `*` at the beginning of one part of a path.
fn spread(path: &Path) -> Vec<PathBuf> {
    let Some((folder, rest)) = path.to_str().and_then(|path| path.split_once('*')) else {
        return vec![path.to_owned()];
    };
    let (ending, below) = rest
        .split_once('/')
        .map_or((rest, None), |(ending, below)| (ending, Some(below)));
    let files = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = files
        .map(|file| file.path())
        .filter(|path| path.to_str().is_some_and(|path| path.ends_with(ending)))
        .map(|path| below.map_or(path.clone(), |below| path.join(below)))
        .collect();
    paths.sort();
    paths
}

/// Returns the existing file of the user's scope; else the first path that a variable names or whose
/// folder exists; else the first.
fn find_main(client: &'static ClientProgram, home: &Home) -> Option<ClientFile> {
    let own = |file: &&'static ConfigFile| file.scope == EntryScope::User && !file.read_only;
    let files = || client.files.iter().filter(own);
    let there = files().find_map(|file| find_file(client, file, home).into_iter().next());
    let candidates = || {
        files().flat_map(|file| paths_of(file, home).map(move |(place, path)| (file, place, path)))
    };
    let could_be = || {
        let is_likely = |(_, place, path): &(_, &str, PathBuf)| {
            place.starts_with("{$") || path.parent().is_some_and(Path::exists)
        };
        let likely = candidates().find(is_likely).or_else(|| candidates().next());
        likely.map(|(file, _, path)| ClientFile { client, file, path })
    };
    there.or_else(could_be)
}

impl Installed {
    /// Returns all servers that its files list.
    pub fn read(&self, home: &Home) -> ClientEntries {
        let mut reading = ClientEntries::default();
        for file in &self.files {
            match file.read(home) {
                Ok(entries) => reading.entries.extend(entries),
                Err(why) => reading.mistakes.push(why),
            }
        }
        reading
    }
}

impl ClientFile {
    /// Returns the servers that the file lists. The error has the path and the reason why the file
    /// cannot be read.
    pub fn read(&self, home: &Home) -> Result<Vec<ServerEntry>, String> {
        let entries = self.read_entries(home);
        entries.map_err(|why| format!("{}: {why}", self.path.display()))
    }

    /// Does the same, with an error that does not name the file.
    pub(crate) fn read_entries(&self, home: &Home) -> Result<Vec<ServerEntry>, String> {
        let text = read_open(&self.path)?;
        let whole = document::read(&text, self.file.format);
        let whole = whole.map_err(|error| error.to_string())?;
        if bundle::is_manifest(&whole) {
            let place = Some(EntryPlace {
                file: self.clone(),
                is_removable: false,
                key: Vec::new(),
            });
            let entry = bundle::entry_of(&whole, self.path.parent());
            return Ok(vec![ServerEntry { place, ..entry }]);
        }
        let keys = std::iter::once(&self.file.key).chain(&self.file.also);
        let mut entries = Vec::new();
        for key in keys {
            for (key, project) in expand(&whole, key, home) {
                entries.extend(self.read_table(&whole, &key, project.as_deref(), home));
            }
        }
        refuse_many(&entries)?;
        if self.file.strict && serde_json::from_str::<Value>(&text).is_err() {
            let remark = "its file contains comments, so the client itself cannot read it";
            for entry in &mut entries {
                entry.remarks.push(remark.to_owned());
            }
        }
        Ok(entries)
    }

    fn read_table(
        &self,
        whole: &Value,
        key: &[String],
        project: Option<&Path>,
        home: &Home,
    ) -> Vec<ServerEntry> {
        let project = match self.file.scope {
            EntryScope::Project => home.project().map(Path::to_owned),
            _ => project.map(Path::to_owned),
        };
        let off = self.read_disabled_lists(whole, project.as_deref(), home);
        let beside = key.split_last().and_then(|(_, holder)| at(whole, holder));
        let inputs = beside.and_then(|holder| holder["inputs"].as_array());
        let inputs = inputs.cloned().unwrap_or_default();
        let make = |name: &str, value: &Value| ServerEntry {
            is_off: off.iter().any(|it| is_disabled_by(it, name)) || is_marked_disabled(value),
            project: project.clone(),
            variables: self.client.variables,
            timeout: self.client.timeout,
            inputs: inputs.clone(),
            place: Some(EntryPlace {
                file: self.clone(),
                is_removable: true,
                key: key.to_vec(),
            }),
            ..ServerEntry::pasted(name, value.clone())
        };
        match at(whole, key) {
            Some(Value::Object(members)) if !self.file.list => {
                let keys = std::iter::once(&self.file.key).chain(&self.file.also);
                let inner = keys.filter_map(|other| other.strip_prefix(key)?.first());
                let inner: Vec<&str> = inner.map(String::as_str).collect();
                let is_entry = |(name, value): &(&String, &Value)| {
                    is_server(name, value, &inner)
                        || !key.is_empty() && !inner.contains(&name.as_str())
                };
                members
                    .iter()
                    .filter(is_entry)
                    .map(|(name, value)| make(name, value))
                    .collect()
            }
            Some(Value::Array(items)) if self.file.list => {
                let named = |item: &Value| make(item["name"].as_str().unwrap_or_default(), item);
                items.iter().map(named).collect()
            }
            _ => Vec::new(),
        }
    }

    /// Returns the entries that separate lists disable.
    fn read_disabled_lists(
        &self,
        whole: &Value,
        project: Option<&Path>,
        home: &Home,
    ) -> Vec<(bool, Vec<String>)> {
        let list = |off: &DisabledList| {
            let mut other = None;
            if let Some(place) = &off.place {
                let text = read_file(&home.resolve(place)?).ok()?;
                other = Some(document::read(&text, Format::Json).ok()?);
            }
            let key = off.key.iter().map(|key| match key.as_str() {
                "{project}" => project.map(|project| project.to_string_lossy().into_owned()),
                key => Some(key.to_owned()),
            });
            let key: Vec<String> = key.collect::<Option<_>>()?;
            let names = match at(other.as_ref().unwrap_or(whole), &key)? {
                Value::Array(names) => {
                    let names = names.iter().filter_map(Value::as_str);
                    names.map(str::to_owned).collect()
                }
                Value::Object(members) => {
                    let off = members.iter().filter(|(_, it)| is_marked_disabled(it));
                    off.map(|(name, _)| name.clone()).collect()
                }
                _ => return None,
            };
            Some((off.names_on, names))
        };
        self.file.off.iter().filter_map(list).collect()
    }
}

/// Returns true if a list of disabled names has the name, or a list of enabled names lacks it.
fn is_disabled_by((names_on, names): &(bool, Vec<String>), name: &str) -> bool {
    let is_listed = names.iter().any(|it| it.eq_ignore_ascii_case(name));
    // Clients treat an empty list of enabled names like a missing one.
    is_listed != *names_on && !(*names_on && names.is_empty())
}

/// Returns the keys that match a path with a `*`, each with the project of the `*`.
fn expand(whole: &Value, key: &[String], home: &Home) -> Vec<(Vec<String>, Option<PathBuf>)> {
    let Some(star) = key.iter().position(|part| part == "*") else {
        return vec![(key.to_vec(), None)];
    };
    let members = at(whole, &key[..star]).and_then(Value::as_object);
    let names = members.into_iter().flat_map(|members| members.keys());
    // Entries of deleted projects stay in the file forever.
    let is_there =
        |name: &&String| Path::new(name).is_dir() || home.project() == Some(Path::new(name));
    let names = names.filter(is_there).map(|name| {
        let mut key = key.to_vec();
        key[star].clone_from(name);
        (key, Some(PathBuf::from(name)))
    });
    names.collect()
}

#[cfg(test)]
mod tests;
