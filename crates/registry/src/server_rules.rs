//! Rules of the configuration about the servers whose tools we keep.

use std::collections::BTreeMap;

use printable::LetterCase;
use tool::{ArgumentSetting, ArgumentSettings, ServerName, Tool};

use crate::RegistryError;
use crate::allow_deny::AllowDeny;
use crate::pins::Pin;

/// The configured servers, in the configuration's order.
#[derive(Debug, Clone, Default)]
pub struct Rules {
    /// The enabled ones.
    pub servers: Vec<ServerRules>,
    /// Servers that are configured, but disabled: a name that begins with one refers to no other server.
    pub disabled: Vec<ServerName>,
}

/// One server as the configuration has it.
#[derive(Debug, Clone)]
pub struct ServerRules {
    /// Its key in the configuration.
    pub name: ServerName,
    /// The package, program or host, by which a recipe may recognise it; no other part of its start
    /// command, and no secret.
    pub program: String,
    /// The sentence of the configuration about it, in place of that of its recipe.
    pub description: Option<String>,
    /// Overrides the category given by our rules.
    pub category: Option<String>,
    /// Tags of all of its tools.
    pub tags: Vec<String>,
    /// Globs over tool names; empty admits every tool.
    pub allow: Vec<String>,
    /// Globs over tool names; they win over `allow`.
    pub deny: Vec<String>,
    /// The treatment of tools that differ from their accepted definition.
    pub pin: Pin,
    /// The overlays, by the tool's own name.
    pub overlays: BTreeMap<String, Overlay>,
    /// The settings of arguments of all of its tools that have them.
    pub arguments: BTreeMap<String, ArgumentSetting>,
}

impl Rules {
    /// Returns the rules of an enabled server.
    pub(crate) fn find(&self, server: &str) -> Option<&ServerRules> {
        self.servers.iter().find(|it| it.name.as_str() == server)
    }
}

impl ServerRules {
    /// Returns the rules of a server without further configuration.
    pub fn plain(name: ServerName) -> Self {
        Self {
            name,
            program: String::new(),
            description: None,
            category: None,
            tags: Vec::new(),
            allow: Vec::new(),
            deny: Vec::new(),
            pin: Pin::default(),
            overlays: BTreeMap::new(),
            arguments: BTreeMap::new(),
        }
    }

    /// Its `tools.allow` and `tools.deny`, compiled.
    pub(crate) fn compile(&self) -> Result<AllowDeny, RegistryError> {
        let filter = AllowDeny::new(&self.allow, &self.deny, LetterCase::Matters);
        filter.map_err(|message| RegistryError::Glob {
            server: self.name.clone(),
            message,
        })
    }

    pub(crate) fn argument_settings_of(&self, overlay: &Overlay, tool: &Tool) -> ArgumentSettings {
        if self.arguments.is_empty() && overlay.arguments.is_empty() {
            return ArgumentSettings::default();
        }
        ArgumentSettings::new(&self.arguments, &overlay.arguments, &tool.input_schema())
    }

    /// Returns true if the configuration sets an argument of any of its tools.
    pub(crate) fn sets_arguments(&self) -> bool {
        let overlays = self.overlays.values();
        !self.arguments.is_empty() || overlays.into_iter().any(|it| !it.arguments.is_empty())
    }
}

/// A person's additions to one tool's definition. The definition itself is never touched.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Overlay {
    /// In place of the server's own; a tool is found by its title like by its name.
    pub title: Option<String>,
    /// In place of the server's own.
    pub description: Option<String>,
    /// Beside those of its server.
    pub tags: Vec<String>,
    /// In place of its server's.
    pub category: Option<String>,
    /// Shown below its description.
    pub usage: Option<String>,
    /// Shown below its definition.
    pub notes: Option<String>,
    /// The least version of its server for which it is promised.
    pub min_version: Option<String>,
    /// The reason why it is deprecated: mostly its successor.
    pub deprecated: Option<String>,
    /// Arguments that work.
    pub example: Option<serde_json::Value>,
    /// Left out of search and lists; still found by its exact name.
    pub hidden: bool,
    /// The settings of its arguments, before those of its server.
    pub arguments: BTreeMap<String, ArgumentSetting>,
}
