#[cfg(unix)]
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::{
    collections::BTreeSet,
    fs::{self, File},
    io::Write as _,
    path::{Path, PathBuf},
    thread,
};

use files::power_loss;

use super::{Change, Document, EditError, change, change_with};
use crate::{Environment, Overrides, edit::NewServer};

fn overrides(path: &Path) -> Overrides {
    Overrides {
        config: Some(path.to_owned()),
        ..Overrides::default()
    }
}

fn env() -> Environment {
    [("HOME".to_owned(), "/home/ada".to_owned())]
        .into_iter()
        .collect()
}

fn make<T>(
    path: &Path,
    edit: impl FnMut(&mut Document) -> Result<T, EditError>,
) -> Result<Change<T>, EditError> {
    change(&overrides(path), &env(), edit)
}

fn add(document: &mut Document, name: &str) -> Result<(), EditError> {
    let server = NewServer {
        command: Some("x".to_owned()),
        ..NewServer::default()
    };
    document
        .add_server(&name.parse().unwrap(), &server, BTreeSet::new)
        .map(drop)
}

/// Appends a line in place, as some editors do.
fn append(path: &Path, line: &str) {
    let mut file = File::options().append(true).open(path).unwrap();
    file.write_all(format!("{line}\n").as_bytes()).unwrap();
}

fn in_folder(text: &str) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("config.toml");
    fs::write(&path, text).unwrap();
    (folder, path)
}

#[test]
fn ten_that_change_one_file_beside_an_editor_lose_nothing() {
    let (folder, path) = in_folder("# Ours.\n");
    thread::scope(|scope| {
        for writer in 0..10 {
            let path = &path;
            scope.spawn(move || {
                for round in 0..4 {
                    let mut is_first = round == 0;
                    let name = format!("s{writer}-{round}");
                    let added = make(path, |document| {
                        if std::mem::take(&mut is_first) {
                            append(path, &format!("# note {writer}"));
                        }
                        add(document, &name)
                    });
                    added.unwrap();
                }
            });
        }
    });
    let document = Document::read(&path).unwrap();
    assert_eq!(document.servers().len(), 40);
    assert_eq!(document.text().matches("# note ").count(), 10);
    assert!(document.text().starts_with("# Ours.\n"));
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn a_save_of_an_editor_right_before_the_write_is_kept() {
    let (folder, path) = in_folder("# one\n");
    let mut saves = 0;
    let save = |document: &Document| {
        saves += 1;
        match saves {
            1 => append(&path, "# two"),
            2 => {
                let new = folder.path().join("new");
                fs::write(&new, format!("{}# three\n", document.before().unwrap())).unwrap();
                fs::rename(&new, &path).unwrap();
            }
            3 => fs::remove_file(&path).unwrap(),
            4 => fs::write(&path, "# four\n").unwrap(),
            _ => {}
        }
    };
    let mut save = save;
    let changed = change_with(
        &overrides(&path),
        &env(),
        |document| add(document, "a"),
        |(), document, write| {
            save(document);
            write()
        },
    );
    changed.unwrap();
    let text = fs::read_to_string(&path).unwrap();
    assert_eq!(text, "# four\n\n[servers.a]\ncommand = \"x\"\n");
}

#[test]
fn a_file_that_is_written_all_the_time_is_left_with_an_error() {
    let (_folder, path) = in_folder("");
    let mut saves = 0;
    let refused = make(&path, |document| {
        saves += 1;
        append(&path, &format!("# {saves}"));
        add(document, "a")
    });
    let refused = refused.unwrap_err().to_string();
    assert!(refused.contains("nothing was changed"), "{refused}");
    let text = fs::read_to_string(&path).unwrap();
    assert_eq!(text.lines().count(), saves);
    assert!(!text.contains("servers"), "{text}");
}

#[test]
fn a_new_mistake_is_refused_and_an_old_one_stays() {
    let old = "lgo = 'warn'\n[servers.a]\ncommand = 'x'\n";
    let (_folder, path) = in_folder(old);
    let broken = NewServer {
        url: Some("ftp://x".to_owned()),
        ..NewServer::default()
    };
    let refused = make(&path, |it| {
        it.add_server(&"b".parse().unwrap(), &broken, BTreeSet::new)
            .map(drop)
    });
    assert!(
        matches!(refused, Err(EditError::Mistakes(_))),
        "{refused:?}"
    );
    assert_eq!(fs::read_to_string(&path).unwrap(), old);
    let changed = make(&path, |it| it.set_enabled("a", false)).unwrap();
    assert_eq!(changed.mistakes.unwrap().mistakes.len(), 1);
    let text = fs::read_to_string(&path).unwrap();
    assert_eq!(text, format!("{old}enabled = false\n"));
}

#[cfg(unix)]
#[test]
fn the_file_keeps_its_mode_and_its_link_and_a_new_one_is_private() {
    let folder = tempfile::tempdir().unwrap();
    let [path, real] = ["new/of/ours/config.toml", "real.toml"].map(|it| folder.path().join(it));
    make(&path, |it| it.remove_server("a")).unwrap_err();
    assert!(!folder.path().join("new").exists(), "no folder was created");
    make(&path, |it| add(it, "a")).unwrap();
    let text = |path: &Path| fs::read_to_string(path).unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(text(&path), "[servers.a]\ncommand = \"x\"\n");
    assert_eq!(mode(&path), 0o600);

    fs::write(&real, "\r\n[servers.a]\r\ncommand = 'x'\r\n").unwrap();
    fs::set_permissions(&real, fs::Permissions::from_mode(0o640)).unwrap();
    fs::remove_file(&path).unwrap();
    symlink(&real, &path).unwrap();
    make(&path, |it| it.set_enabled("a", false)).unwrap();
    assert!(fs::symlink_metadata(&path).unwrap().is_symlink());
    assert_eq!(
        text(&real),
        "\r\n[servers.a]\r\ncommand = 'x'\r\nenabled = false\r\n"
    );
    assert_eq!(mode(&real), 0o640);

    fs::set_permissions(&real, fs::Permissions::from_mode(0o440)).unwrap();
    let refused = make(&path, |it| it.set_enabled("a", true)).unwrap_err();
    assert!(refused.to_string().contains("read-only"), "{refused}");
}

#[test]
fn a_loss_of_power_leaves_the_old_configuration_or_the_new_one() {
    let (folder, path) = in_folder("[servers.a]\ncommand = \"x\"\n");
    let mut olds = 0;
    let act = || {
        make(&path, |document| add(document, "b")).unwrap();
    };
    power_loss::check(folder.path(), act, |state| {
        let document = Document::read(&state.folder.join("config.toml")).unwrap();
        let servers = document.servers();
        if servers == ["a"] {
            assert!(!state.is_after_all);
            olds += 1;
        } else {
            assert_eq!(servers, ["a", "b"]);
        }
    });
    assert!(olds > 0);
}
