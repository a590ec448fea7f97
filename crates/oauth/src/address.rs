//! Checks of the addresses that remote servers name, before a request is sent to them.
//!
//! A server names its authorization server, and the authorization server names its endpoints. If we
//! sent requests to every address that they name, they could make us send requests to routers, other
//! machines on the network and metadata services.

use std::{
    io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
};

use http_core::is_loopback;
use reqwest::{
    Url,
    dns::{Addrs, Name, Resolve, Resolving},
};
use tokio::net::lookup_host;

use crate::error::LoginError;

/// Networks, from the public one to this machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Network {
    Public,
    Private,
    Loopback,
}

/// The addresses that one server may refer us to: public addresses, and addresses in the server's own
/// network.
#[derive(Debug, Clone)]
pub(crate) struct Reach {
    nearest: Network,
    /// The server's own address. If it is reached by plain HTTP, so may its documents be.
    origin: reqwest::Url,
}

impl Reach {
    /// Returns the addresses that the server at `server` may name. Resolves its host.
    pub(crate) async fn of(server: &Url) -> Self {
        let host = server.host_str().unwrap_or_default();
        let networks: Vec<Network> = match literal(host) {
            Some(ip) => network_of(ip).into_iter().collect(),
            None => match lookup_host((host, 0)).await {
                Ok(all) => all.filter_map(|it| network_of(it.ip())).collect(),
                Err(_) => Vec::new(),
            },
        };
        Self {
            // A name that resolves to several networks counts as the most public of them.
            nearest: networks.into_iter().min().unwrap_or(Network::Public),
            origin: server.clone(),
        }
    }

    /// Checks an address before a request is sent to it: its scheme, and its host if that is an IP
    /// address. A host name is checked when it is resolved.
    pub(crate) fn check(&self, url: &Url) -> Result<(), LoginError> {
        let host = url.host_str().unwrap_or_default();
        let refuse = |why| {
            let url = shown(url);
            Err(LoginError::Address { url, why })
        };
        if !url.username().is_empty() || url.password().is_some() {
            return refuse("it contains a user name or password");
        }
        match url.scheme() {
            "https" => {}
            "http" if is_loopback(host) || url.origin() == self.origin.origin() => {}
            "http" => return refuse("it is not https"),
            _ => return refuse("it is neither https nor http"),
        }
        match literal(host) {
            Some(ip) if !self.allows(ip) => refuse("it is in another network than the server"),
            None if host == "localhost" && self.nearest < Network::Loopback => {
                refuse("it is on this machine, and the server is not")
            }
            _ => Ok(()),
        }
    }

    fn allows(&self, ip: IpAddr) -> bool {
        network_of(ip).is_some_and(|network| network <= self.nearest)
    }
}

/// Returns an address without the parts that may hold secrets.
pub(crate) fn shown(url: &Url) -> String {
    url.origin().ascii_serialization() + url.path()
}

/// Returns an address with another path, and without query and fragment.
pub(crate) fn with_path(url: &Url, path: &str) -> Url {
    let mut url = url.clone();
    url.set_path(path);
    url.set_query(None);
    url.set_fragment(None);
    url
}

fn literal(host: &str) -> Option<IpAddr> {
    let ip: IpAddr = host.trim_matches(['[', ']']).parse().ok()?;
    Some(ip.to_canonical())
}

/// Returns the network of an address, or `None` if no request may be sent to it at all: link-local
/// addresses (such as the metadata services of clouds), multicast and reserved ones.
fn network_of(ip: IpAddr) -> Option<Network> {
    match ip.to_canonical() {
        IpAddr::V4(ip) => network_of_v4(ip),
        IpAddr::V6(ip) => network_of_v6(ip),
    }
}

fn network_of_v4(ip: Ipv4Addr) -> Option<Network> {
    let [a, b, c, _] = ip.octets();
    match () {
        () if ip.is_loopback() => Some(Network::Loopback),
        // 100.64.0.0/10 is shared by the customers of a provider, and by overlay networks.
        () if ip.is_private() || (a == 100 && b & 0xc0 == 64) => Some(Network::Private),
        () if ip.is_link_local() || ip.is_multicast() || ip.is_broadcast() => None,
        () if ip.is_documentation() || a == 0 || a >= 240 => None,
        () if (a, b, c) == (192, 0, 0) || (a == 198 && b & 0xfe == 18) => None,
        () => Some(Network::Public),
    }
}

fn network_of_v6(ip: Ipv6Addr) -> Option<Network> {
    let embedded = |high: u16, low: u16| {
        let [first, second] = high.to_be_bytes();
        let [third, fourth] = low.to_be_bytes();
        network_of_v4(Ipv4Addr::new(first, second, third, fourth))
    };
    if ip.is_loopback() {
        return Some(Network::Loopback);
    }
    if ip.is_unspecified() || ip.is_multicast() || ip.is_unicast_link_local() {
        return None;
    }
    if ip.is_unique_local() {
        return Some(Network::Private);
    }
    match ip.segments() {
        // An IPv4 address that is embedded in one of these is the one that is reached in the end.
        [0x64, 0xff9b, .., high, low] | [0x2002, high, low, ..] => embedded(high, low),
        [0, 0, 0, 0, ..] | [0x2001, 0xdb8, ..] => None,
        [first, ..] if first & 0xffc0 == 0xfec0 => None,
        _ => Some(Network::Public),
    }
}

/// Resolves host names, and leaves out addresses to which no request may be sent.
impl Resolve for Reach {
    fn resolve(&self, name: Name) -> Resolving {
        let reach = self.clone();
        Box::pin(async move {
            let all = lookup_host((name.as_str(), 0)).await?;
            let allowed: Vec<SocketAddr> = all.filter(|it| reach.allows(it.ip())).collect();
            if allowed.is_empty() {
                let why = "its name resolves to another network than that of the server";
                return Err(io::Error::new(io::ErrorKind::PermissionDenied, why).into());
            }
            Ok(Box::new(allowed.into_iter()) as Addrs)
        })
    }
}

#[cfg(test)]
mod tests {
    use reqwest::Url;

    use super::Reach;

    #[tokio::test]
    async fn a_server_may_name_its_own_network_and_the_public_one() {
        let check = async |server: &str, named: &str, is_asked: bool| {
            let reach = Reach::of(&Url::parse(server).unwrap()).await;
            let checked = reach.check(&Url::parse(named).unwrap());
            assert_eq!(
                checked.is_ok(),
                is_asked,
                "{server} names {named}: {checked:?}"
            );
        };
        let public = "https://1.1.1.1/mcp";
        for good in ["https://8.8.8.8/token", "https://[2606:4700::1111]/token"] {
            check(public, good, true).await;
        }
        for bad in [
            "http://8.8.8.8/token",
            "https://127.0.0.1/token",
            "https://localhost/token",
            "https://10.0.0.1/token",
            "https://192.168.1.1/",
            "https://100.100.100.200/latest",
            "https://169.254.169.254/latest/meta-data",
            "https://[::1]/",
            "https://[::ffff:127.0.0.1]/",
            "https://[64:ff9b::a9fe:a9fe]/",
            "https://[2002:7f00:1::]/",
            "https://[fd00::1]/",
            "https://[fe80::1]/",
            "https://0.0.0.0/",
            "https://2130706433/",
            "https://0x7f.1/",
            "https://me:pass@8.8.8.8/",
            "ftp://8.8.8.8/",
            "file:///etc/passwd",
        ] {
            check(public, bad, false).await;
        }
        let private = "https://10.1.2.3/mcp";
        check(private, "https://192.168.0.1/token", true).await;
        check(private, "https://127.0.0.1/token", false).await;
        check(private, "https://169.254.169.254/", false).await;
        let here = "http://127.0.0.1:9/mcp";
        check(here, "http://localhost:8/token", true).await;
        check(here, "https://10.0.0.1/token", true).await;
        check(here, "http://10.0.0.1/token", false).await;
        check(here, "http://169.254.169.254/", false).await;
    }
}
