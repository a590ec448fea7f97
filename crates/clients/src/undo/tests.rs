//! Edits of the files of a home folder, and their undo.

#[cfg(unix)]
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::{
    fs,
    path::{Path, PathBuf},
};

use super::UndoOutcome;
use crate::{
    Change, ClientCommand, ClientFile, ConfigFile, EntryScope, Format, Home, System, find,
    journal::{Backup, Journal},
};

const CURSOR: &str = "{\n\t// mine\n\t\"mcpServers\": {\n\t\t\"old\": {\"command\": \"x\", \"env\": {}}, // gone\n\t\t\"kept\": {\"command\": \"y\"}\n\t}\n}";

struct House {
    folder: tempfile::TempDir,
}

impl House {
    fn with(files: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        Self { folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn home(&self) -> Home {
        Home::new(self.folder.path(), []).with_system(System::Linux)
    }

    fn main(&self) -> ClientFile {
        find(&self.home()).remove(0).main.unwrap()
    }

    /// Adds our entry and removes `old`.
    fn change(&self) -> Change {
        let found = self.main();
        let mut change = Change::begin(&found).unwrap();
        let entry = found.client.entry("/bin/proxy", &["serve".to_owned()]);
        change.add("proxy", &entry).unwrap();
        for entry in find(&self.home()).remove(0).read(&self.home()).entries {
            if entry.name == "old" {
                assert!(change.remove(entry.place.as_ref().unwrap(), "old").unwrap());
            }
        }
        change
    }

    fn begin(&self) -> Journal {
        Journal::begin(&self.path("state"), "20261122-140000").unwrap()
    }

    fn undo(&self) -> Vec<UndoOutcome> {
        let mut journal = Journal::read_all(&self.path("state")).unwrap().remove(0);
        let undone = journal.undo(&mut |_| Err("no program".to_owned())).unwrap();
        undone.into_iter().map(|undone| undone.outcome).collect()
    }

    /// Returns all files except ours, with their modes.
    fn look(&self) -> Vec<(PathBuf, u32, Vec<u8>)> {
        let mut found = Vec::new();
        let mut folders = vec![self.folder.path().to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder)
                .unwrap()
                .flatten()
                .map(|entry| entry.path())
            {
                match entry.is_dir() {
                    true if entry == self.path("state") => {}
                    true => {
                        found.push((entry.clone(), 0, Vec::new()));
                        folders.push(entry);
                    }
                    false => found.push((entry.clone(), mode(&entry), fs::read(&entry).unwrap())),
                }
            }
        }
        found.sort();
        found
    }
}

#[cfg(unix)]
fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

/// Stands for the access list that a file inherits from its folder.
#[cfg(windows)]
fn mode(_: &Path) -> u32 {
    0o600
}

/// Writes our own configuration, as its owner does.
fn writes(path: &Path, text: &str) -> std::io::Result<()> {
    fs::write(path, text)
}

#[test]
fn a_run_is_undone_byte_for_byte() {
    let house = House::with(&[(".cursor/mcp.json", CURSOR), ("config.toml", "# mine\n")]);
    let before = house.look();
    let mut journal = house.begin();
    let backup = journal
        .apply(&house.change(), Backup::Beside)
        .unwrap()
        .unwrap();
    journal
        .replace(
            &house.path("config.toml"),
            Some("# mine\n"),
            "a = 1\n",
            Backup::Into(&house.path("state/b")),
            &mut || writes(&house.path("config.toml"), "a = 1\n"),
        )
        .unwrap();
    let changed = fs::read_to_string(house.path(".cursor/mcp.json")).unwrap();
    assert!(
        changed.contains("// mine")
            && changed.contains("\"/bin/proxy\"")
            && !changed.contains("old"),
        "{changed}"
    );
    assert_eq!(
        backup.file_name().unwrap(),
        "mcp.json.proxy-backup-20261122-140000"
    );
    assert_eq!((mode(&backup), mode(journal.path())), (0o600, 0o600));
    assert_eq!(house.undo(), [UndoOutcome::Whole, UndoOutcome::Whole]);
    assert_eq!(house.look(), before);
    assert!(Journal::read_all(&house.path("state")).unwrap().is_empty());
}

/// Writes a file of a client with one server, in the file's format.
fn write_list(file: &ConfigFile, path: &Path) {
    let text = match (file.format, file.list) {
        (Format::Json, _) => {
            let servers = "{\n      \"old\": {\"command\": \"x\"}, // mine\n    }".to_owned();
            let wrap = |inner: String, key: &String| format!("{{ \"{key}\":{inner} }}");
            file.key.iter().rev().fold(servers, wrap)
        }
        (_, true) => format!("# mine\n[[{}]]\nname = 'old'\ncommand = 'x'\n", file.key[0]),
        (_, false) => format!("# mine\n[{}.old] # gone\ncommand = 'x'", file.key[0]),
    };
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

#[test]
fn every_client_that_is_edited_is_restored_byte_for_byte() {
    for client in crate::list() {
        let is_own = |file: &&ConfigFile| file.scope == EntryScope::User && !file.read_only;
        let file = client.files.iter().find(is_own).unwrap();
        if file.format == Format::Yaml {
            continue;
        }
        let house = House::with(&[]);
        let mut places = file.places.iter();
        let path = places.find_map(|place| house.home().resolve(place));
        write_list(file, &path.unwrap());
        let before = house.look();
        let main = || {
            let mut found = find(&house.home()).into_iter();
            found.find(|it| it.client.id == client.id).unwrap()
        };
        let mut change = Change::begin(&main().main.unwrap()).unwrap();
        let entry = client.entry("/bin/proxy", &["serve".to_owned()]);
        change.add("proxy", &entry).unwrap();
        let old = main().read(&house.home()).entries.remove(0);
        assert!(change.remove(&old.place.unwrap(), "old").unwrap());
        house.begin().apply(&change, Backup::Beside).unwrap();
        assert_ne!(house.look(), before, "{}", client.id);
        let names = main().read(&house.home()).entries.into_iter();
        let names: Vec<String> = names.map(|entry| entry.name).collect();
        assert_eq!(names, ["proxy"], "{}", client.id);
        assert_eq!(house.undo(), [UndoOutcome::Whole], "{}", client.id);
        assert_eq!(house.look(), before, "{}", client.id);
    }
}

#[test]
fn a_file_that_we_made_is_gone_again_with_its_folders() {
    let house = House::with(&[(".lmstudio/x", "")]);
    let before = house.look();
    let mut journal = house.begin();
    journal.apply(&house.change(), Backup::Beside).unwrap();
    let place = house.path("a/b/config.toml");
    journal
        .replace(&place, None, "x = 1\n", Backup::Beside, &mut || {
            fs::create_dir_all(place.parent().unwrap())?;
            writes(&place, "x = 1\n")
        })
        .unwrap();
    assert_eq!(mode(&house.path(".lmstudio/mcp.json")), 0o600);
    assert_eq!(house.undo(), [UndoOutcome::Gone, UndoOutcome::Gone]);
    assert_eq!(house.look(), before);
}

#[test]
fn what_others_changed_since_stays() {
    let house = House::with(&[(".cursor/mcp.json", CURSOR), ("config.toml", "a = 1\n")]);
    let mut journal = house.begin();
    let change = house.change();
    let backup = journal.apply(&change, Backup::Beside).unwrap();
    journal
        .replace(
            &house.path("config.toml"),
            Some("a = 1\n"),
            "a = 2\n",
            Backup::Beside,
            &mut || writes(&house.path("config.toml"), "a = 2\n"),
        )
        .unwrap();
    let file = house.path(".cursor/mcp.json");
    let others = format!("{}\n// others\n", change.after);
    fs::write(&file, &others).unwrap();
    fs::write(house.path("config.toml"), "a = 3\n").unwrap();
    let outcomes = house.undo();
    assert!(
        matches!(&outcomes[0], UndoOutcome::Left(why, Some(_)) if why == "it was changed since"),
        "{outcomes:?}"
    );
    let why = "it was changed since; remove `proxy` and add `old` yourself".to_owned();
    assert_eq!(outcomes[1], UndoOutcome::Left(why, backup));
    assert_eq!(fs::read_to_string(&file).unwrap(), others);
    // The changes stay in the journal until they can be undone.
    fs::write(&file, &change.after).unwrap();
    fs::write(house.path("config.toml"), "a = 2\n").unwrap();
    assert_eq!(house.undo(), [UndoOutcome::Whole, UndoOutcome::Whole]);
    assert_eq!(fs::read_to_string(&file).unwrap(), CURSOR);
}

#[test]
fn a_journal_with_the_keys_of_an_earlier_version_is_undone() {
    let house = House::with(&[(".cursor/mcp.json", CURSOR)]);
    let before = house.look();
    let mut journal = house.begin();
    journal.apply(&house.change(), Backup::Beside).unwrap();
    let path = journal.path().to_owned();
    let text = fs::read_to_string(&path).unwrap();
    let made = r#""list": false, "made": {"tables": 0, "was_null": false}, "key""#;
    let earlier = text
        .replace(r#""is_ours": false"#, r#""format": "jsonc""#)
        .replace(r#""key""#, made);
    assert!(
        earlier.contains("jsonc") && earlier.contains("was_null"),
        "{text}"
    );
    fs::write(&path, earlier).unwrap();
    assert_eq!(house.undo(), [UndoOutcome::Whole]);
    assert_eq!(house.look(), before);
}

#[cfg(unix)]
#[test]
fn a_link_a_mode_and_a_foreign_change_are_respected() {
    let house = House::with(&[("dotfiles/mcp.json", CURSOR), (".cursor/x", "")]);
    let (link, target) = (
        house.path(".cursor/mcp.json"),
        house.path("dotfiles/mcp.json"),
    );
    symlink(&target, &link).unwrap();
    fs::set_permissions(&target, fs::Permissions::from_mode(0o640)).unwrap();
    let change = house.change();
    house.begin().apply(&change, Backup::Beside).unwrap();
    assert!(link.is_symlink());
    assert_eq!(mode(&target), 0o640);
    assert!(fs::read_to_string(&target).unwrap().contains("proxy"));
    assert_eq!(house.undo(), [UndoOutcome::Whole]);
    assert!(link.is_symlink());
    assert_eq!(
        (mode(&target), fs::read_to_string(&target).unwrap()),
        (0o640, CURSOR.to_owned())
    );

    let mut journal = house.begin();
    fs::write(&target, "{}").unwrap();
    assert!(journal.apply(&change, Backup::Beside).is_err());
    assert_eq!(fs::read_to_string(&target).unwrap(), "{}");
    let change = house.change();
    fs::set_permissions(&target, fs::Permissions::from_mode(0o444)).unwrap();
    let refused = journal.apply(&change, Backup::Beside).unwrap_err();
    assert!(refused.to_string().contains("read-only"), "{refused}");
    assert_eq!(journal.files().count(), 0);
    assert_eq!(fs::read_dir(house.path(".cursor")).unwrap().count(), 2);
}

#[test]
fn a_run_that_was_cut_off_is_undone_as_far_as_it_came() {
    let house = House::with(&[(".cursor/mcp.json", CURSOR)]);
    let before = house.look();
    let mut journal = house.begin();
    journal.apply(&house.change(), Backup::Beside).unwrap();
    // This is the state of a process that was killed after writing the journal and before writing
    // the file.
    fs::write(house.path(".cursor/mcp.json"), CURSOR).unwrap();
    drop(journal);
    assert_eq!(house.undo(), [UndoOutcome::Whole]);
    assert_eq!(house.look(), before);
}

#[test]
fn a_client_that_owns_its_file_changes_it_itself() {
    let text =
        r#"{"numStartups": 1, "mcpServers": {"old": {"command": "x", "env": {"T": "secret"}}}}"#;
    let house = House::with(&[(".claude.json", text)]);
    let change = house.change();
    let mut journal = house.begin();
    let mut calls = Vec::new();
    let file = house.path(".claude.json");
    let mut run = |call: &ClientCommand| {
        calls.push((call.args.join(" "), call.stdin.clone()));
        if calls.len() == 2 {
            fs::write(&file, &change.after).unwrap();
        }
        Ok(())
    };
    journal
        .apply_by("claude", &change, Backup::Beside, &mut run)
        .unwrap();
    let entry = r#"{"type":"stdio","command":"/bin/proxy","args":["serve"],"alwaysLoad":true}"#;
    let added = (
        "mcp add-json -s user proxy -".to_owned(),
        Some(entry.to_owned()),
    );
    assert_eq!(calls, [("mcp remove -s user old".to_owned(), None), added]);

    // A session has written the file since, so the client's program removes our entry and adds the
    // original ones.
    fs::write(&file, change.after.replace("1,", "2,")).unwrap();
    let mut journal = Journal::read_all(&house.path("state")).unwrap().remove(0);
    let mut back = Vec::new();
    let undone = journal.undo(&mut |call| {
        back.push((call.args.join(" "), call.stdin.clone()));
        Ok(())
    });
    assert_eq!(undone.unwrap()[0].outcome, UndoOutcome::Entries);
    assert_eq!(back[0].0, "mcp remove -s user proxy");
    assert!(back[1].1.as_ref().unwrap().contains("secret"), "{back:?}");

    // A program with a different result is detected.
    fs::write(&file, text).unwrap();
    let mut journal = Journal::begin(&house.path("state"), "later").unwrap();
    let failed = journal.apply_by("claude", &house.change(), Backup::Beside, &mut |_| Ok(()));
    assert!(
        failed
            .unwrap_err()
            .to_string()
            .contains("did not change its file as expected")
    );
}
