//! The configuration of a login.

use oauth::{IdentityProvider, LoginSettings};
use secrets::Secret;

use crate::Template;

/// The configuration of a login; templates are filled in when the server is connected.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LoginSpec {
    /// The id of a client that was registered by hand.
    pub client_id: Option<Template>,
    /// The client's secret.
    pub client_secret: Option<Template>,
    /// The key with which the client authenticates instead.
    pub private_key: Option<Template>,
    /// The assertion that identifies a machine or an employee; filled in each time that it is used.
    pub assertion: Option<Template>,
    /// The identity provider of an employee.
    pub identity_provider: Option<IdentityProviderSpec>,
    /// True if each caller over HTTP has a login of its own.
    pub is_of_callers: bool,
    /// Everything else.
    pub settings: LoginSettings,
}

/// The configuration of a company's identity provider.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdentityProviderSpec {
    /// Its issuer.
    pub issuer: String,
    /// The client that is registered there.
    pub client_id: Template,
    /// The client's secret.
    pub client_secret: Option<Template>,
}

impl LoginSpec {
    pub(crate) fn templates(&self) -> impl Iterator<Item = &Template> {
        let provider = self.identity_provider.iter();
        let of_provider = provider.flat_map(|it| [Some(&it.client_id), it.client_secret.as_ref()]);
        [
            &self.client_id,
            &self.client_secret,
            &self.private_key,
            &self.assertion,
        ]
        .into_iter()
        .flatten()
        .chain(of_provider.flatten())
    }

    pub(crate) fn fill<E>(
        &self,
        fill: impl Fn(&Template) -> Result<String, E>,
    ) -> Result<LoginSettings, E> {
        let filled = |template: &Option<Template>| template.as_ref().map(&fill).transpose();
        let secret = |template: &Option<Template>| Ok(filled(template)?.map(Secret::new));
        let provider = self.identity_provider.as_ref().map(|it| {
            Ok(IdentityProvider {
                issuer: it.issuer.clone(),
                client_id: fill(&it.client_id)?,
                client_secret: secret(&it.client_secret)?,
            })
        });
        Ok(LoginSettings {
            client_id: filled(&self.client_id)?,
            client_secret: secret(&self.client_secret)?,
            private_key: secret(&self.private_key)?,
            identity_provider: provider.transpose()?,
            ..self.settings.clone()
        })
    }
}
