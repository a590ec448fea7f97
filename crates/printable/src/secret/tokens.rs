//! The tokens of well-known services, and private keys.

use std::{ops::Range, sync::LazyLock};

use memchr::memmem;
use regex::Regex;

use super::found::FoundSecret;

/// The service of a token, and a pattern whose every match begins with letters that name the service. The
/// pattern is to be placed after a word boundary, with Unicode classes off. Each match has at least
/// [`TOKEN_CHARS_MIN`] characters out of letters, digits and `_-./+=`.
const TOKEN_PATTERNS: [(&str, &str); 33] = [
    ("jwt", r"eyJ[\w-]{8,}\.[\w-]{8,}(?:\.[\w-]*){0,3}"),
    ("github token", r"(?:gh[opusr]_\w{12,}|github_pat_\w{16,})"),
    (
        "gitlab token",
        r"(?:glpat|gloas|gldt|glrt|glcbt|glptt|glft|glimt|glagent|glwt|glsoat)-[\w.-]{16,}",
    ),
    (
        "slack token",
        r"(?:xox[a-z](?:\.xox[a-z])?-[\w-]{8,}|xapp-[\w-]{8,})",
    ),
    (
        "stripe key",
        r"(?:(?:rk|sk|pk)_(?:live|test)_\w{8,}|whsec_[\w+/=]{16,})",
    ),
    ("api key", r"sk-[\w-]{12,}"),
    (
        "aws key",
        r"(?:AKIA|ASIA|ABIA|ACCA|AGPA|AIDA|AIPA|ANPA|ANVA|AROA)[A-Z0-9]{12,}",
    ),
    (
        "google key",
        r"(?:AIza[\w-]{30,}|ya29\.[\w-]{16,}|GOCSPX-[\w-]{16,}|1//0[\w-]{20,})",
    ),
    ("npm token", r"npm_\w{16,}"),
    ("pypi token", r"pypi-[\w-]{16,}"),
    ("rubygems key", r"rubygems_[0-9a-f]{32,}"),
    ("docker token", r"(?:dckr_pat|dckr_oat)_[\w-]{16,}"),
    (
        "model provider key",
        r"(?:hf_\w{16,}|r8_\w{20,}|gsk_\w{20,}|xai-\w{20,}|pplx-\w{20,}|tvly-[\w-]{16,}|nvapi-[\w-]{20,})",
    ),
    ("sendgrid key", r"SG\.[\w-]{16,}\.[\w-]{16,}"),
    ("mailgun key", r"key-[0-9a-f]{32}"),
    ("twilio key", r"SK[0-9a-f]{32}"),
    ("digitalocean token", r"(?:dop|doo|dor)_v1_[0-9a-f]{16,}"),
    ("linear key", r"(?:lin_api|lin_oauth)_\w{16,}"),
    ("notion token", r"(?:ntn|secret)_\w{16,}"),
    ("sentry token", r"(?:sntrys|sntryu)_[\w+/=-]{16,}"),
    ("figma token", r"figd_[\w-]{16,}"),
    (
        "shopify token",
        r"(?:shpat|shpca|shppa|shpss)_[0-9a-fA-F]{16,}",
    ),
    ("databricks token", r"dapi[0-9a-f]{32}"),
    ("vault token", r"(?:hvs|hvb|hvr)\.[\w-]{16,}"),
    ("supabase token", r"sbp_[0-9a-f]{16,}"),
    ("hubspot token", r"pat-[a-z]{2}\d-[\w-]{16,}"),
    ("airtable token", r"pat[A-Za-z0-9]{14}\.[0-9a-f]{16,}"),
    ("apify token", r"apify_api_\w{16,}"),
    ("atlassian token", r"(?:ATATT3|ATCTT3)[\w=-]{16,}"),
    ("facebook token", r"EAA[A-Za-z0-9_-]{24,}"),
    ("age key", r"AGE-SECRET-KEY-1[0-9A-Z]{20,}"),
    (
        "infrastructure token",
        r"(?:ops_eyJ[\w-]{16,}|fo1_[\w-]{20,}|dp\.[a-z]{2,5}\.\w{20,}|pul-[0-9a-f]{32,}|nfp_\w{16,})",
    ),
    (
        "service key",
        r"(?:PMAK-[0-9a-f-]{32,}|NRAK-[A-Z0-9]{20,}|glsa_\w{20,}|CFPAT-[\w-]{20,}|sq0[a-z]{3}-[\w-]{20,}|rzp_(?:live|test)_\w{8,})",
    ),
];

/// The characters of the shortest token.
pub(super) const TOKEN_CHARS_MIN: usize = 13;

/// The longest run of characters in which tokens are searched; a JWT has some thousand.
const TOKEN_RUN_BYTES_MAX: usize = 16 * 1024;

/// Words in the first and last line of every private key in PEM.
pub(super) const KEY_WORDS: &[u8] = b"PRIVATE KEY";

fn compile_tokens(before: &str) -> Regex {
    let patterns = TOKEN_PATTERNS.map(|(_, pattern)| pattern).join("|");
    Regex::new(&format!("{before}(?:{patterns})")).expect("the patterns are ours")
}

/// Finds tokens, each with the name of its service.
pub(super) fn find_tokens(text: &str) -> impl Iterator<Item = FoundSecret> {
    static TOKEN: LazyLock<Regex> = LazyLock::new(|| compile_tokens(r"(?-u)\b"));
    static NAMED: LazyLock<Vec<(&str, Regex)>> = LazyLock::new(|| {
        let compile = |(name, pattern): &(&'static str, &str)| {
            let regex = Regex::new(&format!("^(?-u)(?:{pattern})$"));
            (*name, regex.expect("the patterns are ours"))
        };
        TOKEN_PATTERNS.iter().map(compile).collect()
    });
    find_token_runs(text).flat_map(move |run| {
        let begin = run.start;
        TOKEN.find_iter(&text[run]).map(move |found| {
            let named = NAMED.iter().find(|(_, it)| it.is_match(found.as_str()));
            let name = named.map_or("secret", |(name, _)| name);
            FoundSecret::new(begin + found.start()..begin + found.end(), Some(name))
        })
    })
}

/// Returns true if a text has a token, perhaps within a longer word.
pub(super) fn may_hold_token(text: &str) -> bool {
    static TOKEN: LazyLock<Regex> = LazyLock::new(|| compile_tokens("(?-u)"));
    find_token_runs(text).any(|run| TOKEN.is_match(&text[run]))
}

/// Returns true if a text begins with a token.
pub(super) fn begins_with_token(text: &str) -> bool {
    static TOKEN: LazyLock<Regex> = LazyLock::new(|| compile_tokens("^(?-u)"));
    TOKEN.is_match(text)
}

/// Finds the texts that may contain tokens. A longer one is an image or other encoded data, in which a part
/// may look like a token by chance.
fn find_token_runs(text: &str) -> impl Iterator<Item = Range<usize>> {
    let is_of_token = |byte: u8| byte.is_ascii_alphanumeric() || b"_-./+=".contains(&byte);
    let runs = find_runs(text, is_of_token, TOKEN_CHARS_MIN);
    runs.filter(|run| run.len() <= TOKEN_RUN_BYTES_MAX)
}

/// Finds private keys in PEM; one that is cut off ends with the text.
pub(super) fn find_private_keys(text: &str) -> impl Iterator<Item = FoundSecret> {
    static KEY: LazyLock<Regex> = LazyLock::new(|| {
        let key = r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY[A-Z ]*-----[\s\S]*?(?:-----END [A-Z0-9 ]*PRIVATE KEY[A-Z ]*-----|\z)";
        Regex::new(key).expect("the pattern is ours")
    });
    let has_key = memmem::find(text.as_bytes(), KEY_WORDS).is_some();
    let found = has_key.then(|| KEY.find_iter(text));
    let found = found.into_iter().flatten();
    found.map(|key| FoundSecret::new(key.range(), Some("private key")))
}

/// Returns the runs of at least `bytes_min` such bytes. Looks at one byte in `bytes_min` where there is
/// none.
pub(super) fn find_runs(
    text: &str,
    is_member: impl Fn(u8) -> bool,
    bytes_min: usize,
) -> impl Iterator<Item = Range<usize>> {
    let bytes = text.as_bytes();
    let mut begin = 0;
    std::iter::from_fn(move || {
        loop {
            let mut probe = begin + bytes_min - 1;
            while probe >= begin && is_member(*bytes.get(probe)?) {
                if probe == begin {
                    let rest = bytes[begin..].iter().position(|byte| !is_member(*byte));
                    let run = begin..rest.map_or(bytes.len(), |length| begin + length);
                    begin = run.end;
                    return Some(run);
                }
                probe -= 1;
            }
            begin = probe + 1;
        }
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::find_runs;

    proptest! {
        #[test]
        fn every_run_is_found(text in "[a-c ]{0,80}", bytes_min in 1..8usize) {
            let found: Vec<_> = find_runs(&text, |byte| byte != b' ', bytes_min).collect();
            let mut expected = Vec::new();
            let mut begin = 0;
            for word in text.split(' ') {
                if word.len() >= bytes_min {
                    expected.push(begin..begin + word.len());
                }
                begin += word.len() + 1;
            }
            prop_assert_eq!(found, expected);
        }
    }
}
