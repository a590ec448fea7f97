//! The conditions under which a request is accepted.
//!
//! A page of another site can make a browser send requests to this machine, and with a host name that
//! resolves to it (DNS rebinding) even read the responses. So a request must name our address exactly; a
//! request to the API must come from our own page, as the browser itself says; and it must carry a
//! token, which a browser never sends by itself.

use hyper::{
    HeaderMap, Method, StatusCode,
    header::{AUTHORIZATION, CONTENT_TYPE, HOST, HeaderName, ORIGIN},
    http::{request::Parts, uri::Authority},
};

use crate::error::ApiError;

/// The path of every route of the API begins so.
pub(crate) const API: &str = "/api/";

const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// Checks where requests come from.
#[derive(Debug)]
pub(crate) struct Guard {
    /// `127.0.0.1:PORT`.
    authority: String,
    origin: String,
}

impl Guard {
    pub(crate) fn new(authority: String) -> Self {
        Self {
            origin: format!("http://{authority}"),
            authority,
        }
    }

    /// Checks the names in the head of a request.
    pub(crate) fn check(&self, head: &Parts) -> Result<(), ApiError> {
        let host = get_once(&head.headers, &HOST);
        let other = head.uri.authority().map(Authority::as_str);
        if host != Some(&self.authority) || other.is_some_and(|it| it != self.authority) {
            let why = format!("the page is served at http://{} only", self.authority);
            return Err(ApiError::forbidden("foreign_host", why));
        }
        let has_body = ![Method::GET, Method::HEAD].contains(&head.method);
        let origin = get_once(&head.headers, &ORIGIN);
        let is_ours = origin == Some(&self.origin);
        if (head.headers.contains_key(ORIGIN) || has_body) && !is_ours {
            let why = "a page of another origin may not use the API";
            return Err(ApiError::forbidden("foreign_origin", why));
        }
        if !head.uri.path().starts_with(API) {
            return Ok(());
        }
        if get_once(&head.headers, &SEC_FETCH_SITE) != Some("same-origin") {
            let why = "only the page itself may use the API";
            return Err(ApiError::forbidden("foreign_site", why));
        }
        Ok(())
    }
}

/// Checks the kind of the body: no form of another page is JSON.
pub(crate) fn check_kind(head: &Parts) -> Result<(), ApiError> {
    let kind = get_once(&head.headers, &CONTENT_TYPE).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    if head.method == Method::GET || kind.eq_ignore_ascii_case("application/json") {
        return Ok(());
    }
    let why = "the body must be `application/json`";
    let status = StatusCode::UNSUPPORTED_MEDIA_TYPE;
    Err(ApiError::new(status, "unsupported_media_type", why))
}

/// Returns the token of a request.
pub(crate) fn token_of(headers: &HeaderMap) -> Option<&str> {
    let (scheme, token) = get_once(headers, &AUTHORIZATION)?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

/// Returns a header that is present exactly once.
fn get_once<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Option<&'h str> {
    let mut all = headers.get_all(name).iter();
    let first = all.next()?;
    if all.next().is_some() {
        return None;
    }
    first.to_str().ok()
}

#[cfg(test)]
mod tests {
    use hyper::Request;

    use super::*;

    const OURS: &str = "127.0.0.1:7000";

    #[track_caller]
    fn check(line: &str, headers: &[(&str, &str)], expected: Result<(), (u16, &str)>) {
        let (method, path) = line.split_once(' ').unwrap();
        let mut request = Request::builder().method(method).uri(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let (head, ()) = request.body(()).unwrap().into_parts();
        let checked = Guard::new(OURS.to_owned()).check(&head);
        let checked = checked.and_then(|()| check_kind(&head));
        let checked = checked.map_err(|it| (it.status.as_u16(), it.code));
        assert_eq!(checked, expected, "{line} {headers:?}");
    }

    #[test]
    fn a_request_names_our_address_exactly() {
        let foreign = Err((403, "foreign_host"));
        check("GET /", &[("host", OURS)], Ok(()));
        check("GET http://127.0.0.1:7000/", &[("host", OURS)], Ok(()));
        check("GET http://evil.test/", &[("host", OURS)], foreign);
        check("GET /", &[], foreign);
        for host in [
            "127.0.0.1",
            "localhost:7000",
            "127.0.0.1:7001",
            "evil.test:7000",
            "127.0.0.1:7000@evil",
        ] {
            check("GET /", &[("host", host)], foreign);
        }
        check("GET /", &[("host", OURS), ("host", OURS)], foreign);
    }

    #[test]
    fn a_request_with_a_body_has_our_origin_and_is_json() {
        let site = ("sec-fetch-site", "same-origin");
        let json = ("content-type", "application/json; charset=utf-8");
        let ours = ("origin", "http://127.0.0.1:7000");
        let path = "POST /api/v1/session";
        check(path, &[("host", OURS), site, json, ours], Ok(()));
        let foreign = Err((403, "foreign_origin"));
        check(path, &[("host", OURS), site, json], foreign);
        for origin in [
            "null",
            "https://127.0.0.1:7000",
            "http://127.0.0.1:7001",
            "http://evil.test",
        ] {
            check(
                path,
                &[("host", OURS), site, json, ("origin", origin)],
                foreign,
            );
        }
        check(
            "GET /",
            &[("host", OURS), ("origin", "http://evil.test")],
            foreign,
        );
        let media = Err((415, "unsupported_media_type"));
        for kind in [
            "text/plain",
            "application/x-www-form-urlencoded",
            "multipart/form-data",
        ] {
            let kind = ("content-type", kind);
            check(path, &[("host", OURS), site, kind, ours], media);
        }
        check(path, &[("host", OURS), site, ours], media);
    }

    #[test]
    fn the_api_is_for_our_page_alone() {
        let foreign = Err((403, "foreign_site"));
        let path = "GET /api/v1/status";
        check(
            path,
            &[("host", OURS), ("sec-fetch-site", "same-origin")],
            Ok(()),
        );
        check(path, &[("host", OURS)], foreign);
        for site in ["cross-site", "same-site", "none"] {
            check(path, &[("host", OURS), ("sec-fetch-site", site)], foreign);
        }
        check(
            "GET /",
            &[("host", OURS), ("sec-fetch-site", "none")],
            Ok(()),
        );
        let twice = [
            ("host", OURS),
            ("sec-fetch-site", "same-origin"),
            ("sec-fetch-site", "none"),
        ];
        check(path, &twice, foreign);
    }

    #[test]
    fn a_token_is_a_bearer_in_one_header() {
        let mut headers = HeaderMap::new();
        assert_eq!(token_of(&headers), None);
        headers.append(AUTHORIZATION, "Bearer abc".parse().unwrap());
        assert_eq!(token_of(&headers), Some("abc"));
        headers.append(AUTHORIZATION, "Bearer def".parse().unwrap());
        assert_eq!(token_of(&headers), None);
        headers.insert(AUTHORIZATION, "Basic abc".parse().unwrap());
        assert_eq!(token_of(&headers), None);
        headers.clear();
        headers.insert("cookie", "token=abc".parse().unwrap());
        assert_eq!(token_of(&headers), None);
    }
}
