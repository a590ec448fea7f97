//! One JSON document from an address that a person named: limited in time and size, and never from
//! another origin.

use std::time::Duration;

use reqwest::{Client, StatusCode, Url, redirect::Policy};
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
    let is_here = matches!(url.host_str(), Some("localhost" | "127.0.0.1" | "[::1]"));
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
    let is_here = url.scheme() == "http";
    let policy = Policy::custom(|attempt| {
        let first = attempt.previous().first().map(Url::origin);
        if attempt.previous().len() > REDIRECTS_MAX || first != Some(attempt.url().origin()) {
            attempt.stop()
        } else {
            attempt.follow()
        }
    });
    let builder = Client::builder().timeout(WAIT).redirect(policy);
    // The loopback address of a network proxy is another machine's.
    let builder = if is_here { builder.no_proxy() } else { builder };
    let client = builder.build().map_err(|error| fail(describe(&error)))?;
    let agent = concat!("proxy/", env!("CARGO_PKG_VERSION"));
    let request = client.get(url.clone()).header("accept", "application/json");
    let sent = request.header("user-agent", agent).send().await;
    let mut answer = sent.map_err(|error| fail(describe(&error)))?;
    match answer.status() {
        StatusCode::OK => {}
        StatusCode::NOT_FOUND => return Err(FetchError::Missing(shown(url))),
        status if status.is_redirection() => {
            return Err(fail(
                "it redirects to another address; use that one".to_owned(),
            ));
        }
        status => return Err(fail(format!("HTTP {status}"))),
    }
    let mut bytes = Vec::new();
    while let Some(chunk) = answer
        .chunk()
        .await
        .map_err(|error| fail(describe(&error)))?
    {
        if bytes.len() + chunk.len() > BODY_BYTES_MAX {
            return Err(fail(format!("its answer has over {BODY_BYTES_MAX} bytes")));
        }
        bytes.extend_from_slice(&chunk);
    }
    serde_json::from_slice(&bytes).map_err(|error| fail(format!("its answer is no JSON: {error}")))
}

/// The address without its query, which may be long.
fn shown(url: &Url) -> String {
    let mut url = url.clone();
    url.set_query(None);
    printable::one_line_of(url.as_str(), 300)
}

fn describe(error: &reqwest::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    cause.to_string()
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
