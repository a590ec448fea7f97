//! Requests to authorization servers: limited in time and size, and only to addresses that pass the
//! checks.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use http::{HeaderMap, Method, StatusCode, header};
use http_core::{Document, Fetcher, client_builder_for};
use printable::Redactor;
use reqwest::{RequestBuilder, Url, redirect::Policy};
use serde_json::Value;

use crate::{
    address::{Reach, shown},
    error::{self, LoginError},
};

/// The timeout, from the first byte sent to the last byte read.
const WAIT: Duration = Duration::from_secs(20);

/// The largest response, which is far more than any metadata or token document.
const BODY_BYTES_MAX: usize = 256 * 1024;

const REDIRECTS_MAX: usize = 3;

/// Sends requests to one server and to those that it names.
#[derive(Debug, Clone)]
pub(crate) struct HttpClient {
    fetcher: Fetcher,
    reach: Reach,
}

#[derive(Debug)]
pub(crate) struct HttpResponse {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
    /// The secrets of the request, which the texts of the response may repeat.
    pub(crate) sent: Redactor,
}

/// The parameters of a form that are no secrets.
const PLAIN_PARAMETERS: [&str; 11] = [
    "audience",
    "client_assertion_type",
    "client_id",
    "grant_type",
    "redirect_uri",
    "requested_token_type",
    "resource",
    "scope",
    "subject_token_type",
    "token_type_hint",
    "actor_token_type",
];

impl HttpResponse {
    /// Returns the JSON object in the body, whatever its content type.
    pub(crate) fn object(&self) -> Option<Value> {
        let value: Value = serde_json::from_slice(&self.body).ok()?;
        value.is_object().then_some(value)
    }

    /// Returns the error that the response describes: its code and description, else the status alone. The
    /// secrets of the request are masked.
    pub(crate) fn explain(&self) -> String {
        let object = self.object();
        let text = |key: &str| {
            let value = object.as_ref()?.get(key)?.as_str()?;
            Some(error::shown(&self.sent.apply(value)))
        };
        match (text("error"), text("error_description")) {
            (Some(code), Some(more)) => format!("{code}: {more}"),
            (Some(code), None) => code,
            _ => format!("HTTP {}", self.status),
        }
    }

    /// Returns the error code (RFC 6749).
    pub(crate) fn error_code(&self) -> Option<String> {
        Some(self.object()?.get("error")?.as_str()?.to_owned())
    }
}

impl HttpClient {
    /// Makes a client for requests on behalf of the server at this address.
    pub(crate) async fn of(server: &Url) -> Result<Self, LoginError> {
        let reach = Reach::of(server).await;
        let builder = client_builder_for(server)
            .redirect(Policy::none())
            .dns_resolver(Arc::new(reach.clone()));
        let fetcher = Fetcher::new(builder, WAIT, BODY_BYTES_MAX);
        Ok(Self {
            fetcher: fetcher.map_err(|why| fail(server, &why))?,
            reach,
        })
    }

    pub(crate) fn check(&self, url: &Url) -> Result<(), LoginError> {
        self.reach.check(url)
    }

    /// Requests a document. Follows a redirect if a request may be sent to its target.
    pub(crate) async fn get(&self, url: &Url) -> Result<HttpResponse, LoginError> {
        let mut url = url.clone();
        for _ in 0..=REDIRECTS_MAX {
            let request = self.fetcher.request(Method::GET, &url);
            let request = request.header(header::ACCEPT, "application/json");
            let answer = self.send(&url, request).await?;
            let location = answer.headers.get(header::LOCATION);
            match location.filter(|_| answer.status.is_redirection()) {
                None => return Ok(answer),
                Some(to) => {
                    let to = to.to_str().ok().and_then(|to| url.join(to).ok());
                    let why = "it redirects to an invalid address".to_owned();
                    let from = shown(&url);
                    url = to.ok_or(LoginError::Http { url: from, why })?;
                }
            }
        }
        let (url, why) = (shown(&url), "it redirects too often".to_owned());
        Err(LoginError::Http { url, why })
    }

    /// Posts a form. Does not follow redirects: the content is for that address alone.
    pub(crate) async fn post_form(
        &self,
        url: &Url,
        form: &[(&str, &str)],
        login: Option<(&str, &str)>,
        headers: HeaderMap,
    ) -> Result<HttpResponse, LoginError> {
        let mut request = self
            .fetcher
            .request(Method::POST, url)
            .headers(headers)
            .header(header::ACCEPT, "application/json")
            .header(header::CONTENT_TYPE, "application/x-www-form-urlencoded")
            .body(encode(form));
        if let Some((name, password)) = login {
            // RFC 6749 requires both to be form-encoded before they are joined.
            request = request.basic_auth(encode_one(name), Some(encode_one(password)));
        }
        Ok(HttpResponse {
            sent: redactor_of(form, login),
            ..self.send(url, request).await?
        })
    }

    pub(crate) async fn post_json(
        &self,
        url: &Url,
        body: &Value,
        headers: HeaderMap,
    ) -> Result<HttpResponse, LoginError> {
        let request = self
            .fetcher
            .request(Method::POST, url)
            .header(header::ACCEPT, "application/json, text/event-stream")
            .headers(headers)
            .json(body);
        self.send(url, request).await
    }

    async fn send(&self, url: &Url, request: RequestBuilder) -> Result<HttpResponse, LoginError> {
        self.check(url)?;
        let sent = self.fetcher.send(request).await;
        let document = sent.map_err(|why| fail(url, &why))?;
        let Document {
            status,
            headers,
            body,
        } = document;
        Ok(HttpResponse {
            status,
            headers,
            body,
            sent: Redactor::default(),
        })
    }
}

/// Masks the secrets of a form and its login.
fn redactor_of(form: &[(&str, &str)], login: Option<(&str, &str)>) -> Redactor {
    let secrets = form
        .iter()
        .filter(|(name, _)| !PLAIN_PARAMETERS.contains(name));
    let secrets = secrets.chain(&login);
    Redactor::new(secrets.map(|(_, value)| (*value).to_owned()))
}

fn fail(url: &Url, why: &str) -> LoginError {
    LoginError::Http {
        url: shown(url),
        why: error::shown(why),
    }
}

pub(crate) fn encode(form: &[(&str, &str)]) -> String {
    let url = Url::parse_with_params("http://localhost/", form).expect("it is an address");
    url.query().unwrap_or_default().to_owned()
}

fn encode_one(text: &str) -> String {
    encode(&[(text, "")]).trim_end_matches('=').to_owned()
}

#[cfg(test)]
mod tests {
    use http::{HeaderMap, StatusCode};
    use serde_json::json;

    use super::{HttpResponse, encode, encode_one, redactor_of};

    #[test]
    fn an_error_repeats_no_secret_of_its_request() {
        let form = [
            ("grant_type", "refresh_token"),
            ("refresh_token", "rt/5f1e9c a7c1"),
            ("client_id", "client-of-ours"),
        ];
        let said =
            "no rt/5f1e9c a7c1, rt%2F5f1e9c+a7c1 of client-of-ours (hunter22), see key=q9w8e7r6t5";
        let response = HttpResponse {
            status: StatusCode::BAD_REQUEST,
            headers: HeaderMap::new(),
            body: json!({"error": "invalid_grant", "error_description": said})
                .to_string()
                .into(),
            sent: redactor_of(&form, Some(("client-of-ours", "hunter22"))),
        };
        assert_eq!(
            response.explain(),
            "invalid_grant: no ***, *** of client-of-ours (***), see key=***"
        );
    }

    #[test]
    fn forms_are_encoded() {
        assert_eq!(
            encode(&[("a", "b c"), ("d", "&=ü")]),
            "a=b+c&d=%26%3D%C3%BC"
        );
        assert_eq!(encode_one("s3c:r3t/+"), "s3c%3Ar3t%2F%2B");
    }
}
