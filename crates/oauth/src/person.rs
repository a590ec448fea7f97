//! The person who logs in, as an interface to the user.

use futures::future::BoxFuture;
use reqwest::Url;

use crate::error::LoginError;

/// The person who logs in.
pub trait Person: Send + Sync {
    /// Sends the person to an address, by showing or by opening it.
    fn visit(&self, url: &Url);
    /// Asks the person to enter a code at an address.
    fn enter(&self, url: &Url, code: &str);
    /// Reports that a response is not the expected one.
    fn reject(&self, why: &LoginError);
    /// Returns the next address that the person pastes. Waits forever if pasting is not possible.
    fn pasted(&self) -> BoxFuture<'_, String>;
}

/// The way in which a person consents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoginMethod {
    /// In a browser that is redirected to this machine, or whose last address the person pastes.
    Browser,
    /// With a code, on another device.
    Device,
}
