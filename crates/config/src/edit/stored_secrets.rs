//! Secrets in clear text in a new server: each goes into the secret store, and the file gets its name.

use std::{cell::LazyCell, collections::BTreeSet};

use printable::{FoundSecret, find_secrets, find_secrets_in_arguments, join_overlapping};
use secrets::{NAME_CHARS_MAX, Secret, SecretName};
use tool::ServerName;

use super::NewServer;

/// A shorter value that is known to be secret is replaced only where it is a whole text.
const PART_BYTES_MIN: usize = 4;

/// Secrets that a document names and does not contain. They must be stored before it is written.
pub type StoredSecrets = Vec<(SecretName, Secret)>;

/// Returns a line that names the secrets; `None` without any.
pub fn describe_stored(secrets: &[(SecretName, Secret)]) -> Option<String> {
    let names: Vec<&str> = secrets.iter().map(|(name, _)| name.as_str()).collect();
    let line = format!(
        "stored by `proxy secret`, not in the file: {}",
        names.join(", ")
    );
    (!names.is_empty()).then_some(line)
}

/// Replaces each secret in clear text by `${secret:NAME}`. No secret gets one of the names that
/// `stored_names` returns.
pub(super) fn take_secrets(
    server: &ServerName,
    table: &mut NewServer,
    stored_names: impl FnOnce() -> BTreeSet<String>,
) -> StoredSecrets {
    let known = std::mem::take(&mut table.secret_values);
    let mut taker = SecretTaker {
        server,
        kept: LazyCell::new(stored_names),
        known: &known,
        stored: Vec::new(),
    };
    for (name, value) in table.env.iter_mut().chain(&mut table.headers) {
        let found = find_secrets(value, Some(name)).into_iter();
        let found = found.map(|secret| FoundSecret {
            name: Some(name.clone()),
            ..secret
        });
        taker.take(value, found.collect(), name);
    }
    let found = find_secrets_in_arguments(table.args.iter().map(String::as_str));
    for (index, (argument, found)) in table.args.iter_mut().zip(found).enumerate() {
        taker.take(argument, found, &format!("argument-{}", index + 1));
    }
    if let Some(url) = &mut table.url {
        let found = find_secrets(url, None);
        taker.take(url, found, "url");
    }
    taker.stored
}

struct SecretTaker<'a, F: FnOnce() -> BTreeSet<String>> {
    server: &'a ServerName,
    kept: LazyCell<BTreeSet<String>, F>,
    /// Values that are secret in any form, each with its label.
    known: &'a [(String, String)],
    stored: StoredSecrets,
}

impl<F: FnOnce() -> BTreeSet<String>> SecretTaker<'_, F> {
    /// Replaces the found secrets and the known values in a text. One without a label gets `label`.
    fn take(&mut self, text: &mut String, found: Vec<FoundSecret>, label: &str) {
        let found = join_overlapping([self.find_known(text), found].concat());
        let mut replaced = String::new();
        let mut end = 0;
        for FoundSecret { range, name } in found {
            let before = &text[end..range.start];
            let dollars = before.len() - before.trim_end_matches('$').len();
            // A plain `$` before our `${` is written `$$`.
            let escape = if dollars % 2 == 1 { "$" } else { "" };
            let stored_name = self.free_name(name.as_deref().unwrap_or(label));
            replaced += &format!("{before}{escape}${{secret:{stored_name}}}");
            let value = text[range.clone()].replace("$$", "$");
            self.stored.push((stored_name, Secret::new(value)));
            end = range.end;
        }
        replaced += &text[end..];
        *text = replaced;
    }

    fn find_known(&self, text: &str) -> Vec<FoundSecret> {
        let find = |(label, value): &(String, String)| -> Vec<FoundSecret> {
            let is_part = value.len() >= PART_BYTES_MIN;
            let places = text.match_indices(value.as_str());
            let places = places.filter(|_| is_part || text == value);
            let found = places.map(|(at, _)| FoundSecret {
                range: at..at + value.len(),
                name: Some(label.clone()),
            });
            found.collect()
        };
        self.known.iter().flat_map(find).collect()
    }

    /// Returns `SERVER.LABEL`, or `SERVER.LABEL-NUMBER` with the first free number.
    fn free_name(&self, label: &str) -> SecretName {
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        let label = label.replace(|c| !plain(c), "-");
        let name = |number: usize| -> Option<SecretName> {
            let end = match number {
                1 => String::new(),
                number => format!("-{number}"),
            };
            let mut name = format!("{}.{label}", self.server);
            name.truncate(NAME_CHARS_MAX.saturating_sub(end.len()));
            (name + &end).parse().ok()
        };
        let is_free = |name: &SecretName| {
            let mut stored = self.stored.iter();
            !self.kept.contains(name.as_str()) && stored.all(|(it, _)| it != name)
        };
        let mut names = (1..).filter_map(name).filter(is_free);
        names.next().expect("there are more numbers than names")
    }
}
