//! A pattern of the names of nodes.

use std::{fmt, sync::Arc};

use globset::{Glob, GlobMatcher};

/// A pattern of the names of nodes, with `*`, `?` and `{a,b}`, such as `gpu-*`. It is compiled once, since each
/// call asks it.
#[derive(Clone)]
pub struct NodePattern {
    text: Arc<str>,
    matcher: Arc<GlobMatcher>,
}

impl NodePattern {
    /// Compiles a pattern. The error says why it is none.
    pub fn new(text: &str) -> Result<Self, String> {
        let glob = Glob::new(text).map_err(|error| error.to_string())?;
        Ok(Self {
            text: text.into(),
            matcher: Arc::new(glob.compile_matcher()),
        })
    }

    /// Returns true if the node with this name matches.
    pub fn matches(&self, node: &str) -> bool {
        self.matcher.is_match(node)
    }
}

impl fmt::Display for NodePattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Debug for NodePattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "NodePattern({})", self.text)
    }
}

impl PartialEq for NodePattern {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for NodePattern {}
