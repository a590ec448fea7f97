//! Systems without Landlock, and processors that the filter does not support.

use super::{Kept, Refused};

fn refuse() -> Refused {
    Refused::Unavailable("only Linux on x86-64 and ARM64 has what it takes".to_owned())
}

/// Checks that [`enter`] can work.
pub fn check() -> Result<(), Refused> {
    Err(refuse())
}

/// Drops the permissions that are not kept.
pub fn enter(_: &Kept) -> Result<(), Refused> {
    Err(refuse())
}
