//! Who logs in, as far as a login needs to know.

use futures::future::BoxFuture;
use reqwest::Url;

use crate::error::LoginError;

/// Who logs in, as far as a login needs to know.
pub trait Person: Send + Sync {
    /// Sends the person to an address, by showing or by opening it.
    fn visit(&self, url: &Url);
    /// Has the person enter a code at an address.
    fn enter(&self, url: &Url, code: &str);
    /// Says that what came is not what is waited for.
    fn reject(&self, why: &LoginError);
    /// The next address that the person pastes; waits for ever where there is nowhere to.
    fn pasted(&self) -> BoxFuture<'_, String>;
}

/// How a person agrees.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// In a browser that comes back to this machine, or whose last address is pasted.
    Browser,
    /// By a code, on another device.
    Device,
}
