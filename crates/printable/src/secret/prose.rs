//! Secrets in prose, code and command lines. In doubt a text is masked: a log that lacks a word can still
//! be read.

use std::{borrow::Cow, sync::LazyLock};

use regex::Regex;

use super::{
    found::{FoundSecret, hide, join_overlapping},
    tokens::{find_private_keys, find_tokens},
};

/// Returns the text with secrets of known forms masked, wherever they are in it.
pub fn mask_prose(text: &str) -> Cow<'_, str> {
    static COMPILED: LazyLock<[Regex; 11]> =
        LazyLock::new(|| SHAPES.map(|shape| Regex::new(shape).expect("the shapes are tested")));
    let shaped = COMPILED.iter().flat_map(|shape| shape.captures_iter(text));
    let shaped = shaped.filter_map(|found| found.name("secret").or_else(|| found.get(0)));
    let shaped = shaped.map(|secret| FoundSecret::new(secret.range(), None));
    let known = find_private_keys(text).chain(find_tokens(text));
    let found = join_overlapping(known.chain(shaped).collect());
    if found.is_empty() {
        return Cow::Borrowed(text);
    }
    Cow::Owned(hide(text, &found))
}

/// The forms of secrets; of a match, only the group `secret` is masked if there is one.
const SHAPES: [&str; 11] = [
    // Users and passwords in addresses.
    r#"\b[A-Za-z][a-zA-Z0-9+.-]*://[^\s/:@"']*:(?P<secret>[^\s/"']+)@"#,
    r#"\b[A-Za-z][a-zA-Z0-9+.-]*://(?P<secret>[^\s/:@"']{16,})@"#,
    // Webhooks, whose addresses are their secrets.
    r"(?:hooks\.slack\.com/\w+/|discord(?:app)?\.com/api/webhooks/\d+/)(?P<secret>[\w/-]+)",
    // Headers.
    r#"(?i)\b(?:set-)?cookie["']?\s*[:=]\s*["']?(?P<secret>[^\r\n"']+)"#,
    r#"(?i)\b(?:proxy-)?authorization["']?\s*[:=]\s*["']?(?P<secret>[^\r\n"',]+)"#,
    r"(?i)\b(?:bearer|basic)\s+(?P<secret>[\w.~+/=-]{8,})",
    // Parameters, variables and options.
    r#"(?ix)
        (?:[?&;\#](?:key|sig|code|auth|pat|pass)
          |[\w.-]*(?:password|passwd|passphrase|pwd|secret|token|api[_-]?key|access[_-]?key
            |private[_-]?key|account[_-]?key|secret[_-]?key|credentials?|signature))
        \\?["']?\s*(?:=>|:=|[:=])\s*\\?["']?
        (?P<secret>[^\s"',;&\\}]{4,})"#,
    r#"(?ix)
        (?:--?(?:[\w-]+-)?(?:password|passwd|pass|token|secret|api-?key)["']?,?[\s=]\s*["']?
          |\bsshpass\s+-p\s*
          |\s(?:-u|--user)[\s=][^\s:]+:)
        (?P<secret>[^\s"']+)"#,
    // Tokens that do not begin with the name of a service: of Telegram, Discord and Terraform.
    r"(?-u)\b\d{8,10}:[\w-]{35}",
    r"(?-u)\b[MNO][\w-]{23,27}\.[\w-]{6,7}\.[\w-]{27,}",
    r"(?-u)\b\w{14}\.atlasv1\.[\w-]{40,}",
];

#[cfg(test)]
mod tests {
    use super::mask_prose;
    use crate::mask_secrets;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        assert_eq!(mask_prose(text), expected, "{text}");
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
            let masked = mask_secrets(&token, None);
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
}
