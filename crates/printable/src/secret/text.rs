//! Secrets in a text of any form: one value, a pair, a header, JSON, a line of words.

use super::{
    address,
    form::{is_hex, looks_random, looks_secret},
    found::{FoundSecret, join_overlapping},
    name::{holds_secret, names_secret},
    tokens::TOKEN_CHARS_MIN,
};
use crate::has_reference;

/// Names of authentication schemes before a token.
const SCHEMES: [&str; 5] = ["Bearer", "Basic", "Token", "ApiKey", "DPoP"];

/// The nesting limit for values in pairs, pairs in JSON, and JSON in an argument.
const DEPTH_MAX: usize = 8;

/// Finds the secrets in a text, in order. `name` is the name of the variable or option with this value,
/// if it is known. References such as `${X}` are not secrets.
pub fn find_secrets(text: &str, name: Option<&str>) -> Vec<FoundSecret> {
    let mut finder = Finder {
        whole: text,
        found: Vec::new(),
    };
    finder.scan(text, name, 0);
    join_overlapping(finder.found)
}

/// Finds the secrets in each argument of a program. The value of an option may be the next argument.
pub fn find_secrets_in_arguments<'a>(
    arguments: impl IntoIterator<Item = &'a str>,
) -> Vec<Vec<FoundSecret>> {
    let mut option = None;
    let one = |argument: &'a str| {
        let found = find_secrets(argument, option);
        option = named_next(argument);
        found
    };
    arguments.into_iter().map(one).collect()
}

/// Returns the name that a word gives to the next one: `--token`, `Authorization:`, `Bearer`.
pub(super) fn named_next(word: &str) -> Option<&str> {
    if is_scheme(word) {
        return Some("Authorization");
    }
    let is_option = word.starts_with('-') && word.len() > 1 && !word.contains(['=', ':']);
    let key = word.strip_suffix([':', '=']).filter(|it| is_name(it));
    if is_option { Some(word) } else { key }
}

fn is_scheme(word: &str) -> bool {
    SCHEMES.iter().any(|it| it.eq_ignore_ascii_case(word))
}

struct Finder<'a> {
    whole: &'a str,
    found: Vec<FoundSecret>,
}

impl<'a> Finder<'a> {
    fn push(&mut self, secret: &str, name: Option<&str>) {
        // Every inspected piece is a slice of the whole.
        let start = secret.as_ptr().addr() - self.whole.as_ptr().addr();
        let name = name.map(|name| name.trim_start_matches('-'));
        let name = name.filter(|name| !name.is_empty());
        let range = start..start + secret.len();
        self.found.push(FoundSecret::new(range, name));
    }

    fn scan(&mut self, text: &'a str, name: Option<&str>, depth: usize) {
        let text = unquote(text.trim());
        if text.is_empty() || depth > DEPTH_MAX {
            return;
        }
        if address::is_address(text) && !text.contains(char::is_whitespace) {
            address::find(text, |secret, name| self.push(secret, name));
            return;
        }
        let tells = name.is_some_and(names_secret);
        if self.scan_json(text, name, depth) || self.scan_sent(text, name, tells) {
            return;
        }
        if tells {
            if !has_reference(text) && holds_secret(text) {
                self.push(text, name);
            }
            return;
        }
        let is_word = !text.contains(|c: char| c.is_whitespace() || is_separator(c));
        if let Some(password) = password_of(text).filter(|_| is_word) {
            self.push(password, Some("password"));
        } else if let Some((name, value)) = split_pair(text) {
            self.scan(value, Some(name), depth + 1);
        } else if !is_word {
            self.scan_words(text, depth);
        } else if looks_secret(text) || (name.is_none() && looks_random(text) && !is_hex(text)) {
            self.push(text, name);
        } else if let Some(password) = password_of_short_option(text, name) {
            self.push(password, Some("p"));
        }
    }

    /// Finds `Bearer TOKEN`, as the value of any name.
    fn scan_sent(&mut self, text: &'a str, name: Option<&str>, tells: bool) -> bool {
        let Some((scheme, token)) = text.split_once(' ') else {
            return false;
        };
        let token = token.trim();
        let is_one = !token.is_empty() && !token.contains(char::is_whitespace);
        let is_sent = is_one && is_scheme(scheme) && (tells || token.len() >= TOKEN_CHARS_MIN);
        if is_sent && !has_reference(token) && split_pair(token).is_none_or(|_| tells) {
            self.push(token, name.or(Some("Authorization")));
        }
        is_sent
    }

    /// Scans the strings of JSON, each under its key.
    fn scan_json(&mut self, text: &'a str, name: Option<&str>, depth: usize) -> bool {
        let is_json = (text.starts_with('{') && text.ends_with('}'))
            || (text.starts_with('[') && text.ends_with(']'));
        if !is_json || !text.contains('"') {
            return false;
        }
        // In a text that is itself a JSON string, the quotes are escaped.
        let is_escaped = text.split('"').next().is_some_and(|it| it.ends_with('\\'));
        let mark = if is_escaped { "\\\"" } else { "\"" };
        let (mut rest, mut key) = (text, None);
        while let Some((_, inner)) = rest.split_once(mark) {
            let end = if is_escaped {
                inner.find(mark)
            } else {
                end_of_quoted(inner, mark)
            };
            let (string, behind) = inner.split_at(end.unwrap_or(inner.len()));
            rest = behind.strip_prefix(mark).unwrap_or(behind);
            if rest.trim_start().starts_with(':') {
                key = Some(string);
            } else {
                self.scan(string, key.or(name), depth + 1);
                // In a list, an option's value is the next string.
                key = named_next(string);
            }
        }
        true
    }

    fn scan_words(&mut self, text: &'a str, depth: usize) {
        let mut named = None;
        for word in words(text) {
            self.scan(word, named, depth + 1);
            named = named_next(unquote(word));
        }
    }
}

/// Returns the position of the mark that ends a quoted text. In quotes other than `'`, a backslash escapes.
pub(super) fn end_of_quoted(inner: &str, mark: &str) -> Option<usize> {
    let mut is_escaped = false;
    for (at, c) in inner.char_indices() {
        if !is_escaped && inner[at..].starts_with(mark) {
            return Some(at);
        }
        is_escaped = c == '\\' && !is_escaped && mark.starts_with('"');
    }
    None
}

fn is_separator(c: char) -> bool {
    [';', ',', '|', '&'].contains(&c)
}

/// Splits words at blanks and at separators of pairs, except within quotes.
fn words(text: &str) -> impl Iterator<Item = &str> {
    let mut quote = None;
    let words = text.split(move |c: char| {
        match quote {
            Some(open) if c == open => quote = None,
            None if c == '"' || c == '\'' => quote = Some(c),
            None => return c.is_whitespace() || is_separator(c),
            Some(_) => {}
        }
        false
    });
    words.filter(|word| !word.is_empty())
}

fn unquote(text: &str) -> &str {
    let inside = |mark: char| text.strip_prefix(mark)?.strip_suffix(mark);
    inside('"')
        .or_else(|| inside('\''))
        .or_else(|| inside('`'))
        .unwrap_or(text)
}

pub(super) fn is_name(text: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    !text.is_empty() && text.chars().all(is_part)
}

/// Splits `NAME=VALUE` or `NAME: VALUE`, but not at the `:` of an address.
fn split_pair(text: &str) -> Option<(&str, &str)> {
    let at = text.find(['=', ':'])?;
    let (name, value) = (&text[..at], &text[at + 1..]);
    let is_other = text[at..].starts_with("://") || text[at..].starts_with(":\\");
    (is_name(name) && !is_other && !value.is_empty()).then_some((name, value))
}

/// Returns the value of `-p VALUE`, `-pVALUE` or `-k VALUE` if it can hardly be a port, a package, a path or a
/// name: it has two of upper case, digits and characters that names lack.
fn password_of_short_option<'a>(text: &'a str, name: Option<&str>) -> Option<&'a str> {
    let value = match name {
        Some("-p" | "-k") => text,
        None => text.strip_prefix("-p")?,
        Some(_) => return None,
    };
    let has = |is_kind: fn(char) -> bool| usize::from(value.contains(is_kind));
    let kinds = has(|c| c.is_ascii_uppercase())
        + has(|c| c.is_ascii_digit())
        + has(|c| !c.is_ascii_alphanumeric() && !"-_./@^~:,+=".contains(c));
    (kinds > 1 && !has_reference(value) && holds_secret(value)).then_some(value)
}

/// Returns the password of `name:password@host`. `npm:package@1.2.3` has no host, and so no password.
fn password_of(text: &str) -> Option<&str> {
    let (login, host) = text.rsplit_once('@')?;
    let (user, password) = login.split_once(':')?;
    let host = host.split('/').next().unwrap_or(host);
    let (host, port) = host.split_once(':').unwrap_or((host, ""));
    let ending = host.rsplit('.').next().unwrap_or(host);
    let has_ending = host.contains('.') && ending.chars().all(|c| c.is_ascii_alphabetic());
    let is_port = !port.is_empty() && port.bytes().all(|it| it.is_ascii_digit());
    let is_host = has_ending || is_port || host == "localhost";
    let is_login = is_name(user) && !password.is_empty() && user != "mailto";
    (is_login && is_host && !has_reference(password)).then_some(password)
}
