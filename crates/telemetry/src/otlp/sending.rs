//! One request to a collector, and what its answer means.

use std::{error::Error, time::Duration};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use reqwest::{Client, Response, Url, redirect::Policy};

use crate::otlp::wire;

/// A collector that does not answer for so long is away.
const ANSWER_WAIT: Duration = Duration::from_secs(10);

/// The most that is read of an answer: a few words, if any.
const ANSWER_BYTES_MAX: usize = 64 * 1024;

/// The longest pause that a collector may ask for.
const PAUSE_MAX: Duration = Duration::from_mins(1);

/// Where traces go below the address of a collector.
const PATH: &str = "/v1/traces";

/// A collector, and the way to it.
#[derive(Debug, Clone)]
pub struct Collector {
    client: Client,
    url: Url,
}

/// What became of a request.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Taken, but for so many.
    Taken { rejected: u64 },
    /// Not now; perhaps after this pause.
    Away { why: String, pause: Duration },
    /// Not these spans, however often they come.
    Refused { why: String },
}

impl Collector {
    /// A collector at this address, below which `/v1/traces` is, with headers that each request
    /// carries. Their values are in no error.
    pub fn new(endpoint: &str, headers: &[(String, String)]) -> Result<Self, String> {
        let endpoint = endpoint.trim_end_matches('/');
        let whole = match endpoint.strip_suffix(PATH) {
            Some(_) => endpoint.to_owned(),
            None => format!("{endpoint}{PATH}"),
        };
        let url =
            Url::parse(&whole).map_err(|error| format!("`endpoint` is no address: {error}"))?;
        let mut builder = Client::builder()
            .timeout(ANSWER_WAIT)
            .default_headers(read_headers(headers)?)
            // A header may be a secret, and is for that address alone.
            .redirect(Policy::none());
        if is_loopback(&url) {
            // A network proxy's loopback is another machine's.
            builder = builder.no_proxy();
        }
        let client = builder.build().map_err(|error| describe(&error))?;
        Ok(Self { client, url })
    }

    /// The scheme, host and port; the rest may hold a secret.
    pub fn origin(&self) -> String {
        self.url.origin().ascii_serialization()
    }

    pub(crate) async fn send(&self, body: Bytes) -> Outcome {
        let request = self.client.post(self.url.clone());
        let request = request.header(header::CONTENT_TYPE, "application/json");
        match request.body(body).send().await {
            Ok(response) => read(response).await,
            Err(error) => Outcome::Away {
                why: describe(&error.without_url()),
                pause: Duration::ZERO,
            },
        }
    }
}

/// By the rules of OTLP: four statuses mean that it may be tried again.
async fn read(response: Response) -> Outcome {
    let status = response.status();
    if status.is_success() {
        let body = read_body(response).await;
        return Outcome::Taken {
            rejected: wire::read_rejected(&body),
        };
    }
    let why = format!("HTTP {status}");
    match status {
        StatusCode::TOO_MANY_REQUESTS
        | StatusCode::BAD_GATEWAY
        | StatusCode::SERVICE_UNAVAILABLE
        | StatusCode::GATEWAY_TIMEOUT => Outcome::Away {
            why,
            pause: pause_of(response.headers()),
        },
        _ => Outcome::Refused { why },
    }
}

async fn read_body(mut response: Response) -> Vec<u8> {
    let mut body = Vec::new();
    while let Ok(Some(part)) = response.chunk().await {
        body.extend_from_slice(&part);
        if body.len() > ANSWER_BYTES_MAX {
            return Vec::new();
        }
    }
    body
}

/// Of `Retry-After` only the form in seconds.
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
            .map_err(|_| format!("`headers.{name}` is no name of a header"))?;
        let mut value = HeaderValue::from_str(value)
            .map_err(|_| format!("`headers.{name}` holds what no header can"))?;
        value.set_sensitive(true);
        read.insert(key, value);
    }
    Ok(read)
}

fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let address = host.trim_matches(['[', ']']).parse::<std::net::IpAddr>();
    host == "localhost" || address.is_ok_and(|address| address.is_loopback())
}

/// An error with what caused it, the last of which says most.
fn describe(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
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
