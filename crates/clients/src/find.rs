//! The clients on a machine, their files, and the servers that those list.

use std::{
    fs,
    path::{Path, PathBuf},
};

use serde_json::Value;

use crate::{
    Home, bundle,
    disk::{read_file, read_open},
    document::{self, Format, Slot, at, entry_at, render_yaml},
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
    extensions: Option<PathBuf>,
}

/// A file of a client.
#[derive(Debug, Clone)]
pub struct ClientFile {
    /// The client that reads it.
    pub client: &'static ClientProgram,
    pub(crate) file: &'static ConfigFile,
    /// The path.
    pub path: PathBuf,
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
        let mut marks = client.marks(home.system()).iter();
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
        extensions: client
            .extensions
            .as_deref()
            .and_then(|place| home.resolve(place)),
    };
    table::list().iter().filter(is_there).map(look).collect()
}

fn find_file(
    client: &'static ClientProgram,
    file: &'static ConfigFile,
    home: &Home,
) -> Vec<ClientFile> {
    let places = file.places(home.system()).iter();
    let paths = places
        .filter_map(|place| home.resolve(place))
        .flat_map(|path| spread(&path));
    let mut found: Vec<ClientFile> = Vec::new();
    for path in paths.filter(|path| path.is_file()) {
        if found.iter().all(|it| it.path != path) {
            found.push(ClientFile { client, file, path });
        }
    }
    found
}

/// Returns the files that match a `*` in the last part of a path.
fn spread(path: &Path) -> Vec<PathBuf> {
    let name = path.file_name().and_then(|name| name.to_str());
    let Some(ending) = name.and_then(|name| name.strip_prefix('*')) else {
        return vec![path.to_owned()];
    };
    let folder = path.parent().and_then(|folder| fs::read_dir(folder).ok());
    let files = folder.into_iter().flatten().flatten();
    let mut files: Vec<PathBuf> = files
        .map(|file| file.path())
        .filter(|path| path.to_str().is_some_and(|path| path.ends_with(ending)))
        .collect();
    files.sort();
    files
}

/// Returns the existing file of the user's scope, else the first candidate.
fn find_main(client: &'static ClientProgram, home: &Home) -> Option<ClientFile> {
    let own = |file: &&'static ConfigFile| file.scope == EntryScope::User && !file.read_only;
    let files = || client.files.iter().filter(own);
    let there = files().find_map(|file| find_file(client, file, home).into_iter().next());
    let could_be = || {
        let file = files().find(|file| {
            let places = file.places(home.system()).iter();
            let mut folders = places.filter_map(|place| home.resolve(place));
            folders.any(|path| path.parent().is_some_and(Path::exists))
        });
        let file = file.or_else(|| files().next())?;
        let mut places = file.places(home.system()).iter();
        let path = places.find_map(|place| home.resolve(place))?;
        Some(ClientFile { client, file, path })
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
        if let Some(folder) = &self.extensions {
            let (entries, mistakes) = bundle::read_installed(self.client, folder);
            reading.entries.extend(entries);
            reading.mistakes.extend(mistakes);
        }
        reading
    }
}

impl ClientFile {
    /// Returns the place of the servers: the alternative key that is already a table in the file,
    /// else the usual key.
    pub(crate) fn slot(&self, whole: &Value) -> Slot<'static> {
        let is_table = |key: &&Vec<String>| at(whole, key).is_some_and(Value::is_object);
        let mut others = self.file.also.iter().filter(|key| !key.is_empty());
        Slot {
            key: others.find(is_table).unwrap_or(&self.file.key),
            list: self.file.list,
        }
    }

    /// Returns true if its owner edits it, because it is YAML.
    pub fn is_edited_by_hand(&self) -> bool {
        self.file.format == Format::Yaml
    }

    /// Returns the lines that its owner pastes into it to add an entry; `None` if it has an equal
    /// one.
    pub fn lines_to_paste(&self, name: &str, entry: &Value) -> Result<Option<String>, String> {
        let text = if self.path.exists() {
            read_file(&self.path)?
        } else {
            String::new()
        };
        let whole = document::read(&text, self.file.format).map_err(|error| error.to_string())?;
        let slot = self.slot(&whole);
        let is_there = entry_at(&whole, slot, name) == Some(entry);
        Ok((!is_there).then(|| render_yaml(slot, name, entry)))
    }

    /// Returns the scope of the servers in the file.
    pub fn scope(&self) -> EntryScope {
        self.file.scope
    }

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
                client: self.client,
                file: self.path.clone(),
                scope: self.file.scope,
                is_removable: true,
                format: self.file.format,
                key: key.to_vec(),
                list: self.file.list,
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
                other = Some(document::read(&text, Format::Jsonc).ok()?);
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
