//! `--for CALLER`: the caller over HTTP that a command means.

use config::Config;
use http_server::SUBJECT_CHARS_MAX;

use crate::exit::refuse;

/// The longest name of an unknown caller that an error repeats, in characters.
const NAME_CHARS_SHOWN_MAX: usize = 80;

/// Returns the unique name of the caller. Fails if no caller can have this name.
pub(super) fn find_caller(config: &Config, name: &str) -> anyhow::Result<String> {
    config.http.find_caller(name).ok_or_else(|| {
        let tokens = config.http.tokens.iter().chain(&config.http.token_files);
        let tokens: Vec<&str> = tokens.map(|(name, _)| name.as_str()).collect();
        let of_tokens = match tokens.as_slice() {
            [] => "no client needs a token: set `[http.tokens]` or `[http.oauth]`".to_owned(),
            tokens => format!("the tokens of `[http.tokens]` are {}", tokens.join(", ")),
        };
        let hint = if config.http.oauth.is_some() && !name.starts_with("token ") {
            format!("a subject is one line of at most {SUBJECT_CHARS_MAX} characters")
        } else {
            of_tokens
        };
        let name = printable::one_line_of(name, NAME_CHARS_SHOWN_MAX);
        refuse(format!("no caller `{name}`\nhint: {hint}"))
    })
}

/// The same for a command that removes: a caller named in full (`token NAME`, `oauth SUBJECT`) may be one that
/// the configuration does not let in any more.
pub(super) fn find_former_caller(config: &Config, name: &str) -> anyhow::Result<String> {
    let is_whole = ["token ", "oauth "]
        .iter()
        .any(|kind| name.starts_with(kind));
    if is_whole {
        return Ok(name.to_owned());
    }
    find_caller(config, name)
}
