//! `--for CALLER`: the caller over HTTP that a command means.

use config::Config;

use crate::exit::refuse;

/// Returns the unique name of the caller. Fails if no caller can have this name.
pub(super) fn find_caller(config: &Config, name: &str) -> anyhow::Result<String> {
    config.http.find_caller(name).ok_or_else(|| {
        let tokens = config.http.tokens.iter().chain(&config.http.token_files);
        let tokens: Vec<&str> = tokens.map(|(name, _)| name.as_str()).collect();
        let hint = match tokens.as_slice() {
            [] => "no client needs a token: set `[http.tokens]` or `[http.oauth]`".to_owned(),
            tokens => format!("the tokens of `[http.tokens]` are {}", tokens.join(", ")),
        };
        let name = printable::one_line(name);
        refuse(format!("no caller `{name}`\nhint: {hint}"))
    })
}
