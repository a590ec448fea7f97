//! The conditions under which a request is accepted, as far as its names tell: `Host`, `Origin`,
//! `Sec-Fetch-Site`, and the type of its body. Each server decides which of them apply.
//!
//! A page of another site can make a browser send requests to this machine, and with a host name that
//! resolves to it (DNS rebinding) even read the responses. So a request must address us by one of our
//! names, and a page must have an allowed origin.

use std::{
    net::{IpAddr, SocketAddr},
    sync::Arc,
};

use hyper::{
    HeaderMap,
    header::{AUTHORIZATION, AsHeaderName, CONTENT_TYPE, HOST, HeaderName, ORIGIN},
    http::{request::Parts, uri::Authority},
};
use printable::first_chars;

const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// The longest untrusted name that an error repeats, in characters.
const NAME_CHARS_MAX: usize = 100;

/// The names of a server, and the pages that may call it.
#[derive(Debug, Clone)]
pub struct Guard {
    /// The names by which requests may address it.
    pub names: OwnNames,
    /// `http://` or `https://`.
    pub scheme: &'static str,
    /// The other origins whose pages may call it, in lower case.
    pub origins: Vec<String>,
    /// The origin under which browsers reach it, if that is another one.
    pub public_origin: Option<Arc<str>>,
}

/// The names by which requests may address a server.
#[derive(Debug, Clone)]
pub enum OwnNames {
    /// One `HOST:PORT` only, in lower case.
    Only(String),
    /// Its address, the loopback names of that, and these names in lower case, with or without a port.
    AddressAnd(Vec<String>),
}

/// The reason why a request is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// It addresses this host, which is not ours.
    Host(String),
    /// It comes from a page of this origin, which may not call us.
    Origin(String),
    /// It must come from our own page, and the browser does not say so.
    Site,
    /// Its body is not JSON.
    MediaType,
}

impl Guard {
    /// Makes the guard of a server that has one name, and accepts requests of its own pages only.
    pub fn only(authority: String) -> Self {
        Self {
            names: OwnNames::Only(authority),
            scheme: "http://",
            origins: Vec::new(),
            public_origin: None,
        }
    }

    /// Checks `Host`, and `Origin` if there is one. `local` is the address at which the request came in.
    pub fn check_names(&self, head: &Parts, local: SocketAddr) -> Result<(), Refusal> {
        let host = self.check_host(head, local)?;
        let refuse = |origin: &str| {
            Err(Refusal::Origin(
                first_chars(origin, NAME_CHARS_MAX).to_owned(),
            ))
        };
        match get_once(&head.headers, ORIGIN) {
            Ok(None) => Ok(()),
            Err(why) => refuse(why),
            Ok(Some(origin)) => {
                let origin = origin.to_lowercase();
                if self.may_call(&origin, &host, local) {
                    return Ok(());
                }
                refuse(&origin)
            }
        }
    }

    /// Checks the name by which a request addresses us, and returns it in lower case.
    pub fn check_host(&self, head: &Parts, local: SocketAddr) -> Result<String, Refusal> {
        let refuse = |host: &str| Refusal::Host(first_chars(host, NAME_CHARS_MAX).to_owned());
        let host = get_once(&head.headers, HOST).map_err(refuse)?;
        let host = host.unwrap_or_default().to_lowercase();
        // A request for a proxy names its host a second time.
        let other = head.uri.authority().map(|it| it.as_str().to_lowercase());
        let is_named = |authority: &str| self.is_own(authority, local);
        if !is_named(&host) || other.is_some_and(|other| !is_named(&other)) {
            return Err(refuse(&host));
        }
        Ok(host)
    }

    fn is_own(&self, authority: &str, local: SocketAddr) -> bool {
        let hosts = match &self.names {
            OwnNames::Only(only) => return authority == only,
            OwnNames::AddressAnd(hosts) => hosts,
        };
        if authority.contains('@') {
            return false;
        }
        let Ok(parsed) = Authority::try_from(authority) else {
            return false;
        };
        let name = parsed.host();
        // The parser accepts any text as a port.
        if authority.len() > name.len() && parsed.port_u16().is_none() {
            return false;
        }
        let listed = |host: &String| host == authority || host == name;
        is_address(name, local.ip()) || hosts.iter().any(listed)
    }

    /// Returns true for a page that we served, under the requested name or another of ours, or one with
    /// a listed origin. A page without a port in its origin came from the port of its scheme: another
    /// program, unless that is our port or the configuration says that browsers reach us there.
    fn may_call(&self, origin: &str, host: &str, local: SocketAddr) -> bool {
        let is_listed = self.origins.iter().any(|known| known == origin);
        if is_listed || self.public_origin.as_deref() == Some(origin) {
            return true;
        }
        let Some(authority) = origin.strip_prefix(self.scheme) else {
            return false;
        };
        let Ok(parsed) = Authority::try_from(authority) else {
            return false;
        };
        let usual = if self.scheme == "https://" { 443 } else { 80 };
        let port = parsed.port_u16();
        let is_requested = port.is_some() && authority == host;
        is_requested || port.unwrap_or(usual) == local.port() && self.is_own(authority, local)
    }
}

/// Returns true if a page sent the request. A browser sends `Origin` with each request that changes
/// something; [`Guard::check_names`] has checked it.
pub fn has_origin(head: &Parts) -> bool {
    head.headers.contains_key(ORIGIN)
}

/// Checks that the browser calls the request one of our own page. `is_required`: a browser that says
/// nothing is refused too.
pub fn check_same_site(head: &Parts, is_required: bool) -> Result<(), Refusal> {
    match get_once(&head.headers, SEC_FETCH_SITE) {
        Ok(Some("same-origin")) => Ok(()),
        Ok(None) if !is_required => Ok(()),
        _ => Err(Refusal::Site),
    }
}

/// Checks that the body is JSON, which no form of another page is.
pub fn check_is_json(headers: &HeaderMap) -> Result<(), Refusal> {
    let kind = get_once(headers, CONTENT_TYPE).ok().flatten();
    let kind = kind.and_then(|kind| kind.split(';').next());
    if kind.is_some_and(|kind| kind.trim().eq_ignore_ascii_case("application/json")) {
        return Ok(());
    }
    Err(Refusal::MediaType)
}

/// Returns the token of a request, if it has one. Fails if there are several headers.
pub fn bearer(headers: &HeaderMap) -> Result<Option<&str>, &'static str> {
    let header = get_once(headers, AUTHORIZATION)?.unwrap_or_default();
    let given = header.split_once(' ');
    let given = given.filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"));
    Ok(given.map(|(_, token)| token.trim()))
}

/// Returns true if a host name refers to the local address itself.
pub fn is_address(name: &str, local: IpAddr) -> bool {
    if name == "localhost" {
        return true;
    }
    let local = local.to_canonical();
    let bare = name.trim_start_matches('[').trim_end_matches(']');
    let ip = bare.parse::<IpAddr>().map(|ip| ip.to_canonical());
    ip.is_ok_and(|ip| ip == local || (ip.is_loopback() && local.is_loopback()))
}

/// Returns the value of a header that may be sent only once; `None` if it is missing. Fails if it has
/// several values, or is not text.
pub fn get_once(
    headers: &HeaderMap,
    name: impl AsHeaderName,
) -> Result<Option<&str>, &'static str> {
    let mut values = headers.get_all(name).iter();
    let Some(value) = values.next() else {
        return Ok(None);
    };
    if values.next().is_some() {
        return Err("several values");
    }
    value.to_str().map(Some).map_err(|_| "not ASCII text")
}

#[cfg(test)]
mod tests {
    use hyper::Request;

    use super::*;

    const HERE: &str = "127.0.0.1:7331";

    fn guard() -> Guard {
        let owned = |texts: &[&str]| texts.iter().map(ToString::to_string).collect();
        Guard {
            names: OwnNames::AddressAnd(owned(&["tools.example.com", "other.example.com:8080"])),
            scheme: "http://",
            origins: owned(&["https://chat.example.com"]),
            public_origin: None,
        }
    }

    fn head(path: &str, headers: &[(&str, &str)]) -> Parts {
        let mut request = Request::builder().uri(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        request.body(()).unwrap().into_parts().0
    }

    #[track_caller]
    fn check(local: &str, host: &str, origin: Option<&str>, is_let_in: bool) {
        let mut headers = vec![("host", host)];
        headers.extend(origin.map(|origin| ("origin", origin)));
        let checked = guard().check_names(&head("/mcp", &headers), local.parse().unwrap());
        assert_eq!(checked.is_ok(), is_let_in, "{checked:?}");
    }

    #[test]
    fn a_host_must_be_a_name_of_ours() {
        for good in [
            "127.0.0.1:7331",
            "localhost:7331",
            "LocalHost",
            "[::1]:7331",
            "tools.example.com",
            "Tools.Example.com:443",
            "other.example.com:8080",
        ] {
            check(HERE, good, None, true);
        }
        for bad in [
            "",
            "evil.example:7331",
            "localhost.evil.example",
            "other.example.com",
            "192.168.1.5:7331",
            "me@localhost",
            "local host",
            "localhost:abc",
            "localhost:",
            "localhost:99999",
            "127.0.0.1:7331x",
            "[::1]:x",
            "tools.example.com:evil",
        ] {
            check(HERE, bad, None, false);
        }
        check("192.168.1.5:7331", "192.168.1.5:7331", None, true);
        check("192.168.1.5:7331", "192.168.1.6:7331", None, false);
        check("192.168.1.5:7331", "127.0.0.1:7331", None, false);
    }

    #[test]
    fn a_page_must_be_ours_or_listed() {
        let host = "localhost:7331";
        check(HERE, host, Some("http://localhost:7331"), true);
        check(HERE, host, Some("http://127.0.0.1:7331"), true);
        check(HERE, host, Some("https://chat.example.com"), true);
        for bad in [
            "http://localhost:3000",
            "https://localhost:7331",
            "http://evil.example",
            "http://evil.example:7331",
            "https://chat.example.com.evil.example",
            "null",
            "",
        ] {
            check(HERE, host, Some(bad), false);
        }
        // Of the program at port 80, also if the request leaves out our port.
        check(HERE, "localhost", Some("http://localhost"), false);
        check(
            HERE,
            "tools.example.com",
            Some("http://tools.example.com"),
            false,
        );
        check(HERE, host, Some("http://localhost:abc"), false);
        check("127.0.0.1:80", "localhost", Some("http://localhost"), true);
        check(
            "127.0.0.1:80",
            "localhost",
            Some("http://127.0.0.1:80"),
            true,
        );
        let forwarded = Guard {
            public_origin: Some("http://tools.example.com".into()),
            ..guard()
        };
        let names = [
            ("host", "tools.example.com"),
            ("origin", "http://tools.example.com"),
        ];
        let checked = forwarded.check_names(&head("/mcp", &names), HERE.parse().unwrap());
        assert_eq!(checked, Ok(()));
        let twice = head("/mcp", &[("host", host), ("host", "evil.example")]);
        assert!(guard().check_names(&twice, HERE.parse().unwrap()).is_err());
    }

    #[test]
    fn a_server_of_one_name_is_addressed_by_it_exactly() {
        let check = |path: &str, headers: &[(&str, &str)], is_let_in: bool| {
            let guard = Guard::only(HERE.to_owned());
            let checked = guard.check_names(&head(path, headers), HERE.parse().unwrap());
            assert_eq!(
                checked.is_ok(),
                is_let_in,
                "{path} {headers:?}: {checked:?}"
            );
        };
        let host = ("host", HERE);
        check("/", &[host], true);
        check("http://127.0.0.1:7331/", &[host], true);
        check("http://evil.test/", &[host], false);
        check("/", &[], false);
        for other in [
            "127.0.0.1",
            "localhost:7331",
            "127.0.0.1:7332",
            "evil.test:7331",
            "127.0.0.1:7331@evil",
        ] {
            check("/", &[("host", other)], false);
        }
        check("/", &[host, host], false);
        check("/", &[host, ("origin", "http://127.0.0.1:7331")], true);
        for origin in [
            "null",
            "https://127.0.0.1:7331",
            "http://127.0.0.1:7332",
            "http://localhost:7331",
            "http://evil.test",
        ] {
            check("/", &[host, ("origin", origin)], false);
        }
    }

    #[test]
    fn a_token_is_of_the_bearer_scheme_and_sent_once() {
        let check = |values: &[&str], expected: Result<Option<&str>, &str>| {
            let headers: Vec<_> = values.iter().map(|it| ("authorization", *it)).collect();
            assert_eq!(bearer(&head("/", &headers).headers), expected, "{values:?}");
        };
        check(&["Bearer abc"], Ok(Some("abc")));
        check(&["bearer  abc "], Ok(Some("abc")));
        check(&["Basic abc"], Ok(None));
        check(&[], Ok(None));
        check(&["Bearer abc", "Bearer abc"], Err("several values"));
        let cookie = head("/", &[("cookie", "token=abc")]);
        assert_eq!(bearer(&cookie.headers), Ok(None));
    }

    #[test]
    fn a_form_of_another_page_is_not_json() {
        let check = |kind: &str| check_is_json(&head("/", &[("content-type", kind)]).headers);
        assert_eq!(check("application/json"), Ok(()));
        assert_eq!(check("Application/JSON; charset=utf-8"), Ok(()));
        for other in [
            "text/plain",
            "application/x-www-form-urlencoded",
            "multipart/form-data",
            "",
        ] {
            assert_eq!(check(other), Err(Refusal::MediaType), "{other}");
        }
        assert!(check_is_json(&HeaderMap::new()).is_err());
    }
}
