//! The folder of everything that outlives the process.

use std::path::{Path, PathBuf};

use anyhow::bail;
use files::{FolderError, own_folder};
use tool::{Digest, ServerName};

/// Creates the folder. If that is not possible (a read-only place, a full disk), its contents are
/// kept in memory. A folder in which somebody else could put files is refused: we would trust what
/// we read there, and write where their links lead.
pub fn make(path: &Path) -> anyhow::Result<()> {
    match own_folder(path) {
        Ok(()) => Ok(()),
        Err(FolderError::NotOurs(why)) => bail!("the state folder cannot be used: {why}"),
        Err(FolderError::Unusable(error)) => {
            tracing::warn!(folder = %path.display(), %error, "the state folder cannot be created; nothing is stored");
            Ok(())
        }
    }
}

/// The folder of the servers' stderr.
pub fn logs(state_dir: &Path) -> PathBuf {
    state_dir.join("logs")
}

/// Returns true if `proxy logs` would show anything that the server wrote to stderr.
pub fn has_log(state_dir: &Path, server: &ServerName) -> bool {
    let newest = fleet::log_path(&logs(state_dir), server);
    std::fs::metadata(newest).is_ok_and(|it| it.len() > 0)
}

/// Tells the children of this configuration from those of others.
pub fn marker(state_dir: &Path) -> String {
    Digest::of_bytes(state_dir.as_os_str().as_encoded_bytes()).short(16)
}
