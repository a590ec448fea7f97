//! Answers and bodies that several routes have.

use serde::Serialize;
use serde_json::Value;

/// A change was made.
#[derive(Debug, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct Done {
    /// One sentence.
    pub(crate) message: String,
    /// The number with which the change can be undone.
    pub(crate) undo: Option<u64>,
    /// The differing lines of the configuration.
    pub(crate) diff: Option<String>,
    /// The name of a new server.
    pub(crate) name: Option<String>,
    /// The address that a person visits for a login.
    pub(crate) address: Option<String>,
}

impl Done {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            ..Self::default()
        }
    }
}

/// Any JSON object, as another part of the program writes it.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub(crate) struct Object(
    #[cfg_attr(feature = "schema", schemars(with = "serde_json::Map<String, Value>"))]
    pub(crate)  Value,
);
