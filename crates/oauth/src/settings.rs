//! The login settings of a server in the configuration.

use std::{fmt, sync::Arc};

use futures::future::BoxFuture;
use secrets::Secret;

/// The settings of one server, resolved. With all defaults, everything is discovered.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LoginSettings {
    /// The id of a client that was registered by hand.
    pub client_id: Option<String>,
    /// The secret of that client; none: a public client, or one with a key.
    pub client_secret: Option<Secret>,
    /// The key with which that client authenticates, in place of a secret (PEM, PKCS #8).
    pub private_key: Option<Secret>,
    /// The name of that key at the authorization server.
    pub private_key_id: Option<String>,
    /// The identity of a machine or an employee: a JWT that another party signed.
    pub assertion: Option<Assertion>,
    /// The provider that exchanges an employee's assertion for one that the authorization server
    /// accepts.
    pub identity_provider: Option<IdentityProvider>,
    /// The address of a Client ID Metadata Document that describes us.
    pub client_metadata_url: Option<String>,
    /// The requested scopes, in place of those that the server requires.
    pub scopes: Vec<String>,
    /// The port to which the browser is redirected; none: any free port.
    pub callback_port: Option<u16>,
    /// The name of this machine in the redirect address.
    pub callback_host: CallbackHost,
    /// The audience of tokens.
    pub resource: Resource,
    /// The only authorization server that is trusted, whatever the server names.
    pub issuer: Option<String>,
    /// The way in which tokens are requested.
    pub grant: GrantKind,
    /// Continue with an authorization server that does not say that it checks PKCE. The challenge is
    /// sent anyway.
    pub assumes_pkce: bool,
    /// Assume that an authorization server without metadata has its endpoints at the paths of revision
    /// 2025-03-26.
    pub assumes_endpoints: bool,
    /// Further parameters of the authorization request.
    pub parameters: Vec<(String, String)>,
}

/// The name of this machine in a redirect address. Many authorization servers compare it as text.
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
    /// Returns the host as it appears in the address.
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
    /// The resource that the server's metadata names, else the server's address.
    #[default]
    Found,
    /// No resource is sent: some authorization servers refuse it.
    Off,
    /// This resource.
    Named(String),
}

/// The way in which tokens are requested.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GrantKind {
    /// A person consents in a browser.
    #[default]
    AuthorizationCode,
    /// The client's own secret or key is enough: for machines.
    ClientCredentials,
    /// The machine's identity is enough (workload identity, RFC 7523).
    JwtBearer,
    /// The company's identity provider asserts the employee's identity (cross-app access).
    EnterpriseManaged,
    /// The authorization server exchanges the token of a caller (RFC 8693).
    TokenExchange,
}

/// A company's identity provider, and our client there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdentityProvider {
    /// Its issuer.
    pub issuer: String,
    /// The client to which the provider issued the ID token.
    pub client_id: String,
    /// The secret of that client, if it has one.
    pub client_secret: Option<Secret>,
}

type ReadAssertion = dyn Fn() -> BoxFuture<'static, Result<Secret, String>> + Send + Sync;

/// A JWT that another party signs and replaces from time to time. It is read each time that it is used.
#[derive(Clone)]
pub struct Assertion(Arc<ReadAssertion>);

impl Assertion {
    /// Makes an assertion that `read` reads. The error says why it cannot be read, and holds no part of
    /// it.
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
