//! The interface to the configuration file, which only the program knows.

use std::collections::BTreeMap;

use recipes::RequiredValue;
use serde::Deserialize;
use serde_json::Value;

/// Changes the configuration file for the page. Blocks.
pub trait Configure: Send + Sync {
    /// Makes a change, or only shows it.
    fn change(&self, change: &ConfigChange, is_dry_run: bool) -> Result<Changed, Refused>;
}

/// A change of the configuration.
#[derive(Debug, Clone)]
pub enum ConfigChange {
    /// Enables or disables a server.
    SetEnabled {
        /// The server.
        server: String,
        /// True: enabled.
        enabled: bool,
    },
    /// Adds a server.
    AddServer(NewServerRequest),
    /// Forbids a tool by a rule before all others.
    Forbid {
        /// Its server.
        server: String,
        /// The server's own name of it.
        tool: String,
        /// The name of the client; `None`: every client.
        client: Option<String>,
    },
    /// Undoes a change.
    Restore {
        /// The text that the change left.
        expected: String,
        /// The text before it.
        text: String,
    },
}

/// A server that the page adds: by a recipe or an address, never by a command.
#[derive(Debug, Clone, Default, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct NewServerRequest {
    /// A recipe, as `GET /api/v1/recipes` lists them.
    pub recipe: Option<String>,
    /// The values that the recipe needs.
    #[serde(default)]
    pub values: BTreeMap<String, String>,
    /// The address of a remote server, in place of a recipe.
    pub address: Option<String>,
    /// The name; without it, that of the recipe, or one made from the address.
    pub name: Option<String>,
    /// Refused: a program to run is named in a terminal only.
    #[cfg_attr(feature = "schema", schemars(with = "Option<Value>"))]
    pub command: Option<Value>,
}

/// The result of a change.
#[derive(Debug)]
pub struct Changed {
    /// One sentence.
    pub message: String,
    /// The name of a new server.
    pub name: Option<String>,
    /// The differing lines of the file, with secrets masked; empty if nothing changed.
    pub diff: String,
    /// The text of the file before the change; empty if there was no file.
    pub before: String,
    /// The text of the file afterwards.
    pub after: String,
}

/// The reason why a change was not made.
#[derive(Debug)]
pub enum Refused {
    /// The request or the changed file is wrong.
    Invalid {
        /// The mistake in the words of the command line.
        text: String,
        /// The member of the request.
        field: Option<String>,
    },
    /// A recipe needs more values.
    Missing {
        /// One sentence.
        text: String,
        /// The values.
        needs: Vec<RequiredValue>,
    },
    /// There is no such server.
    NotFound(String),
    /// The file was changed since the page showed it.
    Changed(String),
    /// The file cannot be read or written.
    Failed(anyhow::Error),
}
