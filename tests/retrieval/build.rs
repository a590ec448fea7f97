//! Finds the sets that are not in the repository. Tests of a missing set are counted as ignored; a
//! missing folder that a variable names fails the build.

use std::{
    env,
    path::{Path, PathBuf},
};

fn main() {
    let crate_folder = env::var("CARGO_MANIFEST_DIR").expect("Cargo sets it");
    let shared = Path::new(&crate_folder).join("../../../shared");
    let sets = find("RETRIEVAL_SETS", shared.join("retrieval/dev"));
    for name in ["livemcp", "toollinkos"] {
        require(
            &format!("without_{name}"),
            &sets.join(name).join("queries.jsonl"),
        );
    }
    let servers = find("RETRIEVAL_SERVERS", shared.join("servers/snapshots"));
    require("without_servers", &servers);
}

/// Returns the folder that the variable names, or this one. The crate reads it as `VARIABLE_FOUND`.
fn find(variable: &str, otherwise: PathBuf) -> PathBuf {
    println!("cargo::rerun-if-env-changed={variable}");
    let named = env::var_os(variable).map(PathBuf::from);
    if let Some(named) = &named {
        assert!(
            named.is_dir(),
            "{variable}: {} is not a folder",
            named.display()
        );
    }
    let folder = named.unwrap_or(otherwise);
    println!("cargo::rustc-env={variable}_FOUND={}", folder.display());
    folder
}

/// Sets the flag if the path does not exist.
fn require(flag: &str, path: &Path) {
    println!("cargo::rustc-check-cfg=cfg({flag})");
    println!("cargo::rerun-if-changed={}", path.display());
    if !path.exists() {
        println!("cargo::rustc-cfg={flag}");
    }
}
