//! Secrets that stand in clear, by the name of what holds them or by their own form.

use crate::server::{Secret, SecretPlace, Server};

/// Words in the name of a variable, option or query that holds a secret.
const NAMES: [&str; 15] = [
    "TOKEN",
    "KEY",
    "APIKEY",
    "SECRET",
    "PASSWORD",
    "PASSWD",
    "PASS",
    "PAT",
    "PWD",
    "CREDENTIAL",
    "CREDENTIALS",
    "AUTH",
    "AUTHORIZATION",
    "BEARER",
    "COOKIE",
];

/// How tokens of well-known services begin.
const BEGINNINGS: [&str; 24] = [
    "sk-",
    "sk_",
    "rk_live_",
    "ghp_",
    "gho_",
    "ghs_",
    "github_pat_",
    "glpat-",
    "xoxb-",
    "xoxp-",
    "xapp-",
    "AKIA",
    "AIza",
    "ya29.",
    "eyJ",
    "hf_",
    "npm_",
    "lin_api_",
    "ntn_",
    "secret_",
    "sntrys_",
    "pat-",
    "dop_v1_",
    "apify_api_",
];

/// A shorter text is no token.
const TOKEN_CHARS_MIN: usize = 12;

/// The secrets that stand in a server in clear.
pub fn find_secrets(server: &Server) -> Vec<Secret> {
    let mut secrets = Vec::new();
    let mut note = |place: SecretPlace, value: &str| {
        if !value.is_empty() {
            secrets.push(Secret {
                place,
                value: value.to_owned(),
            });
        }
    };
    for (name, value) in &server.env {
        if is_secret(name, value) {
            note(SecretPlace::Env(name.clone()), value);
        } else if let Some(inside) = credentials_in(value) {
            note(SecretPlace::Env(name.clone()), inside);
        }
    }
    for (name, value) in &server.headers {
        let token = value
            .strip_prefix("Bearer ")
            .or_else(|| value.strip_prefix("Basic "))
            .unwrap_or(value);
        let name_words = name.replace('-', "_");
        if is_secret(&name_words, token) {
            note(SecretPlace::Header(name.clone()), token);
        }
    }
    let mut option = None;
    for (index, arg) in server.args.iter().enumerate() {
        let place = SecretPlace::Argument(index);
        let named = arg.split_once('=').filter(|_| !arg.contains("://"));
        match (named, option.take()) {
            (Some((name, value)), _) if is_secret(name, value) => note(place, value),
            (_, Some(name)) if is_secret(name, arg) => note(place, arg),
            _ if arg.starts_with("--") => option = Some(arg.as_str()),
            _ if looks_secret(arg) => note(place, arg),
            _ => {
                if let Some(inside) = credentials_in(arg) {
                    note(place, inside);
                }
            }
        }
    }
    if let Some(inside) = server.url.as_deref().and_then(credentials_in) {
        note(SecretPlace::Url, inside);
    }
    secrets
}

/// The text with every secret in it made `***`.
pub fn mask(text: &str, secrets: &[Secret]) -> String {
    let mut values: Vec<&str> = secrets.iter().map(|secret| secret.value.as_str()).collect();
    values.sort_by_key(|value| std::cmp::Reverse(value.len()));
    values
        .into_iter()
        .fold(text.to_owned(), |text, value| text.replace(value, "***"))
}

/// A line of any file with what looks secret in it made `***`: values of telling keys, and tokens
/// by their form.
pub fn mask_line(line: &str) -> String {
    let is_part = |c: char| c.is_ascii_alphanumeric() || "-_.+/".contains(c);
    let (mut masked, mut rest, mut name) = (String::new(), line, "");
    while let Some(c) = rest.chars().next() {
        let length = match rest.find(|c| !is_part(c)) {
            Some(0) => c.len_utf8(),
            Some(end) => end,
            None => rest.len(),
        };
        let (part, behind) = rest.split_at(length);
        let is_word = is_part(c);
        let is_scheme = ["Bearer", "Basic"].contains(&part);
        let is_variable = masked.ends_with("${") || masked.ends_with("${env:");
        let is_value =
            is_word && !is_scheme && !is_variable && names_secret(name) && holds_one(part);
        let is_masked = (is_value && !is_key(behind)) || (is_word && looks_secret(part));
        masked += if is_masked { "***" } else { part };
        let names_next = is_key(behind) || part.starts_with("--");
        name = match (is_word, is_scheme || names_next) {
            (false, _) => name,
            (true, true) if is_scheme => "Authorization",
            (true, true) => part,
            (true, false) => "",
        };
        rest = behind;
    }
    masked
}

/// What stands behind a word makes it the key of a value.
fn is_key(behind: &str) -> bool {
    let behind = behind.trim_start_matches(['"', '\'', ' ']);
    behind.starts_with([':', '='])
}

fn is_secret(name: &str, value: &str) -> bool {
    let is_clear = !value.is_empty() && !value.contains("${");
    is_clear && (looks_secret(value) || (names_secret(name) && holds_one(value)))
}

/// `KEY` in a name may also stand for a path, a switch or a number.
fn holds_one(value: &str) -> bool {
    let is_path = value.starts_with(['/', '~', '.']);
    let is_plain = ["true", "false", "none", "null"].contains(&value.to_ascii_lowercase().as_str());
    value.len() >= 4 && !is_path && !is_plain
}

fn names_secret(name: &str) -> bool {
    let name = name.trim_start_matches('-').to_ascii_uppercase();
    name.split(['_', '-', '.'])
        .any(|word| NAMES.contains(&word))
}

fn looks_secret(value: &str) -> bool {
    let begins = BEGINNINGS
        .iter()
        .any(|beginning| value.starts_with(beginning));
    let is_token = value
        .chars()
        .all(|c| c.is_ascii_alphanumeric() || "-_.=+/".contains(c));
    begins && is_token && value.len() >= TOKEN_CHARS_MIN
}

/// The password, or the value of a telling query, in an address.
fn credentials_in(url: &str) -> Option<&str> {
    let (_, rest) = url.split_once("://")?;
    let (place, query) = rest.split_once('?').unwrap_or((rest, ""));
    let authority = place.split('/').next().unwrap_or(place);
    let user = authority.rsplit_once('@').map(|(user, _)| user);
    let password = user
        .and_then(|user| user.split_once(':'))
        .map(|(_, password)| password);
    if let Some(password) = password.filter(|it| !it.is_empty() && !it.contains("${")) {
        return Some(password);
    }
    let pairs = query.split('#').next().unwrap_or_default().split('&');
    pairs
        .filter_map(|pair| pair.split_once('='))
        .find(|(name, value)| {
            let name = name.to_ascii_uppercase();
            let is_named =
                names_secret(&name) || ["APIKEY", "ACCESS_TOKEN"].contains(&name.as_str());
            is_named && holds_one(value) && !value.contains("${")
        })
        .map(|(_, value)| value)
}

#[cfg(test)]
mod tests {
    use super::{Server, find_secrets, mask, mask_line};

    #[test]
    fn secrets_are_found_by_name_or_form() {
        let pairs = |pairs: &[(&str, &str)]| {
            let own = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
            pairs.iter().map(own).collect::<Vec<_>>()
        };
        let words = |line: &str| line.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let server = Server {
            env: pairs(&[
                ("API_TOKEN", "abcdef"),
                ("OTHER", "ghp_0123456789abcdef"),
                ("SSH_KEY", "/home/ada/.ssh/id"),
                ("TOKEN", "${TOKEN}"),
                ("MONKEY", "banana"),
                ("DATABASE_URL", "postgres://ada:lovelace@db/x"),
            ]),
            headers: pairs(&[
                ("Authorization", "Bearer abc123"),
                ("X-Api-Key", "k-1234"),
                ("Accept", "text"),
            ]),
            args: words(
                "--api-key=sesame1 --token opensesame --name ada https://x.dev/?apiKey=qwerty&a=b",
            ),
            url: Some("https://x.dev/mcp?token=${T}".to_owned()),
            ..Server::default()
        };
        let found = find_secrets(&server);
        let values: Vec<&str> = found.iter().map(|secret| secret.value.as_str()).collect();
        assert_eq!(
            values,
            [
                "abcdef",
                "ghp_0123456789abcdef",
                "lovelace",
                "abc123",
                "k-1234",
                "sesame1",
                "opensesame",
                "qwerty"
            ]
        );
        assert_eq!(mask("a=abcdef, b=abc123", &found), "a=***, b=***");
        assert!(!format!("{found:?}").contains("sesame"));
    }

    #[test]
    fn lines_of_any_file_are_masked() {
        let check = |line: &str, masked: &str| assert_eq!(mask_line(line), masked);
        check(
            r#"  "API_KEY": "abcdef", // mine"#,
            r#"  "API_KEY": "***", // mine"#,
        );
        check(
            r#""args": ["--api-key", "abcdef", "x"]"#,
            r#""args": ["--api-key", "***", "x"]"#,
        );
        check("token = 'abc-def'", "token = '***'");
        check(
            r#""Authorization": "Bearer abcdef""#,
            r#""Authorization": "Bearer ***""#,
        );
        check("text ghp_0123456789ab text", "text *** text");
        check(
            r#""API_KEY": "${API_KEY}", "name": "x""#,
            r#""API_KEY": "${API_KEY}", "name": "x""#,
        );
        check(
            r#""numStartups": 5, "tokens": true"#,
            r#""numStartups": 5, "tokens": true"#,
        );
    }
}
