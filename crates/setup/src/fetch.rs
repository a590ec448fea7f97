//! One JSON document from an address that a person named: limited in time and size, and never from
//! another origin.

use std::time::Duration;

use http_core::{Fetcher, client_builder_for, is_loopback, stays_at_origin};
use reqwest::{Method, StatusCode, Url, redirect::Policy};
use serde_json::Value;

/// The timeout, from the first byte sent to the last byte read.
const WAIT: Duration = Duration::from_secs(20);

/// The largest document, in bytes: a page of a registry with 100 servers has some hundred KB.
const BODY_BYTES_MAX: usize = 8 * 1024 * 1024;

const REDIRECTS_MAX: usize = 3;

/// The reason why there is no document.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    /// The text is no address from which documents are read.
    #[error("`{0}` is no address; write https://HOST")]
    Address(String),
    /// The address answered that there is no such document.
    #[error("{0} has no such document (HTTP 404)")]
    Missing(String),
    /// The address could not be reached, or answered something else.
    #[error("{url}: {why}")]
    Http {
        /// The address.
        url: String,
        /// The reason.
        why: String,
    },
}

/// Parses an address. Only a program of this machine may be asked without encryption.
pub(crate) fn parse(text: &str) -> Result<Url, FetchError> {
    let refuse = || FetchError::Address(printable::one_line_of(text, 200));
    let url = Url::parse(text).map_err(|_| refuse())?;
    let is_here = is_loopback(url.host_str().unwrap_or_default());
    let is_safe = url.scheme() == "https" || url.scheme() == "http" && is_here;
    let has_login = !url.username().is_empty() || url.password().is_some();
    if is_safe && url.host_str().is_some() && !has_login {
        Ok(url)
    } else {
        Err(refuse())
    }
}

/// Reads a document. A redirect is followed to the same origin only.
pub(crate) async fn json(url: &Url) -> Result<Value, FetchError> {
    let fail = |why: String| FetchError::Http {
        url: shown(url),
        why: printable::one_line_of(&why, 300),
    };
    let policy = Policy::custom(|attempt| {
        if stays_at_origin(&attempt, REDIRECTS_MAX) {
            attempt.follow()
        } else {
            attempt.stop()
        }
    });
    let builder = client_builder_for(url)
        .user_agent(concat!("proxy/", env!("CARGO_PKG_VERSION")))
        .redirect(policy);
    let fetcher = Fetcher::new(builder, WAIT, BODY_BYTES_MAX).map_err(fail)?;
    let request = fetcher.request(Method::GET, url);
    let request = request.header("accept", "application/json");
    let document = fetcher.send(request).await.map_err(fail)?;
    match document.status {
        StatusCode::OK => {}
        StatusCode::NOT_FOUND => return Err(FetchError::Missing(shown(url))),
        status if status.is_redirection() => {
            return Err(fail(
                "it redirects to another address; use that one".to_owned(),
            ));
        }
        status => return Err(fail(format!("HTTP {status}"))),
    }
    serde_json::from_slice(&document.body)
        .map_err(|error| fail(format!("its answer is no JSON: {error}")))
}

/// The address without its query, which may be long.
fn shown(url: &Url) -> String {
    let mut url = url.clone();
    url.set_query(None);
    printable::one_line_of(url.as_str(), 300)
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn only_encrypted_addresses_and_this_machine_are_asked() {
        for good in [
            "https://a.example",
            "http://127.0.0.1:80/x",
            "http://localhost:1",
        ] {
            assert!(parse(good).is_ok(), "{good}");
        }
        for bad in [
            "http://a.example",
            "file:///etc/passwd",
            "a.example",
            "https://u:p@a.example",
            "https://",
        ] {
            let error = parse(bad).unwrap_err().to_string();
            assert!(error.ends_with("write https://HOST"), "{error}");
        }
    }
}
