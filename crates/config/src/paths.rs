//! The paths of the file and of the state, and the resolution of `~/` and relative paths.

use std::path::{Path, PathBuf};

use files::UserFolder;
use printable::escape_template;
use sha2::{Digest, Sha256};

use fleet::Template;

use super::{Environment, mistake::Fault, template::read_template};

/// `proxy/config.toml` in the user's folder for configuration; `None` if there is no home folder either.
pub fn default_path(env: &Environment) -> Option<PathBuf> {
    let base = find_base(env, UserFolder::Config)?;
    Some(base.join("proxy").join("config.toml"))
}

/// Returns the state folder that a configuration file names, else its default one.
pub(super) fn find_state_dir(
    written: Option<&str>,
    file: &Path,
    env: &Environment,
) -> Result<PathBuf, Fault> {
    if let Some(written) = written {
        let parent = file.parent().unwrap_or(file);
        return Ok(parent.join(from_home(written.as_ref(), env)?));
    }
    default_state_dir(env, file).ok_or_else(|| {
        let what = "no default folder: neither `XDG_STATE_HOME` nor `HOME` is set";
        Fault::new(what, "set `state_dir`, or the variable `PROXY_STATE_DIR`")
    })
}

/// Each configuration file has a state folder of its own, so that two never mix their tools.
fn default_state_dir(env: &Environment, file: &Path) -> Option<PathBuf> {
    let stem = file.file_stem()?.to_string_lossy();
    let digest = Sha256::digest(file.as_os_str().as_encoded_bytes());
    let head = u32::from_be_bytes([digest[0], digest[1], digest[2], digest[3]]);
    let base = find_base(env, UserFolder::State)?;
    Some(base.join("proxy").join(format!("{stem}-{head:08x}")))
}

fn find_base(env: &Environment, folder: UserFolder) -> Option<PathBuf> {
    folder.find(|variable| env.path(variable))
}

/// Resolves `~` and `~/...` in the home folder; returns other paths unchanged.
pub(super) fn from_home(path: &Path, env: &Environment) -> Result<PathBuf, Fault> {
    let Ok(rest) = path.strip_prefix("~") else {
        return Ok(path.to_owned());
    };
    let home = env.path("HOME").ok_or_else(|| {
        let what = "`~` stands for the home folder, but `HOME` is not set";
        Fault::new(what, "write an absolute path")
    })?;
    if rest.as_os_str().is_empty() {
        Ok(home)
    } else {
        Ok(home.join(rest))
    }
}

/// Resolves a path from a variable or a flag, relative to the current folder.
pub(super) fn from_current_folder(path: &Path, env: &Environment) -> Result<String, Fault> {
    let absolute = std::path::absolute(from_home(path, env)?);
    let text = absolute.map(|path| path.to_string_lossy().into_owned());
    text.map_err(|error| Fault::bare(format!("the current folder is unknown: {error}")))
}

/// Turns the paths of a template into absolute ones and leaves its variables alone.
#[derive(Debug)]
pub(super) struct Folders<'a> {
    pub(super) env: &'a Environment,
    /// The folder of the configuration file.
    pub(super) config: &'a Path,
}

impl Folders<'_> {
    /// A path that starts with a variable is as absolute as the variable is.
    pub(super) fn resolve_folder(&self, template: &str) -> Result<String, Fault> {
        if template.starts_with(['/', '~', '$']) {
            self.resolve_home(template)
        } else {
            Ok(format!(
                "{}/{template}",
                escape_template(&self.config.to_string_lossy())
            ))
        }
    }

    /// Reads the path of a file or a folder.
    pub(super) fn read(&self, path: &str) -> Result<Template, Fault> {
        read_template(&self.resolve_folder(path)?)
    }

    /// A bare word is looked up on `PATH`; `./` and `../` start at the configuration file.
    pub(super) fn resolve_command(&self, template: &str) -> Result<String, Fault> {
        if template.starts_with("./") || template.starts_with("../") {
            self.resolve_folder(template)
        } else {
            self.resolve_home(template)
        }
    }

    fn resolve_home(&self, template: &str) -> Result<String, Fault> {
        let Some(rest) = template.strip_prefix("~/") else {
            return Ok(template.to_owned());
        };
        let home = from_home("~".as_ref(), self.env)?;
        Ok(format!(
            "{}/{rest}",
            escape_template(&home.to_string_lossy())
        ))
    }
}
