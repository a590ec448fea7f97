//! The settings of our HTTP endpoint.

use std::{
    fmt,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    str::FromStr,
    time::Duration,
};

use fleet::Template;
use http_core::ConnectionLimits;
use url::Url;

/// An address to listen on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Listen {
    /// The address.
    pub ip: IpAddr,
    /// The port; 0 takes any that is free.
    pub port: u16,
}

/// The configuration of HTTP; secrets are not read yet.
#[derive(Debug, Clone, PartialEq)]
pub struct HttpSettings {
    /// The address to listen on; none if the configuration does not set it.
    pub listen: Option<Listen>,
    /// Tokens, by the name that the configuration gives to their holder.
    pub tokens: Vec<(String, Template)>,
    /// Tokens that are stored in files.
    pub token_files: Vec<(String, Template)>,
    /// The authorization server whose tokens are accepted as well.
    pub oauth: Option<Guard>,
    /// The address at which browsers reach us, if it differs from that of requests.
    pub public_url: Option<String>,
    /// Values of the `Host` header, in lower case, with or without a port.
    pub allowed_hosts: Vec<String>,
    /// Values of the `Origin` header, in lower case.
    pub allowed_origins: Vec<String>,
    /// None: HTTP without TLS.
    pub tls: Option<Tls>,
    /// The name and the key of a cluster whose nodes take up the sessions of one another.
    pub cluster: Option<(String, Template)>,
    /// True if `/metrics` is served.
    pub metrics: bool,
    /// The limits of one client.
    pub limits: Limits,
}

impl HttpSettings {
    /// Returns the address at which browsers reach us, without a path: the configured one, or that of
    /// the audience of tokens.
    pub(crate) fn public_origin(&self) -> Option<String> {
        let audience = self.oauth.as_ref().map(|guard| &guard.audience);
        let url = Url::parse(self.public_url.as_ref().or(audience)?).ok()?;
        Some(url.origin().ascii_serialization())
    }

    /// Returns the unique name of a caller that a person names by its token or its subject: `token NAME` or
    /// `oauth SUBJECT`. Returns `None` if no credential of this name is accepted.
    pub fn find_caller(&self, name: &str) -> Option<String> {
        let tokens = self.tokens.iter().chain(&self.token_files);
        let tokens = tokens.map(|(token, _)| token.as_str());
        find_caller(name, tokens, self.oauth.is_some())
    }

    /// Checks that this address may be served: one that other machines can reach needs a token.
    pub fn admits(&self, listen: Listen) -> Result<(), String> {
        let has_tokens = !self.tokens.is_empty() || !self.token_files.is_empty();
        if listen.is_loopback() || has_tokens || self.oauth.is_some() {
            return Ok(());
        }
        Err(format!(
            "other machines can reach {listen}, and no token is configured"
        ))
    }

    /// Returns every template that is filled in before we listen.
    pub(crate) fn templates(&self) -> impl Iterator<Item = &Template> {
        let named = self.tokens.iter().chain(&self.token_files);
        let tls = self.tls.iter().flat_map(|tls| [&tls.cert, &tls.key]);
        let asking = self.oauth.iter().flat_map(|guard| &guard.introspection);
        let asking = asking.flat_map(|it| [&it.client_id, &it.client_secret]);
        let cluster = self.cluster.iter().map(|(_, key)| key);
        let named = named.map(|(_, template)| template);
        named.chain(tls).chain(asking).chain(cluster)
    }
}

/// The longest subject of a caller, in characters (`OpenID` Connect Core, section 2).
pub const SUBJECT_CHARS_MAX: usize = 255;

fn find_caller<'t>(
    name: &str,
    mut tokens: impl Iterator<Item = &'t str>,
    takes_subjects: bool,
) -> Option<String> {
    let is_subject = |subject: &str| takes_subjects && is_subject(subject);
    let is_known = if let Some(token) = name.strip_prefix("token ") {
        tokens.any(|known| known == token)
    } else if let Some(subject) = name.strip_prefix("oauth ") {
        is_subject(subject)
    } else if tokens.any(|known| known == name) {
        return Some(format!("token {name}"));
    } else {
        return is_subject(name).then(|| format!("oauth {name}"));
    };
    is_known.then(|| name.to_owned())
}

/// Returns true for a text that a person may name as the subject of a token.
fn is_subject(text: &str) -> bool {
    !text.is_empty()
        && text.chars().count() <= SUBJECT_CHARS_MAX
        && !text.chars().any(printable::is_hidden)
}

/// An authorization server whose tokens let clients in.
#[derive(Debug, Clone, PartialEq)]
pub struct Guard {
    /// The authorization server.
    pub issuer: String,
    /// Our own public URL: tokens for other audiences are rejected.
    pub audience: String,
    /// A token needs one of these; the first that it has is the name of the client's rules. If empty,
    /// every token of the issuer is accepted.
    pub scopes: Vec<String>,
    /// The client credentials for introspection of tokens that are not JWTs.
    pub introspection: Option<Introspection>,
}

/// A client of an authorization server, and its secret.
#[derive(Debug, Clone, PartialEq)]
pub struct Introspection {
    /// Its id at that server.
    pub client_id: Template,
    /// Its secret.
    pub client_secret: Template,
}

/// The files of a certificate chain and its key.
#[derive(Debug, Clone, PartialEq)]
pub struct Tls {
    /// The chain, in PEM.
    pub cert: Template,
    /// The key, in PEM.
    pub key: Template,
}

/// The limits of clients; one client gets half of the places at most. The configuration sets the size of a
/// message and the number of sessions.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Limits {
    /// The largest message.
    pub body_bytes_max: usize,
    /// The largest head of a request.
    pub header_bytes_max: usize,
    /// The most open connections.
    pub connections_max: usize,
    /// The most open sessions.
    pub sessions_max: usize,
    /// The most concurrent requests.
    pub requests_max: usize,
    /// The time after which an unused session ends.
    pub session_idle: Duration,
    /// The time limit for receiving a head or a body.
    pub receive_timeout: Duration,
    /// The time after which a client that does not read its response is disconnected.
    pub stall_timeout: Duration,
}

/// The time that a response may take after its client has closed its side of the connection.
const HALF_CLOSED_TIMEOUT: Duration = Duration::from_secs(5);

/// Requests in flight may take this long to end when we stop.
pub(crate) const STOP_WAIT: Duration = Duration::from_millis(800);

impl Limits {
    pub(crate) fn of_connections(self) -> ConnectionLimits {
        ConnectionLimits {
            connections_max: self.connections_max,
            head_bytes_max: self.header_bytes_max,
            receive_timeout: self.receive_timeout,
            stall_timeout: self.stall_timeout,
            half_closed_timeout: HALF_CLOSED_TIMEOUT,
            end_timeout: STOP_WAIT,
        }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            body_bytes_max: 4 << 20,
            header_bytes_max: 32 << 10,
            connections_max: 512,
            sessions_max: 256,
            requests_max: 256,
            session_idle: Duration::from_mins(30),
            receive_timeout: Duration::from_secs(30),
            stall_timeout: Duration::from_secs(30),
        }
    }
}

impl Listen {
    /// Returns true if only this machine can reach it.
    pub fn is_loopback(self) -> bool {
        self.ip.is_loopback()
    }
}

impl fmt::Display for Listen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        std::net::SocketAddr::new(self.ip, self.port).fmt(f)
    }
}

/// A text that is not an address to listen on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoAddress(pub String);

impl NoAddress {
    /// The ways to write an address.
    pub const HINT: &str = "write `127.0.0.1:7331`, `localhost:7331`, a port alone, or \
                            `0.0.0.0:7331` for every address of this machine";
}

impl fmt::Display for NoAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "not an address to listen on: `{}`; {}",
            self.0.escape_debug(),
            Self::HINT
        )
    }
}

impl std::error::Error for NoAddress {}

impl FromStr for Listen {
    type Err = NoAddress;

    fn from_str(text: &str) -> Result<Self, NoAddress> {
        let loopback = IpAddr::V4(Ipv4Addr::LOCALHOST);
        let parsed = match parts(text) {
            Some(("" | "localhost", port)) => Some((loopback, port)),
            Some((host, port)) => ip(host).map(|ip| (ip, port)),
            None => None,
        };
        let (ip, port) = parsed.ok_or_else(|| NoAddress(text.to_owned()))?;
        Ok(Self { ip, port })
    }
}

/// Splits host and port; the host is empty if there is only a port.
fn parts(text: &str) -> Option<(&str, u16)> {
    let (host, port) = text.rsplit_once(':').unwrap_or(("", text));
    Some((host, port.parse().ok()?))
}

fn ip(host: &str) -> Option<IpAddr> {
    match host.strip_prefix('[') {
        Some(rest) => Some(IpAddr::V6(
            rest.strip_suffix(']')?.parse::<Ipv6Addr>().ok()?,
        )),
        None => Some(IpAddr::V4(host.parse::<Ipv4Addr>().ok()?)),
    }
}

/// The next step if a token is missing.
pub const TOKEN_HINT: &str = "add `[http.tokens]` with a line such as `laptop = \"${LAPTOP_TOKEN}\"` \
                              (`openssl rand -hex 32` makes one), or listen on `127.0.0.1`";

#[cfg(test)]
mod tests {
    use super::{Listen, SUBJECT_CHARS_MAX, find_caller};

    #[test]
    fn a_caller_is_a_configured_token_or_a_subject() {
        let check = |takes_subjects: bool, name: &str, expected: Option<&str>| {
            let found = find_caller(name, ["ann"].into_iter(), takes_subjects);
            assert_eq!(found.as_deref(), expected, "{name:?}");
        };
        check(false, "ann", Some("token ann"));
        check(false, "token ann", Some("token ann"));
        for none in ["bob", "token bob", "token ", "oauth ann", "token ann\n", ""] {
            check(false, none, None);
        }
        check(true, "ann", Some("token ann"));
        check(true, "bob", Some("oauth bob"));
        check(true, "oauth ann", Some("oauth ann"));
        let longest = "s".repeat(SUBJECT_CHARS_MAX);
        check(true, &longest, Some(&format!("oauth {longest}")));
        let too_long = format!("{longest}s");
        for none in [
            "",
            "oauth ",
            "token bob",
            "a\nb",
            "oauth a\rb",
            "a\u{2028}b",
            &too_long,
        ] {
            check(true, none, None);
        }
    }

    #[track_caller]
    fn check(text: &str, expected: Option<&str>) {
        let listen = text.parse::<Listen>().ok();
        assert_eq!(listen.map(|it| it.to_string()).as_deref(), expected);
    }

    #[test]
    fn an_address_may_be_a_port_alone() {
        check("7331", Some("127.0.0.1:7331"));
        check("localhost:0", Some("127.0.0.1:0"));
        check("0.0.0.0:80", Some("0.0.0.0:80"));
        check("[::1]:7331", Some("[::1]:7331"));
        check("::1:7331", None);
        check("example.com:7331", None);
        check("127.0.0.1", None);
        check("127.0.0.1:99999", None);
    }
}
