//! Requests to other servers, whose responses are limited in time and size.

use std::{error::Error, iter::successors, net::IpAddr, time::Duration};

use bytes::{Bytes, BytesMut};
use hyper::{
    HeaderMap, Method, StatusCode,
    header::{CONTENT_TYPE, HeaderValue},
};
use reqwest::{Client, ClientBuilder, RequestBuilder, Response, Url, redirect::Attempt};

use crate::http_client_builder;

/// Fetches documents: short responses that are read completely before they are used.
#[derive(Debug, Clone)]
pub struct Fetcher {
    client: Client,
    timeout: Duration,
    bytes_max: usize,
}

/// A response that was read completely.
#[derive(Debug)]
pub struct Document {
    /// Its status, of any kind.
    pub status: StatusCode,
    /// Its headers.
    pub headers: HeaderMap,
    /// Its body; empty for a stream of events, which may never end.
    pub body: Bytes,
}

impl Fetcher {
    /// Makes a fetcher. `timeout` is that from the first byte sent to the last byte read, and a response has
    /// at most `bytes_max` bytes.
    pub fn new(
        builder: ClientBuilder,
        timeout: Duration,
        bytes_max: usize,
    ) -> Result<Self, String> {
        let client = builder.timeout(timeout).build();
        Ok(Self {
            client: client.map_err(|error| describe(&error))?,
            timeout,
            bytes_max,
        })
    }

    /// Begins a request for [`Fetcher::send`].
    pub fn request(&self, method: Method, url: &Url) -> RequestBuilder {
        self.client.request(method, url.clone())
    }

    /// Sends a request, and reads its response. The error is a reason that names no address.
    pub async fn send(&self, request: RequestBuilder) -> Result<Document, String> {
        let response = request.send().await.map_err(|error| self.explain(&error))?;
        let (status, headers) = (response.status(), response.headers().clone());
        let kind = headers.get(CONTENT_TYPE).map(HeaderValue::as_bytes);
        let is_stream = kind.is_some_and(|kind| kind.starts_with(b"text/event-stream"));
        let body = if is_stream {
            Bytes::new()
        } else {
            let read = read_response(response, self.bytes_max).await;
            read.map_err(|error| match error {
                ReadError::TooLong => {
                    format!("its response has more than {} bytes", self.bytes_max)
                }
                ReadError::Http(error) => self.explain(&error),
            })?
        };
        Ok(Document {
            status,
            headers,
            body,
        })
    }

    fn explain(&self, error: &reqwest::Error) -> String {
        if error.is_timeout() {
            return format!("no response within {} s", self.timeout.as_secs());
        }
        describe(error)
    }
}

/// The reason why the body of a response was not read completely.
#[derive(Debug)]
pub enum ReadError {
    /// It has more bytes than the limit.
    TooLong,
    /// The connection failed.
    Http(reqwest::Error),
}

/// Reads the body of a response of at most `bytes_max` bytes.
pub async fn read_response(mut response: Response, bytes_max: usize) -> Result<Bytes, ReadError> {
    let mut body = BytesMut::new();
    while let Some(chunk) = response.chunk().await.map_err(ReadError::Http)? {
        if body.len() + chunk.len() > bytes_max {
            return Err(ReadError::TooLong);
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body.freeze())
}

/// Begins a client for requests to the server at this address: over the proxies of the environment, unless it
/// is on this machine. For a proxy, the loopback address is another machine.
pub fn client_builder_for(url: &Url) -> ClientBuilder {
    let builder = http_client_builder();
    if is_loopback(url.host_str().unwrap_or_default()) {
        return builder.no_proxy();
    }
    builder
}

/// Returns true for a redirect to the origin of the request before it, within so many redirects.
pub fn stays_at_origin(attempt: &Attempt<'_>, redirects_max: usize) -> bool {
    let from = attempt.previous().last();
    from.is_some_and(|from| from.origin() == attempt.url().origin())
        && attempt.previous().len() <= redirects_max
}

/// Returns true if a host is this machine.
pub fn is_loopback(host: &str) -> bool {
    let ip = host.trim_matches(['[', ']']).parse::<IpAddr>();
    host == "localhost" || ip.is_ok_and(|ip| ip.to_canonical().is_loopback())
}

/// Returns the innermost cause: the outer ones only say "error sending request".
pub fn describe(error: &reqwest::Error) -> String {
    let causes = successors(Some(error as &dyn Error), |&cause| cause.source());
    causes.last().map_or_else(String::new, ToString::to_string)
}

#[cfg(test)]
mod tests {
    use tokio::{
        io::{AsyncReadExt as _, AsyncWriteExt as _},
        net::TcpListener,
    };

    use super::*;

    /// Fetches a response of a server that sends these bytes.
    async fn fetch(answer: &'static str) -> Result<Document, String> {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        let url = Url::parse(&url).unwrap();
        let serving = tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let _ = stream.read(&mut [0; 4096]).await;
            let _ = stream.write_all(answer.as_bytes()).await;
        });
        let timeout = Duration::from_secs(5);
        let fetcher = Fetcher::new(client_builder_for(&url), timeout, 8).unwrap();
        let document = fetcher.send(fetcher.request(Method::GET, &url)).await;
        serving.abort();
        document
    }

    #[tokio::test]
    async fn a_document_is_read_within_its_limits() {
        let document = fetch("HTTP/1.1 404 Not Found\r\ncontent-length: 2\r\n\r\n{}").await;
        let document = document.unwrap();
        assert_eq!(
            (document.status.as_u16(), &*document.body),
            (404, b"{}".as_slice())
        );
        let large = fetch("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n123456789").await;
        assert_eq!(large.unwrap_err(), "its response has more than 8 bytes");
        let endless =
            "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\ndata: 123456789\n\n";
        assert!(fetch(endless).await.unwrap().body.is_empty());
        let cut = fetch("HTTP/1.1 200 OK\r\ncontent-length: 3\r\nconnection: close\r\n\r\n1").await;
        assert!(cut.is_err());
    }

    #[test]
    fn a_loopback_address_is_this_machine() {
        for here in [
            "localhost",
            "127.0.0.1",
            "127.0.0.2",
            "[::1]",
            "[::ffff:127.0.0.1]",
        ] {
            assert!(is_loopback(here), "{here}");
        }
        for elsewhere in ["", "192.168.0.1", "localhost.example", "[::2]"] {
            assert!(!is_loopback(elsewhere), "{elsewhere}");
        }
    }
}
