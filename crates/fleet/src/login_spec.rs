//! What the configuration says of a login.

use oauth::Settings;

use crate::Template;

/// What the configuration says of a login; texts are filled in when the server is connected.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LoginSpec {
    /// Of a client that was registered by hand.
    pub client_id: Option<Template>,
    /// Its secret.
    pub client_secret: Option<Template>,
    /// Everything else.
    pub settings: Settings,
}

impl LoginSpec {
    pub(crate) fn templates(&self) -> impl Iterator<Item = &Template> {
        self.client_id.iter().chain(&self.client_secret)
    }
}
