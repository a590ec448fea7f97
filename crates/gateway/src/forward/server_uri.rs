//! `proxy://SERVER/URI`: a resource by its server as well as its URI. This form is always accepted,
//! and listed if several servers have one URI.

use tool::ServerName;

const SCHEME: &str = "proxy://";

pub(super) fn write(server: &ServerName, uri: &str) -> String {
    format!("{SCHEME}{server}/{uri}")
}

/// The server and its own URI.
pub(super) fn read(uri: &str) -> Option<(&str, &str)> {
    let (server, own) = uri.strip_prefix(SCHEME)?.split_once('/')?;
    (!own.is_empty()).then_some((server, own))
}

/// The scheme of a URI: the text before the first `:`.
pub(super) fn scheme(uri: &str) -> Option<&str> {
    let (scheme, _) = uri.split_once(':')?;
    let is_scheme = |c: char| c.is_ascii_alphanumeric() || "+-.".contains(c);
    (!scheme.is_empty() && scheme.chars().all(is_scheme)).then_some(scheme)
}
