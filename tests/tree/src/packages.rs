//! Packages as `cargo` reports them: our own, their dependencies, and the dependency graph.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result, ensure};
use serde::Deserialize;

#[derive(Debug, Deserialize)]
pub(crate) struct Packages {
    #[serde(rename = "packages")]
    pub(crate) all: Vec<Package>,
    workspace_members: Vec<String>,
    resolve: Resolve,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Package {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) license: Option<String>,
    /// None for a package of ours.
    pub(crate) source: Option<String>,
    pub(crate) targets: Vec<Target>,
    #[serde(default)]
    pub(crate) authors: Vec<String>,
    #[serde(default)]
    pub(crate) manifest_path: PathBuf,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Target {
    pub(crate) name: String,
    pub(crate) kind: Vec<String>,
    pub(crate) src_path: PathBuf,
}

#[derive(Debug, Deserialize)]
struct Resolve {
    nodes: Vec<PackageNode>,
}

#[derive(Debug, Deserialize)]
struct PackageNode {
    id: String,
    deps: Vec<Dependency>,
}

#[derive(Debug, Deserialize)]
struct Dependency {
    pkg: String,
    dep_kinds: Vec<DependencyKind>,
}

#[derive(Debug, Deserialize)]
struct DependencyKind {
    /// None for a dependency of the program itself.
    kind: Option<String>,
}

impl Packages {
    /// Reads the packages that are built here, for the program or for its tests. `Cargo.lock` and
    /// `cargo metadata` also list packages that only another platform or an unused feature needs.
    pub(crate) fn read(root: &Path) -> Result<Self> {
        let metadata = cargo(root, &["metadata", "--locked", "--format-version", "1"])?;
        let mut packages: Self = serde_json::from_str(&metadata)?;
        let tree = ["tree", "--locked", "--workspace", "--prefix", "none"];
        let tree = cargo(root, &[&tree[..], &["-e", "normal,build,dev"]].concat())?;
        let built: BTreeSet<String> = tree.lines().filter_map(name_and_version).collect();
        packages
            .all
            .retain(|package| built.contains(&package.in_full()));
        Ok(packages)
    }

    /// Returns the packages of this repository.
    pub(crate) fn ours(&self) -> impl Iterator<Item = &Package> {
        let is_ours = |package: &&Package| self.workspace_members.contains(&package.id);
        self.all.iter().filter(is_ours)
    }

    /// Returns the direct dependencies of these packages, without those needed only by tests or
    /// build scripts.
    pub(crate) fn direct(&self) -> BTreeMap<&str, BTreeSet<&str>> {
        let nodes = self.resolve.nodes.iter();
        nodes
            .map(|node| (node.id.as_str(), made_of(node)))
            .collect()
    }

    pub(crate) fn of_id(&self, id: &str) -> Option<&Package> {
        self.all.iter().find(|package| package.id == id)
    }
}

impl Package {
    pub(crate) fn in_full(&self) -> String {
        format!("{}@{}", self.name, self.version)
    }
}

fn cargo(root: &Path, arguments: &[&str]) -> Result<String> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(arguments)
        .current_dir(root)
        .output();
    let output = output.context("cargo cannot be started")?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(
        output.status.success(),
        "`cargo {}`: {said}",
        arguments.join(" ")
    );
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Parses a line such as `bytes v1.12.1 (*)`.
fn name_and_version(line: &str) -> Option<String> {
    let mut words = line.split(' ');
    let (name, version) = (words.next()?, words.next()?);
    Some(format!("{name}@{}", version.strip_prefix('v')?))
}

fn made_of(node: &PackageNode) -> BTreeSet<&str> {
    let normal = |it: &&Dependency| it.dep_kinds.iter().any(|kind| kind.kind.is_none());
    let needed = node.deps.iter().filter(normal);
    needed.map(|it| it.pkg.as_str()).collect()
}
