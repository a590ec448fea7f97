//! What a server that failed waits for: something that a person changes elsewhere, and that ends its
//! rest at once.

use std::time::SystemTime;

use oauth::RecordFile;
use secrets::Store;

use crate::login_needed::LoginNeeded;

/// A change that would be worth another try.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Awaited {
    change: Change,
    /// Where it is a login.
    pub login: Option<LoginNeeded>,
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
    /// Secrets that are others than those at that time.
    pub(crate) fn secrets(store: Store, was: Option<SystemTime>) -> Self {
        let change = Change::Secrets { store, was };
        let login = None;
        Self { change, login }
    }

    /// Another login than this one.
    pub fn login(file: RecordFile, was: Option<String>, needed: LoginNeeded) -> Self {
        let change = Change::Login { file, was };
        let login = Some(needed);
        Self { change, login }
    }

    /// Whether it has come. Looks at one small file.
    pub(crate) fn has_come(&self) -> bool {
        match &self.change {
            Change::Secrets { store, was } => store.changed_at() != *was,
            Change::Login { file, was } => file.read_id() != *was,
        }
    }
}
