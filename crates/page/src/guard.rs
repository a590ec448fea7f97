//! The conditions under which a request is accepted. It must name our address exactly; one that changes
//! something, or uses the API, must come from our own page, as the browser itself says; and a request to
//! the API must carry a token, which a browser never sends by itself.

use std::net::SocketAddr;

use http_core::{Guard, Refusal, check_same_site, has_origin};
use hyper::{Method, http::request::Parts};

/// The path of every route of the API begins so.
pub(crate) const API: &str = "/api/";

/// Checks the names in the head of a request.
pub(crate) fn check(guard: &Guard, head: &Parts, local: SocketAddr) -> Result<(), Refusal> {
    guard.check_names(head, local)?;
    let has_body = ![Method::GET, Method::HEAD].contains(&head.method);
    if has_body && !has_origin(head) {
        return Err(Refusal::Origin("none".to_owned()));
    }
    if head.uri.path().starts_with(API) {
        check_same_site(head, true)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use hyper::Request;

    use super::*;
    use crate::error::ApiError;

    const OURS: &str = "127.0.0.1:7000";

    #[track_caller]
    fn check(line: &str, headers: &[(&str, &str)], expected: Result<(), (u16, &str)>) {
        let (method, path) = line.split_once(' ').unwrap();
        let mut request = Request::builder().method(method).uri(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let (head, ()) = request.body(()).unwrap().into_parts();
        let checked = super::check(&Guard::only(OURS.to_owned()), &head, OURS.parse().unwrap());
        let checked = checked.map_err(|refusal| {
            let error = ApiError::from(refusal);
            (error.status.as_u16(), error.code.into_owned())
        });
        let expected = expected.map_err(|(status, code)| (status, code.to_owned()));
        assert_eq!(checked, expected, "{line} {headers:?}");
    }

    #[test]
    fn a_request_with_a_body_has_our_origin() {
        let site = ("sec-fetch-site", "same-origin");
        let ours = ("origin", "http://127.0.0.1:7000");
        let path = "POST /api/v1/session";
        check(path, &[("host", OURS), site, ours], Ok(()));
        let foreign = Err((403, "foreign_origin"));
        check(path, &[("host", OURS), site], foreign);
        for origin in [
            "null",
            "https://127.0.0.1:7000",
            "http://127.0.0.1:7001",
            "http://evil.test",
        ] {
            let origin = ("origin", origin);
            check(path, &[("host", OURS), site, origin], foreign);
        }
        check(
            "GET /",
            &[("host", OURS), ("origin", "http://evil.test")],
            foreign,
        );
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
}
