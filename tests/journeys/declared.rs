//! A journey that is not declared would never run, and nobody would notice.

use std::{collections::BTreeSet, fs, path::Path};

#[test]
fn every_file_here_is_declared() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("journeys");
    let entries = fs::read_dir(&folder).unwrap();
    let files: BTreeSet<String> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter_map(|name| name.strip_suffix(".rs").map(str::to_owned))
        .filter(|name| name != "main")
        .collect();
    let main = fs::read_to_string(folder.join("main.rs")).unwrap();
    let declared: BTreeSet<String> = main
        .lines()
        .filter_map(|line| line.strip_prefix("mod ")?.strip_suffix(';'))
        .map(str::to_owned)
        .collect();
    assert_eq!(declared, files);
}
