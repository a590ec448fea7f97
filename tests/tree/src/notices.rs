//! The licences and notices of everything in the program, for the file that ships beside it.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, ensure};

use crate::packages::{Package, Packages};

/// The package whose dependencies are in the program.
const PROGRAM: &str = "proxy";

/// Folders of a package that are not part of a program.
const LEFT_OUT: [&str; 8] = [
    "tests", "test", "benches", "examples", "fuzz", "doc", "docs", "target",
];

/// Beginnings of the names of files with a licence, in upper case.
const NAMES: [&str; 6] = [
    "LICENSE",
    "LICENCE",
    "COPYING",
    "COPYRIGHT",
    "NOTICE",
    "UNLICENSE",
];

/// Endings of files with such a name that are no texts.
const NO_TEXTS: [&str; 6] = ["rs", "c", "h", "go", "py", "json"];

/// Data in the program that is in no package.
const DATA: &str = "\
The encoder (registry/encoder) is sentence-transformers/all-MiniLM-L6-v2 by the sentence-transformers authors,
changed by us: Apache-2.0, the text of LICENSE-APACHE.
The tokenizer's words (registry/tokens) are the encoding o200k, published by OpenAI with tiktoken: MIT.
The standard library is Rust's: MIT OR Apache-2.0, copyright The Rust Project Developers.
";

/// Returns the notices of every package in the program. Equal texts occur once. Fails if a package states no
/// licence.
pub(crate) fn render(packages: &Packages) -> Result<String> {
    let mut texts: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut list = String::new();
    for package in in_program(packages)? {
        let name = package.in_full();
        let licence = package.license.as_deref();
        let licence = licence.with_context(|| format!("{name} states no licence"))?;
        let files = find_texts(package)?;
        let missing = match (files.is_empty(), package.authors.join(", ")) {
            (false, _) => String::new(),
            (true, authors) if authors.is_empty() => " (the package contains no text)".to_owned(),
            (true, authors) => format!(" (the package contains no text; copyright {authors})"),
        };
        writeln!(list, "{name}: {licence}{missing}")?;
        for text in files {
            texts.entry(text).or_default().insert(name.clone());
        }
    }
    let mut notices = format!(
        "The program contains the packages below, each under its own licence. Their texts and notices follow.\n\n\
         {list}\n{DATA}"
    );
    let mut texts: Vec<_> = texts.into_iter().collect();
    texts.sort_by(|a, b| a.1.cmp(&b.1));
    for (text, of) in texts {
        let of: Vec<String> = of.into_iter().collect();
        writeln!(notices, "\n{}\n{}\n\n{text}", "=".repeat(80), of.join(", "))?;
    }
    Ok(notices)
}

/// Returns the packages of strangers in the program, in the order of their names.
fn in_program(packages: &Packages) -> Result<Vec<&Package>> {
    let direct = packages.direct();
    let program = packages.ours().find(|package| package.name == PROGRAM);
    let program = program.context("there is no package of the program")?;
    let mut reached = BTreeSet::new();
    let mut open = vec![program.id.as_str()];
    while let Some(id) = open.pop() {
        if reached.insert(id) {
            open.extend(direct.get(id).into_iter().flatten());
        }
    }
    let all = packages.all.iter();
    let mut found: Vec<&Package> = all
        .filter(|it| it.source.is_some() && reached.contains(it.id.as_str()))
        .collect();
    found.sort_by_key(|it| it.in_full());
    Ok(found)
}

/// Returns the texts of a package's licences and notices, those of C code in its folders included.
fn find_texts(package: &Package) -> Result<BTreeSet<String>> {
    let folder = package.manifest_path.parent().unwrap_or(Path::new("/"));
    ensure!(folder.is_dir(), "{} is missing", folder.display());
    let mut found = BTreeSet::new();
    let mut open: Vec<PathBuf> = vec![folder.to_owned()];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(&folder)? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let kind = entry.file_type()?;
            if kind.is_dir() && !LEFT_OUT.contains(&name.as_str()) {
                open.push(entry.path());
            } else if kind.is_file() && is_notice(&name) {
                let bytes = fs::read(entry.path())?;
                let text = String::from_utf8_lossy(&bytes).replace('\r', "");
                found.insert(text.trim().to_owned());
            }
        }
    }
    found.retain(|text| !text.is_empty());
    Ok(found)
}

fn is_notice(name: &str) -> bool {
    let upper = name.to_uppercase();
    let ending = name.rsplit_once('.').map_or("", |(_, ending)| ending);
    NAMES.iter().any(|start| upper.starts_with(start)) && !NO_TEXTS.contains(&ending)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// Packages `proxy` (ours), `used` in the program, and `tried` of its tests; each in a folder of its own.
    fn packages(root: &Path, licence: Option<&str>) -> Packages {
        let package = |name: &str, source: Option<&str>, licence: Option<&str>| {
            let manifest = root.join(name).join("Cargo.toml");
            serde_json::json!({ "id": name, "name": name, "version": "1.0.0", "license": licence,
                "source": source, "targets": [], "manifest_path": manifest, "authors": ["Ada", "Bob"] })
        };
        let needs = |name: &str, kind: Option<&str>| serde_json::json!({ "pkg": name, "dep_kinds": [{ "kind": kind }] });
        let registry = Some("registry+x");
        let json = serde_json::json!({
            "packages": [package("proxy", None, None), package("used", registry, licence),
                package("bare", registry, Some("Zlib")), package("tried", registry, Some("MIT"))],
            "workspace_members": ["proxy"],
            "resolve": { "nodes": [
                { "id": "proxy", "deps": [needs("used", None), needs("tried", Some("dev"))] },
                { "id": "used", "deps": [needs("bare", None)] },
                { "id": "bare", "deps": [] }, { "id": "tried", "deps": [] }] }
        });
        serde_json::from_value(json).unwrap()
    }

    fn write(root: &Path, file: &str, text: &str) {
        let path = root.join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    #[test]
    fn every_text_of_the_program_occurs_once_and_those_of_tests_do_not() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path();
        write(root, "used/LICENSE-MIT", "Copyright Ada\r\n");
        write(root, "used/engine/COPYING.txt", "Copyright the engine");
        write(root, "used/src/license.rs", "fn license");
        write(root, "used/tests/LICENSE", "of a test");
        write(root, "bare/Cargo.toml", "");
        write(root, "tried/LICENSE", "of a tried one");
        let notices = render(&packages(root, Some("MIT"))).unwrap();
        let list = "bare@1.0.0: Zlib (the package contains no text; copyright Ada, Bob)\nused@1.0.0: MIT\n";
        assert!(notices.contains(list), "{notices}");
        for (text, count) in [
            ("Copyright Ada\n", 1),
            ("Copyright the engine", 1),
            ("fn license", 0),
            ("of a t", 0),
        ] {
            let found = notices.matches(text).count();
            assert_eq!(found, count, "{text}: {notices}");
        }
    }

    #[test]
    fn a_package_without_a_licence_is_an_error() {
        let root = tempfile::tempdir().unwrap();
        write(root.path(), "used/Cargo.toml", "");
        write(root.path(), "bare/Cargo.toml", "");
        let error = render(&packages(root.path(), None)).unwrap_err();
        assert_eq!(error.to_string(), "used@1.0.0 states no licence");
    }
}
