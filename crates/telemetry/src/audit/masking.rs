//! Masking of secrets in the recorded arguments of a call, recognized by their form or by the name of
//! their member. In doubt a text is masked: a log that lacks a word can still be read.

use std::{borrow::Cow, sync::LazyLock};

use printable::HIDDEN;
use regex::{Captures, Regex};
use serde_json::{Map, Value};

/// Words in the names of members whose values are masked.
const SECRET_WORDS: [&str; 16] = [
    "password",
    "passwd",
    "passphrase",
    "passcode",
    "pwd",
    "secret",
    "token",
    "apikey",
    "authorization",
    "bearer",
    "credential",
    "privatekey",
    "accesskey",
    "accountkey",
    "cookie",
    "connectionstring",
];

/// Full names of members whose values are masked; as parts of longer names they are harmless.
const SECRET_NAMES: [&str; 9] = [
    "pass", "auth", "pat", "pin", "otp", "totp", "jwt", "dsn", "cvv",
];

/// Masks the value of every member with such a name, and every text of such a form.
pub(super) fn mask(value: &mut Value) {
    match value {
        Value::Object(members) => mask_members(members),
        Value::Array(items) => items.iter_mut().for_each(mask),
        Value::String(text) => {
            if let Cow::Owned(masked) = mask_text(text) {
                *text = masked;
            }
        }
        _ => {}
    }
}

fn mask_members(members: &mut Map<String, Value>) {
    let named = std::mem::take(members).into_iter();
    members.extend(named.map(|(name, mut value)| {
        if is_secret(&name) {
            value = Value::from(HIDDEN);
        } else {
            mask(&mut value);
        }
        (mask_text(&name).into_owned(), value)
    }));
}

fn is_secret(name: &str) -> bool {
    let plain: String = name.chars().filter(char::is_ascii_alphanumeric).collect();
    let plain = plain.to_ascii_lowercase();
    SECRET_WORDS.iter().any(|word| plain.contains(word)) || SECRET_NAMES.contains(&plain.as_str())
}

/// Returns the text with secrets of known forms masked.
pub(super) fn mask_text(text: &str) -> Cow<'_, str> {
    static SHAPES: LazyLock<Vec<Regex>> = LazyLock::new(|| {
        let tokens = tokens();
        let shapes = SHAPES_WRITTEN.into_iter().chain([tokens.as_str()]);
        let compile = |shape: &str| Regex::new(shape).expect("the shapes are tested");
        shapes.map(compile).collect()
    });
    SHAPES.iter().fold(Cow::Borrowed(text), |text, shape| {
        let hide = |found: &Captures<'_>| {
            let part = |name| found.name(name).map_or("", |it| it.as_str());
            format!("{}{HIDDEN}{}", part("before"), part("after"))
        };
        match shape.replace_all(&text, hide) {
            Cow::Borrowed(_) => text,
            Cow::Owned(masked) => Cow::Owned(masked),
        }
    })
}

/// The forms of secrets; of a match, the groups `before` and `after` are kept.
const SHAPES_WRITTEN: [&str; 9] = [
    // Keys in PEM, whole or cut off.
    r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY[A-Z ]*-----[\s\S]*?(?:-----END [A-Z0-9 ]*PRIVATE KEY[A-Z ]*-----|\z)",
    // Users and passwords in addresses.
    r#"(?P<before>\b[A-Za-z][a-zA-Z0-9+.-]*://[^\s/:@"']*:)[^\s/"']+(?P<after>@)"#,
    r#"(?P<before>\b[A-Za-z][a-zA-Z0-9+.-]*://)[^\s/:@"']{16,}(?P<after>@)"#,
    // Webhooks, whose addresses are their secrets.
    r"(?P<before>hooks\.slack\.com/\w+/|discord(?:app)?\.com/api/webhooks/\d+/)[\w/-]+",
    // Headers.
    r#"(?i)(?P<before>\b(?:set-)?cookie["']?\s*[:=]\s*["']?)[^\r\n"']+"#,
    r#"(?i)(?P<before>\b(?:proxy-)?authorization["']?\s*[:=]\s*["']?)[^\r\n"',]+"#,
    r"(?i)(?P<before>\b(?:bearer|basic)\s+)[\w.~+/=-]{8,}",
    // Parameters, variables and options.
    r#"(?ix)(?P<before>
        (?:[?&;\#](?:key|sig|code|auth|pat|pass)
          |[\w.-]*(?:password|passwd|passphrase|pwd|secret|token|api[_-]?key|access[_-]?key
            |private[_-]?key|account[_-]?key|secret[_-]?key|credentials?|signature))
        \\?["']?\s*(?:=>|:=|[:=])\s*\\?["']?
      )[^\s"',;&\\}]{4,}"#,
    r#"(?ix)(?P<before>
        --?(?:[\w-]+-)?(?:password|passwd|pass|token|secret|api-?key)["']?,?[\s=]\s*["']?
        |\bsshpass\s+-p\s*
        |\s(?:-u|--user)[\s=][^\s:]+:
      )[^\s"']+"#,
];

/// Returns the pattern of the tokens of well-known services, and of some whose form does not begin with
/// the name of a service.
fn tokens() -> String {
    let known = printable::TOKEN_PATTERNS.map(|(_, pattern)| pattern);
    let others = [
        r"\d{8,10}:[\w-]{35}",                        // Telegram
        r"[MNO][\w-]{23,27}\.[\w-]{6,7}\.[\w-]{27,}", // Discord
        r"\w{14}\.atlasv1\.[\w-]{40,}",
    ];
    let all = known.into_iter().chain(others).collect::<Vec<_>>();
    format!(r"(?-u)\b(?:{})", all.join("|"))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{mask, mask_text};

    #[track_caller]
    fn check(text: &str, expected: &str) {
        assert_eq!(mask_text(text), expected, "{text}");
    }

    #[test]
    fn tokens_of_well_known_services_are_masked() {
        let a = |count| "Ab3".repeat(count);
        let hex = "0123456789abcdef".repeat(4);
        for token in [
            format!("eyJ{}.{}.{}", a(5), a(9), a(9)),
            format!("ghp_{}", a(12)),
            format!("ghs_{}", a(12)),
            format!("github_pat_{}_{}", a(7), a(20)),
            format!("glpat-{}", a(7)),
            format!("xoxb-1234567890-{}", a(8)),
            format!("xapp-1-{}", a(8)),
            format!("sk_live_{}", a(8)),
            format!("rk_test_{}", a(8)),
            format!("sk-{}", a(16)),
            format!("sk-proj-{}", a(16)),
            format!("sk-ant-api03-{}", a(16)),
            "AKIAIOSFODNN7EXAMPLE".to_owned(),
            "ASIAIOSFODNN7EXAMPLE".to_owned(),
            format!("AIza{}", "Ab3-x".repeat(7)),
            format!("ya29.{}", a(20)),
            format!("GOCSPX-{}", a(9)),
            format!("npm_{}", a(12)),
            format!("pypi-{}", a(20)),
            format!("hf_{}", a(11)),
            format!("SG.{}.{}", a(7), a(14)),
            format!("dop_v1_{hex}"),
            format!("lin_api_{}", a(13)),
            format!("hvs.{}", a(8)),
            format!("shpat_{}", &hex[..32]),
            format!("rubygems_{hex}"),
            format!("r8_{}", a(10)),
            format!("gsk_{}", a(10)),
            format!("xai-{}", a(10)),
            format!("pplx-{}", a(10)),
            format!("nvapi-{}", a(10)),
            format!("sbp_{hex}"),
            format!("ATATT3{}", a(10)),
            format!("glsa_{}", a(10)),
            format!("PMAK-{hex}"),
            format!("CFPAT-{}", a(10)),
        ] {
            check(&token, "***");
            // The list for whole values recognizes it as well.
            let masked = printable::mask_secrets(&token, None);
            assert!(masked.contains("***"), "{token}");
            check(&format!("use \"{token}\", please"), "use \"***\", please");
        }
        check(&format!("12345678:{}", "Ab3-x".repeat(7)), "***");
    }

    #[test]
    fn secrets_in_headers_addresses_options_and_files_are_masked() {
        for (text, expected) in [
            ("Bearer abcdefgh12345678", "Bearer ***"),
            (
                "send bearer   abcdefgh12345678 now",
                "send bearer   *** now",
            ),
            ("Basic YWRhOmxvdmVsYWNl", "Basic ***"),
            (
                "Authorization: token abc def\nHost: x",
                "Authorization: ***\nHost: x",
            ),
            ("Cookie: sid=1; b=2\nHost: x", "Cookie: ***\nHost: x"),
            ("postgres://ada:love/../x", "postgres://ada:love/../x"),
            (
                "postgres://ada:lov@elace@db/app",
                "postgres://ada:***@db/app",
            ),
            ("redis://:hunter2@db:6379/0", "redis://:***@db:6379/0"),
            (
                "https://0123456789abcdef0123@host/x.git",
                "https://***@host/x.git",
            ),
            (
                "https://x/y?a=1&access_token=hunter2&b=2",
                "https://x/y?a=1&access_token=***&b=2",
            ),
            (
                "https://x/y?key=hunter2&sig=hunter2",
                "https://x/y?key=***&sig=***",
            ),
            ("export DB_PASSWORD='hunter2'", "export DB_PASSWORD='***'"),
            (
                "AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI/K7MDENG",
                "AWS_SECRET_ACCESS_KEY=***",
            ),
            (
                "AccountKey=abc+/def==;EndpointSuffix=x",
                "AccountKey=***;EndpointSuffix=x",
            ),
            (
                r#"{"client_secret": "hunter2", "a": 1}"#,
                r#"{"client_secret": "***", "a": 1}"#,
            ),
            (
                "x --password hunter2 --verbose",
                "x --password *** --verbose",
            ),
            ("x --api-key=hunter2", "x --api-key=***"),
            ("curl -u ada:hunter2 https://x", "curl -u ada:*** https://x"),
            (
                "https://hooks.slack.com/services/T0/B0/x1",
                "https://hooks.slack.com/services/***",
            ),
            (
                "a\n-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----\nb",
                "a\n***\nb",
            ),
            ("-----BEGIN OPENSSH PRIVATE KEY-----\nb3Bl", "***"),
        ] {
            check(text, expected);
        }
    }

    #[test]
    fn ordinary_text_stays_as_it_is() {
        for text in [
            "/home/ada/projects/proxy/src/main.rs",
            "git log --oneline -5",
            "https://example.com:8443/a/b?page=2&sort=asc#top",
            "the token is renewed; a password has eight characters",
            "mailto:ada@example.com, ssh ada@host:22",
            "SELECT author, key FROM books WHERE id = 7",
            "f631ef6b2c9d8e7f6a5b4c3d2e1f0a9b8c7d6e5f",
            "skeleton sk- ghp eyJ AKIA",
        ] {
            check(text, text);
        }
    }

    #[test]
    fn members_are_masked_by_their_names_at_any_depth() {
        let mut value = json!({"path": "/a", "api_key": "x", "deep": [{"Auth-Token": "t", "auth": 7}],
            "author": "ada", "ghp_0123456789abcdef0123": true, "list": ["Bearer 0123456789"]});
        mask(&mut value);
        let expected: Value = json!({"path": "/a", "api_key": "***",
            "deep": [{"Auth-Token": "***", "auth": "***"}], "author": "ada", "***": true,
            "list": ["Bearer ***"]});
        assert_eq!(value, expected);
    }
}
