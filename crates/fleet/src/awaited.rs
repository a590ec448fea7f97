//! What a server that failed waits for: something that a person changes elsewhere, and that ends its
//! rest at once.

use std::time::SystemTime;

use oauth::RecordFile;
use secrets::Store;

/// A change that would be worth another try.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Awaited(Change);

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
        Self(Change::Secrets { store, was })
    }

    /// Another login than this one.
    pub(crate) fn login(file: RecordFile, was: Option<String>) -> Self {
        Self(Change::Login { file, was })
    }

    /// Whether it has come. Looks at one small file.
    pub(crate) fn has_come(&self) -> bool {
        match &self.0 {
            Change::Secrets { store, was } => store.changed_at() != *was,
            Change::Login { file, was } => file.read_id() != *was,
        }
    }
}
