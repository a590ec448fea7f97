//! Who calls.

use std::sync::Arc;

/// The caller of a tool, to whom its results belong.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Caller {
    /// A person at the command line, who may read everything here anyway.
    #[default]
    Person,
    /// A client, by the name that tells it from others and that it has again after a restart.
    Client(Arc<str>),
}

impl Caller {
    /// The name under which its results are kept; none for a person.
    pub(crate) fn owner(&self) -> Option<&str> {
        match self {
            Self::Person => None,
            Self::Client(name) => Some(name),
        }
    }

    /// Whether it may read what is kept for this owner.
    pub(crate) fn may_read(&self, owner: Option<&str>) -> bool {
        match self {
            Self::Person => true,
            Self::Client(name) => owner == Some(name),
        }
    }
}
