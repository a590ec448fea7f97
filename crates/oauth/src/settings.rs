//! What a person may say of how a server is logged in to.

use secrets::Secret;

/// The settings of one server, filled in. All defaults: everything is found out by asking.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Settings {
    /// Of a client that was registered by hand.
    pub client_id: Option<String>,
    /// The secret of that client; none: a public one.
    pub client_secret: Option<Secret>,
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
    /// Further parameters of the authorization request.
    pub parameters: Vec<(String, String)>,
}

/// A name of this machine in a redirect. Many authorization servers compare it as a text.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum CallbackHost {
    /// `127.0.0.1`.
    #[default]
    Address,
    /// `localhost`.
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
    /// The client's own secret is enough: for machines.
    ClientCredentials,
}
