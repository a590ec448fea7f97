//! The conditions under which a request is accepted: `Host`, `Origin`, token.
//!
//! A web page can make a browser send requests to this machine, and with a host name that resolves
//! to it (DNS rebinding) even read the responses. So a request must address us by one of our names,
//! and a page must have an allowed origin.

use std::{
    net::{IpAddr, SocketAddr},
    sync::Arc,
};

use hyper::{
    HeaderMap, Response, StatusCode,
    header::{
        ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
        ACCESS_CONTROL_EXPOSE_HEADERS, AUTHORIZATION, AsHeaderName, HOST, HeaderValue, ORIGIN,
        VARY,
    },
    http::{request::Parts, uri::Authority},
};

use printable::first_chars;

use super::{
    body::Body,
    guarding::{Admitted, Guarding},
    http_error::HttpError,
    tokens::Tokens,
};

#[derive(Debug, Clone)]
pub(super) struct Gate {
    pub(super) hosts: Vec<String>,
    pub(super) origins: Vec<String>,
    pub(super) tokens: Tokens,
    pub(super) guarding: Option<Arc<Guarding>>,
    pub(super) scheme: &'static str,
    /// Our address for browsers, without a path, if the configuration has one.
    pub(super) public_url: Option<Arc<str>>,
}

impl Gate {
    /// Returns our address for the browser of the person who sent a request, whose `Host` was checked.
    pub(super) fn origin(&self, head: &Parts) -> Arc<str> {
        self.public_url.clone().unwrap_or_else(|| {
            let host = get_once(&head.headers, &HOST).ok().flatten();
            format!("{}{}", self.scheme, host.unwrap_or_default()).into()
        })
    }

    /// `local` is the address at which the request came in.
    pub(super) fn check_names(&self, head: &Parts, local: SocketAddr) -> Result<(), HttpError> {
        let host = get_once(&head.headers, &HOST).map_err(HttpError::host)?;
        let host = host.unwrap_or_default().to_lowercase();
        let is_named = |authority: &str| self.is_ours(authority, local);
        // A request for a proxy names its host a second time.
        let other = head.uri.authority().map(|it| it.as_str().to_lowercase());
        if !is_named(&host) || other.is_some_and(|other| !is_named(&other)) {
            return Err(HttpError::host(first_chars(&host, NAME_CHARS_MAX)));
        }
        let origin = get_once(&head.headers, &ORIGIN).map_err(HttpError::origin)?;
        match origin.map(str::to_lowercase) {
            Some(origin) if !self.may_call(&origin, &host, local) => {
                Err(HttpError::origin(first_chars(&origin, NAME_CHARS_MAX)))
            }
            _ => Ok(()),
        }
    }

    fn is_ours(&self, authority: &str, local: SocketAddr) -> bool {
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
        is_address(name, local.ip()) || self.hosts.iter().any(listed)
    }

    /// Returns true for a page that we served, under the requested name or another of ours, or one with
    /// a listed origin. A page without a port in its origin came from the port of its scheme: another
    /// program, unless that is our port or the configuration says that browsers reach us there.
    fn may_call(&self, origin: &str, host: &str, local: SocketAddr) -> bool {
        let is_listed = self.origins.iter().any(|known| known == origin);
        if is_listed || self.public_url.as_deref() == Some(origin) {
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
        is_requested || port.unwrap_or(usual) == local.port() && self.is_ours(authority, local)
    }

    /// Returns the client that the token belongs to, if a token is required.
    pub(super) async fn check_token(&self, head: &Parts) -> Result<Option<Admitted>, HttpError> {
        let guarding = self.guarding.as_ref();
        if self.tokens.is_empty() && guarding.is_none() {
            return Ok(None);
        }
        let several = Some("there are several `Authorization` headers");
        let header = get_once(&head.headers, &AUTHORIZATION)
            .map_err(|_| guarding.map_or_else(HttpError::wrong_token, |it| it.refuse(several)))?;
        let given = header.unwrap_or_default().split_once(' ');
        let given = given.filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"));
        let (_, given) =
            given.ok_or_else(|| guarding.map_or_else(HttpError::no_token, |it| it.refuse(None)))?;
        let given = given.trim();
        if let Some(name) = self.tokens.holder(given) {
            return Ok(Some(Admitted {
                caller: format!("token {name}").into(),
                subject: name.to_string(),
                name,
                rule: None,
            }));
        }
        match guarding {
            Some(guarding) => guarding.admit(given).await.map(Some),
            None => Err(HttpError::wrong_token()),
        }
    }

    /// Allows a listed page to read the response.
    pub(super) fn open_to_page(&self, head: &Parts, headers: &mut HeaderMap) {
        if self.origins.is_empty() {
            return;
        }
        headers.insert(VARY, HeaderValue::from_static("Origin"));
        let Ok(Some(origin)) = get_once(&head.headers, &ORIGIN) else {
            return;
        };
        if !self.origins.contains(&origin.to_lowercase()) {
            return;
        }
        if let Ok(origin) = HeaderValue::from_str(origin) {
            headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
            let exposed = HeaderValue::from_static("Mcp-Session-Id, WWW-Authenticate");
            headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, exposed);
        }
    }
}

/// Returns the headers that a page may send. The origin, which was checked, decides if it may at all.
pub(super) fn preflight() -> Response<Body> {
    let mut response = Body::empty(StatusCode::NO_CONTENT);
    let headers = response.headers_mut();
    let methods = HeaderValue::from_static("GET, POST, DELETE");
    headers.insert(ACCESS_CONTROL_ALLOW_METHODS, methods);
    let allowed = HeaderValue::from_static(
        "Authorization, Content-Type, Accept, Last-Event-ID, Mcp-Session-Id, MCP-Protocol-Version, \
         Mcp-Method, Mcp-Name",
    );
    headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, allowed);
    response
}

/// Returns true if a host name refers to the local address itself.
pub(super) fn is_address(name: &str, local: IpAddr) -> bool {
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
pub(super) fn get_once(
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

/// The longest untrusted name that an error repeats, in characters.
const NAME_CHARS_MAX: usize = 100;

#[cfg(test)]
mod tests {
    use hyper::Request;

    use super::*;

    fn gate(hosts: &[&str], origins: &[&str]) -> Gate {
        let owned = |texts: &[&str]| texts.iter().map(ToString::to_string).collect();
        Gate {
            hosts: owned(hosts),
            origins: owned(origins),
            tokens: Tokens::default(),
            guarding: None,
            public_url: None,
            scheme: "http://",
        }
    }

    fn head(headers: &[(&str, &str)]) -> Parts {
        let mut request = Request::builder().uri("/mcp");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        request.body(()).unwrap().into_parts().0
    }

    #[track_caller]
    fn check(local: &str, host: &str, origin: Option<&str>, is_let_in: bool) {
        let gate = gate(
            &["tools.example.com", "other.example.com:8080"],
            &["https://chat.example.com"],
        );
        let mut headers = vec![("host", host)];
        headers.extend(origin.map(|origin| ("origin", origin)));
        let checked = gate.check_names(&head(&headers), local.parse().unwrap());
        assert_eq!(checked.is_ok(), is_let_in, "{checked:?}");
    }

    #[test]
    fn a_host_must_be_a_name_of_ours() {
        let here = "127.0.0.1:7331";
        for good in [
            "127.0.0.1:7331",
            "localhost:7331",
            "LocalHost",
            "[::1]:7331",
            "tools.example.com",
            "Tools.Example.com:443",
            "other.example.com:8080",
        ] {
            check(here, good, None, true);
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
            check(here, bad, None, false);
        }
        check("192.168.1.5:7331", "192.168.1.5:7331", None, true);
        check("192.168.1.5:7331", "192.168.1.6:7331", None, false);
        check("192.168.1.5:7331", "127.0.0.1:7331", None, false);
    }

    #[test]
    fn a_page_must_be_ours_or_listed() {
        let (here, host) = ("127.0.0.1:7331", "localhost:7331");
        check(here, host, Some("http://localhost:7331"), true);
        check(here, host, Some("http://127.0.0.1:7331"), true);
        check(here, host, Some("https://chat.example.com"), true);
        for bad in [
            "http://localhost:3000",
            "https://localhost:7331",
            "http://evil.example",
            "http://evil.example:7331",
            "https://chat.example.com.evil.example",
            "null",
            "",
        ] {
            check(here, host, Some(bad), false);
        }
        // Of the program at port 80, also if the request leaves out our port.
        check(here, "localhost", Some("http://localhost"), false);
        check(
            here,
            "tools.example.com",
            Some("http://tools.example.com"),
            false,
        );
        check(here, host, Some("http://localhost:abc"), false);
        check("127.0.0.1:80", "localhost", Some("http://localhost"), true);
        check(
            "127.0.0.1:80",
            "localhost",
            Some("http://127.0.0.1:80"),
            true,
        );
        let forwarded = Gate {
            public_url: Some("http://tools.example.com".into()),
            ..gate(&["tools.example.com"], &[])
        };
        let names = head(&[
            ("host", "tools.example.com"),
            ("origin", "http://tools.example.com"),
        ]);
        assert!(forwarded.check_names(&names, here.parse().unwrap()).is_ok());
        let twice = head(&[("host", host), ("host", "evil.example")]);
        assert!(
            gate(&[], &[])
                .check_names(&twice, here.parse().unwrap())
                .is_err()
        );
    }
}
