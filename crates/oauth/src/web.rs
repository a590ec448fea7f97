//! Requests to authorization servers: limited in time and size, and only to addresses that pass the
//! checks.

use std::{sync::Arc, time::Duration};

use futures::StreamExt as _;
use http::{HeaderMap, StatusCode, header};
use printable::Redactor;
use reqwest::{Client, RequestBuilder, Response, Url, redirect::Policy};
use serde_json::Value;

use crate::{
    address::{Reach, is_loopback, shown},
    error::{self, LoginError},
    trust::http_client_builder,
};

/// The timeout, from the first byte sent to the last byte read.
const WAIT: Duration = Duration::from_secs(20);

/// The largest response, which is far more than any metadata or token document.
const BODY_BYTES_MAX: usize = 256 * 1024;

const REDIRECTS_MAX: usize = 3;

/// Sends requests to one server and to those that it names.
#[derive(Debug, Clone)]
pub(crate) struct HttpClient {
    client: Client,
    reach: Reach,
}

#[derive(Debug)]
pub(crate) struct HttpResponse {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Vec<u8>,
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
        let mut builder = http_client_builder()
            .timeout(WAIT)
            .redirect(Policy::none())
            .dns_resolver(Arc::new(reach.clone()));
        if is_loopback(server.host_str().unwrap_or_default()) {
            // The loopback address of a network proxy is another machine's.
            builder = builder.no_proxy();
        }
        let client = builder.build().map_err(|error| fail(server, &error))?;
        Ok(Self { client, reach })
    }

    pub(crate) fn check(&self, url: &Url) -> Result<(), LoginError> {
        self.reach.check(url)
    }

    /// Requests a document. Follows a redirect if a request may be sent to its target.
    pub(crate) async fn get(&self, url: &Url) -> Result<HttpResponse, LoginError> {
        let mut url = url.clone();
        for _ in 0..=REDIRECTS_MAX {
            let request = self.client.get(url.clone());
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
            .client
            .post(url.clone())
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
            .client
            .post(url.clone())
            .header(header::ACCEPT, "application/json, text/event-stream")
            .headers(headers)
            .json(body);
        self.send(url, request).await
    }

    async fn send(&self, url: &Url, request: RequestBuilder) -> Result<HttpResponse, LoginError> {
        self.check(url)?;
        let response = request.send().await.map_err(|error| fail(url, &error))?;
        let (status, headers) = (response.status(), response.headers().clone());
        let body = read(response).await.map_err(|why| LoginError::Http {
            url: shown(url),
            why,
        })?;
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

async fn read(response: Response) -> Result<Vec<u8>, String> {
    let is_stream = response.headers().get(header::CONTENT_TYPE);
    let is_stream = is_stream.is_some_and(|kind| kind.as_bytes().starts_with(b"text/event-stream"));
    let mut body = Vec::new();
    if is_stream {
        // The stream may never end, and its content is not needed.
        return Ok(body);
    }
    let mut chunks = response.bytes_stream();
    while let Some(chunk) = chunks.next().await {
        let chunk = chunk.map_err(|error| describe(&error.without_url()))?;
        if body.len() + chunk.len() > BODY_BYTES_MAX {
            return Err(format!("its response has more than {BODY_BYTES_MAX} bytes"));
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

fn fail(url: &Url, error: &reqwest::Error) -> LoginError {
    LoginError::Http {
        url: shown(url),
        why: describe(error),
    }
}

/// Returns the innermost cause: the outer ones only say "error sending request".
fn describe(error: &reqwest::Error) -> String {
    if error.is_timeout() {
        return format!("no response within {} s", WAIT.as_secs());
    }
    let mut cause: &dyn std::error::Error = error;
    while let Some(next) = cause.source() {
        cause = next;
    }
    error::shown(&cause.to_string())
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
                .into_bytes(),
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
