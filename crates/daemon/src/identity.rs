//! The identity of a daemon: one for each configuration, and of our own build.

use std::{
    cmp::Ordering,
    ffi::OsStr,
    fs,
    path::{Path, PathBuf},
    time::UNIX_EPOCH,
};

use serde::{Deserialize, Serialize};
use tool::Digest;

/// The identity of a configuration, as far as it is known before its file is read. Two clients with
/// the same identity share a daemon.
#[derive(Debug, Clone)]
pub struct Identity {
    /// The options with which the daemon is started.
    pub wanted: LaunchOptions,
    /// The name of the daemon's folder.
    pub(crate) id: String,
    /// The digest of the `PROXY_*` variables that are part of the configuration.
    pub(crate) settings: String,
}

/// The part of the configuration that is known before its file is read.
#[derive(Debug, Clone, Default)]
pub struct LaunchOptions {
    /// Absolute.
    pub config: PathBuf,
    /// The absolute path given by a flag or a variable; the file may set it as well.
    pub state_dir: Option<PathBuf>,
    /// The log filter given by a flag, used if we start the daemon. It does not make another daemon.
    pub log: Option<String>,
}

/// Digits of a digest in a name: enough for the handful of configurations that a person has, and
/// short, because the path of a socket has 103 bytes at most on macOS.
const ID_DIGITS: usize = 12;

/// Variables of ours that do not affect the service of a client: the path of the file is known
/// already, and the log is the daemon's own.
const INDIFFERENT: [&str; 4] = [
    "PROXY_CONFIG",
    "PROXY_STATE_DIR",
    "PROXY_LOG",
    "PROXY_CHILD",
];

impl Identity {
    /// `variables` are those of our environment, without empty ones.
    pub fn of<'v>(
        wanted: LaunchOptions,
        variables: impl IntoIterator<Item = (&'v str, &'v OsStr)>,
    ) -> Self {
        let (mut text, mut settings) = (Vec::new(), Vec::new());
        let state_dir = wanted.state_dir.as_deref();
        add(&mut text, "config", wanted.config.as_os_str());
        add(
            &mut text,
            "state_dir",
            state_dir.map_or("".as_ref(), Path::as_os_str),
        );
        for (name, value) in variables {
            let is_home = ["HOME", "XDG_STATE_HOME"].contains(&name);
            let is_setting = name.starts_with("PROXY_") && !INDIFFERENT.contains(&name);
            if is_home || is_setting {
                add(&mut text, name, value);
            }
            if is_setting {
                add(&mut settings, name, value);
            }
        }
        let digest = |text: &[u8]| Digest::of_bytes(text).short(ID_DIGITS);
        Self {
            id: digest(&text),
            settings: digest(&settings),
            wanted,
        }
    }
}

fn add(text: &mut Vec<u8>, name: &str, value: &OsStr) {
    text.extend_from_slice(name.as_bytes());
    text.push(b'=');
    text.extend_from_slice(value.as_encoded_bytes());
    text.push(0);
}

/// A build of the program, distinguished from others of the same version by its build time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Build {
    /// The version of the package.
    pub version: String,
    /// The modification time of the program's file, in nanoseconds since 1970.
    modified_ns: i128,
    /// The size of the program's file.
    bytes: u64,
}

impl Build {
    /// Returns our own build, also after an upgrade has replaced the file.
    pub fn ours() -> Self {
        let about = processes::own_program().and_then(|program| fs::metadata(program).ok());
        let modified = about.as_ref().and_then(|it| it.modified().ok());
        let since = modified.and_then(|time| time.duration_since(UNIX_EPOCH).ok());
        Self {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            modified_ns: since.map_or(0, |it| it.as_nanos().cast_signed()),
            bytes: about.map_or(0, |it| it.len()),
        }
    }

    /// Describes how a running program of this build differs from ours; `None` if it does not.
    pub fn describe_difference(&self, ours: &Self) -> Option<String> {
        if self == ours {
            return None;
        }
        let age = if ours.is_newer_than(self) {
            "an older"
        } else {
            "another"
        };
        let version = &ours.version;
        Some(if self.version == *version {
            format!("{age} build of {version} than this program")
        } else {
            format!("{age} version than this program, which is {version}")
        })
    }

    /// Returns true if this build replaces the other one.
    pub fn is_newer_than(&self, other: &Self) -> bool {
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

    use super::{Build, Identity, LaunchOptions};

    fn id(wanted: &LaunchOptions, variables: &[(&str, &str)]) -> String {
        let variables = variables
            .iter()
            .map(|(name, value)| (*name, value.as_ref()));
        Identity::of(wanted.clone(), variables).id
    }

    #[test]
    fn what_changes_the_configuration_changes_the_daemon_and_nothing_else_does() {
        let home = ("HOME", "/home/ada");
        let wanted = LaunchOptions {
            config: "/home/ada/.config/proxy/config.toml".into(),
            ..LaunchOptions::default()
        };
        let plain = id(&wanted, &[home]);
        for indifferent in [
            ("TERM", "dumb"),
            ("PROXY_LOG", "debug"),
            ("PROXY_CONFIG", "x"),
        ] {
            assert_eq!(plain, id(&wanted, &[home, indifferent]), "{indifferent:?}");
        }
        let loud = LaunchOptions {
            log: Some("debug".to_owned()),
            ..wanted.clone()
        };
        assert_eq!(plain, id(&loud, &[home]));
        for other in [
            ("PROXY_RESULTS__MAX_TOKENS", "100"),
            ("XDG_STATE_HOME", "/elsewhere"),
        ] {
            assert_ne!(plain, id(&wanted, &[home, other]), "{other:?}");
        }
        assert_ne!(plain, id(&wanted, &[("HOME", "/home/bob")]));
        let elsewhere = LaunchOptions {
            config: "/elsewhere.toml".into(),
            ..LaunchOptions::default()
        };
        assert_ne!(plain, id(&elsewhere, &[home]));
        let stateful = LaunchOptions {
            state_dir: Some("/elsewhere".into()),
            ..wanted
        };
        assert_ne!(plain, id(&stateful, &[home]));
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
        let ours = build("0.9.1", 2);
        let describe = |other: Build| other.describe_difference(&ours);
        assert_eq!(describe(ours.clone()), None);
        for (other, expected) in [
            (
                build("0.9.1", 1),
                "an older build of 0.9.1 than this program",
            ),
            (
                build("0.9.0", 3),
                "an older version than this program, which is 0.9.1",
            ),
            (
                build("0.9.1", 3),
                "another build of 0.9.1 than this program",
            ),
        ] {
            assert_eq!(describe(other).as_deref(), Some(expected));
        }
    }
}
