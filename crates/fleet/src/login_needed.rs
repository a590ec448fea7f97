//! What a failure says of a login.

/// A person has to log in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoginNeeded {
    /// There was a login, and it has ended.
    pub again: bool,
    /// What the login that there is lacks; empty where all of it is missing.
    pub scopes: Vec<String>,
}
