//! Revisions of the protocol.

use std::{borrow::Cow, fmt};

/// A revision of the protocol, named by a date such as `2025-11-25`; a later revision is greater. A
/// peer may name a revision that we do not know.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Revision(Cow<'static, str>);

impl Revision {
    /// The last revision in which a session begins with `initialize`.
    pub const LAST_WITH_HANDSHAKE: Self = Self::dated("2025-11-25");

    /// The first revision in which each request carries all its metadata, in its `_meta`.
    pub const FIRST_STATELESS: Self = Self::dated("2026-07-28");

    /// The revision of an HTTP request that names none.
    pub const UNNAMED: Self = Self::dated("2025-03-26");

    /// All supported revisions, oldest first.
    pub const KNOWN: [Self; 5] = [
        Self::dated("2024-11-05"),
        Self::UNNAMED,
        Self::dated("2025-06-18"),
        Self::LAST_WITH_HANDSHAKE,
        Self::FIRST_STATELESS,
    ];

    const fn dated(date: &'static str) -> Self {
        Self(Cow::Borrowed(date))
    }

    /// Returns the revision with this name, which may be unknown.
    pub fn named(name: impl Into<String>) -> Self {
        Self(Cow::Owned(name.into()))
    }

    /// Returns the name, as written in messages and headers.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns true if we support this revision.
    pub fn is_known(&self) -> bool {
        Self::KNOWN.contains(self)
    }

    /// Returns true if there is no handshake, and each request carries all its metadata. Revisions later
    /// than those we know are assumed to be stateless.
    pub fn is_stateless(&self) -> bool {
        *self >= Self::FIRST_STATELESS
    }
}

/// The latest revision that can be requested from every server, old or new.
impl Default for Revision {
    fn default() -> Self {
        Self::LAST_WITH_HANDSHAKE
    }
}

impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::Revision;

    #[test]
    fn a_later_revision_than_we_know_is_stateless_and_not_served() {
        let later = Revision::named("2031-01-01");
        assert!(later.is_stateless() && !later.is_known());
        assert!(Revision::KNOWN.is_sorted());
        assert!(!Revision::LAST_WITH_HANDSHAKE.is_stateless());
        assert_eq!(Revision::named("2026-07-28"), Revision::FIRST_STATELESS);
    }
}
