//! The reasons why a remote server is not reached, found by the types of errors and never by their texts.

use std::{error::Error, io, iter::successors};

use http::StatusCode;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use tokio::net::lookup_host;

/// A known reason why there is no connection, for which there is a hint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Obstacle {
    /// The host refuses connections to this port.
    NothingListens,
    /// The name of the host has no address.
    UnknownHost,
    /// TLS: the certificate does not verify.
    Distrusted,
    /// TLS: the response is not TLS.
    NotTls,
    /// The HTTP server has no MCP endpoint at this path.
    NoEndpoint,
    /// The server redirects to another origin, which must not get the headers.
    Redirected,
    /// The server failed (HTTP 5xx).
    ServerFails,
}

impl Obstacle {
    /// Returns the obstacle of an unsuccessful response.
    pub(crate) fn of_status(status: StatusCode) -> Option<Self> {
        match status {
            StatusCode::NOT_FOUND | StatusCode::METHOD_NOT_ALLOWED => Some(Self::NoEndpoint),
            status if status.is_redirection() => Some(Self::Redirected),
            status if status.is_server_error() => Some(Self::ServerFails),
            _ => None,
        }
    }

    /// Returns the obstacle of a request without a response.
    pub(crate) fn of_error(error: &(dyn Error + 'static)) -> Option<Self> {
        successors(Some(error), |&error| error.source()).find_map(Self::of_cause)
    }

    fn of_cause(error: &(dyn Error + 'static)) -> Option<Self> {
        if error.is::<LookupError>() {
            return Some(Self::UnknownHost);
        }
        if let Some(error) = error.downcast_ref::<rustls::Error>() {
            return Self::of_tls(error);
        }
        let error = error.downcast_ref::<io::Error>()?;
        if error.kind() == io::ErrorKind::ConnectionRefused {
            return Some(Self::NothingListens);
        }
        // The source of an `io::Error` is the source of the error inside it, not that error.
        Self::of_cause(error.get_ref()?)
    }

    fn of_tls(error: &rustls::Error) -> Option<Self> {
        match error {
            rustls::Error::InvalidCertificate(_) => Some(Self::Distrusted),
            rustls::Error::InvalidMessage(_) => Some(Self::NotTls),
            _ => None,
        }
    }
}

/// The system's lookup of names, with an error type of its own.
pub(crate) struct Lookup;

impl Resolve for Lookup {
    fn resolve(&self, name: Name) -> Resolving {
        Box::pin(async move {
            let found = lookup_host((name.as_str(), 0)).await.map_err(LookupError)?;
            let addresses: Addrs = Box::new(found.collect::<Vec<_>>().into_iter());
            Ok(addresses)
        })
    }
}

#[derive(Debug, thiserror::Error)]
#[error(transparent)]
struct LookupError(io::Error);

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("error sending request")]
    struct Outer(#[source] io::Error);

    #[test]
    fn a_cause_is_found_by_its_type_however_deep_and_whatever_it_says() {
        let check = |error: io::Error, expected: Option<Obstacle>| {
            assert_eq!(Obstacle::of_error(&Outer(error)), expected);
        };
        let refused = || io::Error::from(io::ErrorKind::ConnectionRefused);
        check(refused(), Some(Obstacle::NothingListens));
        check(
            io::Error::other(LookupError(io::Error::other("no such name"))),
            Some(Obstacle::UnknownHost),
        );
        let untrusted = rustls::Error::InvalidCertificate(rustls::CertificateError::UnknownIssuer);
        check(io::Error::other(untrusted), Some(Obstacle::Distrusted));
        let plain = rustls::Error::InvalidMessage(rustls::InvalidMessage::InvalidContentType);
        check(
            io::Error::new(io::ErrorKind::InvalidData, plain),
            Some(Obstacle::NotTls),
        );
        // Texts of a server do not count.
        for words in [
            "Connection refused",
            "dns error",
            "certificate",
            "HTTP 404",
            "HTTP 500",
        ] {
            check(io::Error::other(words), None);
        }
    }

    #[test]
    fn a_status_says_what_stands_in_the_way() {
        let of = |status: u16| Obstacle::of_status(StatusCode::from_u16(status).unwrap());
        assert_eq!(of(404), Some(Obstacle::NoEndpoint));
        assert_eq!(of(405), Some(Obstacle::NoEndpoint));
        assert_eq!(of(308), Some(Obstacle::Redirected));
        assert_eq!(of(503), Some(Obstacle::ServerFails));
        assert_eq!(of(400), None);
        assert_eq!(of(429), None);
    }
}
