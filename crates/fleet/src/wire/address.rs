//! The URL and the headers of a remote server, whose secrets are read again when the server refuses them.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use http::{HeaderName, HeaderValue, StatusCode};
use parking_lot::RwLock;
use printable::Redactor;
use reqwest::Url;
use secrets::Resolver;

use crate::{
    Template, Variables,
    environment::expand,
    error::Failure,
    proxies,
    secrets_named::{forget_printed, with_secrets},
};

pub(super) type Headers = HashMap<HeaderName, HeaderValue>;

/// The URL and the configured headers of a remote server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Address {
    pub(super) url: Url,
    pub(super) headers: Headers,
}

/// The templates of an address, and the variables that fill them in.
#[derive(Clone)]
pub(crate) struct AddressSource {
    pub(crate) url: Template,
    pub(crate) headers: Vec<(String, Template)>,
    /// With the secrets that the templates refer to.
    pub(crate) variables: Variables,
    pub(crate) resolver: Option<Arc<Resolver>>,
    /// True if a command had printed a secret of the server before this connection was opened.
    pub(crate) has_printed: bool,
}

/// An address with secrets that can be read again.
pub(super) struct RenewableAddress {
    source: AddressSource,
    current: RwLock<Arc<Address>>,
    /// Held while secrets are read again.
    renewing: tokio::sync::Mutex<()>,
    /// True if the server has accepted a request of this connection.
    is_accepted: AtomicBool,
    /// False while the server has not accepted what a command printed for this connection: the command would
    /// print the same again.
    may_print_again: AtomicBool,
}

impl AddressSource {
    fn templates(&self) -> impl Iterator<Item = &Template> {
        let headers = self.headers.iter().map(|(_, value)| value);
        [&self.url].into_iter().chain(headers)
    }

    fn fill(&self, variables: &Variables) -> Result<Address, String> {
        let url = expand(&self.url, variables).map_err(|failure| failure.why)?;
        let url = Url::parse(&url).map_err(|error| format!("`url` is not a valid URL: {error}"))?;
        let headers = read_headers(&self.headers, variables)?;
        Ok(Address { url, headers })
    }

    /// Returns the mask of the server's secrets: the values of variables, of every header, and the
    /// credentials of network proxies.
    pub(super) fn mask(&self) -> Redactor {
        Redactor::new(self.secrets(&self.variables).chain(proxies::secrets()))
    }

    fn secrets(&self, variables: &Variables) -> impl Iterator<Item = String> {
        let of_url = self.url.names().filter_map(|name| variables.get(name));
        let of_url: Vec<String> = of_url.map(str::to_owned).collect();
        let in_url = expand(&self.url, variables).map(|url| {
            let found = printable::find_secrets(&url, None).into_iter();
            found.map(|it| url[it.range].to_owned()).collect()
        });
        let in_url: Vec<String> = in_url.unwrap_or_default();
        let hidden = self.headers.iter();
        let hidden = hidden.filter(|(name, _)| !is_plain_header(name));
        let values = hidden.filter_map(|(_, value)| expand(value, variables).ok());
        let values: Vec<String> = values.flat_map(|value| words_of(&value)).collect();
        of_url.into_iter().chain(in_url).chain(values)
    }
}

impl RenewableAddress {
    pub(super) fn read(source: AddressSource) -> Result<Self, String> {
        let address = source.fill(&source.variables)?;
        Ok(Self {
            is_accepted: AtomicBool::new(false),
            may_print_again: AtomicBool::new(source.has_printed),
            source,
            current: RwLock::new(Arc::new(address)),
            renewing: tokio::sync::Mutex::default(),
        })
    }

    pub(super) fn current(&self) -> Arc<Address> {
        Arc::clone(&self.current.read())
    }

    /// Returns true if a response with this status refuses the secrets. A success records them as accepted;
    /// other statuses, such as 400 and 503, may come before the secrets are read. HTTP 403 refuses them until
    /// a request was accepted; then it refuses one request.
    pub(super) fn is_refused(&self, status: StatusCode) -> bool {
        if status.is_success() {
            self.is_accepted.store(true, Ordering::Relaxed);
            self.may_print_again.store(true, Ordering::Relaxed);
        }
        status == StatusCode::UNAUTHORIZED
            || status == StatusCode::FORBIDDEN && !self.is_accepted.load(Ordering::Relaxed)
    }

    /// Reads the secrets again after the server refused `used`. Runs a command again unless it has printed
    /// something else by now, or was run for this connection and never accepted. Returns `None` if the
    /// address stays the same.
    ///
    /// # Errors
    ///
    /// A secret cannot be read. The next refusal tries again.
    pub(super) async fn renew(
        &self,
        used: &Arc<Address>,
        mask: &Redactor,
    ) -> Result<Option<Arc<Address>>, Failure> {
        let mut references = self.source.templates().flat_map(Template::references);
        if references.next().is_none() {
            return Ok(None);
        }
        let _renewing = self.renewing.lock().await;
        let current = self.current();
        if current != *used {
            return Ok(Some(current));
        }
        let mut newer = self.read_again(mask).await?;
        if newer == *current && self.may_print_again.swap(false, Ordering::Relaxed) {
            let resolver = self.source.resolver.as_deref();
            forget_printed(self.source.templates(), resolver);
            newer = self.read_again(mask).await?;
        }
        if newer == *current {
            return Ok(None);
        }
        let newer = Arc::new(newer);
        *self.current.write() = Arc::clone(&newer);
        Ok(Some(newer))
    }

    async fn read_again(&self, mask: &Redactor) -> Result<Address, Failure> {
        let AddressSource {
            variables,
            resolver,
            ..
        } = &self.source;
        let templates = self.source.templates();
        let variables = with_secrets(templates, variables, resolver.as_deref()).await?;
        for secret in self.source.secrets(&variables) {
            mask.add_renewed(&secret);
        }
        self.source.fill(&variables).map_err(Failure::new)
    }
}

/// Returns the parts of a header's value that are secret: in `Bearer TOKEN`, only the token and the whole.
fn words_of(value: &str) -> Vec<String> {
    let is_scheme = |word: &&str| word.chars().all(char::is_alphabetic);
    let words = value.split_whitespace();
    let scheme = usize::from(
        words.clone().count() > 1 && words.clone().take(1).all(|word| is_scheme(&word)),
    );
    let words = words.skip(scheme).map(str::to_owned);
    words.chain([value.to_owned()]).collect()
}

/// Returns true for headers that never contain a secret.
fn is_plain_header(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    name.starts_with("accept")
        || ["content-type", "user-agent", "cache-control"].contains(&name.as_str())
}

const OURS: [&str; 6] = [
    "accept",
    "content-type",
    "content-length",
    "mcp-session-id",
    "mcp-protocol-version",
    "last-event-id",
];

fn read_headers(headers: &[(String, Template)], variables: &Variables) -> Result<Headers, String> {
    headers
        .iter()
        .map(|(name, value)| {
            let text = expand(value, variables).map_err(|failure| failure.why)?;
            let header = HeaderName::try_from(name.as_str())
                .map_err(|_| format!("`{name}` is not a valid header name"))?;
            if OURS.contains(&header.as_str()) {
                return Err(format!("header `{name}` is set by the protocol"));
            }
            let mut value = HeaderValue::try_from(text)
                .map_err(|_| format!("the value of header `{name}` is not valid"))?;
            value.set_sensitive(true);
            Ok((header, value))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_success_accepts_the_secrets() {
        let address = RenewableAddress::read(AddressSource {
            url: Template::parse("https://a.example/mcp").expect("the template is valid"),
            headers: Vec::new(),
            variables: Variables::default(),
            resolver: None,
            has_printed: false,
        });
        let address = address.expect("the address is valid");
        for (status, is_refused, may_print_again) in [
            (400, false, false),
            (503, false, false),
            (403, true, false),
            (401, true, false),
            (200, false, true),
            (403, false, true),
            (401, true, true),
        ] {
            let code = StatusCode::from_u16(status).expect("the status exists");
            assert_eq!(address.is_refused(code), is_refused, "{status}");
            let printing = address.may_print_again.load(Ordering::Relaxed);
            assert_eq!(printing, may_print_again, "{status}");
        }
    }
}
