//! The owner of a state folder: the one configuration that it belongs to, and the daemon that serves it.
//!
//! `owner.json` in the folder names both; the daemon holds the lock `owner.lock` beside it for as long as it
//! accepts clients, so that the end of its process frees the folder. See `docs/decisions/0049`.

use std::{
    fs, io,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use files::{Lock, read_text_within, write_whole};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use crate::{
    identity::{Build, Identity},
    socket::connect,
};

/// The largest record that is read: a few paths.
const RECORD_BYTES_MAX: usize = 64 * 1024;

/// The wait of a starting daemon for one that is ending, or has not yet written its record.
pub const CLAIM_WAIT: Duration = Duration::from_secs(2);

/// The interval of looking at the lock meanwhile.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// The owner of a state folder, as `owner.json` has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnerRecord {
    /// The configuration file.
    pub config: PathBuf,
    /// The daemon that last owned the folder; none before the first one.
    #[serde(default)]
    pub daemon: Option<OwnerDaemon>,
}

impl OwnerDaemon {
    /// Returns why this configuration cannot use the daemon: it may have the same file and other variables.
    pub(crate) fn check_settings(&self, identity: &Identity) -> Result<(), String> {
        if self.settings == identity.settings {
            return Ok(());
        }
        let pid = self.pid;
        Err(format!(
            "the daemon of this state folder, pid {pid}, has other values of `PROXY_*` variables; \
             set the same ones, or another `--state-dir`"
        ))
    }
}

impl OwnerRecord {
    /// Returns the daemon if the folder belongs to this configuration.
    pub(crate) fn daemon_of(self, config: &Path) -> Option<OwnerDaemon> {
        self.daemon.filter(|_| is_same_file(&self.config, config))
    }
}

/// A daemon that owns a state folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnerDaemon {
    /// Its process id.
    pub pid: u32,
    /// The socket at which it is reached.
    pub socket: PathBuf,
    /// The build of its program.
    pub build: Build,
    /// The digest of the `PROXY_*` variables that are part of its configuration.
    pub settings: String,
}

/// The claim of a daemon to its state folder. While another daemon has the folder, it is made again.
#[derive(Debug)]
pub struct FolderClaim {
    state_dir: PathBuf,
    config: PathBuf,
    daemon: OwnerDaemon,
    state: Mutex<ClaimState>,
}

#[derive(Debug)]
enum ClaimState {
    Waiting,
    /// Without locks on its file system, another daemon may own the folder too.
    Owned {
        _lock: Option<Lock>,
    },
    /// The daemon accepts no more clients.
    Released,
}

/// The outcome of claiming a state folder for a daemon.
#[derive(Debug)]
pub enum Claim {
    /// The folder is ours.
    Owned,
    /// A daemon of another build owns it for its last clients, or one that is ending.
    Shared,
    /// A daemon of the same configuration and build owns it.
    Taken(OwnerDaemon),
}

/// The state folder belongs to another configuration.
#[derive(Debug, thiserror::Error)]
#[error(
    "the state folder {} belongs to another configuration, {}; this one is {}\n\
     hint: give this one a folder of its own (`state_dir`, or `--state-dir`). If it replaces the \
     other one, remove {}",
    folder.display(), owner.display(), config.display(), record_path(folder).display()
)]
pub struct OtherConfiguration {
    folder: PathBuf,
    owner: PathBuf,
    config: PathBuf,
}

/// Reads the owner of a state folder; `None` if none is known, as in a folder of an earlier version.
pub fn read_owner(state_dir: &Path) -> Option<OwnerRecord> {
    let text = read_text_within(&record_path(state_dir), RECORD_BYTES_MAX).ok()?;
    serde_json::from_str(&text).ok()
}

/// Checks that a state folder belongs to this configuration, and records that if it belongs to none. A
/// configuration whose file is gone owns nothing. A folder that cannot be written stays as it is.
///
/// # Errors
///
/// The folder belongs to another configuration.
pub fn check_owner(state_dir: &Path, config: &Path) -> Result<(), OtherConfiguration> {
    if is_recorded(state_dir, config)? {
        return Ok(());
    }
    // A daemon that holds the lock writes the record itself.
    if let Ok(Some(_lock)) = Lock::try_take(&lock_path(state_dir))
        && !is_recorded(state_dir, config)?
    {
        let record = OwnerRecord {
            config: config.to_owned(),
            daemon: None,
        };
        write(state_dir, &record);
    }
    Ok(())
}

/// Returns false if the folder belongs to no configuration.
fn is_recorded(state_dir: &Path, config: &Path) -> Result<bool, OtherConfiguration> {
    match read_owner(state_dir) {
        Some(owner) if is_same_file(&owner.config, config) => Ok(true),
        Some(owner) if owner.config.exists() => Err(OtherConfiguration {
            folder: state_dir.to_owned(),
            owner: owner.config,
            config: config.to_owned(),
        }),
        _ => Ok(false),
    }
}

impl FolderClaim {
    /// The claim of this process, a daemon at this socket.
    pub fn new(state_dir: &Path, identity: &Identity, socket: &Path) -> Self {
        Self {
            state_dir: state_dir.to_owned(),
            config: identity.wanted.config.clone(),
            daemon: OwnerDaemon {
                pid: std::process::id(),
                socket: socket.to_owned(),
                build: Build::ours(),
                settings: identity.settings.clone(),
            },
            state: Mutex::new(ClaimState::Waiting),
        }
    }

    /// Returns true if another daemon had the folder at the last attempt.
    pub(crate) fn is_waiting(&self) -> bool {
        let state = self.state.try_lock();
        state.is_some_and(|state| matches!(*state, ClaimState::Waiting))
    }

    /// Claims the folder. Waits at most `wait` for a daemon that is ending. A daemon of another build may own
    /// the folder for its last clients; the folder is shared with it. Blocks.
    ///
    /// # Errors
    ///
    /// The folder belongs to another configuration.
    pub fn claim(&self, wait: Duration) -> Result<Claim, OtherConfiguration> {
        let mut state = self.state.lock();
        match *state {
            ClaimState::Waiting => {}
            ClaimState::Owned { .. } => return Ok(Claim::Owned),
            ClaimState::Released => return Ok(Claim::Shared),
        }
        let deadline = Instant::now() + wait;
        loop {
            let lock = match Lock::try_take(&lock_path(&self.state_dir)) {
                Ok(None) => None,
                // Without a lock, every daemon serves as if it were alone.
                locked => Some(locked.ok().flatten()),
            };
            // Every record is written under the lock.
            is_recorded(&self.state_dir, &self.config)?;
            if let Some(lock) = lock {
                let record = OwnerRecord {
                    config: self.config.clone(),
                    daemon: Some(self.daemon.clone()),
                };
                write(&self.state_dir, &record);
                *state = ClaimState::Owned { _lock: lock };
                return Ok(Claim::Owned);
            }
            let other = read_owner(&self.state_dir).and_then(|owner| owner.daemon);
            // The record may still be that of a daemon that has ended.
            let is_reached = |it: &OwnerDaemon| {
                it.socket != self.daemon.socket && matches!(connect(&it.socket), Ok(Some(_)))
            };
            match other.filter(is_reached) {
                Some(other) if other.build == self.daemon.build => return Ok(Claim::Taken(other)),
                Some(_) => return Ok(Claim::Shared),
                None if Instant::now() >= deadline => return Ok(Claim::Shared),
                None => {}
            }
            pause();
        }
    }

    /// Frees the folder for the next daemon, and ends the claim. Blocks while the folder is being claimed.
    pub(crate) fn release(&self) {
        *self.state.lock() = ClaimState::Released;
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "the system has no lock with a deadline; a starting daemon may block"
)]
fn pause() {
    std::thread::sleep(LOOK_EVERY);
}

fn lock_path(state_dir: &Path) -> PathBuf {
    state_dir.join("owner.lock")
}

fn record_path(state_dir: &Path) -> PathBuf {
    state_dir.join("owner.json")
}

fn write(state_dir: &Path, record: &OwnerRecord) {
    let written = serde_json::to_vec(record).map_err(io::Error::from);
    let written = written.and_then(|json| write_whole(&record_path(state_dir), &json));
    if let Err(error) = written {
        tracing::debug!(%error, "the owner of the state folder is not recorded");
    }
}

/// Returns true if both paths lead to one file: a configuration may be reached through links.
fn is_same_file(a: &Path, b: &Path) -> bool {
    let canonical = |path: &Path| fs::canonicalize(path).ok();
    a == b || canonical(a).is_some_and(|a| canonical(b) == Some(a))
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use super::*;
    use crate::{identity::LaunchOptions, socket::bind};

    /// A state folder, and the file of a configuration.
    struct Scene {
        folder: tempfile::TempDir,
    }

    impl Scene {
        fn new() -> Self {
            let folder = tempfile::tempdir().unwrap();
            fs::write(folder.path().join("a.toml"), "").unwrap();
            fs::write(folder.path().join("b.toml"), "").unwrap();
            fs::create_dir(folder.path().join("state")).unwrap();
            Self { folder }
        }

        fn path(&self, name: &str) -> PathBuf {
            self.folder.path().join(name)
        }

        fn identity(&self, config: &str, home: &str) -> Identity {
            let wanted = LaunchOptions {
                config: self.path(config),
                ..LaunchOptions::default()
            };
            Identity::of(wanted, [("HOME", home.as_ref())])
        }

        fn claim_of(&self, identity: &Identity, socket: &str) -> FolderClaim {
            FolderClaim::new(&self.path("state"), identity, &self.path(socket))
        }

        fn owner(&self) -> OwnerDaemon {
            read_owner(&self.path("state")).unwrap().daemon.unwrap()
        }
    }

    #[test]
    fn a_second_daemon_finds_the_first_whatever_its_home_until_the_first_is_gone() {
        let scene = Scene::new();
        let (ada, bob) = (
            scene.identity("a.toml", "/ada"),
            scene.identity("a.toml", "/bob"),
        );
        assert_ne!(ada.id, bob.id);
        let listener = bind(&scene.path("one")).unwrap();
        let (first, second) = (scene.claim_of(&ada, "one"), scene.claim_of(&bob, "two"));
        assert!(matches!(first.claim(CLAIM_WAIT).unwrap(), Claim::Owned));
        let Claim::Taken(owner) = second.claim(CLAIM_WAIT).unwrap() else {
            panic!("the folder has an owner");
        };
        assert_eq!((&owner, owner.pid), (&scene.owner(), std::process::id()));
        assert_eq!(owner.socket, scene.path("one"));
        assert!(owner.check_settings(&bob).is_ok());
        // The record of a daemon that was killed stays, and its lock does not.
        drop((first, listener));
        assert!(matches!(second.claim(CLAIM_WAIT).unwrap(), Claim::Owned));
        assert_eq!(scene.owner().socket, scene.path("two"));
    }

    #[test]
    fn a_daemon_of_another_build_shares_the_folder_until_it_ends_and_other_variables_are_told() {
        let scene = Scene::new();
        let identity = scene.identity("a.toml", "/ada");
        let listeners = ["one", "two"].map(|name| bind(&scene.path(name)).unwrap());
        let first = scene.claim_of(&identity, "one");
        first.claim(CLAIM_WAIT).unwrap();
        let mut owner = scene.owner();
        owner.build.version = "0.0.1".to_owned();
        let record = OwnerRecord {
            config: scene.path("a.toml"),
            daemon: Some(owner.clone()),
        };
        write(&scene.path("state"), &record);
        let second = scene.claim_of(&identity, "two");
        assert!(matches!(second.claim(CLAIM_WAIT).unwrap(), Claim::Shared));
        assert_eq!(scene.owner(), owner, "it is still found");
        first.release();
        assert!(second.is_waiting());
        assert!(matches!(
            second.claim(Duration::ZERO).unwrap(),
            Claim::Owned
        ));
        assert!(!second.is_waiting());
        // A daemon that ends does not take the folder back, and a third one finds the second.
        assert!(matches!(first.claim(CLAIM_WAIT).unwrap(), Claim::Shared));
        let third = scene.claim_of(&identity, "three");
        let found = third.claim(CLAIM_WAIT).unwrap();
        assert!(matches!(found, Claim::Taken(it) if it.socket == scene.path("two")));
        drop(listeners);

        let variables = [("PROXY_RESULTS__MAX_TOKENS", "100".as_ref())];
        let other = Identity::of(identity.wanted, variables);
        let told = owner.check_settings(&other).unwrap_err();
        assert!(told.contains(&format!("pid {}", owner.pid)), "{told}");
    }

    #[test]
    fn two_configurations_on_one_folder_are_refused_with_both_names() {
        let scene = Scene::new();
        let state = scene.path("state");
        let check = |config: &str| check_owner(&state, &scene.path(config));
        // A folder of an earlier version has no record; the first configuration to open it owns it.
        check("a.toml").unwrap();
        check("a.toml").unwrap();
        let told = check("b.toml").unwrap_err().to_string();
        for name in ["a.toml", "b.toml", "owner.json", "state_dir"] {
            assert!(told.contains(name), "{told}");
        }
        let other = scene.identity("b.toml", "/ada");
        assert!(scene.claim_of(&other, "two").claim(CLAIM_WAIT).is_err());
        // A link leads to the same configuration.
        std::os::unix::fs::symlink(scene.path("a.toml"), scene.path("link.toml")).unwrap();
        check("link.toml").unwrap();
        // A file that was moved owns nothing.
        fs::rename(scene.path("a.toml"), scene.path("c.toml")).unwrap();
        fs::remove_file(scene.path("link.toml")).unwrap();
        check("c.toml").unwrap();
        assert!(check("b.toml").is_err());
        // A record that cannot be read is none.
        fs::write(state.join("owner.json"), "{").unwrap();
        check("b.toml").unwrap();
        assert!(check("c.toml").is_err());
    }

    #[test]
    fn a_folder_that_cannot_be_written_has_no_owner_and_is_used() {
        let scene = Scene::new();
        let gone = scene.path("no/such");
        check_owner(&gone, &scene.path("a.toml")).unwrap();
        let identity = scene.identity("a.toml", "/ada");
        let claim = FolderClaim::new(&gone, &identity, &scene.path("one"));
        assert!(matches!(claim.claim(CLAIM_WAIT).unwrap(), Claim::Owned));
    }
}
