//! Which daemon is ours: one for each configuration, and of our own build.

use std::{cmp::Ordering, fs, os::unix::fs::MetadataExt as _, path::PathBuf};

use serde::{Deserialize, Serialize};
use tool::Digest;

use crate::config::{self, ConfigError, Environment, Overrides};

/// What a configuration is made of, as far as it is known before the file is read. Two clients
/// with the same identity mean the same daemon.
#[derive(Debug, Clone)]
pub(crate) struct Identity {
    /// Absolute.
    pub(crate) config: PathBuf,
    /// What a flag or a variable says; the file may say it as well. Absolute.
    pub(crate) state_dir: Option<PathBuf>,
    /// What a flag asks the daemon to log, should it be started by us. Makes no other daemon.
    pub(crate) log: Option<String>,
    id: String,
}

/// Digits of a digest in a name: enough for the handful of configurations that a person has, and
/// short, because the path of a socket has 107 bytes at most.
const ID_DIGITS: usize = 12;

/// Variables of ours that change nothing a client could notice: where the file lies is known
/// already, and the log is the daemon's own.
const INDIFFERENT: [&str; 4] = [
    "PROXY_CONFIG",
    "PROXY_STATE_DIR",
    "PROXY_LOG",
    "PROXY_CHILD",
];

impl Identity {
    pub(crate) fn of(overrides: &Overrides, env: &Environment) -> Result<Self, ConfigError> {
        let config = config::file_path(overrides, env)?;
        let state_dir = config::named_state_dir(overrides, env);
        let ours = env
            .starting("PROXY_")
            .filter(|(name, _)| !INDIFFERENT.contains(name));
        let homes =
            ["HOME", "XDG_STATE_HOME"].map(|name| (name, env.get(name).unwrap_or_default()));
        let mut text = Vec::new();
        let mut add = |name: &str, value: &std::ffi::OsStr| {
            text.extend_from_slice(name.as_bytes());
            text.push(b'=');
            text.extend_from_slice(value.as_encoded_bytes());
            text.push(0);
        };
        add("config", config.as_os_str());
        add(
            "state_dir",
            state_dir
                .as_deref()
                .map_or("".as_ref(), |it| it.as_os_str()),
        );
        for (name, value) in homes.into_iter().chain(ours) {
            add(name, value);
        }
        let id = Digest::of_bytes(&text).short(ID_DIGITS);
        Ok(Self {
            config,
            state_dir,
            log: overrides.log.clone(),
            id,
        })
    }

    /// Names the daemon's folder.
    pub(crate) fn id(&self) -> &str {
        &self.id
    }
}

/// A program, told apart from another of the same version by when it was built.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Build {
    pub(crate) version: String,
    /// Of the file, since 1970.
    modified_ns: i128,
    bytes: u64,
}

impl Build {
    /// Our own, also after an upgrade has replaced the file.
    pub(crate) fn ours() -> Self {
        let about = fs::metadata("/proc/self/exe").or_else(|_| {
            let program = std::env::current_exe()?;
            fs::metadata(program)
        });
        let about = about.ok();
        Self {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            modified_ns: about.as_ref().map_or(0, |it| {
                i128::from(it.mtime()) * 1_000_000_000 + i128::from(it.mtime_nsec())
            }),
            bytes: about.map_or(0, |it| it.len()),
        }
    }

    /// Whether it takes the place of the other one.
    pub(crate) fn is_newer_than(&self, other: &Self) -> bool {
        let by_version = numbers(&self.version).cmp(&numbers(&other.version));
        by_version.then(self.modified_ns.cmp(&other.modified_ns)) == Ordering::Greater
    }
}

fn numbers(version: &str) -> Vec<u64> {
    let parts = version.split(|c: char| !c.is_ascii_digit());
    parts.filter_map(|part| part.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::{Build, Identity};
    use crate::config::{Environment, Overrides};

    fn id(variables: &[(&str, &str)]) -> String {
        let env: Environment = variables.iter().copied().collect();
        Identity::of(&Overrides::default(), &env)
            .unwrap()
            .id()
            .to_owned()
    }

    #[test]
    fn what_changes_the_configuration_changes_the_daemon_and_nothing_else_does() {
        let home = ("HOME", "/home/ada");
        let plain = id(&[home]);
        assert_eq!(plain, id(&[home, ("TERM", "dumb"), ("PROXY_LOG", "debug")]));
        let config = "/home/ada/.config/proxy/config.toml";
        assert_eq!(plain, id(&[home, ("PROXY_CONFIG", config)]));
        for other in [
            ("PROXY_CONFIG", "/elsewhere.toml"),
            ("PROXY_STATE_DIR", "/elsewhere"),
            ("PROXY_RESULTS__MAX_TOKENS", "100"),
            ("XDG_STATE_HOME", "/elsewhere"),
        ] {
            assert_ne!(plain, id(&[home, other]), "{other:?}");
        }
        assert_ne!(
            plain,
            id(&[("HOME", "/home/bob"), ("PROXY_CONFIG", config)])
        );
    }

    #[test]
    fn a_build_is_newer_by_version_and_then_by_time() {
        let build = |version: &str, modified_ns| Build {
            version: version.to_owned(),
            modified_ns,
            bytes: 1,
        };
        assert!(build("0.10.0", 1).is_newer_than(&build("0.9.1", 2)));
        assert!(build("0.9.1", 2).is_newer_than(&build("0.9.1", 1)));
        assert!(!build("0.9.1", 1).is_newer_than(&build("0.9.1", 1)));
    }
}
