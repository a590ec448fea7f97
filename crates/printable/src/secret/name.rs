//! Names whose values are secret, and values that are never secret.

/// Words in the name of a variable, option, header or parameter that holds a secret.
const WORDS: [&str; 27] = [
    "TOKEN",
    "SECRET",
    "PASSWORD",
    "PASSWD",
    "PASSPHRASE",
    "PASSCODE",
    "PASS",
    "PAT",
    "PWD",
    "PSK",
    "PIN",
    "OTP",
    "TOTP",
    "CVV",
    "DSN",
    "JWT",
    "SIG",
    "SIGNATURE",
    "CREDENTIAL",
    "CREDENTIALS",
    "CREDS",
    "AUTH",
    "AUTHORIZATION",
    "BEARER",
    "COOKIE",
    "WEBHOOK",
    "SESSION",
];

/// The endings of names that are written as one word.
const ENDINGS: [&str; 12] = [
    "APIKEY",
    "ACCESSKEY",
    "SECRETKEY",
    "PRIVATEKEY",
    "AUTHKEY",
    "ACCOUNTKEY",
    "CONNECTIONSTRING",
    "TOKEN",
    "SECRET",
    "PASSWORD",
    "PASSWD",
    "PASSPHRASE",
];

/// A name with this ending is the location or a limit of a secret: `TOKEN_URL`, `KEY_FILE`.
const OTHER_ENDINGS: [&str; 40] = [
    "ALGORITHM",
    "BUDGET",
    "COUNT",
    "DIR",
    "DIRECTORY",
    "DOMAIN",
    "ENDPOINT",
    "EXPIRY",
    "FILE",
    "FOLDER",
    "FORMAT",
    "HEADER",
    "HEADERS",
    "HOST",
    "ISSUER",
    "LENGTH",
    "LIMIT",
    "LIMITS",
    "MAX",
    "MECHANISM",
    "METHOD",
    "MODE",
    "NAME",
    "PATH",
    "PLUGIN",
    "PORT",
    "PREFIX",
    "PROVIDER",
    "REALM",
    "REGION",
    "SCHEME",
    "SCOPES",
    "SERVER",
    "SIZE",
    "SOURCE",
    "TIMEOUT",
    "TTL",
    "TYPE",
    "URI",
    "URL",
];

/// The values of switches and choices.
const CHOICES: [&str; 22] = [
    "auto", "basic", "bearer", "default", "digest", "disabled", "enabled", "env", "false",
    "header", "keyring", "no", "none", "null", "oauth", "oauth2", "off", "on", "optional",
    "required", "true", "yes",
];

/// A shorter text is not treated as a secret.
const VALUE_BYTES_MIN: usize = 4;

/// A number with fewer digits is a port, a limit or a time.
const NUMBER_DIGITS_MIN: usize = 6;

/// Returns true if the name of a variable, option, header or parameter says that its value is
/// secret.
pub fn names_secret(name: &str) -> bool {
    let words = split(name);
    let is_key = |word: &String| word.trim_end_matches(|c: char| c.is_ascii_digit()) == "KEY";
    tells(&words) || (words.iter().any(is_key) && !is_other(&words))
}

/// Returns true if the name of an argument of a tool, or its singular, says that its value is secret. A mere
/// `key` does not: tools name entries by it, as in `issueKey`.
pub fn names_secret_argument(name: &str) -> bool {
    tells(&split(name)) || tells(&split(name.trim_end_matches(['s', 'S'])))
}

fn tells(words: &[String]) -> bool {
    let tells = |word: &str| {
        let word = word.trim_end_matches(|c: char| c.is_ascii_digit());
        WORDS.contains(&word) || ENDINGS.iter().any(|ending| word.ends_with(ending))
    };
    !is_other(words) && (words.iter().any(|word| tells(word)) || tells(&words.concat()))
}

fn is_other(words: &[String]) -> bool {
    let last = words.last().map(String::as_str);
    last.is_some_and(|word| OTHER_ENDINGS.contains(&word))
}

/// Splits a name into words: `--apiKey`, `X-Api-Key` and `API_KEY` give `API`, `KEY`.
fn split(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut was_lower = false;
    for c in name.chars() {
        let begins = c.is_ascii_uppercase() && was_lower;
        if begins || !c.is_ascii_alphanumeric() {
            words.push(String::new());
        }
        if let (true, Some(word)) = (c.is_ascii_alphanumeric(), words.last_mut()) {
            word.push(c.to_ascii_uppercase());
        }
        was_lower = c.is_ascii_lowercase();
    }
    words.retain(|word| !word.is_empty());
    words
}

/// Returns true if a value under a name that suggests a secret is one: a path, a switch or a small
/// number is not.
pub(super) fn holds_secret(value: &str) -> bool {
    let is_choice = CHOICES.contains(&value.to_ascii_lowercase().as_str());
    let is_number = value.len() < NUMBER_DIGITS_MIN && value.bytes().all(|it| it.is_ascii_digit());
    value.len() >= VALUE_BYTES_MIN && !is_choice && !is_number && !is_path(value)
}

/// Returns true for a path; base64 may begin with `/` too.
fn is_path(value: &str) -> bool {
    let drive = matches!(value.as_bytes(), [letter, b':', b'\\' | b'/', ..] if letter.is_ascii_alphabetic());
    let rooted = value.starts_with(['/', '~', '.', '\\']);
    drive || (rooted && !value.split('/').any(super::form::looks_random))
}
