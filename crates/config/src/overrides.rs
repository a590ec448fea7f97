//! The flags that override the file and the variables.

use std::path::PathBuf;

/// The flags that go before everything else. Relative paths start at the current folder.
#[derive(Debug, Clone, Default)]
pub struct Overrides {
    pub config: Option<PathBuf>,
    pub state_dir: Option<PathBuf>,
    pub log: Option<String>,
}
