//! One request to a collector, and the meaning of its response.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use http_core::{client_builder_for, describe, read_response};
use reqwest::{Client, Response, Url, redirect::Policy};

use crate::otlp::wire;

/// The timeout of a request to a collector.
const ANSWER_WAIT: Duration = Duration::from_secs(10);

/// The most bytes of a response that are read; a response has a few words, if any.
const ANSWER_BYTES_MAX: usize = 64 * 1024;

/// The longest pause that a collector may request.
const PAUSE_MAX: Duration = Duration::from_mins(1);

/// The path of traces below the address of a collector.
const PATH: &str = "/v1/traces";

/// A collector and the client for its requests.
#[derive(Debug, Clone)]
pub struct Collector {
    client: Client,
    url: Url,
}

/// The result of a request.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum SendOutcome {
    /// The collector accepted the spans, except for `rejected` of them.
    Taken { rejected: u64 },
    /// The request may be repeated, after this pause.
    Away { why: String, pause: Duration },
    /// The collector refuses these spans; repeating the request does not help.
    Refused { why: String },
}

impl Collector {
    /// Makes a collector at this address, with `/v1/traces` appended unless it is there, and with
    /// headers for each request. No error holds the value of a header.
    pub fn new(endpoint: &str, headers: &[(String, String)]) -> Result<Self, String> {
        let endpoint = endpoint.trim_end_matches('/');
        let whole = match endpoint.strip_suffix(PATH) {
            Some(_) => endpoint.to_owned(),
            None => format!("{endpoint}{PATH}"),
        };
        let url = Url::parse(&whole)
            .map_err(|error| format!("`endpoint` is not a valid address: {error}"))?;
        let client = client_builder_for(&url)
            .timeout(ANSWER_WAIT)
            .default_headers(read_headers(headers)?)
            // A header may be a secret, and is meant for that address alone.
            .redirect(Policy::none())
            .build()
            .map_err(|error| describe(&error))?;
        Ok(Self { client, url })
    }

    /// Returns the scheme, host and port; the rest of the address may hold a secret.
    pub fn origin(&self) -> String {
        self.url.origin().ascii_serialization()
    }

    pub(crate) async fn send(&self, body: Bytes) -> SendOutcome {
        let request = self.client.post(self.url.clone());
        let request = request.header(header::CONTENT_TYPE, "application/json");
        match request.body(body).send().await {
            Ok(response) => read(response).await,
            Err(error) => SendOutcome::Away {
                why: describe(&error),
                pause: Duration::ZERO,
            },
        }
    }
}

/// Reads a response by the rules of OTLP: four statuses mean that the request may be repeated.
async fn read(response: Response) -> SendOutcome {
    let status = response.status();
    if status.is_success() {
        let body = read_response(response, ANSWER_BYTES_MAX).await;
        return SendOutcome::Taken {
            rejected: wire::read_rejected(&body.unwrap_or_default()),
        };
    }
    let why = format!("HTTP {status}");
    match status {
        StatusCode::TOO_MANY_REQUESTS
        | StatusCode::BAD_GATEWAY
        | StatusCode::SERVICE_UNAVAILABLE
        | StatusCode::GATEWAY_TIMEOUT => SendOutcome::Away {
            why,
            pause: pause_of(response.headers()),
        },
        _ => SendOutcome::Refused { why },
    }
}

/// Returns the pause of `Retry-After`, if it is given in seconds.
fn pause_of(headers: &HeaderMap) -> Duration {
    let value = headers.get(header::RETRY_AFTER);
    let seconds = value.and_then(|it| it.to_str().ok()?.parse().ok());
    Duration::from_secs(seconds.unwrap_or(0)).min(PAUSE_MAX)
}

fn read_headers(headers: &[(String, String)]) -> Result<HeaderMap, String> {
    let mut read = HeaderMap::new();
    for (name, value) in headers {
        let key: header::HeaderName = name
            .parse()
            .map_err(|_| format!("`headers.{name}` is not a valid header name"))?;
        let mut value = HeaderValue::from_str(value).map_err(|_| {
            format!("`headers.{name}` contains characters that a header cannot contain")
        })?;
        value.set_sensitive(true);
        read.insert(key, value);
    }
    Ok(read)
}

#[cfg(test)]
mod tests {
    use super::Collector;

    #[track_caller]
    fn check(endpoint: &str, url: &str) {
        let collector = Collector::new(endpoint, &[]).unwrap();
        assert_eq!(collector.url.as_str(), url);
    }

    #[test]
    fn the_path_is_added_where_it_is_not_there() {
        check("http://127.0.0.1:4318", "http://127.0.0.1:4318/v1/traces");
        check("http://127.0.0.1:4318/", "http://127.0.0.1:4318/v1/traces");
        check(
            "http://[::1]:4318/a/v1/traces",
            "http://[::1]:4318/a/v1/traces",
        );
    }

    #[test]
    fn what_is_told_of_it_holds_no_secret() {
        let collector = Collector::new("https://me:s3cret@a.example/k3y", &[]).unwrap();
        assert_eq!(collector.origin(), "https://a.example");
        let header = [("X-Key".to_owned(), "s3cret\n".to_owned())];
        let error = Collector::new("https://a.example", &header).unwrap_err();
        assert!(
            error.contains("X-Key") && !error.contains("s3cret"),
            "{error}"
        );
        assert!(Collector::new("nowhere", &[]).is_err());
    }
}
