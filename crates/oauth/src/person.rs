//! The person who logs in, as an interface to the user.

use futures::{FutureExt as _, future::BoxFuture};
use parking_lot::Mutex;
use reqwest::Url;
use tokio::sync::{mpsc, oneshot};

use crate::{error::LoginError, listener::Redirect};

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
#[derive(Debug)]
pub enum LoginMethod {
    /// In a browser that is redirected to this machine, or whose last address the person pastes.
    Browser,
    /// In a browser that is redirected to another server of ours.
    Hosted(HostedRedirects),
    /// With a code, on another device.
    Device,
}

/// A server of ours to which browsers are redirected.
#[derive(Debug)]
pub struct HostedRedirects {
    /// The address to which the authorization server redirects.
    pub redirect_uri: String,
    /// The browsers that came there for this login.
    pub arrivals: mpsc::Receiver<Redirect>,
}

/// A person to whom another program shows the address.
#[derive(Debug)]
pub struct AddressReceiver(Mutex<Option<oneshot::Sender<Url>>>);

impl AddressReceiver {
    /// Returns the person, and the receiver of the first address.
    pub fn new() -> (Self, oneshot::Receiver<Url>) {
        let (sender, address) = oneshot::channel();
        (Self(Mutex::new(Some(sender))), address)
    }
}

impl Person for AddressReceiver {
    fn visit(&self, url: &Url) {
        if let Some(sender) = self.0.lock().take() {
            // The program that shows it may be gone.
            let _ = sender.send(url.clone());
        }
    }

    fn enter(&self, _: &Url, _: &str) {}

    fn reject(&self, why: &LoginError) {
        tracing::debug!(%why, "not the login that is waited for");
    }

    fn pasted(&self) -> BoxFuture<'_, String> {
        std::future::pending().boxed()
    }
}
