//! Systems without Landlock, and processors that the filter does not know.

use super::{Kept, Refused};

fn refuse() -> Refused {
    Refused::Unavailable("only Linux on x86-64 and ARM64 has what it takes".to_owned())
}

/// Tells whether [`enter`] can work.
pub fn check() -> Result<(), Refused> {
    Err(refuse())
}

/// Gives up what is not kept.
pub fn enter(_: &Kept) -> Result<(), Refused> {
    Err(refuse())
}
