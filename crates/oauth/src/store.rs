//! The storage of records: a private file for each server, changed under a lock and replaced
//! atomically.

use std::{
    io,
    path::{Path, PathBuf},
    time::SystemTime,
};

use files::{FolderError, Lock, own_folder, private_folder};
use secrets::PrivateFiles;
use sha2::{Digest as _, Sha256};

use crate::record::Record;

/// The largest record, with the largest tokens that occur.
const FILE_BYTES_MAX: u64 = 1024 * 1024;

/// The number of bytes of the address's digest in the file name of a record.
const DIGEST_BYTES: usize = 6;

/// The same for a record of one caller: no subject may find another one with its digest.
const CALLER_DIGEST_BYTES: usize = 20;

/// The record of one server, or of one caller at it. Two servers at the same address have two records.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordFile {
    path: PathBuf,
    files: PrivateFiles,
    server: String,
    /// The address of the server.
    pub(crate) url: String,
    caller: Option<String>,
}

/// The reason why a record cannot be read or stored. It repeats no text of the record.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Other users have access to the folder.
    #[error("the folder of logins: {0}")]
    Folder(#[from] FolderError),
    /// The file cannot be read or written.
    #[error("the login: {0}")]
    File(#[from] io::Error),
    /// The file was not written by this program.
    #[error("{0} is not a login record; delete it, and log in again")]
    Damaged(PathBuf),
}

impl RecordFile {
    /// Returns the file of this server. Opens and creates nothing.
    pub fn of(files: &PrivateFiles, server: &str, url: &str) -> Self {
        let digest = hex::encode(&Sha256::digest(url.as_bytes())[..DIGEST_BYTES]);
        Self {
            path: (files.state_dir.join("auth")).join(format!("{server}-{digest}.json")),
            files: files.clone(),
            server: server.to_owned(),
            url: url.to_owned(),
            caller: None,
        }
    }

    /// Returns the file of one caller at the same server.
    #[must_use]
    pub fn of_caller(&self, caller: &str) -> Self {
        let text = format!("{}\n{caller}", self.url);
        let digest = hex::encode(&Sha256::digest(text.as_bytes())[..CALLER_DIGEST_BYTES]);
        Self {
            path: self
                .path
                .with_file_name(format!("{}-{digest}.json", self.server)),
            caller: Some(caller.to_owned()),
            ..self.clone()
        }
    }

    /// The caller whose login it is, if it is not the login of all.
    pub fn caller(&self) -> Option<&str> {
        self.caller.as_deref()
    }

    /// Reads the record; returns an empty one if there is none.
    pub fn read(&self) -> Result<Record, StoreError> {
        let Some(bytes) = self.files.read(&self.path, FILE_BYTES_MAX)? else {
            return Ok(Record {
                server: self.server.clone(),
                url: self.url.clone(),
                caller: self.caller.clone(),
                ..Record::default()
            });
        };
        // The parser's error could repeat a part of a token.
        let damaged = || StoreError::Damaged(self.path.clone());
        let record: Record = serde_json::from_slice(&bytes).map_err(|_| damaged())?;
        if self.caller.is_some() && record.caller != self.caller {
            return Err(damaged());
        }
        Ok(record)
    }

    pub(crate) fn changed_at(&self) -> Option<SystemTime> {
        std::fs::metadata(&self.path).ok()?.modified().ok()
    }

    /// Returns an id of the current login. It changes with a login or a logout, and stays the same when
    /// the token is renewed.
    pub fn read_id(&self) -> Option<String> {
        let grant = self.read().ok()?.grant?;
        Some(format!("{}{}", grant.id, grant.ended.is_some()))
    }

    /// Waits for the lock, then reads the record. Blocks.
    pub(crate) fn lock(&self) -> Result<LockedRecord, StoreError> {
        let lock = Lock::take(&self.lock_path()?)?;
        self.read_locked(lock)
    }

    /// Like `lock`, but returns `None` at once if another process holds the lock.
    pub(crate) fn try_lock(&self) -> Result<Option<LockedRecord>, StoreError> {
        let lock = Lock::try_take(&self.lock_path()?)?;
        lock.map(|lock| self.read_locked(lock)).transpose()
    }

    fn lock_path(&self) -> Result<PathBuf, StoreError> {
        own_folder(&self.files.state_dir)?;
        private_folder(&self.files.state_dir.join("auth"))?;
        Ok(self.path.with_extension("lock"))
    }

    fn read_locked(&self, lock: Lock) -> Result<LockedRecord, StoreError> {
        Ok(LockedRecord {
            record: self.read()?,
            file: self.clone(),
            _lock: lock,
        })
    }

    /// Reads the record under the lock, and changes it. Blocks.
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

/// A record that is locked, so that no other process can change it.
#[derive(Debug)]
pub(crate) struct LockedRecord {
    file: RecordFile,
    pub(crate) record: Record,
    _lock: Lock,
}

impl LockedRecord {
    /// Writes the record durably, since the previous token is no longer valid: the new one must survive
    /// a power failure.
    pub(crate) fn write(&self) -> Result<(), StoreError> {
        Ok(write(&self.file.files, &self.file.path, &self.record)?)
    }
}

fn write(files: &PrivateFiles, path: &Path, record: &Record) -> io::Result<()> {
    files.write(path, serde_json::to_vec_pretty(record)?)
}

/// The logins of a server that is being renamed. Until this is dropped no process renews the old
/// logins: a renewed token would be lost.
#[derive(Debug)]
pub struct RenamedLogins {
    pairs: Vec<(LockedRecord, PathBuf)>,
}

impl RenamedLogins {
    /// Copies every login of a server to another name. Blocks.
    pub fn copy(files: &PrivateFiles, from: &str, to: &str) -> Result<Self, StoreError> {
        let mut renamed = Self { pairs: Vec::new() };
        let folder = files.state_dir.join("auth");
        let listed = match std::fs::read_dir(&folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(renamed),
            listed => listed?,
        };
        for entry in listed {
            let name = entry?.file_name();
            let Some(rest) = name.to_str().and_then(|it| it.strip_prefix(from)) else {
                continue;
            };
            if !is_digest(rest) {
                continue;
            }
            let file = RecordFile {
                path: folder.join(&name),
                files: files.clone(),
                server: from.to_owned(),
                url: String::new(),
                caller: None,
            };
            let locked = file.lock()?;
            let mut copy = locked.record.clone();
            to.clone_into(&mut copy.server);
            let path = folder.join(format!("{to}{rest}"));
            write(files, &path, &copy)?;
            renamed.pairs.push((locked, path));
        }
        Ok(renamed)
    }

    /// Removes the logins under the old name.
    pub fn finish(self) -> io::Result<()> {
        self.pairs
            .iter()
            .try_for_each(|(old, _)| files::remove_file(&old.file.path))
    }

    /// Removes the logins under the new name.
    pub fn undo(self) -> io::Result<()> {
        self.pairs
            .iter()
            .try_for_each(|(_, new)| files::remove_file(new))
    }
}

/// Returns true if `rest` is what follows the server's name in the file name of a record.
fn is_digest(rest: &str) -> bool {
    let digest = rest
        .strip_prefix('-')
        .and_then(|it| it.strip_suffix(".json"));
    let lengths = [2 * DIGEST_BYTES, 2 * CALLER_DIGEST_BYTES];
    digest
        .is_some_and(|it| lengths.contains(&it.len()) && it.bytes().all(|b| b.is_ascii_hexdigit()))
}

#[cfg(test)]
mod tests {
    use std::fs;
    #[cfg(unix)]
    use std::os::unix::fs::PermissionsExt as _;

    use files::power_loss;
    use secrets::PrivateFiles;

    use super::{RecordFile, RenamedLogins, StoreError};

    fn plain(state_dir: &std::path::Path) -> PrivateFiles {
        PrivateFiles::plain(state_dir)
    }

    #[cfg(unix)]
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
    fn logins_go_with_a_server_that_gets_another_name() {
        let state = tempfile::tempdir().unwrap();
        let files = plain(state.path());
        let of = |server| RecordFile::of(&files, server, "https://x.example/mcp");
        let set = |server, scope: &str| {
            let changed = of(server).change(|it| it.wanted_scopes = vec![scope.to_owned()]);
            changed.unwrap();
        };
        set("any", "a");
        set("any-2", "b");
        let scopes = |server| of(server).read().unwrap().wanted_scopes;
        let renamed = RenamedLogins::copy(&files, "any", "new").unwrap();
        assert_eq!(
            (scopes("any"), scopes("new")),
            (scopes("new"), vec!["a".to_owned()])
        );
        assert_eq!(of("new").read().unwrap().server, "new");
        renamed.undo().unwrap();
        assert_eq!(scopes("new"), Vec::<String>::new());
        let renamed = RenamedLogins::copy(&files, "any", "new").unwrap();
        renamed.finish().unwrap();
        assert_eq!(
            (scopes("any"), scopes("new")),
            (Vec::new(), vec!["a".to_owned()])
        );
        assert_eq!(scopes("any-2"), ["b"]);
        let nowhere = plain("/nowhere".as_ref());
        assert!(RenamedLogins::copy(&nowhere, "any", "new").is_ok());
    }

    #[test]
    fn servers_and_addresses_are_kept_apart() {
        let of = |server, url| RecordFile::of(&plain("/s".as_ref()), server, url);
        let at = |server, url| of(server, url).path;
        assert_ne!(at("a", "https://x"), at("b", "https://x"));
        assert_ne!(at("a", "https://x"), at("a", "https://y"));
        let of_caller = |url, caller| of("a", url).of_caller(caller).path;
        assert_ne!(of_caller("https://x", "oauth ann"), at("a", "https://x"));
        assert_ne!(
            of_caller("https://x", "oauth ann"),
            of_caller("https://x", "oauth bob")
        );
        assert_ne!(
            of_caller("https://x", "oauth ann"),
            of_caller("https://y", "oauth ann")
        );
    }

    #[test]
    fn the_login_of_a_caller_is_read_for_no_other() {
        let state = tempfile::tempdir().unwrap();
        let of = |caller: &str| {
            RecordFile::of(&plain(state.path()), "any", "https://x.example/mcp").of_caller(caller)
        };
        of("oauth ann")
            .change(|it| it.wanted_scopes.clear())
            .unwrap();
        assert_eq!(
            of("oauth ann").read().unwrap().caller.as_deref(),
            Some("oauth ann")
        );
        fs::rename(of("oauth ann").path, of("oauth bob").path).unwrap();
        assert!(matches!(
            of("oauth bob").read(),
            Err(StoreError::Damaged(_))
        ));
    }
}
