//! The paths of a user's files: every path that is read on a machine is resolved here.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use serde::Deserialize;

/// The system whose file layout is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum System {
    /// Linux, and other systems that follow XDG.
    #[default]
    Linux,
    /// macOS.
    Mac,
    /// Windows.
    Windows,
}

impl System {
    /// Returns the system that this program was built for.
    pub fn of_build() -> Self {
        match std::env::consts::OS {
            "macos" => Self::Mac,
            "windows" => Self::Windows,
            _ => Self::Linux,
        }
    }

    /// Returns the name that Node.js and manifests of bundles use.
    pub(crate) fn node_name(self) -> &'static str {
        match self {
            Self::Linux => "linux",
            Self::Mac => "darwin",
            Self::Windows => "win32",
        }
    }
}

/// A home folder, the variables that change the paths of files, and the current project.
#[derive(Debug, Clone)]
pub struct Home {
    folder: PathBuf,
    variables: BTreeMap<String, String>,
    project: Option<PathBuf>,
    system: System,
}

impl Home {
    /// Creates a home at `folder`; `variables` of the environment change the paths of files.
    pub fn new(
        folder: impl Into<PathBuf>,
        variables: impl IntoIterator<Item = (String, String)>,
    ) -> Self {
        Self {
            folder: folder.into(),
            variables: variables.into_iter().collect(),
            project: None,
            system: System::of_build(),
        }
    }

    /// Includes the files of this project.
    #[must_use]
    pub fn with_project(mut self, project: impl Into<PathBuf>) -> Self {
        self.project = Some(project.into());
        self
    }

    /// Uses the file layout of another system.
    #[must_use]
    pub fn with_system(mut self, system: System) -> Self {
        self.system = system;
        self
    }

    /// Returns the home folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns the current project, if its files are included.
    pub fn project(&self) -> Option<&Path> {
        self.project.as_deref()
    }

    /// Returns the system whose layout is used.
    pub fn system(&self) -> System {
        self.system
    }

    /// Returns a variable that is set and not empty.
    pub fn variable(&self, name: &str) -> Option<&str> {
        let value = self.variables.get(name)?;
        Some(value.as_str()).filter(|value| !value.is_empty())
    }

    /// Resolves a place of the table to a path; `None` if a variable in it is not set.
    pub(crate) fn resolve(&self, place: &str) -> Option<PathBuf> {
        let Some(rest) = place.strip_prefix('{') else {
            return Some(PathBuf::from(place));
        };
        let (name, rest) = rest.split_once('}')?;
        let base = match name {
            "home" => self.folder.clone(),
            "project" => self.project.clone()?,
            "xdg" => self.xdg_folder(),
            "config" => self.config_folder(),
            "local" => self.windows_folder("LOCALAPPDATA", "Local"),
            name => PathBuf::from(self.variable(name.strip_prefix('$')?)?),
        };
        match rest.strip_prefix('/') {
            Some(rest) => Some(base.join(rest)),
            None => Some(base),
        }
    }

    fn xdg_folder(&self) -> PathBuf {
        match self.variable("XDG_CONFIG_HOME") {
            Some(folder) if Path::new(folder).is_absolute() => PathBuf::from(folder),
            _ => self.folder.join(".config"),
        }
    }

    fn config_folder(&self) -> PathBuf {
        match self.system {
            System::Linux => self.xdg_folder(),
            System::Mac => self.folder.join("Library/Application Support"),
            System::Windows => self.windows_folder("APPDATA", "Roaming"),
        }
    }

    fn windows_folder(&self, variable: &str, name: &str) -> PathBuf {
        match self.variable(variable) {
            Some(folder) => PathBuf::from(folder),
            None => self.folder.join("AppData").join(name),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::{Home, System};

    #[track_caller]
    fn check(system: System, place: &str, expected: Option<&str>) {
        let variables = [("CODEX_HOME", "/codex"), ("EMPTY", "")];
        let variables = variables.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let home = Home::new("/home/ada", variables).with_system(system);
        assert_eq!(home.resolve(place), expected.map(PathBuf::from), "{place}");
    }

    #[test]
    fn places_are_found_from_the_home() {
        use System::{Linux, Mac, Windows};
        check(Linux, "{home}/.cursor", Some("/home/ada/.cursor"));
        check(Linux, "{config}/Code", Some("/home/ada/.config/Code"));
        let mac = "/home/ada/Library/Application Support/Code";
        check(Mac, "{config}/Code", Some(mac));
        check(Mac, "{xdg}/zed", Some("/home/ada/.config/zed"));
        check(
            Windows,
            "{config}/Zed",
            Some("/home/ada/AppData/Roaming/Zed"),
        );
        check(
            Linux,
            "{$CODEX_HOME}/config.toml",
            Some("/codex/config.toml"),
        );
        check(Linux, "{$CODEX_HOME}", Some("/codex"));
        check(Linux, "{$EMPTY}/x", None);
        check(Linux, "{project}/.mcp.json", None);
    }
}
