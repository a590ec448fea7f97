//! The registry as files to read, search and keep: a file for each tool, in a folder for each server, in
//! a folder for each category. The snapshot of each server can be read back.

use std::{
    collections::BTreeSet,
    fs::{self, File},
    io::{self, Write as _},
    path::{Path, PathBuf},
};

use anyhow::{Context as _, bail};
use files::{read_text_within, replace_folder};
use fleet::{SNAPSHOT_BYTES_MAX, Survey};
use registry::{Generation, KnownServer, Snapshot};
use serde::{Deserialize, Serialize};
use tool::{Digest, ServerName, Tool};

use crate::{catalog::Catalog, tools::describe_tool::describe_json};

/// Entries that are read of one folder.
const ENTRIES_MAX: usize = 10_000;

/// The most characters of a name that a file name repeats.
const NAME_CHARS_MAX: usize = 60;

/// Names that Windows reserves, without a number, and the name of a file of each folder.
const RESERVED: [&str; 7] = ["con", "prn", "aux", "nul", "com", "lpt", "snapshot"];

const INDEX: &str = "index.json";
const README: &str = "README.md";
const SNAPSHOT: &str = "snapshot.json";

/// Members of a description that change with every call.
const PASSING: [&str; 4] = ["changed", "login_required", "used", "last_used"];

const HEAD: &str = "\
# Tools of this proxy

`proxy reindex --export` wrote this folder and replaces all of it. `proxy reindex --import` reads `snapshot.json` of each
server: what the server sent. The other files describe its tools, with the notes and examples of the configuration.

";

/// The index of an export, by which it is recognized.
#[derive(Serialize, Deserialize)]
struct ExportIndex {
    proxy_export: u32,
    /// Everything that was written.
    files: BTreeSet<PathBuf>,
}

/// The contents of an export.
#[derive(Debug, Default, Serialize)]
pub struct ExportCounts {
    /// Servers whose lists are known.
    pub servers: usize,
    /// Their tools.
    pub tools: usize,
    /// Tools that were left out because rules or pins block them.
    pub blocked: usize,
    /// Servers that never listed their tools.
    pub unknown: Vec<String>,
}

/// Writes the last snapshots into a folder that is missing, empty or an earlier export. A failure leaves
/// the folder as it was. Blocks.
pub fn write(catalog: &Catalog, now: &Generation, folder: &Path) -> anyhow::Result<ExportCounts> {
    let place = std::path::absolute(folder)?;
    check_earlier(&place)?;
    replace_folder(&place, |new| write_into(catalog, now, new))
}

fn write_into(catalog: &Catalog, now: &Generation, new: &Path) -> anyhow::Result<ExportCounts> {
    let blocked = now.blocked().count();
    let mut counts = ExportCounts {
        blocked,
        ..ExportCounts::default()
    };
    let mut files = BTreeSet::from([INDEX.into()]);
    let mut servers = HEAD.to_owned();
    let mut put = |path: PathBuf, text: String| {
        let file = new.join(&path);
        fs::create_dir_all(file.parent().unwrap_or(new))?;
        File::create_new(file)?.write_all(text.as_bytes())?;
        files.insert(path);
        io::Result::Ok(())
    };
    for server in now.servers().iter().filter(|it| !it.name.is_scripts()) {
        if server.surveyed_at.is_none() || server.damaged.is_some() {
            counts.unknown.push(server.name.to_string());
            continue;
        }
        let (category, name) = (safe_name(&server.category), safe_name(server.name.as_str()));
        let own = Path::new(&category).join(&name);
        let (mut list, mut tools) = (format!("# {}\n\n", server.name), Vec::new());
        for entry in now.callable().filter(|it| it.at.server == server.name) {
            let file = format!("{}.json", safe_name(entry.tool.name()));
            list.push_str(&format!("- [{}]({file}): {}\n", entry.at, entry.purpose()));
            let mut told = describe_json(catalog, entry);
            if let Some(members) = told.as_object_mut() {
                members.retain(|key, _| !PASSING.contains(&key.as_str()));
            }
            put(own.join(file), format!("{told:#}\n"))?;
            tools.push(entry.tool.clone());
        }
        servers.push_str(&format!(
            "- [{}]({category}/{name}/{README}): {}\n",
            server.name,
            tools.len()
        ));
        counts.servers += 1;
        counts.tools += tools.len();
        put(own.join(README), list)?;
        put(
            own.join(SNAPSHOT),
            snapshot_of(catalog, server, tools).to_text(),
        )?;
    }
    put(README.into(), servers)?;
    let index = ExportIndex {
        proxy_export: 1,
        files,
    };
    fs::write(new.join(INDEX), serde_json::to_string_pretty(&index)?)?;
    Ok(counts)
}

/// Returns a snapshot without everything that rules or pins block.
fn snapshot_of(catalog: &Catalog, server: &KnownServer, tools: Vec<Tool>) -> Snapshot {
    let catalog = catalog.registry.catalog();
    let record = catalog.servers.iter().find(|it| it.name == server.name);
    Snapshot {
        server: server.name.clone(),
        tools,
        offer: (*server.offer).clone(),
        server_name: server.server_name.clone(),
        server_version: server.server_version.clone(),
        instructions: server.instructions.clone(),
        protocol: server.protocol.clone(),
        transport: record.and_then(|it| it.transport.clone()),
        asking_calls: record.map_or_else(Vec::new, |it| it.asking_calls.clone()),
        tokens: server.tokens,
        surveyed_at: server.surveyed_at.unwrap_or_default(),
    }
}

/// Returns a name for a file that is valid, and different for different names, on every file system.
fn safe_name(name: &str) -> String {
    let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "_-".contains(c);
    let stem = name.trim_end_matches(|c: char| c.is_ascii_digit());
    let is_safe = name.chars().all(is_plain) && (1..=NAME_CHARS_MAX).contains(&name.len());
    if is_safe && !RESERVED.contains(&stem) {
        return name.to_owned();
    }
    // No plain name has a dot.
    let is_kept = |c: char| c.is_ascii_alphanumeric() || c == '-';
    let shown = name.chars().take(NAME_CHARS_MAX);
    let shown: String = shown.map(|c| if is_kept(c) { c } else { '_' }).collect();
    format!("_{shown}.{}", Digest::of_bytes(name.as_bytes()).short(16))
}

/// Fails if the folder has anything that no export wrote.
fn check_earlier(place: &Path) -> anyhow::Result<()> {
    let shown = place.display();
    match fs::symlink_metadata(place) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Ok(about) if about.is_dir() => {}
        _ => bail!("{shown} is no folder; name another"),
    }
    if std::env::current_dir().is_ok_and(|current| current.starts_with(place)) {
        bail!("{shown} would be replaced, and is the current folder; name another");
    }
    if fs::read_dir(place)?.next().is_none() {
        return Ok(());
    }
    let index = read_export_index(place).with_context(|| {
        format!("{shown} is not empty, and no earlier export; name another folder")
    })?;
    let mut open = vec![place.to_owned()];
    while let Some(folder) = open.pop() {
        for path in list_entries(&folder, usize::MAX)? {
            let own = path.strip_prefix(place)?;
            if is_folder(&path) {
                open.push(path);
            } else if !index.files.contains(own) {
                bail!(
                    "no export wrote {}; move it, or name another folder",
                    path.display()
                );
            }
        }
    }
    Ok(())
}

fn read_export_index(folder: &Path) -> anyhow::Result<ExportIndex> {
    let text = read_text_within(&folder.join(INDEX), SNAPSHOT_BYTES_MAX).context(INDEX)?;
    let index: ExportIndex = serde_json::from_str(&text).context(INDEX)?;
    if index.proxy_export != 1 {
        bail!("{INDEX} has another format: {}", index.proxy_export);
    }
    Ok(index)
}

/// The lists of a server that were read, or why they cannot be used.
pub type ReadLists = (ServerName, Result<Survey, String>);

/// Reads the snapshots of these servers from an export. They are as untrusted as the answers of a server,
/// and no link is followed. Blocks.
pub fn read(folder: &Path, servers: Vec<ServerName>) -> anyhow::Result<Vec<ReadLists>> {
    read_export_index(folder).with_context(|| format!("{} is no export", folder.display()))?;
    let mut categories = list_entries(folder, ENTRIES_MAX)?;
    categories.retain(|path| is_folder(path));
    let read = servers.into_iter().map(|server| {
        let own = categories
            .iter()
            .map(|it| it.join(safe_name(server.as_str())));
        let own: Vec<PathBuf> = own.filter(|it| is_folder(it)).collect();
        let lists = match own.as_slice() {
            [] => Err(format!("it is not in {}", folder.display())),
            [own] => read_text_within(&own.join(SNAPSHOT), SNAPSHOT_BYTES_MAX)
                .map_err(|error| format!("{SNAPSHOT}: {error}"))
                .and_then(|text| Survey::of_snapshot(&text)),
            [..] => Err("it is in several categories".to_owned()),
        };
        (server, lists)
    });
    Ok(read.collect())
}

fn is_folder(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|about| about.is_dir())
}

fn list_entries(folder: &Path, max: usize) -> io::Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder)?.take(max);
    entries.map(|it| Ok(it?.path())).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that fails says so")]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn a_file_has_a_name_of_its_own_on_every_file_system() {
        for plain in ["create_issue", "git-log", "a1", "command", "0"] {
            assert_eq!(safe_name(plain), plain);
        }
        let long = "x".repeat(128);
        let odd = [
            "getUser", "getuser", "GETUSER", "a.b", "a/b", "a\\b", "a:b", "..", "", "con", "CON",
            "com1", "lpt9", "nul", "snapshot", "-x", "é", "e\u{301}", "a b ", "a b.", &long,
            "_getUser",
        ];
        let names: BTreeSet<String> = odd.iter().map(|it| safe_name(it).to_lowercase()).collect();
        assert_eq!(names.len(), odd.len());
        for name in names {
            let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
            assert!(name.chars().all(is_plain) && name.len() < 90, "{name}");
            assert!(!name.starts_with('.') && !name.ends_with('.'), "{name}");
            let stem = name.split('.').next().unwrap();
            assert!(
                !["con", "com1", "lpt9", "nul", "snapshot"].contains(&stem),
                "{name}"
            );
        }
    }

    #[test]
    fn a_folder_with_files_of_others_is_left_alone() {
        let home = tempfile::tempdir().unwrap();
        let place = home.path().join("export");
        check_earlier(&place).unwrap();
        fs::create_dir(&place).unwrap();
        check_earlier(&place).unwrap();
        fs::write(place.join("mine.txt"), "x").unwrap();
        let why = format!("{:#}", check_earlier(&place).unwrap_err());
        assert!(why.contains("is not empty, and no earlier export"), "{why}");
        fs::write(
            place.join(INDEX),
            r#"{"proxy_export":1,"files":["index.json","a/b.json"]}"#,
        )
        .unwrap();
        let why = check_earlier(&place).unwrap_err().to_string();
        assert!(
            why.contains("mine.txt; move it, or name another folder"),
            "{why}"
        );
        fs::remove_file(place.join("mine.txt")).unwrap();
        fs::create_dir(place.join("a")).unwrap();
        fs::write(place.join("a/b.json"), "x").unwrap();
        check_earlier(&place).unwrap();
        #[cfg(unix)]
        {
            std::os::unix::fs::symlink(home.path(), place.join("a/link")).unwrap();
            assert!(check_earlier(&place).is_err());
            let link = home.path().join("link");
            std::os::unix::fs::symlink(&place, &link).unwrap();
            assert!(check_earlier(&link).is_err());
        }
    }
}
