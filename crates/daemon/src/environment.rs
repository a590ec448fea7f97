//! The variables of a client's environment that reach its servers, and whether two environments
//! agree on them.

use std::collections::BTreeMap;

use fleet::{Launch, ServerSpec, Template};
use serde::{Deserialize, Serialize};
use tool::Digest;

/// The names of the variables that the configuration takes from the environment, and a digest
/// of their values: those of the daemon, to be compared with a client's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Taken {
    /// As in `inherit_env`: a `*` at the end stands for any rest.
    names: Vec<String>,
    digest: String,
}

/// These differ from terminal to terminal; who writes `inherit_env = ["*"]` does not mean them.
const OF_A_TERMINAL: [&str; 12] = [
    "PWD",
    "OLDPWD",
    "SHLVL",
    "_",
    "TERM",
    "COLORTERM",
    "COLUMNS",
    "LINES",
    "TTY",
    "WINDOWID",
    "TERM_SESSION_ID",
    "PROXY_CHILD",
];

const DIGITS: usize = 8;

impl Taken {
    /// The variables that these servers take from our own environment.
    pub fn by(specs: &[ServerSpec]) -> Self {
        let mut names: Vec<String> = specs.iter().flat_map(of_spec).collect();
        names.sort();
        names.dedup();
        let digest = digest(&names, &ours());
        Self { names, digest }
    }

    /// Whether a server gets the same from our environment. The error is the digest that names
    /// the daemon where it would.
    pub fn agrees(&self) -> Result<(), String> {
        let own = digest(&self.names, &ours());
        if own == self.digest { Ok(()) } else { Err(own) }
    }
}

fn ours() -> BTreeMap<String, String> {
    let variables = std::env::vars_os();
    variables
        .map(|(name, value)| {
            let text = |it: std::ffi::OsString| it.to_string_lossy().into_owned();
            (text(name), text(value))
        })
        .collect()
}

fn of_spec(spec: &ServerSpec) -> Vec<String> {
    let templates: Vec<&Template> = match &spec.launch {
        Launch::Child {
            command,
            args,
            env,
            cwd,
        } => {
            let env = env.iter().map(|(_, value)| value);
            [command]
                .into_iter()
                .chain(args)
                .chain(env)
                .chain(cwd)
                .collect()
        }
        Launch::Remote { url, headers } => {
            let headers = headers.iter().map(|(_, value)| value);
            [url].into_iter().chain(headers).collect()
        }
    };
    let variables = templates.into_iter().flat_map(Template::variables);
    variables
        .map(str::to_owned)
        .chain(spec.inherit_env.iter().cloned())
        .collect()
}

fn digest(names: &[String], variables: &BTreeMap<String, String>) -> String {
    let mut text = String::new();
    for (name, value) in variables {
        let is_taken = names.iter().any(|taken| match taken.strip_suffix('*') {
            Some("") => !OF_A_TERMINAL.contains(&name.as_str()),
            Some(start) => name.starts_with(start),
            None => name == taken,
        });
        if is_taken {
            text.push_str(&format!("{name}={value}\0"));
        }
    }
    Digest::of_bytes(text.as_bytes()).short(DIGITS)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::digest;

    #[track_caller]
    fn check(names: &[&str], variable: &str, counts: bool) {
        let names: Vec<String> = names.iter().map(ToString::to_string).collect();
        let with = |value: &str| {
            BTreeMap::from([
                ("HOME".to_owned(), "/home/ada".to_owned()),
                (variable.to_owned(), value.to_owned()),
            ])
        };
        let differs = digest(&names, &with("a")) != digest(&names, &with("b"));
        assert_eq!(differs, counts, "{names:?} {variable}");
    }

    #[test]
    fn environments_differ_by_what_the_servers_get_from_them() {
        check(&["TOKEN"], "TOKEN", true);
        check(&["TOKEN"], "TOKEN_2", false);
        check(&["AWS_*"], "AWS_REGION", true);
        check(&["*"], "ANYTHING", true);
        check(&["*"], "PWD", false);
        check(&["PWD"], "PWD", true);
        check(&[], "TOKEN", false);
    }
}
