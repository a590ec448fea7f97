//! The flags that override the file and the variables.

use std::path::PathBuf;

/// The flags that go before everything else. Relative paths start at the current folder.
#[derive(Debug, Clone, Default)]
pub struct Overrides {
    /// `--config`.
    pub config: Option<PathBuf>,
    /// `--state-dir`.
    pub state_dir: Option<PathBuf>,
    /// `--log`, or what stands for it.
    pub log: Option<String>,
}
