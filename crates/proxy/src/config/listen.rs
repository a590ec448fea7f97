//! `[http]`: where we listen, who may come, and how much of everything.

use std::{
    collections::BTreeMap,
    fmt,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    str::FromStr,
    time::Duration,
};

use fleet::Template;

use super::{
    layers::RawHttp,
    meant::{pairs, template},
    mistake::{Fault, shown},
    paths::Folders,
};

/// An address to listen on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Listen {
    pub ip: IpAddr,
    pub port: u16,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Http {
    pub listen: Option<Listen>,
    /// By the name a person gave to whoever holds it.
    pub tokens: Vec<(String, Template)>,
    /// Tokens that lie in files.
    pub token_files: Vec<(String, Template)>,
    /// As a `Host` header has them, in lower case, with a port or without.
    pub allowed_hosts: Vec<String>,
    /// As an `Origin` header has them, in lower case.
    pub allowed_origins: Vec<String>,
    pub tls: Option<Tls>,
    pub sessions: bool,
    pub limits: HttpLimits,
}

/// The files of a certificate chain and its key.
#[derive(Debug, Clone, PartialEq)]
pub struct Tls {
    pub cert: Template,
    pub key: Template,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct HttpLimits {
    pub body_bytes_max: usize,
    pub header_bytes_max: usize,
    pub connections_max: usize,
    pub sessions_max: usize,
    pub requests_max: usize,
    pub session_idle: Duration,
    pub receive_timeout: Duration,
    pub stall_timeout: Duration,
}

impl Listen {
    /// Whether only this machine can reach it.
    pub fn is_loopback(self) -> bool {
        self.ip.is_loopback()
    }
}

impl fmt::Display for Listen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        std::net::SocketAddr::new(self.ip, self.port).fmt(f)
    }
}

impl FromStr for Listen {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        check(text).map_err(|fault| match fault.hint {
            Some(hint) => format!("{}; {hint}", fault.what),
            None => fault.what,
        })?;
        let loopback = IpAddr::V4(Ipv4Addr::LOCALHOST);
        let parsed = match parts(text) {
            Some(("" | "localhost", port)) => Some((loopback, port)),
            Some((host, port)) => ip(host).map(|ip| (ip, port)),
            None => None,
        };
        let (ip, port) = parsed.ok_or("no address")?;
        Ok(Self { ip, port })
    }
}

const LISTEN_HINT: &str = "write `127.0.0.1:7331`, `localhost:7331`, a port alone, or \
                           `0.0.0.0:7331` for every address of this machine";

pub(super) fn check(text: &str) -> Result<(), Fault> {
    let good = match parts(text) {
        Some(("" | "localhost", _)) => true,
        Some((host, _)) => ip(host).is_some(),
        None => false,
    };
    if good {
        return Ok(());
    }
    let what = format!("no address to listen on: `{}`", shown(text));
    Err(Fault::new(what, LISTEN_HINT))
}

/// Host and port; the host is empty where only a port is written.
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

pub(super) fn check_host(text: &str) -> Result<(), Fault> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || "-._:[]".contains(c);
    if text.chars().all(is_part) {
        return Ok(());
    }
    let what = format!("no name of a machine: `{}`", shown(text));
    Err(Fault::new(
        what,
        "write it as in an address, without scheme and path: `tools.example.com`",
    ))
}

pub(super) fn check_origin(text: &str) -> Result<(), Fault> {
    let rest = text
        .strip_prefix("https://")
        .or_else(|| text.strip_prefix("http://"));
    if rest.is_some_and(|rest| !rest.is_empty() && check_host(rest).is_ok()) {
        return Ok(());
    }
    let what = format!("no origin: `{}`", shown(text));
    Err(Fault::new(
        what,
        "write scheme, host and port, without a path: `https://chat.example.com`",
    ))
}

/// What the table means, or the key that does not fit the others.
pub(super) fn http(raw: &RawHttp, folders: &Folders<'_>) -> Result<Http, (&'static str, Fault)> {
    let listen = raw.listen.as_deref().map(str::parse).transpose();
    let lower = |texts: &[String]| texts.iter().map(|text| text.to_lowercase()).collect();
    let http = Http {
        listen: listen.map_err(|why: String| ("listen", Fault::bare(why)))?,
        tokens: pairs(&raw.tokens).map_err(|fault| ("tokens", fault))?,
        token_files: files(&raw.token_files, folders).map_err(|fault| ("token_files", fault))?,
        allowed_hosts: lower(&raw.allowed_hosts),
        allowed_origins: lower(&raw.allowed_origins),
        tls: tls(raw, folders)?,
        sessions: raw.sessions,
        limits: HttpLimits {
            body_bytes_max: raw.max_body_kib << 10,
            header_bytes_max: raw.max_header_kib << 10,
            connections_max: raw.max_connections,
            sessions_max: raw.max_sessions,
            requests_max: raw.max_requests,
            session_idle: Duration::from_secs(raw.session_idle_s),
            receive_timeout: Duration::from_secs(raw.receive_timeout_s),
            stall_timeout: Duration::from_secs(raw.stall_timeout_s),
        },
    };
    match http.listen.map(|listen| http.admits(listen)) {
        Some(Err(why)) => Err(("listen", Fault::new(why, TOKEN_HINT))),
        _ => Ok(http),
    }
}

/// How a token comes into being.
pub const TOKEN_HINT: &str = "add `[http.tokens]` with a line such as `laptop = \"${LAPTOP_TOKEN}\"` \
                              (`openssl rand -hex 32` makes one), or listen on `127.0.0.1`";

impl Http {
    /// Whether this address may be served: one that others can reach needs a token.
    pub fn admits(&self, listen: Listen) -> Result<(), String> {
        if listen.is_loopback() || !self.tokens.is_empty() || !self.token_files.is_empty() {
            return Ok(());
        }
        Err(format!(
            "other machines can reach {listen}, and no token is configured"
        ))
    }
}

fn tls(raw: &RawHttp, folders: &Folders<'_>) -> Result<Option<Tls>, (&'static str, Fault)> {
    let file = |path: &str| template(&folders.folder(path)?);
    match (&raw.tls_cert, &raw.tls_key) {
        (None, None) => Ok(None),
        (Some(cert), Some(key)) => Ok(Some(Tls {
            cert: file(cert).map_err(|fault| ("tls_cert", fault))?,
            key: file(key).map_err(|fault| ("tls_key", fault))?,
        })),
        (Some(_), None) => Err(("tls_cert", alone("tls_key"))),
        (None, Some(_)) => Err(("tls_key", alone("tls_cert"))),
    }
}

fn alone(other: &str) -> Fault {
    Fault::new(
        format!("means nothing without `{other}`"),
        format!("add `{other}`, or leave both out"),
    )
}

fn files(
    written: &BTreeMap<String, String>,
    folders: &Folders<'_>,
) -> Result<Vec<(String, Template)>, Fault> {
    let file = |(name, path): (&String, &String)| {
        let path = template(&folders.folder(path)?)?;
        Ok((name.clone(), path))
    };
    written.iter().map(file).collect()
}

#[cfg(test)]
mod tests {
    use super::{Listen, check_host, check_origin};

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

    #[test]
    fn hosts_and_origins_are_told_from_addresses() {
        assert!(check_host("tools.example.com:8443").is_ok() && check_host("[::1]").is_ok());
        assert!(check_host("https://example.com").is_err());
        assert!(check_origin("https://chat.example.com").is_ok());
        for bad in ["chat.example.com", "https://", "https://a/b", "null"] {
            assert!(check_origin(bad).is_err(), "{bad}");
        }
    }
}
