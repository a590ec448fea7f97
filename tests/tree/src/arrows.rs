//! `.ci/arrows.toml`, the list of permitted dependencies, and the check of the crates against it.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

use anyhow::{Context as _, Result};
use serde::Deserialize;

use crate::packages::Packages;

pub(crate) const WRITTEN: &str = ".ci/arrows.toml";

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Written {
    /// The packages of this repository.
    pub(crate) crates: BTreeMap<String, Crate>,
    /// Crates whose types may be named only in these files.
    pub(crate) only_in: BTreeMap<String, BTreeSet<String>>,
    /// Files of modules that are still in a circle; no other module may be.
    #[serde(default)]
    pub(crate) known_circles: BTreeSet<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Crate {
    /// The crates of this repository that it uses: these and no others.
    pub(crate) uses: BTreeSet<String>,
    /// Crates that it must not reach, not even through another crate.
    #[serde(default)]
    pub(crate) never: BTreeSet<String>,
}

impl Written {
    pub(crate) fn read(root: &Path) -> Result<Self> {
        let text = fs::read_to_string(root.join(WRITTEN)).context(WRITTEN)?;
        toml::from_str(&text).context(WRITTEN)
    }
}

/// Returns the differences between the dependencies of the crates and the list, in both directions.
pub(crate) fn wrong(written: &Written, packages: &Packages) -> Vec<String> {
    let direct = packages.direct();
    let ours: BTreeMap<&str, &str> = packages
        .ours()
        .map(|package| (package.id.as_str(), package.name.as_str()))
        .collect();
    let mut wrong = Vec::new();
    for (id, name) in &ours {
        let Some(rule) = written.crates.get(*name) else {
            wrong.push(format!(
                "{WRITTEN} has no [crates.{name}]: say what it uses"
            ));
            continue;
        };
        let named = direct.get(id).into_iter().flatten();
        let uses = named.filter_map(|id| ours.get(id).map(|name| (*name).to_owned()));
        let uses: BTreeSet<String> = uses.collect();
        wrong.extend(apart(name, &uses, &rule.uses));
        let reached = reached(id, &direct);
        let reached = reached.iter().filter_map(|id| packages.of_id(id));
        let reached: BTreeSet<&str> = reached.map(|package| package.name.as_str()).collect();
        for never in rule.never.iter().filter(|it| reached.contains(it.as_str())) {
            wrong.push(format!(
                "`{name}` must not reach `{never}`: `cargo tree -p {name} -i {never} -e normal` says how it does"
            ));
        }
    }
    let names: BTreeSet<&str> = ours.into_values().collect();
    let gone = written.crates.keys();
    let gone = gone.filter(|name| !names.contains(name.as_str()));
    wrong.extend(gone.map(|name| format!("{WRITTEN} has [crates.{name}], which is no crate")));
    wrong
}

fn apart(name: &str, is: &BTreeSet<String>, may: &BTreeSet<String>) -> Vec<String> {
    let more = is.difference(may);
    let more = more.map(|other| format!("`{name}` names `{other}`: {WRITTEN} has no such arrow"));
    let less = may.difference(is);
    let less = less.map(|other| {
        format!("`{name}` does not name `{other}` any more: take the arrow out of {WRITTEN}")
    });
    more.chain(less).collect()
}

/// Returns all direct and indirect dependencies of a package.
fn reached<'a>(from: &'a str, direct: &BTreeMap<&'a str, BTreeSet<&'a str>>) -> BTreeSet<&'a str> {
    let mut reached = BTreeSet::new();
    let mut next = vec![from];
    while let Some(id) = next.pop() {
        let found = direct.get(id).into_iter().flatten();
        next.extend(found.copied().filter(|id| reached.insert(*id)));
    }
    reached
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packages() -> Packages {
        let id = |name: &str| {
            serde_json::json!({ "id": name, "name": name, "version": "1.0.0",
            "license": "MIT", "source": null, "targets": [] })
        };
        let node = |name: &str, deps: &[(&str, Option<&str>)]| {
            let deps = deps.iter().map(
                |(name, kind)| serde_json::json!({ "pkg": name, "dep_kinds": [{ "kind": kind }] }),
            );
            serde_json::json!({ "id": name, "deps": deps.collect::<Vec<_>>() })
        };
        let json = serde_json::json!({
            "packages": [id("top"), id("low"), id("far"), id("rmcp")],
            "workspace_members": ["top", "low"],
            "resolve": { "nodes": [
                node("top", &[("low", None)]),
                node("low", &[("far", None), ("top", Some("dev"))]),
                node("far", &[("rmcp", None)]),
                node("rmcp", &[]),
            ] },
        });
        serde_json::from_value(json).unwrap()
    }

    #[track_caller]
    fn check(written: &str, expected: &[&str]) {
        let written = toml::from_str(&format!("{written}\n[only_in]\n")).unwrap();
        let wrong = wrong(&written, &packages());
        assert_eq!(wrong.len(), expected.len(), "{wrong:#?}");
        for (wrong, expected) in wrong.iter().zip(expected) {
            assert!(wrong.contains(expected), "{wrong}");
        }
    }

    #[test]
    fn arrows_are_those_that_are_written() {
        check(
            "[crates.top]\nuses = [\"low\"]\n[crates.low]\nuses = []",
            &[],
        );
        check(
            "[crates.top]\nuses = []\n[crates.low]\nuses = [\"top\"]",
            &["`low` does not name `top`", "`top` names `low`"],
        );
        check(
            "[crates.top]\nuses = [\"low\"]\n[crates.old]\nuses = []",
            &["has no [crates.low]", "[crates.old], which is no crate"],
        );
        check(
            "[crates.top]\nuses = [\"low\"]\nnever = [\"rmcp\"]\n[crates.low]\nuses = []",
            &["`top` must not reach `rmcp`"],
        );
    }
}
