//! Checks every package of `Cargo.lock` against `deny.toml`: licences, bans, sources, duplicates.
//!
//! The file is cargo-deny's. `.ci/advisories` runs that program where it can be installed; this check
//! runs everywhere.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

use anyhow::{Context as _, Result};
use serde::Deserialize;

use crate::{
    licence,
    packages::{Package, Packages},
};

const WRITTEN: &str = "deny.toml";

#[derive(Debug, Deserialize)]
pub(crate) struct Rules {
    licenses: Licences,
    bans: Bans,
}

#[derive(Debug, Deserialize)]
struct Licences {
    allow: BTreeSet<String>,
    #[serde(default)]
    exceptions: Vec<Exception>,
}

#[derive(Debug, Deserialize)]
struct Exception {
    #[serde(rename = "crate")]
    name: String,
    allow: BTreeSet<String>,
}

#[derive(Debug, Deserialize)]
struct Bans {
    deny: Vec<NamedCrate>,
    skip: Vec<NamedCrate>,
}

#[derive(Debug, Deserialize)]
struct NamedCrate {
    /// A name, or `name@version`.
    #[serde(rename = "crate")]
    name: String,
    reason: String,
}

/// The prefix in `Cargo.lock` of the only permitted source besides this repository.
const REGISTRY: &str = "registry+";

impl Rules {
    pub(crate) fn read(root: &Path) -> Result<Self> {
        let text = fs::read_to_string(root.join(WRITTEN)).context(WRITTEN)?;
        toml::from_str(&text).context(WRITTEN)
    }
}

pub(crate) fn wrong(rules: &Rules, packages: &Packages) -> Vec<String> {
    let each = packages.all.iter();
    let mut wrong: Vec<String> = each
        .flat_map(|package| of_package(rules, package))
        .collect();
    let names: BTreeSet<String> = packages.all.iter().map(Package::in_full).collect();
    let gone = rules
        .bans
        .skip
        .iter()
        .filter(|skip| !names.contains(&skip.name));
    wrong.extend(gone.map(|skip| {
        format!(
            "{} is no package any more: take it out of `bans.skip`",
            skip.name
        )
    }));
    wrong
}

fn of_package(rules: &Rules, package: &Package) -> Vec<String> {
    let mut wrong = Vec::new();
    let name = package.in_full();
    let exception = rules
        .licenses
        .exceptions
        .iter()
        .find(|it| it.name == package.name);
    let mut allowed = rules.licenses.allow.clone();
    allowed.extend(
        exception
            .into_iter()
            .flat_map(|it| it.allow.iter().cloned()),
    );
    match &package.license {
        Some(licence) if licence::allows(&allowed, licence) => {}
        Some(licence) => wrong.push(format!("{name}: {licence} is not allowed by {WRITTEN}")),
        None => wrong.push(format!("{name} states no licence")),
    }
    if let Some(ban) = rules.bans.deny.iter().find(|ban| ban.name == package.name) {
        wrong.push(format!("{name} is banned: {}", ban.reason));
    }
    if package
        .source
        .as_ref()
        .is_some_and(|source| !source.starts_with(REGISTRY))
    {
        wrong.push(format!("{name} does not come from the registry"));
    }
    wrong
}

/// Returns packages that occur in several versions, except those listed with a reason.
pub(crate) fn duplicates(rules: &Rules, packages: &Packages) -> Vec<String> {
    let mut versions: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for package in &packages.all {
        let skipped = rules
            .bans
            .skip
            .iter()
            .any(|skip| skip.name == package.in_full());
        if !skipped {
            versions
                .entry(&package.name)
                .or_default()
                .push(package.in_full());
        }
    }
    let several = versions.into_values().filter(|versions| versions.len() > 1);
    several
        .map(|versions| format!("several versions: {}", versions.join(", ")))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULES: &str = r#"
[licenses]
allow = ["MIT"]
exceptions = [{ crate = "data", allow = ["CDLA"] }]
[bans]
deny = [{ crate = "openssl", reason = "one TLS" }]
skip = [{ crate = "old@1.0.0", reason = "of another" }]
"#;

    #[track_caller]
    fn check(packages: &[(&str, &str, Option<&str>, &str)], wrong_is: &[&str], twice: &[&str]) {
        let old = ("old", "1.0.0", Some("MIT"), "registry+x");
        let listed = packages
            .iter()
            .chain([&old])
            .map(|(name, version, licence, source)| {
                serde_json::json!({ "id": format!("{name} {version}"), "name": name,
                "version": version, "license": licence, "source": source, "targets": [] })
            });
        let json = serde_json::json!({ "packages": listed.collect::<Vec<_>>(),
            "workspace_members": [], "resolve": { "nodes": [] } });
        let packages: Packages = serde_json::from_value(json).unwrap();
        let rules: Rules = toml::from_str(RULES).unwrap();
        assert_eq!(wrong(&rules, &packages), wrong_is);
        assert_eq!(duplicates(&rules, &packages), twice);
    }

    #[test]
    fn licences_bans_sources_and_duplicates() {
        let good = ("good", "1.0.0", Some("MIT"), "registry+x");
        check(
            &[good, ("data", "1.0.0", Some("CDLA"), "registry+x")],
            &[],
            &[],
        );
        check(
            &[("bad", "1.0.0", Some("GPL-3.0"), "registry+x")],
            &["bad@1.0.0: GPL-3.0 is not allowed by deny.toml"],
            &[],
        );
        check(
            &[("none", "1.0.0", None, "registry+x")],
            &["none@1.0.0 states no licence"],
            &[],
        );
        check(
            &[("openssl", "1.0.0", Some("MIT"), "registry+x")],
            &["openssl@1.0.0 is banned: one TLS"],
            &[],
        );
        check(
            &[("mine", "1.0.0", Some("MIT"), "git+x")],
            &["mine@1.0.0 does not come from the registry"],
            &[],
        );
        let newer = ("good", "2.0.0", Some("MIT"), "registry+x");
        check(
            &[good, newer],
            &[],
            &["several versions: good@1.0.0, good@2.0.0"],
        );
        check(&[("old", "2.0.0", Some("MIT"), "registry+x")], &[], &[]);
    }

    #[test]
    fn a_duplicate_that_is_gone_is_taken_out() {
        let rules: Rules = toml::from_str(RULES).unwrap();
        let json = r#"{"packages":[],"workspace_members":[],"resolve":{"nodes":[]}}"#;
        let packages: Packages = serde_json::from_str(json).unwrap();
        let expected = "old@1.0.0 is no package any more: take it out of `bans.skip`";
        assert_eq!(wrong(&rules, &packages), [expected]);
    }
}
