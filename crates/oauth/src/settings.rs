//! What a person may say of how a server is logged in to.

use std::{fmt, sync::Arc};

use futures::future::BoxFuture;
use secrets::Secret;

/// The settings of one server, filled in. All defaults: everything is found out by asking.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Settings {
    /// Of a client that was registered by hand.
    pub client_id: Option<String>,
    /// The secret of that client; none: a public one, or one with a key.
    pub client_secret: Option<Secret>,
    /// The key by which that client shows who it is, in place of a secret (PEM, PKCS #8).
    pub private_key: Option<Secret>,
    /// The name by which the authorization server knows that key.
    pub private_key_id: Option<String>,
    /// What a machine is known by, or an employee: a JWT that somebody else signed.
    pub assertion: Option<Assertion>,
    /// Where an employee's assertion is exchanged for one that the authorization server takes.
    pub identity_provider: Option<IdentityProvider>,
    /// The address of a Client ID Metadata Document that describes us.
    pub client_metadata_url: Option<String>,
    /// In place of those that the server asks for.
    pub scopes: Vec<String>,
    /// The port to which the browser comes back; none: any that is free.
    pub callback_port: Option<u16>,
    /// How the address to which it comes back names this machine.
    pub callback_host: CallbackHost,
    /// The audience of tokens.
    pub resource: Resource,
    /// The one authorization server that is trusted, whatever the server names.
    pub issuer: Option<String>,
    /// How tokens are had.
    pub grant: GrantKind,
    /// An authorization server that does not say that it checks PKCE is taken at its word by the
    /// person: we send the challenge, and go on.
    pub assumes_pkce: bool,
    /// An authorization server that publishes no metadata has its endpoints where revision 2025-03-26
    /// puts them.
    pub assumes_endpoints: bool,
    /// Further parameters of the authorization request.
    pub parameters: Vec<(String, String)>,
}

/// A name of this machine in a redirect. Many authorization servers compare it as a text.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Deserialize)]
pub enum CallbackHost {
    /// `127.0.0.1`.
    #[default]
    #[serde(rename = "127.0.0.1")]
    Address,
    /// `localhost`.
    #[serde(rename = "localhost")]
    Name,
}

impl CallbackHost {
    /// As it stands in the address.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Address => "127.0.0.1",
            Self::Name => "localhost",
        }
    }
}

/// The `resource` of requests (RFC 8707).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Resource {
    /// What the server says of itself, else its address.
    #[default]
    Found,
    /// None is sent: some authorization servers refuse it.
    Off,
    /// This.
    Named(String),
}

/// How tokens are had.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum GrantKind {
    /// A person agrees in a browser.
    #[default]
    AuthorizationCode,
    /// The client's own secret or key is enough: for machines.
    ClientCredentials,
    /// What the machine is known by is enough (workload identity, RFC 7523).
    JwtBearer,
    /// The company's identity provider says who its employee is (cross-app access).
    EnterpriseManaged,
}

/// A company's identity provider, and who we are there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdentityProvider {
    /// Its issuer.
    pub issuer: String,
    /// Of the client to which it gave the ID token.
    pub client_id: String,
    /// The secret of that client, if it has one.
    pub client_secret: Option<Secret>,
}

type Read = dyn Fn() -> BoxFuture<'static, Result<Secret, String>> + Send + Sync;

/// A JWT that somebody else signs anew from time to time: read each time that it is used.
#[derive(Clone)]
pub struct Assertion(Arc<Read>);

impl Assertion {
    /// One that is read so. The error says why it cannot be, and holds no part of it.
    pub fn new(
        read: impl Fn() -> BoxFuture<'static, Result<Secret, String>> + Send + Sync + 'static,
    ) -> Self {
        Self(Arc::new(read))
    }

    pub(crate) async fn read(&self) -> Result<Secret, String> {
        (self.0)().await
    }
}

impl PartialEq for Assertion {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Assertion {}

impl fmt::Debug for Assertion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Assertion")
    }
}
