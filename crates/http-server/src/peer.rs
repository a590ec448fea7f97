//! The identity of a client that sent a request.

use std::{
    net::{IpAddr, SocketAddr},
    sync::Arc,
};

use hyper::{HeaderMap, header::HOST, http::uri::Authority};

use tool::HttpCaller;

use super::places::{HeldPlace, PlaceOwner};

/// The client that sent a request, as far as the gate can identify it.
#[derive(Debug, Clone)]
pub(super) struct ClientIdentity {
    /// The name of the token that admitted it; none if no token is required.
    pub(super) token: Option<Arc<str>>,
    /// The name of the token in the audit log: its name in the configuration, or its subject.
    pub(super) caller: Option<Arc<str>>,
    /// The rules that apply to its token; none: those of the name that the client announces.
    pub(super) rule: Option<Arc<str>>,
    /// The caller with the values that servers may get, if servers differ between callers.
    pub(super) http_caller: Option<Arc<HttpCaller>>,
    /// The profile that the address names.
    pub(super) profile: Option<Arc<str>>,
    pub(super) address: IpAddr,
    /// True if its program runs on this machine, as far as can be detected: it connected over loopback,
    /// and no header says that the request was forwarded.
    pub(super) is_here: bool,
}

impl ClientIdentity {
    /// Returns the owner of its places.
    pub(super) fn who(&self) -> PlaceOwner {
        let token = self.token.clone().map(PlaceOwner::Token);
        token.unwrap_or_else(|| PlaceOwner::at(self.address))
    }
}

/// The connection on which a request came, and its place.
#[derive(Debug, Clone)]
pub(super) struct Arrival {
    pub(super) local: SocketAddr,
    pub(super) from: IpAddr,
    pub(super) place: Arc<HeldPlace>,
}

/// The headers that a proxy in front of us adds to forwarded requests.
const PASSED_ON: [&str; 4] = ["forwarded", "via", "x-forwarded-for", "x-real-ip"];

/// Returns true if a request comes from a program on this machine, as far as can be detected: over
/// loopback, to a loopback name, and without a header that says that it was forwarded. A browser
/// that such a program opens can reach us.
pub(super) fn is_here(from: IpAddr, headers: &HeaderMap) -> bool {
    let host = headers.get(HOST).and_then(|it| it.to_str().ok());
    let host = host.and_then(|it| it.parse::<Authority>().ok());
    let is_loopback = |name: &str| {
        let address = name.trim_matches(['[', ']']).parse::<IpAddr>();
        name == "localhost" || address.is_ok_and(|it| it.to_canonical().is_loopback())
    };
    from.to_canonical().is_loopback()
        && host.is_some_and(|host| is_loopback(host.host()))
        && !PASSED_ON.iter().any(|name| headers.contains_key(*name))
}

#[cfg(test)]
mod tests {
    use hyper::header::{HeaderMap, HeaderName, HeaderValue};

    use super::is_here;

    #[test]
    fn a_request_that_was_passed_on_is_of_another_machine() {
        let check = |from: &str, headers: &[(&'static str, &'static str)], expected| {
            let pair = |(name, value): &(&'static str, &'static str)| {
                (
                    HeaderName::from_static(name),
                    HeaderValue::from_static(value),
                )
            };
            let map: HeaderMap = headers.iter().map(pair).collect();
            assert_eq!(
                is_here(from.parse().unwrap(), &map),
                expected,
                "{from} {headers:?}"
            );
        };
        let host = ("host", "127.0.0.1:7331");
        check("127.0.0.1", &[host], true);
        check("::1", &[("host", "[::1]:7331")], true);
        check("::ffff:127.0.0.1", &[("host", "localhost")], true);
        check("192.168.0.2", &[host], false);
        check("127.0.0.1", &[("host", "tools.example.com")], false);
        check("127.0.0.1", &[], false);
        check("127.0.0.1", &[host, ("x-forwarded-for", "10.0.0.1")], false);
    }
}
