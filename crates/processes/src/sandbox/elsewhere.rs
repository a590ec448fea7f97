//! The fallback for systems without Landlock, and for processors that the filter does not support.

use super::{ConfineError, Permissions};

fn refuse() -> ConfineError {
    ConfineError::Unavailable("only Linux on x86-64 and ARM64 can".to_owned())
}

/// Checks that [`enter`] can work.
pub fn check() -> Result<(), ConfineError> {
    Err(refuse())
}

/// Drops the permissions that are not kept.
pub fn enter(_: &Permissions) -> Result<(), ConfineError> {
    Err(refuse())
}
