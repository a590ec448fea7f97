//! An HTTP server of either transport: its address, the headers of each request, and its refusals.

use std::{fmt, sync::Arc, time::Duration};

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Method, StatusCode, header};
use http_core::{ReadError, client_builder_for, read_response, stays_at_origin};
use jsonrpc::one_line;
use oauth::{Bearer, Challenge, Credential, CredentialError};
use printable::{Redaction, Redactor};
use reqwest::{
    Client, Request, RequestBuilder, Response, Url,
    redirect::{Action, Attempt, Policy},
};

use super::address::{Address, AddressSource, RenewableAddress};
use crate::{
    error::{Denied, describe},
    obstacle::{Lookup, Obstacle},
};

/// The timeout of a connection, TLS included.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

const REDIRECTS_MAX: usize = 5;

/// The number of bytes read of a refusal's body, and of characters shown.
const REFUSAL_BYTES_MAX: usize = 64 * 1024;
const REFUSAL_SHOWN_CHARS_MAX: usize = 200;

/// The address of a remote server with its variables filled in, and the HTTP client. Every request to the
/// server passes [`Site::send`].
#[derive(Clone)]
pub(crate) struct Site {
    client: Client,
    address: Arc<RenewableAddress>,
    /// The login that the proxy itself holds, if there may be one. Its token is sent with each request.
    pub(super) credential: Option<Arc<Credential>>,
    pub(super) mask: Arc<Redactor>,
}

/// The reason why a request has no response.
#[derive(Debug)]
pub(super) enum SendError {
    Http(reqwest::Error),
    /// The login or a secret could not be renewed, but a later try may succeed.
    NoToken(String),
}

impl SendError {
    pub(super) fn obstacle(&self) -> Option<Obstacle> {
        match self {
            Self::Http(error) => Obstacle::of_error(error),
            Self::NoToken(_) => None,
        }
    }

    /// Formats the error without the URL, which may contain a secret.
    pub(super) fn explain(self) -> String {
        match self {
            Self::Http(error) => describe(&error.without_url()),
            Self::NoToken(why) => why,
        }
    }
}

impl Site {
    pub(crate) fn read(
        source: AddressSource,
        redaction: Option<Arc<Redaction>>,
        credential: Option<Arc<Credential>>,
    ) -> Result<Self, String> {
        let mask = source.mask().with_patterns(redaction);
        let address = RenewableAddress::read(source)?;
        let client = client(&address.current().url).map_err(|error| describe(&error))?;
        Ok(Self {
            client,
            address: Arc::new(address),
            credential,
            mask: Arc::new(mask),
        })
    }

    pub(super) fn url(&self) -> Url {
        self.address.current().url.clone()
    }

    /// Returns the token for a request; `None` if there is no login, or if it has expired. The server may
    /// accept the request without one.
    async fn bearer(&self) -> Result<Option<Bearer>, SendError> {
        let Some(credential) = &self.credential else {
            return Ok(None);
        };
        match credential.bearer().await {
            Ok(Some(bearer)) => {
                self.mask.add_renewed(bearer.expose());
                Ok(Some(bearer))
            }
            Ok(None) | Err(CredentialError::LoginNeeded { .. }) => Ok(None),
            Err(CredentialError::Failed(why)) => Err(SendError::NoToken(why)),
        }
    }

    /// Begins a request; [`Site::send`] adds the configured headers.
    pub(super) fn request(&self, method: Method, url: Url) -> RequestBuilder {
        self.client.request(method, url)
    }

    /// Sends a request with the configured headers and the token. A refused request has not run: it
    /// is repeated once if a secret of the address, such as the output of a command, is another one by then,
    /// and once if there is another token.
    pub(super) async fn send(&self, request: RequestBuilder) -> Result<Response, SendError> {
        let request = request.build().map_err(SendError::Http)?;
        let used = self.address.current();
        let again = request.try_clone();
        let response = self.send_to(&used, request).await?;
        if !self.address.is_refused(response.status()) {
            return Ok(response);
        }
        let renewed = self.address.renew(&used, &self.mask).await;
        let newer = renewed.map_err(|failure| SendError::NoToken(failure.to_string()))?;
        let (Some(mut again), Some(newer)) = (again, newer) else {
            return Ok(response);
        };
        if *again.url() == used.url {
            again.url_mut().clone_from(&newer.url);
        }
        let response = self.send_to(&newer, again).await?;
        self.address.is_refused(response.status());
        Ok(response)
    }

    /// Sends a request with the current headers and token. For the end of a session: no secret is read again
    /// for it.
    pub(super) async fn send_once(&self, request: RequestBuilder) -> Result<Response, SendError> {
        let request = request.build().map_err(SendError::Http)?;
        self.send_to(&self.address.current(), request).await
    }

    async fn send_to(
        &self,
        address: &Address,
        mut request: Request,
    ) -> Result<Response, SendError> {
        let own = address.headers.iter();
        let own = own.map(|(name, value)| (name.clone(), value.clone()));
        request.headers_mut().extend(own);
        let bearer = self.bearer().await?;
        let again = self.credential.as_ref().and_then(|_| request.try_clone());
        let mut response = self.send_with(request, bearer.as_ref()).await?;
        if let (Some(bearer), Some(again)) = (&bearer, &again)
            && bearer.can_prove_better(response.status(), response.headers())
            && let Some(again) = again.try_clone()
        {
            response = self.send_with(again, Some(bearer)).await?;
        }
        let (Some(credential), Some(again)) = (&self.credential, again) else {
            return Ok(response);
        };
        if response.status() == StatusCode::FORBIDDEN {
            let challenge = self.read_challenge(&response);
            if let Some(challenge) = challenge.filter(Challenge::is_step_up) {
                credential.want_scopes(challenge.scopes).await;
            }
            return Ok(response);
        }
        if response.status() != StatusCode::UNAUTHORIZED {
            return Ok(response);
        }
        if let Some(challenge) = self.read_challenge(&response) {
            credential.note_challenge(challenge).await;
        }
        let used = bearer.as_ref().map_or("", Bearer::expose);
        let newer = match credential.renew(used).await {
            Ok(Some(newer)) => newer,
            // The login has not expired: a later renewal may succeed.
            Err(CredentialError::Failed(why)) => return Err(SendError::NoToken(why)),
            Ok(None) | Err(CredentialError::LoginNeeded { .. }) => {
                if let Some(bearer) = &bearer {
                    credential.give_up_unrenewable(bearer).await;
                }
                return Ok(response);
            }
        };
        self.mask.add_renewed(newer.expose());
        let response = self.send_with(again, Some(&newer)).await?;
        if response.status() == StatusCode::UNAUTHORIZED {
            credential.give_up(&newer).await;
        }
        Ok(response)
    }

    /// Reads the challenge of a refusal. Scopes and the address are stored, shown and sent to the
    /// authorization server, so those that repeat a secret of ours are left out.
    fn read_challenge(&self, response: &Response) -> Option<Challenge> {
        let mut challenge = Challenge::read(response.headers())?;
        let is_clean = |text: &String| self.mask.apply(text) == *text;
        challenge.scopes.retain(is_clean);
        challenge.resource_metadata = challenge.resource_metadata.filter(is_clean);
        Some(challenge)
    }

    async fn send_with(
        &self,
        mut request: Request,
        bearer: Option<&Bearer>,
    ) -> Result<Response, SendError> {
        if let Some(bearer) = bearer {
            let carried = carry(bearer, request.method(), request.url());
            request.headers_mut().extend(carried);
        }
        self.client.execute(request).await.map_err(SendError::Http)
    }
}

/// Returns the headers with the token of a request.
fn carry(bearer: &Bearer, method: &Method, url: &Url) -> Vec<(HeaderName, HeaderValue)> {
    if let Some(proved) = bearer.prove(method, url) {
        return proved.into();
    }
    let value = HeaderValue::try_from(format!("Bearer {}", bearer.expose()));
    let sensitive = value.map(|mut value| {
        value.set_sensitive(true);
        (header::AUTHORIZATION, value)
    });
    sensitive.into_iter().collect()
}

/// Creates an HTTP client with the proxies of the environment (`HTTPS_PROXY`, `NO_PROXY` and so on).
fn client(url: &Url) -> Result<Client, reqwest::Error> {
    client_builder_for(url)
        .connect_timeout(CONNECT_TIMEOUT)
        .dns_resolver(Arc::new(Lookup))
        .redirect(Policy::custom(redirect))
        .build()
}

/// Follows a redirect only if the method and the origin stay the same. The headers are secrets, and
/// reqwest sends all but `Authorization` and cookies to other origins.
fn redirect(attempt: Attempt<'_>) -> Action {
    let keeps_method = matches!(
        attempt.status(),
        StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT
    );
    if keeps_method && stays_at_origin(&attempt, REDIRECTS_MAX) {
        attempt.follow()
    } else {
        attempt.stop()
    }
}

/// A response whose status is not a success.
#[derive(Debug)]
pub(super) struct HttpRefusal {
    pub(super) status: StatusCode,
    pub(super) body: Bytes,
    retry_after: Option<String>,
    location: Option<String>,
}

impl HttpRefusal {
    pub(super) async fn read(response: Response) -> Self {
        let status = response.status();
        let location = header_text(&response, header::LOCATION.as_str());
        let location = location.and_then(|to| response.url().join(&to).ok());
        Self {
            status,
            retry_after: header_text(&response, header::RETRY_AFTER.as_str()),
            location: location.map(|to| to.origin().ascii_serialization() + to.path()),
            body: read_body(response, REFUSAL_BYTES_MAX)
                .await
                .unwrap_or_default(),
        }
    }

    /// Returns true if the client is not authenticated or not authorized.
    pub(super) fn is_denial(&self) -> bool {
        [StatusCode::UNAUTHORIZED, StatusCode::FORBIDDEN].contains(&self.status)
    }

    /// Returns the denial, if it is one; `why` is masked.
    pub(super) fn denied(&self, why: &str) -> Option<Denied> {
        self.is_denial().then(|| Denied {
            why: why.to_owned(),
            is_unknown: self.status == StatusCode::UNAUTHORIZED,
        })
    }

    /// Returns true if a server that speaks only HTTP+SSE may refuse a `POST` of `initialize` in this way.
    pub(super) fn may_be_sse(&self) -> bool {
        matches!(
            self.status,
            StatusCode::BAD_REQUEST | StatusCode::NOT_FOUND | StatusCode::METHOD_NOT_ALLOWED
        )
    }
}

impl fmt::Display for HttpRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HTTP {}", self.status)?;
        if let Some(after) = &self.retry_after {
            write!(f, ", Retry-After: {after}")?;
        }
        if let Some(to) = &self.location
            && self.status.is_redirection()
        {
            write!(f, ", redirect to {to}")?;
        }
        let text = String::from_utf8_lossy(&self.body);
        let told = page_title(&text).unwrap_or(&*text);
        let shown = printable::one_line_of(told, REFUSAL_SHOWN_CHARS_MAX);
        if shown.is_empty() {
            return Ok(());
        }
        write!(f, ": {shown}")
    }
}

/// Returns the title of an HTML page, empty if it has none; `None` for any other text.
fn page_title(text: &str) -> Option<&str> {
    let lower = text.to_ascii_lowercase();
    let begins = |tag: &str| lower.trim_start().starts_with(tag);
    if !["<!doctype html", "<html", "<head", "<body"]
        .into_iter()
        .any(begins)
    {
        return None;
    }
    let title = lower.find("<title").and_then(|at| {
        let begin = at + lower[at..].find('>')? + 1;
        let end = begin + lower[begin..].find("</title")?;
        text.get(begin..end)
    });
    Some(title.unwrap_or_default())
}

pub(super) fn header_text(response: &Response, name: &str) -> Option<String> {
    Some(response.headers().get(name)?.to_str().ok()?.to_owned())
}

pub(super) fn is_event_stream(response: &Response) -> bool {
    header_text(response, header::CONTENT_TYPE.as_str())
        .is_some_and(|kind| kind.starts_with("text/event-stream"))
}

/// Reads a body, on one line.
pub(super) async fn read_body(response: Response, bytes_max: usize) -> Result<Bytes, ReadError> {
    read_response(response, bytes_max).await.map(one_line)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Template, Variables};

    #[test]
    fn a_challenge_keeps_no_secret_of_ours() {
        let template = |text: &str| Template::parse(text).unwrap();
        let headers = [("Authorization".to_owned(), template("Bearer tok-5f1e9c2ab"))];
        let source = AddressSource {
            url: template("https://a.example/mcp"),
            headers: headers.into(),
            variables: Variables::default(),
            resolver: None,
            has_printed: false,
        };
        let site = Site::read(source, None, None).unwrap();
        site.mask.add_renewed("sent-7a1c9d3e");
        let challenge = r#"Bearer error="insufficient_scope",
            scope="read sent-7a1c9d3e a:tok-5f1e9c2ab write",
            resource_metadata="https://a.example/sent-7a1c9d3e""#;
        let challenge = challenge.replace('\n', "");
        let refusal = http::Response::builder().header("www-authenticate", challenge);
        let refusal = Response::from(refusal.body("").unwrap());
        let challenge = site.read_challenge(&refusal).unwrap();
        assert!(challenge.is_step_up());
        assert_eq!(challenge.scopes, ["read", "write"]);
        assert_eq!(challenge.resource_metadata, None);
    }

    #[test]
    fn a_page_for_browsers_is_told_by_its_title() {
        let check = |body: &'static str, expected: &str| {
            let refusal = HttpRefusal {
                status: StatusCode::UNAUTHORIZED,
                body: Bytes::from_static(body.as_bytes()),
                retry_after: None,
                location: None,
            };
            assert_eq!(refusal.to_string(), expected);
        };
        check(
            "<!DOCTYPE html>\n<HTML><head><Title lang=en>Wrong key</title></head><body><p>x</p>",
            "HTTP 401 Unauthorized: Wrong key",
        );
        check(
            "<html><body>no title</body></html>",
            "HTTP 401 Unauthorized",
        );
        check(
            "the key is wrong",
            "HTTP 401 Unauthorized: the key is wrong",
        );
        check(
            "<error>wrong</error>",
            "HTTP 401 Unauthorized: <error>wrong</error>",
        );
    }
}
