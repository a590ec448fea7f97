//! The flags that override the file and the variables.

use std::path::PathBuf;

/// The flags that override all other layers. Relative paths start at the current folder.
#[derive(Debug, Clone, Default)]
pub struct Overrides {
    /// `--config`.
    pub config: Option<PathBuf>,
    /// `--state-dir`.
    pub state_dir: Option<PathBuf>,
    /// `--log`, or its equivalent.
    pub log: Option<String>,
}
