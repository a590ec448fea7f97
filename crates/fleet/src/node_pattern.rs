//! A pattern of the names of nodes.

use std::fmt;

use globset::{Glob, GlobMatcher};

/// A pattern of the names of nodes, with `*`, `?` and `{a,b}`, such as `gpu-*`. It is compiled once, since each
/// call asks it.
#[derive(Debug, Clone)]
pub struct NodePattern(GlobMatcher);

impl NodePattern {
    /// Compiles a pattern. The error says why it is none.
    pub fn new(text: &str) -> Result<Self, String> {
        let glob = Glob::new(text).map_err(|error| error.to_string())?;
        Ok(Self(glob.compile_matcher()))
    }

    /// Returns true if the node with this name matches.
    pub fn matches(&self, node: &str) -> bool {
        self.0.is_match(node)
    }
}

impl fmt::Display for NodePattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.glob().glob())
    }
}

impl PartialEq for NodePattern {
    fn eq(&self, other: &Self) -> bool {
        self.0.glob() == other.0.glob()
    }
}

impl Eq for NodePattern {}
