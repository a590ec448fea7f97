//! The private file that stores secrets.

use std::{
    collections::BTreeMap,
    io,
    path::{Path, PathBuf},
    time::SystemTime,
};

use files::{FolderError, Lock, private_folder};

use crate::{keeping::PrivateFiles, name::SecretName, secret::Secret};

/// The largest file of secrets; no user needs this size.
const FILE_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// The largest secret in bytes; a key of any kind is shorter.
const SECRET_BYTES_MAX: usize = 64 * 1024;

/// The secrets of one configuration. Each read reads the current file; each change reads the file under
/// a lock and replaces it atomically.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Store {
    files: PrivateFiles,
}

/// The reason why secrets cannot be read or stored. It repeats no text of the file.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Other users have access to the folder.
    #[error("the folder of secrets: {0}")]
    Folder(#[from] FolderError),
    /// The file cannot be read or written.
    #[error("secrets: {0}")]
    File(#[from] io::Error),
    /// The file was not written by this program.
    #[error("{0} is not a file of secrets: it must be a table of texts")]
    Damaged(PathBuf),
    /// The secret is too long.
    #[error("a secret has at most {SECRET_BYTES_MAX} bytes")]
    TooLong,
    /// The secret is empty.
    #[error("a secret cannot be empty")]
    Empty,
}

type Secrets = BTreeMap<String, String>;

impl Store {
    /// Returns the store in these files. Opens and creates nothing.
    pub fn of(files: &PrivateFiles) -> Self {
        Self {
            files: files.clone(),
        }
    }

    /// Returns the store in a file that is not sealed.
    pub fn in_state(state_dir: &Path) -> Self {
        Self::of(&PrivateFiles::plain(state_dir))
    }

    /// Returns the secret with this name, if there is one.
    pub fn get(&self, name: &SecretName) -> Result<Option<Secret>, StoreError> {
        Ok(self.read()?.remove(name.as_str()).map(Secret::new))
    }

    /// Returns the names of all secrets, sorted.
    pub fn list(&self) -> Result<Vec<String>, StoreError> {
        Ok(self.read()?.into_keys().collect())
    }

    /// Returns all secrets.
    pub fn values(&self) -> Result<Vec<Secret>, StoreError> {
        Ok(self.read()?.into_values().map(Secret::new).collect())
    }

    /// Stores a secret durably. Returns true if there was one with this name before.
    pub fn set(&self, name: &SecretName, secret: &Secret) -> Result<bool, StoreError> {
        match secret.expose().len() {
            0 => return Err(StoreError::Empty),
            SECRET_BYTES_MAX.. => return Err(StoreError::TooLong),
            _ => {}
        }
        self.change(|all| {
            all.insert(name.to_string(), secret.expose().to_owned())
                .is_some()
        })
    }

    /// Removes a secret. Returns true if there was one.
    pub fn remove(&self, name: &SecretName) -> Result<bool, StoreError> {
        self.change(|all| all.remove(name.as_str()).is_some())
    }

    /// Returns the time of the last change. If it differs from an earlier one, secrets may have been
    /// added or changed.
    pub fn changed_at(&self) -> Option<SystemTime> {
        std::fs::metadata(self.file()).ok()?.modified().ok()
    }

    fn folder(&self) -> PathBuf {
        self.files.state_dir.join("secrets")
    }

    fn file(&self) -> PathBuf {
        self.folder().join("secrets.json")
    }

    fn read(&self) -> Result<Secrets, StoreError> {
        let path = self.file();
        let Some(bytes) = self.files.read(&path, FILE_BYTES_MAX)? else {
            return Ok(Secrets::new());
        };
        // The parser's error could repeat a part of a secret.
        serde_json::from_slice(&bytes).map_err(|_| StoreError::Damaged(path))
    }

    fn change<T>(&self, change: impl FnOnce(&mut Secrets) -> T) -> Result<T, StoreError> {
        files::own_folder(&self.files.state_dir)?;
        let folder = self.folder();
        private_folder(&folder)?;
        let _lock = Lock::take(&folder.join("lock"))?;
        let before = self.read()?;
        let mut after = before.clone();
        let changed = change(&mut after);
        if after != before {
            let text = serde_json::to_vec(&after).map_err(io::Error::from)?;
            self.files.write(&self.file(), text)?;
        }
        Ok(changed)
    }
}

#[cfg(test)]
mod tests {
    #[cfg(unix)]
    use std::fs;
    #[cfg(unix)]
    use std::os::unix::fs::PermissionsExt as _;
    use std::thread;

    use files::power_loss;

    use super::Store;
    #[cfg(unix)]
    use super::StoreError;
    use crate::{Secret, SecretName};

    fn name(text: &str) -> SecretName {
        text.parse().unwrap()
    }

    #[test]
    fn a_secret_is_kept_listed_and_forgotten() {
        let state = tempfile::tempdir().unwrap();
        let store = Store::in_state(state.path());
        assert_eq!(store.list().unwrap(), Vec::<String>::new());
        assert!(!store.remove(&name("a")).unwrap());
        assert!(!store.set(&name("b"), &Secret::new("two")).unwrap());
        assert!(!store.set(&name("a"), &Secret::new("one")).unwrap());
        assert!(store.set(&name("a"), &Secret::new("new")).unwrap());
        assert_eq!(store.list().unwrap(), ["a", "b"]);
        assert_eq!(store.get(&name("a")).unwrap().unwrap().expose(), "new");
        assert!(store.remove(&name("a")).unwrap());
        assert_eq!(store.get(&name("a")).unwrap(), None);
    }

    #[cfg(unix)]
    #[test]
    fn it_is_private_and_one_that_is_not_is_refused() {
        let state = tempfile::tempdir().unwrap();
        let store = Store::in_state(state.path());
        store.set(&name("a"), &Secret::new("hunter2")).unwrap();
        let file = state.path().join("secrets/secrets.json");
        for (path, mode) in [(file.as_path(), 0o600), (file.parent().unwrap(), 0o700)] {
            let found = fs::metadata(path).unwrap().permissions().mode();
            assert_eq!(found & 0o777, mode, "{}", path.display());
        }
        fs::write(&file, "{\"a\": hunter2").unwrap();
        let damaged = store.get(&name("a")).unwrap_err();
        assert!(matches!(damaged, StoreError::Damaged(_)));
        assert!(!damaged.to_string().contains("hunter2"), "{damaged}");
        fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
        assert!(store.get(&name("a")).is_err());
        assert!(matches!(
            store.set(&name("b"), &Secret::new("")),
            Err(StoreError::Empty)
        ));
    }

    #[test]
    fn a_loss_of_power_leaves_the_old_secrets_or_the_new_ones() {
        let state = tempfile::tempdir().unwrap();
        let store = Store::in_state(state.path());
        let mut before = Vec::new();
        for after in [&["a"][..], &["a", "b"]] {
            let last = name(after.last().unwrap());
            let act = || {
                store.set(&last, &Secret::new("hunter2")).unwrap();
            };
            power_loss::check(state.path(), act, |state| {
                let found = Store::in_state(state.folder).list().unwrap();
                assert!(found == after || (found == before && !state.is_after_all));
            });
            before = after.to_vec();
        }
    }

    #[test]
    fn several_writers_lose_nothing() {
        let state = tempfile::tempdir().unwrap();
        let store = Store::in_state(state.path());
        thread::scope(|scope| {
            for writer in 0..4 {
                let store = store.clone();
                scope.spawn(move || {
                    for at in 0..10 {
                        let name = name(&format!("{writer}-{at}"));
                        store.set(&name, &Secret::new("x")).unwrap();
                    }
                });
            }
        });
        assert_eq!(store.list().unwrap().len(), 40);
    }
}
