//! The login that a failure calls for.

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
