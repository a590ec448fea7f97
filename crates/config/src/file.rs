//! The file that is read, and the reasons why it cannot be.

use std::{
    io,
    path::{Path, PathBuf},
};

use super::{
    ConfigError, Environment, Mistake, MistakePlace, Overrides,
    mistake::Fault,
    paths::{default_path, from_home},
};

/// The configuration file, before it is read.
#[derive(Debug)]
pub(super) struct ConfigFile {
    /// The path as the user gave it.
    pub(super) shown: PathBuf,
    pub(super) absolute: PathBuf,
    named_by: NamedBy,
}

#[derive(Debug, Clone, Copy)]
enum NamedBy {
    Flag,
    Variable,
    Default,
}

/// The size limit of a configuration: it is written by hand, so a larger file is not one.
const FILE_BYTES_MAX: u64 = 16 << 20;

pub(super) fn find(overrides: &Overrides, env: &Environment) -> Result<ConfigFile, ConfigError> {
    let (shown, named_by) = find_named(overrides, env).ok_or_else(explain_no_path)?;
    let absolute = from_home(&shown, env).and_then(|path| {
        let no_folder = |error| Fault::bare(format!("the current folder is unknown: {error}"));
        std::path::absolute(path).map_err(no_folder)
    });
    match absolute {
        Ok(absolute) => Ok(ConfigFile {
            shown,
            absolute,
            named_by,
        }),
        Err(fault) => Err(ConfigError {
            file: shown,
            mistakes: file_mistake(fault),
        }),
    }
}

fn find_named(overrides: &Overrides, env: &Environment) -> Option<(PathBuf, NamedBy)> {
    let flag = overrides.config.clone().map(|path| (path, NamedBy::Flag));
    let variable = || Some((env.path("PROXY_CONFIG")?, NamedBy::Variable));
    let default = || Some((default_path(env)?, NamedBy::Default));
    flag.or_else(variable).or_else(default)
}

fn explain_no_path() -> ConfigError {
    let what = "no configuration file: neither `XDG_CONFIG_HOME` nor `HOME` is set";
    let fault = Fault::new(what, "name the file: `proxy --config FILE`");
    ConfigError {
        file: PathBuf::from("config.toml"),
        mistakes: file_mistake(fault),
    }
}

impl ConfigFile {
    /// The file at a path that is known.
    pub(super) fn at(path: &Path) -> Self {
        Self {
            shown: path.to_owned(),
            absolute: path.to_owned(),
            named_by: NamedBy::Default,
        }
    }

    pub(super) fn error(&self, mistakes: Vec<Mistake>) -> ConfigError {
        ConfigError {
            file: self.shown.clone(),
            mistakes,
        }
    }

    pub(super) fn read(&self) -> Result<String, Vec<Mistake>> {
        let bytes = read_bytes(&self.absolute).map_err(|error| self.explain(&error))?;
        String::from_utf8(bytes).map_err(|error| {
            let byte = error.utf8_error().valid_up_to();
            let what = format!("not text: byte {byte} is not UTF-8");
            self.refuse(&what, "save it as UTF-8, or name a TOML file")
        })
    }

    fn explain(&self, error: &io::Error) -> Vec<Mistake> {
        match error.kind() {
            io::ErrorKind::NotFound => {
                file_mistake(Fault::new("no such file", self.first_run_hint()))
            }
            io::ErrorKind::IsADirectory => {
                self.refuse("a folder, not a file", "name the file in it")
            }
            io::ErrorKind::FileTooLarge => {
                let what = format!("larger than {} MiB", FILE_BYTES_MAX >> 20);
                self.refuse(&what, "name a TOML file")
            }
            io::ErrorKind::PermissionDenied => {
                self.refuse("no permission to read the file", "make it readable")
            }
            _ => self.refuse(&format!("cannot be read: {error}"), "name another file"),
        }
    }

    fn refuse(&self, what: &str, hint: &str) -> Vec<Mistake> {
        file_mistake(Fault::new(what, self.hint(hint)))
    }

    fn first_run_hint(&self) -> String {
        match self.named_by {
            NamedBy::Default => format!(
                "`proxy init` creates it from the servers of your MCP clients; or create it, for \
                example with these lines:\n{EXAMPLE}\nor try the program without a file: `proxy \
                demo`"
            ),
            _ => self.hint("correct the path, or create the file"),
        }
    }

    fn hint(&self, hint: &str) -> String {
        match self.named_by {
            NamedBy::Flag => format!("the path is from `--config`; {hint}"),
            NamedBy::Variable => format!("the path is from the variable `PROXY_CONFIG`; {hint}"),
            NamedBy::Default => hint.to_owned(),
        }
    }
}

fn file_mistake(fault: Fault) -> Vec<Mistake> {
    vec![fault.at(MistakePlace::File, "")]
}

/// The example in the hint for users without a file. A test loads it.
pub(super) const EXAMPLE: &str = r#"[servers.time]
command = "uvx"
args = ["mcp-server-time"]"#;

fn read_bytes(path: &Path) -> io::Result<Vec<u8>> {
    if path.is_dir() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    secrets::read_bounded(std::fs::File::open(path)?, FILE_BYTES_MAX)
}
