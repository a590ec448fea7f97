//! The content of a project's file, which may narrow what a client sees.

use serde::{Deserialize, Serialize};

/// The file `.proxy.toml` of a project. It may only narrow what a client sees.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ProjectRule {
    /// A profile of the configuration.
    pub profile: Option<String>,
    /// Servers and categories; empty: all.
    pub allow: Vec<String>,
    /// Servers and categories.
    pub deny: Vec<String>,
    /// The limit of one result, in tokens.
    pub max_tokens: Option<u64>,
}

/// The name of a project's file, for people.
pub const PROJECT_FILE: &str = ".proxy.toml";
