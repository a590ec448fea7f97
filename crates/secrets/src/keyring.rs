//! Files sealed with a key in the system's keyring. There is one key for each configuration, and a
//! process requests it once. The secrets stay in files, with locks and atomic changes, which no keyring
//! offers.

/// The first bytes of a sealed file; no plain file of ours begins with them.
const HEAD: &[u8] = b"proxy-sealed-1\n";

pub(crate) fn is_sealed(bytes: &[u8]) -> bool {
    bytes.starts_with(HEAD)
}

#[cfg(not(feature = "keyring"))]
mod reached {
    use std::{io, path::Path};

    fn unreached<T>() -> io::Result<T> {
        Err(io::Error::new(
            io::ErrorKind::Unsupported,
            "this program was built without keyring support; build it with `--features keyring`",
        ))
    }

    pub(crate) fn seal(_: &Path, _: Vec<u8>) -> io::Result<Vec<u8>> {
        unreached()
    }

    pub(crate) fn open(_: &Path, _: &[u8]) -> io::Result<Vec<u8>> {
        unreached()
    }
}

#[cfg(feature = "keyring")]
mod reached {
    use std::{
        collections::HashMap,
        io,
        path::{Path, PathBuf},
        sync::mpsc,
        time::Duration,
    };

    use aws_lc_rs::aead::{AES_256_GCM, Aad, Nonce, RandomizedNonceKey};
    use files::{Lock, private_folder};
    use keyring::{Entry, Error};
    use parking_lot::Mutex;

    use super::HEAD;

    /// The service name of our keys in the keyring.
    const SERVICE: &str = "proxy";

    /// The timeout of the keyring: a locked keyring prompts the user, who may be absent.
    const WAIT: Duration = Duration::from_secs(20);

    const KEY_BYTES: usize = 32;
    const NONCE_BYTES: usize = 12;

    type SealKey = [u8; KEY_BYTES];

    /// The keys that were already read, by state folder.
    static KEYS: Mutex<Option<HashMap<PathBuf, SealKey>>> = Mutex::new(None);

    pub(crate) fn seal(state_dir: &Path, mut bytes: Vec<u8>) -> io::Result<Vec<u8>> {
        let key = cipher(&find_key(state_dir)?)?;
        let sealed = key.seal_in_place_append_tag(Aad::from(HEAD), &mut bytes);
        let nonce = sealed.map_err(|_| io::Error::other("the file cannot be encrypted"))?;
        Ok([HEAD, nonce.as_ref(), &bytes].concat())
    }

    pub(crate) fn open(state_dir: &Path, sealed: &[u8]) -> io::Result<Vec<u8>> {
        let other = || {
            io::Error::other(
                "it is encrypted with another key than the one in the system's keyring; delete it, \
                and store its secrets and logins again",
            )
        };
        let (nonce, sealed) = sealed[HEAD.len()..]
            .split_at_checked(NONCE_BYTES)
            .ok_or_else(other)?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).map_err(|_| other())?;
        let (key, mut sealed) = (cipher(&find_key(state_dir)?)?, sealed.to_vec());
        let plain = key.open_in_place(nonce, Aad::from(HEAD), &mut sealed);
        Ok(plain.map_err(|_| other())?.to_vec())
    }

    fn cipher(key: &SealKey) -> io::Result<RandomizedNonceKey> {
        RandomizedNonceKey::new(&AES_256_GCM, key).map_err(|_| io::Error::other("a bad key"))
    }

    fn find_key(state_dir: &Path) -> io::Result<SealKey> {
        if let Some(key) = KEYS.lock().as_ref().and_then(|all| all.get(state_dir)) {
            return Ok(*key);
        }
        let (sender, asked) = mpsc::sync_channel(1);
        let of = state_dir.to_owned();
        // The keyring's own event loop must not run inside ours.
        std::thread::spawn(move || {
            let key = ask_for_key(&of);
            if let Ok(key) = &key {
                KEYS.lock().get_or_insert_default().insert(of, *key);
            }
            // The caller may have stopped waiting; the next one finds the key.
            let _ = sender.send(key);
        });
        let answered = asked.recv_timeout(WAIT);
        let answered = answered.unwrap_or_else(|_| {
            let seconds = WAIT.as_secs();
            Err(format!(
                "it did not answer within {seconds} s; is it locked?"
            ))
        });
        answered.map_err(|why| {
            io::Error::other(format!(
                "the system's keyring: {why}\nhint: unlock it, or write `secrets.store = \"file\"`"
            ))
        })
    }

    /// Returns the key of this configuration, and creates it if there is none yet.
    fn ask_for_key(state_dir: &Path) -> Result<SealKey, String> {
        let folder = state_dir.join("secrets");
        private_folder(&folder).map_err(|error| error.to_string())?;
        // Two processes that start at the same time must not create two keys.
        let lock = Lock::take(&folder.join("keyring.lock"));
        let _lock = lock.map_err(|error| error.to_string())?;
        if let Err(error) = Entry::store_status() {
            return Err(explain(error));
        }
        let entry = Entry::new(SERVICE, &state_dir.display().to_string());
        let entry = entry.map_err(|error| explain(&error))?;
        let kept = match entry.get_secret() {
            Err(Error::NoEntry) => {
                let mut key = [0; KEY_BYTES];
                aws_lc_rs::rand::fill(&mut key).map_err(|_| "no random numbers".to_owned())?;
                entry.set_secret(&key).map_err(|error| explain(&error))?;
                key.to_vec()
            }
            found => found.map_err(|error| explain(&error))?,
        };
        let kept: Result<SealKey, _> = kept.try_into();
        kept.map_err(|_| "its entry under our name is not a valid key".to_owned())
    }

    /// Returns an error as text; it holds no part of a key.
    fn explain(error: &Error) -> String {
        match error {
            Error::NoDefaultStore | Error::PlatformFailure(_) => {
                format!("none is available ({error})")
            }
            Error::NoStorageAccess(_) => format!("it is locked ({error})"),
            Error::BadEncoding(_) => "its entry under our name is not a valid key".to_owned(),
            other => other.to_string(),
        }
    }

    /// Clears the keys in memory, so that they are read from the keyring again.
    #[cfg(test)]
    pub(super) fn forget_keys() {
        KEYS.lock().take();
    }
}

pub(crate) use reached::{open, seal};

#[cfg(all(test, feature = "keyring"))]
mod tests {
    use std::fs;

    use super::reached::forget_keys;
    use crate::{Keeping, PrivateFiles, Secret, SecretName, Store};

    /// Run by `just keyring` in a session with an unlocked keyring.
    #[test]
    #[ignore = "needs the system's keyring: `just keyring`"]
    fn what_is_kept_is_sealed_and_opened_by_the_next_process() {
        let state = tempfile::tempdir().unwrap();
        let files = PrivateFiles {
            keeping: Keeping::Keyring,
            ..PrivateFiles::plain(state.path())
        };
        let name: SecretName = "a".parse().unwrap();
        let path = state.path().join("secrets/secrets.json");
        // Stored before the keyring was chosen: read unsealed, and sealed when it changes.
        Store::in_state(state.path())
            .set(&name, &Secret::new("hunter1"))
            .unwrap();
        let store = Store::of(&files);
        assert_eq!(store.get(&name).unwrap().unwrap().expose(), "hunter1");
        store.set(&name, &Secret::new("hunter2")).unwrap();
        let bytes = fs::read(&path).unwrap();
        assert!(!bytes.windows(6).any(|it| it == b"hunter"));
        forget_keys();
        assert_eq!(store.get(&name).unwrap().unwrap().expose(), "hunter2");

        let plain = Store::in_state(state.path())
            .get(&name)
            .unwrap_err()
            .to_string();
        assert!(plain.contains("secrets.store = \"keyring\""), "{plain}");
        let mut damaged = bytes;
        let last = damaged.len() - 1;
        damaged[last] ^= 1;
        fs::write(&path, damaged).unwrap();
        let damaged = store.get(&name).unwrap_err().to_string();
        assert!(damaged.contains("another key"), "{damaged}");
    }

    /// Run by `just keyring` in a session without a bus.
    #[test]
    #[ignore = "must have no session bus: `just keyring`"]
    fn without_a_keyring_it_says_so_and_writes_nothing() {
        let state = tempfile::tempdir().unwrap();
        let files = PrivateFiles {
            keeping: Keeping::Keyring,
            ..PrivateFiles::plain(state.path())
        };
        let store = Store::of(&files);
        let failed = store.set(&"a".parse().unwrap(), &Secret::new("hunter2"));
        let failed = failed.unwrap_err().to_string();
        assert!(
            failed.contains("the system's keyring: ") && failed.contains("\nhint: "),
            "{failed}"
        );
        assert!(!state.path().join("secrets/secrets.json").exists());
    }
}
