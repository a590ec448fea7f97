//! Secrets in an address: a password, parameters, and parts of its path that are keys.

use super::{
    form::{is_hex, looks_random, looks_secret},
    found::{FoundSecret, HIDDEN, hide},
    name::{holds_secret, names_secret},
};
use crate::has_reference;

/// A part of a path with at least this many hexadecimal digits is a key, as many services use them.
const HEX_KEY_CHARS_MIN: usize = 32;

/// Returns true if a text begins with a scheme and `://`.
pub(super) fn is_address(text: &str) -> bool {
    let Some((scheme, _)) = text.split_once("://") else {
        return false;
    };
    let is_part = |c: char| c.is_ascii_alphanumeric() || "+-.:".contains(c);
    scheme.starts_with(|c: char| c.is_ascii_alphabetic()) && scheme.chars().all(is_part)
}

/// Finds the secrets of an address, and passes each of them to `push`.
pub(super) fn find(text: &str, mut push: impl FnMut(&str, Option<&str>)) {
    let Some((_, rest)) = text.split_once("://") else {
        return;
    };
    let rest = find_login(rest, &mut push);
    let query = rest.find(['?', '#']).unwrap_or(rest.len());
    let (path, query) = rest.split_at(query);
    for part in path.split(['/', ';', ',']).skip(1) {
        if is_key(part) {
            push(part, None);
        }
    }
    for pair in query.split(['?', '#', '&', ';']) {
        let (name, value) = pair.split_once('=').unwrap_or(("", pair));
        let is_named_secret = names_secret(name) && holds_secret(value);
        if !has_reference(value) && (is_named_secret || looks_secret(value)) {
            push(value, Some(name));
        }
    }
}

fn is_key(part: &str) -> bool {
    let is_hex_key = is_hex(part) && part.len() >= HEX_KEY_CHARS_MIN;
    looks_secret(part) || looks_random(part) || is_hex_key
}

/// Finds `name:password` before the host, and returns the rest of the address. A password may
/// contain any unescaped character: the text after a `:` that is no port belongs to it.
fn find_login<'a>(rest: &'a str, push: &mut impl FnMut(&str, Option<&str>)) -> &'a str {
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (host, path) = rest.split_at(end);
    let port = host.rsplit_once(':').map(|(_, port)| port);
    let is_port = |port: &str| port.bytes().all(|it| it.is_ascii_digit());
    let is_cut = !host.contains('@') && port.is_some_and(|it| !is_port(it) && !it.ends_with(']'));
    // `name:p@ss/word@host`: the last `@` before the parameters ends the password. A range that
    // covers too much of an address is harmless: the text is filled in unchanged.
    let is_login = host.split_once('@').is_some_and(|it| it.0.contains(':'));
    let before_query = &rest[..rest.find(['?', '#']).unwrap_or(rest.len())];
    let login = if is_cut {
        rest
    } else if is_login {
        before_query
    } else {
        host
    };
    let Some((login, _)) = login.rsplit_once('@') else {
        return if host.is_empty() { path } else { rest };
    };
    let (user, password) = login.split_once(':').unwrap_or((login, ""));
    if looks_secret(user) || looks_random(user) {
        push(user, Some("user"));
    }
    if !password.is_empty() && !has_reference(password) {
        push(password, Some("password"));
    }
    &rest[login.len() + 1..]
}

/// Masks a text that was meant as an address and may be invalid: nothing before an `@` or after a
/// `?` is left, however it is mistyped.
pub fn mask_address(text: &str) -> String {
    let is_scheme_part = |c: char| c.is_ascii_alphanumeric() || c == '+';
    let begin = match text.split_once(':') {
        // `name:password@host` has no scheme.
        Some((scheme, rest)) if rest.starts_with('/') && scheme.chars().all(is_scheme_part) => {
            text.len() - rest.trim_start_matches('/').len()
        }
        _ => 0,
    };
    let login = text.rfind('@').map_or(begin, |at| begin.max(at + 1));
    let end = text[login..].find(['?', '#']);
    let end = end.map_or(text.len(), |at| login + at);
    let host = &text[login..end];
    let mut found = Vec::new();
    let mut at = 0;
    for part in host.split('/') {
        if is_key(part) {
            found.push(FoundSecret::new(at..at + part.len(), None));
        }
        at += part.len() + 1;
    }
    let mut masked = text[..begin].to_owned();
    if login > begin {
        masked += HIDDEN;
        masked.push('@');
    }
    masked += &hide(host, &found);
    if end < text.len() {
        masked += &text[end..=end];
        masked += HIDDEN;
    }
    masked
}
