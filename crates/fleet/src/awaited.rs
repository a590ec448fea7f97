//! The change that a failed server waits for: a person makes it elsewhere, and it ends the server's
//! delay before the next start at once.

use std::time::SystemTime;

use oauth::RecordFile;
use secrets::Store;

/// A change after which another start is worth trying.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Awaited {
    change: Change,
    /// The login that is needed, if the change is a login.
    pub login: Option<LoginNeeded>,
}

/// A person has to log in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoginNeeded {
    /// There was a login, and it has expired.
    pub again: bool,
    /// The scopes that the existing login lacks; empty if there is no login.
    pub scopes: Vec<String>,
    /// The address of ours at which the caller logs in, if the login is the caller's own.
    pub address: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Change {
    Secrets {
        store: Store,
        was: Option<SystemTime>,
    },
    Login {
        file: RecordFile,
        was: Option<String>,
    },
}

impl Awaited {
    /// Waits for secrets that differ from those at that time.
    pub(crate) fn secrets(store: Store, was: Option<SystemTime>) -> Self {
        Self {
            change: Change::Secrets { store, was },
            login: None,
        }
    }

    /// Waits for a login other than this one.
    pub fn login(file: RecordFile, was: Option<String>, needed: LoginNeeded) -> Self {
        Self {
            change: Change::Login { file, was },
            login: Some(needed),
        }
    }

    /// Returns true if the change has been made. Reads the state of one small file.
    pub(crate) fn has_come(&self) -> bool {
        match &self.change {
            Change::Secrets { store, was } => store.changed_at() != *was,
            Change::Login { file, was } => file.read_id() != *was,
        }
    }
}
