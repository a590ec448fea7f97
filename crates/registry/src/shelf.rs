//! What the configuration says about the servers whose tools we keep.

use std::collections::BTreeMap;

use globset::{Glob, GlobSet, GlobSetBuilder};
use tool::ServerName;

use crate::RegistryError;

/// The configured servers, in the configuration's order.
#[derive(Debug, Clone, Default)]
pub struct Shelf {
    pub servers: Vec<Shelved>,
}

#[derive(Debug, Clone)]
pub struct Shelved {
    pub name: ServerName,
    /// The package, program or host that it is, by which a recipe may know it; nothing else of
    /// how it is started, and no secret.
    pub program: String,
    /// Wins over what our rules would say.
    pub category: Option<String>,
    pub tags: Vec<String>,
    /// Globs over tool names; empty admits every tool.
    pub allow: Vec<String>,
    pub deny: Vec<String>,
    /// By the tool's own name.
    pub overlays: BTreeMap<String, Overlay>,
}

impl Shelf {
    pub(crate) fn program(&self, server: &ServerName) -> &str {
        let mut servers = self.servers.iter();
        let shelved = servers.find(|shelved| shelved.name == *server);
        shelved.map_or("", |shelved| &shelved.program)
    }
}

impl Shelved {
    /// A server about which the configuration says nothing more.
    pub fn plain(name: ServerName) -> Self {
        Self {
            name,
            program: String::new(),
            category: None,
            tags: Vec::new(),
            allow: Vec::new(),
            deny: Vec::new(),
            overlays: BTreeMap::new(),
        }
    }

    pub(crate) fn hides(&self, tool: &str) -> bool {
        self.overlays
            .get(tool)
            .is_some_and(|overlay| overlay.hidden)
    }
}

/// What a person adds to one tool's definition. The definition itself is never touched.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Overlay {
    pub description: Option<String>,
    pub tags: Vec<String>,
    pub category: Option<String>,
    pub notes: Option<String>,
    pub example: Option<serde_json::Value>,
    /// Left out of search and lists; still found by its exact name.
    pub hidden: bool,
}

/// One server's `tools.allow` and `tools.deny`, compiled.
#[derive(Debug)]
pub(crate) struct Gate {
    allow: Option<GlobSet>,
    deny: GlobSet,
    deny_text: Vec<String>,
}

impl Gate {
    pub(crate) fn new(shelved: &Shelved) -> Result<Self, RegistryError> {
        let compile = |globs: &[String]| compile(&shelved.name, globs);
        Ok(Self {
            allow: (!shelved.allow.is_empty())
                .then(|| compile(&shelved.allow))
                .transpose()?,
            deny: compile(&shelved.deny)?,
            deny_text: shelved.deny.clone(),
        })
    }

    /// The rule that keeps this tool out, as a person would look for it in the configuration.
    pub(crate) fn refuses(&self, tool: &str) -> Option<String> {
        if let Some(first) = self.deny.matches(tool).first() {
            return Some(format!("tools.deny {:?}", self.deny_text[*first]));
        }
        let admitted = self.allow.as_ref().is_none_or(|allow| allow.is_match(tool));
        (!admitted).then(|| "not in tools.allow".to_owned())
    }
}

fn compile(server: &ServerName, globs: &[String]) -> Result<GlobSet, RegistryError> {
    let bad = |error: globset::Error| RegistryError::Glob {
        server: server.clone(),
        message: error.to_string(),
    };
    let mut builder = GlobSetBuilder::new();
    for glob in globs {
        builder.add(Glob::new(glob).map_err(bad)?);
    }
    builder.build().map_err(bad)
}
