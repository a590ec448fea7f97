//! The conditions under which a request is accepted: its names, by the [`Guard`], and its token.

use std::sync::Arc;

use http_core::{Guard, bearer, get_once};
use hyper::{
    HeaderMap, Response, StatusCode,
    header::{
        ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
        ACCESS_CONTROL_EXPOSE_HEADERS, HOST, HeaderValue, ORIGIN, VARY,
    },
    http::request::Parts,
};

use super::{
    body::Body,
    guarding::{Admitted, Guarding},
    http_error::HttpError,
    tokens::Tokens,
};

#[derive(Debug, Clone)]
pub(super) struct Gate {
    pub(super) guard: Guard,
    pub(super) tokens: Tokens,
    pub(super) guarding: Option<Arc<Guarding>>,
}

impl Gate {
    /// Returns our address for the browser of the person who sent a request, whose `Host` was checked.
    pub(super) fn origin(&self, head: &Parts) -> Arc<str> {
        self.guard.public_origin.clone().unwrap_or_else(|| {
            let host = get_once(&head.headers, HOST).ok().flatten();
            format!("{}{}", self.guard.scheme, host.unwrap_or_default()).into()
        })
    }

    /// Returns the client that the token belongs to, if a token is required.
    pub(super) async fn check_token(&self, head: &Parts) -> Result<Option<Admitted>, HttpError> {
        let guarding = self.guarding.as_ref();
        if self.tokens.is_empty() && guarding.is_none() {
            return Ok(None);
        }
        let several = Some("there are several `Authorization` headers");
        let given = bearer(&head.headers)
            .map_err(|_| guarding.map_or_else(HttpError::wrong_token, |it| it.refuse(several)))?
            .ok_or_else(|| guarding.map_or_else(HttpError::no_token, |it| it.refuse(None)))?;
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
        let origins = &self.guard.origins;
        if origins.is_empty() {
            return;
        }
        headers.insert(VARY, HeaderValue::from_static("Origin"));
        let Ok(Some(origin)) = get_once(&head.headers, ORIGIN) else {
            return;
        };
        if !origins.contains(&origin.to_lowercase()) {
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
