//! A journey without a `mod` line would silently never run.

use std::{collections::BTreeSet, fs, path::Path};

#[test]
fn every_file_here_is_declared() {
    let journeys = Path::new(env!("CARGO_MANIFEST_DIR")).join("journeys");
    all_declared(&journeys, "main");
}

/// Folders in which every test is a `#[journey]`: played alone and through the daemon, unless the
/// test states a reason against the daemon.
const TWICE: [&str; 3] = ["calls", "results", "search"];

#[test]
fn in_these_folders_every_test_is_a_journey() {
    let journeys = Path::new(env!("CARGO_MANIFEST_DIR")).join("journeys");
    let folders = TWICE
        .iter()
        .flat_map(|folder| fs::read_dir(journeys.join(folder)).unwrap());
    for entry in folders {
        let path = entry.unwrap().path();
        let text = fs::read_to_string(&path).unwrap();
        let is_other =
            |line: &&str| line.starts_with("#[tokio::test") || line.starts_with("#[test]");
        let other = text.lines().find(is_other);
        assert_eq!(other, None, "{}: write `#[journey]`", path.display());
    }
}

fn holds_rust(folder: &Path) -> bool {
    let mut files = fs::read_dir(folder).unwrap();
    files.any(|it| it.unwrap().path().extension().is_some_and(|it| it == "rs"))
}

/// Checks that the folder's module `root` declares each file, and each subfolder's `mod.rs` the
/// files there.
fn all_declared(folder: &Path, root: &str) {
    let entries = fs::read_dir(folder).unwrap();
    let mut here = BTreeSet::new();
    for entry in entries {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        if path.is_dir() {
            // The data files of a journey are in a folder with its name.
            if !path.join("mod.rs").exists() {
                assert!(!holds_rust(&path), "{} has no mod.rs", path.display());
                continue;
            }
            all_declared(&path, "mod");
        }
        if name != root {
            here.insert(name);
        }
    }
    let root = folder.join(root).with_extension("rs");
    let text = fs::read_to_string(&root).unwrap();
    let declared = text
        .lines()
        .map(|line| line.strip_prefix("pub(crate) ").unwrap_or(line))
        .filter_map(|line| line.strip_prefix("mod ")?.strip_suffix(';'));
    let declared: BTreeSet<String> = declared.map(str::to_owned).collect();
    assert_eq!(declared, here, "{}", root.display());
}
