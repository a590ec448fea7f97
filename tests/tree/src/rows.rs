//! Checks that decision 0001 has a row for each dependency, with its version.

use std::{collections::BTreeMap, fs, path::Path};

use anyhow::{Context as _, Result};
use serde::Deserialize;

use crate::packages::Packages;

const DECISION: &str = "docs/decisions/0001-crates-and-dependencies.md";

#[derive(Debug, Deserialize)]
struct Manifest {
    workspace: Workspace,
}

#[derive(Debug, Deserialize)]
struct Workspace {
    dependencies: BTreeMap<String, toml::Value>,
}

pub(crate) fn wrong(root: &Path, packages: &Packages) -> Result<Vec<String>> {
    let read = |file: &str| fs::read_to_string(root.join(file)).context(file.to_owned());
    let manifest: Manifest = toml::from_str(&read("Cargo.toml")?).context("Cargo.toml")?;
    let decision = read(DECISION)?;
    let rows = parse_rows(&decision);
    let dependencies = manifest.workspace.dependencies.into_iter();
    let strangers = dependencies.filter(|(_, it)| it.get("path").is_none());
    let names: Vec<String> = strangers.map(|(name, _)| name).collect();
    Ok(compare(&names, &rows, packages))
}

/// Returns the version that the table states for each crate. A row may have several crates, with one version
/// for all or one for each.
fn parse_rows(text: &str) -> BTreeMap<&str, &str> {
    let mut rows = BTreeMap::new();
    for line in text.lines().filter(|line| line.starts_with("| `")) {
        let mut columns = line.split('|').skip(1);
        let names = columns.next().unwrap_or_default().split('`');
        let names: Vec<&str> = names.skip(1).step_by(2).collect();
        let versions = columns.next().unwrap_or_default().split(',');
        let versions: Vec<&str> = versions.map(str::trim).collect();
        let last = versions.last().copied().unwrap_or_default();
        let versions = versions.iter().copied().chain(std::iter::repeat(last));
        rows.extend(names.into_iter().zip(versions));
    }
    rows
}

fn compare(names: &[String], rows: &BTreeMap<&str, &str>, packages: &Packages) -> Vec<String> {
    let mut wrong = Vec::new();
    for name in names {
        let Some(stated) = rows.get(name.as_str()) else {
            wrong.push(format!("{DECISION} has no row for `{name}`"));
            continue;
        };
        let locked = packages.all.iter().filter(|it| it.name == *name);
        let locked: Vec<&str> = locked
            .filter_map(|it| it.version.split('+').next())
            .collect();
        // A crate that is not built here (an optional one) is not in the list.
        if !locked.is_empty() && !locked.contains(stated) {
            let locked = locked.join(", ");
            wrong.push(format!(
                "{DECISION} states {stated} for `{name}`; Cargo.lock has {locked}"
            ));
        }
    }
    let unused = rows.keys().filter(|row| !names.iter().any(|it| it == *row));
    wrong.extend(unused.map(|row| format!("{DECISION} has a row for `{row}`, which nothing uses")));
    wrong
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dependency_has_a_row_with_its_version() {
        let text = "| crate | version | why |\n|---|---|---|\n| `a`, `b` | 1.0.0, 2.0.0 | both |\n| `c`, `d` | 3.0.0 | x |\n| `gone` | 1.0.0 | y |\n";
        let package = |name: &str, version: &str| {
            serde_json::json!({ "id": name, "name": name, "version": version, "license": "MIT",
                "source": "registry+x", "targets": [] })
        };
        let json = serde_json::json!({ "workspace_members": [], "resolve": { "nodes": [] },
            "packages": [package("a", "1.0.0"), package("b", "2.0.1"), package("c", "3.0.0+meta")] });
        let packages: Packages = serde_json::from_value(json).unwrap();
        let names = ["a", "b", "c", "d", "new"].map(str::to_owned);
        assert_eq!(
            compare(&names, &parse_rows(text), &packages),
            [
                format!("{DECISION} states 2.0.0 for `b`; Cargo.lock has 2.0.1"),
                format!("{DECISION} has no row for `new`"),
                format!("{DECISION} has a row for `gone`, which nothing uses"),
            ]
        );
    }
}
