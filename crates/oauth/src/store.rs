//! Where records lie: a private file for each server, changed under a lock, replaced whole.

use std::{io, path::PathBuf, time::SystemTime};

use files::{FolderError, Lock, own_folder, private_folder};
use secrets::PrivateFiles;
use sha2::{Digest as _, Sha256};

use crate::record::Record;

/// A record with the largest tokens that are seen.
const FILE_BYTES_MAX: u64 = 1024 * 1024;

/// The record of one server. Two servers at one address have two.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordFile {
    path: PathBuf,
    files: PrivateFiles,
    server: String,
    url: String,
}

/// Why a record cannot be read or kept. No text of its is in it.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The folder is not ours alone.
    #[error("the folder of logins: {0}")]
    Folder(#[from] FolderError),
    /// The file cannot be read or written.
    #[error("the login: {0}")]
    File(#[from] io::Error),
    /// Somebody else wrote it.
    #[error("{0} holds no login of ours; delete it, and log in again")]
    Damaged(PathBuf),
}

impl RecordFile {
    /// The file of this server among these. Nothing is opened or made yet.
    pub fn of(files: &PrivateFiles, server: &str, url: &str) -> Self {
        let digest = Sha256::digest(url.as_bytes());
        let digest: Vec<String> = digest
            .iter()
            .take(6)
            .map(|it| format!("{it:02x}"))
            .collect();
        let digest = digest.concat();
        Self {
            path: (files.state_dir.join("auth")).join(format!("{server}-{digest}.json")),
            files: files.clone(),
            server: server.to_owned(),
            url: url.to_owned(),
        }
    }

    /// The record as it is now; an empty one where there is none.
    pub fn read(&self) -> Result<Record, StoreError> {
        let Some(bytes) = self.files.read(&self.path, FILE_BYTES_MAX)? else {
            return Ok(Record {
                server: self.server.clone(),
                url: self.url.clone(),
                ..Record::default()
            });
        };
        // An error of the parser could repeat a part of a token.
        let damaged = |_| StoreError::Damaged(self.path.clone());
        serde_json::from_slice(&bytes).map_err(damaged)
    }

    /// When it was changed last.
    pub(crate) fn changed_at(&self) -> Option<SystemTime> {
        std::fs::metadata(&self.path).ok()?.modified().ok()
    }

    /// Which login there is: another text after a login or a logout, the same after a renewal.
    pub fn read_id(&self) -> Option<String> {
        let grant = self.read().ok()?.grant?;
        Some(format!("{}{}", grant.id, grant.ended.is_some()))
    }

    /// Waits for its turn, then has the record as it is then. Blocks.
    pub(crate) fn lock(&self) -> Result<LockedRecord, StoreError> {
        own_folder(&self.files.state_dir)?;
        private_folder(&self.files.state_dir.join("auth"))?;
        let lock = Lock::take(&self.path.with_extension("lock"))?;
        let record = self.read()?;
        Ok(LockedRecord {
            path: self.path.clone(),
            files: self.files.clone(),
            record,
            _lock: lock,
        })
    }

    /// Changes the record as it is then. Blocks.
    pub(crate) fn change(&self, change: impl FnOnce(&mut Record)) -> Result<Record, StoreError> {
        let mut locked = self.lock()?;
        change(&mut locked.record);
        locked.write()?;
        Ok(locked.record)
    }
}

/// Changes the record of this file, on a thread that may block.
pub(crate) async fn change(
    file: &RecordFile,
    change: impl FnOnce(&mut Record) + Send + 'static,
) -> Result<(), StoreError> {
    let file = file.clone();
    let changing = tokio::task::spawn_blocking(move || file.change(change).map(drop));
    changing.await.map_err(io::Error::other)?
}

/// A record that nobody else can change.
#[derive(Debug)]
pub(crate) struct LockedRecord {
    path: PathBuf,
    files: PrivateFiles,
    pub(crate) record: Record,
    _lock: Lock,
}

impl LockedRecord {
    /// Writes it down; it outlives a loss of power, for the token before it is worth nothing any
    /// more.
    pub(crate) fn write(&self) -> Result<(), StoreError> {
        let text = serde_json::to_vec_pretty(&self.record).map_err(io::Error::from)?;
        Ok(self.files.write(&self.path, text)?)
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt as _};

    use files::power_loss;
    use secrets::PrivateFiles;

    use super::{RecordFile, StoreError};

    fn plain(state_dir: &std::path::Path) -> PrivateFiles {
        PrivateFiles::plain(state_dir)
    }

    #[test]
    fn a_record_is_private_and_one_of_others_is_refused() {
        let state = tempfile::tempdir().unwrap();
        let file = RecordFile::of(&plain(state.path()), "any", "https://x.example/mcp");
        assert_eq!(file.read().unwrap().url, "https://x.example/mcp");
        let changed = file.change(|record| record.wanted_scopes = vec!["a".to_owned()]);
        assert_eq!(changed.unwrap(), file.read().unwrap());
        for (path, mode) in [(&file.path, 0o600), (&state.path().join("auth"), 0o700)] {
            let found = fs::metadata(path).unwrap().permissions().mode();
            assert_eq!(found & 0o777, mode, "{}", path.display());
        }
        fs::write(&file.path, "{\"server\": hunter2").unwrap();
        let damaged = file.read().unwrap_err();
        assert!(matches!(damaged, StoreError::Damaged(_)));
        assert!(!damaged.to_string().contains("hunter2"), "{damaged}");
        fs::set_permissions(&file.path, fs::Permissions::from_mode(0o604)).unwrap();
        assert!(file.read().is_err());
    }

    #[test]
    fn a_loss_of_power_leaves_the_old_login_or_the_new_one() {
        let state = tempfile::tempdir().unwrap();
        let of = |folder: &std::path::Path| {
            RecordFile::of(&plain(folder), "any", "https://x.example/mcp")
        };
        let mut before = Vec::new();
        for scopes in [["a".to_owned()], ["b".to_owned()]] {
            let act = || {
                let changed = of(state.path()).change(|it| it.wanted_scopes = scopes.to_vec());
                changed.unwrap();
            };
            power_loss::check(state.path(), act, |state| {
                let found = of(state.folder).read().unwrap().wanted_scopes;
                assert!(found == scopes || (found == before && !state.is_after_all));
            });
            before = scopes.to_vec();
        }
    }

    #[test]
    fn servers_and_addresses_are_kept_apart() {
        let at = |server, url| RecordFile::of(&plain("/s".as_ref()), server, url).path;
        assert_ne!(at("a", "https://x"), at("b", "https://x"));
        assert_ne!(at("a", "https://x"), at("a", "https://y"));
    }
}
