//! The identity of a client that sent a request.

use std::{net::IpAddr, sync::Arc};

use gateway::{Connection, Gateway};
use http_core::{PlaceOwner, get_once, is_address};
use hyper::{
    HeaderMap,
    header::HOST,
    http::{request::Parts, uri::Authority},
};
use tool::HttpCaller;

use super::{gate::Gate, guarding::Admitted};

/// The client that sent a request, as far as the gate can identify it.
#[derive(Debug, Clone)]
pub(super) struct ClientIdentity {
    /// The connection of a session that begins with the request.
    pub(super) connection: Connection,
    pub(super) address: IpAddr,
}

impl ClientIdentity {
    /// Returns the owner of its places.
    pub(super) fn who(&self) -> PlaceOwner {
        let token = self.connection.token.clone().map(PlaceOwner::Token);
        token.unwrap_or_else(|| PlaceOwner::at(self.address))
    }
}

/// The headers that a proxy in front of us adds to forwarded requests.
const PASSED_ON: [&str; 4] = ["forwarded", "via", "x-forwarded-for", "x-real-ip"];

/// Returns true if a request comes from a program on this machine, as far as can be detected: over
/// loopback, to a loopback name, and without a header that says that it was forwarded. A browser
/// that such a program opens can reach us.
pub(super) fn is_here(from: IpAddr, headers: &HeaderMap) -> bool {
    let host = headers.get(HOST).and_then(|it| it.to_str().ok());
    let host = host.and_then(|it| it.parse::<Authority>().ok());
    from.to_canonical().is_loopback()
        && host.is_some_and(|host| is_address(host.host(), from))
        && !PASSED_ON.iter().any(|name| headers.contains_key(*name))
}

/// Returns what servers may get of a request: the subject of its token, and the headers that the
/// configuration names. Returns `None` if no server differs between callers.
pub(super) fn identify(
    gateway: &Gateway,
    gate: &Gate,
    head: &Parts,
    admitted: Option<&Admitted>,
) -> Option<Arc<HttpCaller>> {
    let wanted = gateway.servers.callers()?.values()?;
    let value = |name: &String| {
        let header = name.strip_prefix(HttpCaller::PREFIX)?;
        let value = get_once(&head.headers, header).ok()??;
        Some((name.clone(), value.to_owned()))
    };
    let of_headers = wanted.iter().filter(|it| *it != HttpCaller::SUBJECT);
    let subject = admitted.map(|it| (HttpCaller::SUBJECT.to_owned(), it.subject.clone()));
    let caller = Arc::new(HttpCaller {
        name: admitted.map_or_else(|| "".into(), |it| Arc::clone(&it.caller)),
        values: of_headers.filter_map(value).chain(subject).collect(),
        origin: gate.origin(head),
    });
    gateway.catalog.meet_caller(&caller);
    Some(caller)
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
