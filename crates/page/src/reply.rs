//! Responses, with the headers that every one of them carries.

use bytes::Bytes;
use futures::{Stream, StreamExt as _};
use http_body_util::{BodyExt as _, Full, StreamBody, combinators::UnsyncBoxBody};
use http_core::add_headers;
use hyper::{
    Response, StatusCode,
    body::Frame,
    header::{ALLOW, CACHE_CONTROL, CONTENT_ENCODING, HeaderValue},
};
use serde::Serialize;

use crate::{
    assets::{Asset, INDEX},
    error::{ApiError, ErrorBody},
};

/// The body of a response.
pub(crate) type Body = UnsyncBoxBody<Bytes, std::convert::Infallible>;

/// No script, style, image or request but our own; no frame around us, and no text that becomes markup.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
    img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; \
    require-trusted-types-for 'script'";

const HEADERS: [(&str, &str); 5] = [
    ("content-security-policy", POLICY),
    ("x-content-type-options", "nosniff"),
    ("referrer-policy", "no-referrer"),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
];

const UNCHANGING: &str = "public, max-age=31536000, immutable";
const NO_STORE: &str = "no-store";
pub(crate) const JSON: &str = "application/json";
/// JSON, a value a line.
pub(crate) const LINES: &str = "application/x-ndjson";

/// The value of a handler.
#[derive(Debug)]
pub(crate) enum Reply {
    Json(Vec<u8>),
    Live(Body),
}

impl Reply {
    pub(crate) fn json(value: &impl Serialize) -> Result<Self, ApiError> {
        let json = serde_json::to_vec(value).map_err(anyhow::Error::from)?;
        Ok(Self::Json(json))
    }

    pub(crate) fn live(lines: impl Stream<Item = Bytes> + Send + 'static) -> Self {
        let frames = lines.map(|line| Ok(Frame::data(line)));
        Self::Live(StreamBody::new(frames).boxed_unsync())
    }
}

/// Returns the response of the API.
pub(crate) fn respond(reply: Result<Reply, ApiError>) -> Response<Body> {
    let allow = reply.as_ref().err().and_then(|it| it.allow.clone());
    let (status, kind, body) = match reply {
        Ok(Reply::Json(json)) => (StatusCode::OK, JSON, whole(json)),
        Ok(Reply::Live(body)) => (StatusCode::OK, LINES, body),
        Err(error) => {
            let status = error.status;
            let json = serde_json::to_vec(&ErrorBody { error }).unwrap_or_default();
            (status, JSON, whole(json))
        }
    };
    let mut response = response(status, kind, NO_STORE, body);
    response
        .headers_mut()
        .extend(allow.map(|allow| (ALLOW, *allow)));
    response
}

/// Returns a file of the page.
pub(crate) fn asset(asset: &Asset) -> Response<Body> {
    let caching = if asset.name == INDEX {
        NO_STORE
    } else {
        UNCHANGING
    };
    let body = whole(Bytes::from_static(asset.gzip));
    let mut response = response(StatusCode::OK, asset.kind, caching, body);
    let gzip = HeaderValue::from_static("gzip");
    response.headers_mut().insert(CONTENT_ENCODING, gzip);
    response
}

fn response(
    status: StatusCode,
    kind: &'static str,
    caching: &'static str,
    body: Body,
) -> Response<Body> {
    let mut response = http_core::respond(status, kind, body);
    let headers = response.headers_mut();
    headers.insert(CACHE_CONTROL, HeaderValue::from_static(caching));
    add_headers(headers, &HEADERS);
    response
}

fn whole(bytes: impl Into<Bytes>) -> Body {
    Full::new(bytes.into()).boxed_unsync()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::assets;

    #[test]
    fn every_response_forbids_what_the_page_does_not_need() {
        let index = assets::find_name(INDEX).unwrap();
        let replies = [
            respond(Reply::json(&())),
            respond(Err(ApiError::bad("no"))),
            respond(Ok(Reply::live(futures::stream::empty()))),
            asset(index),
        ];
        for response in replies {
            let headers = response.headers();
            for (name, value) in HEADERS {
                assert_eq!(headers[name], value);
            }
            assert_eq!(headers[CACHE_CONTROL], NO_STORE);
            assert!(!headers.contains_key("set-cookie"));
            let names = headers.keys().map(hyper::header::HeaderName::as_str);
            assert!(
                !names
                    .into_iter()
                    .any(|it| it.starts_with("access-control-"))
            );
        }
        let policy = POLICY.split("; ").collect::<Vec<_>>();
        assert!(policy.contains(&"default-src 'none'") && !POLICY.contains("unsafe"));
    }
}
