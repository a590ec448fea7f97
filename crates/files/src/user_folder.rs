//! The folders in which programs of a user keep their files.

use std::path::PathBuf;

/// A kind of folder in which each program has a folder of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UserFolder {
    /// For files that a person edits: `$XDG_CONFIG_HOME`.
    Config,
    /// For data that a program writes: `$XDG_STATE_HOME`.
    State,
}

impl UserFolder {
    /// Returns the variable that names the folder on every system.
    pub fn variable(self) -> &'static str {
        match self {
            Self::Config => "XDG_CONFIG_HOME",
            Self::State => "XDG_STATE_HOME",
        }
    }

    /// Returns the folder, given the variables of the environment; `None` if neither its own nor `HOME`
    /// is set. The XDG specification says that relative folders are ignored.
    pub fn find(self, variable: impl Fn(&str) -> Option<PathBuf>) -> Option<PathBuf> {
        let set = variable(self.variable()).or_else(|| variable(self.usual_variable()?));
        let set = set.filter(|folder| folder.is_absolute());
        set.or_else(|| Some(variable("HOME")?.join(self.in_home())))
    }

    /// Returns the variable that the system sets.
    fn usual_variable(self) -> Option<&'static str> {
        cfg!(windows).then_some(match self {
            Self::Config => "APPDATA",
            Self::State => "LOCALAPPDATA",
        })
    }

    fn in_home(self) -> &'static str {
        match self {
            Self::Config if cfg!(windows) => r"AppData\Roaming",
            Self::State if cfg!(windows) => r"AppData\Local",
            _ if cfg!(target_os = "macos") => "Library/Application Support",
            Self::Config => ".config",
            Self::State => ".local/state",
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use super::UserFolder;

    #[test]
    fn a_variable_with_an_absolute_path_comes_before_the_home() {
        let find = |set: &str| {
            UserFolder::State.find(|name| match name {
                "HOME" => Some(PathBuf::from("/home/ada")),
                "XDG_STATE_HOME" if !set.is_empty() => Some(PathBuf::from(set)),
                _ => None,
            })
        };
        let (set, usual) = if cfg!(windows) {
            (r"C:\set", r"/home/ada\AppData\Local")
        } else if cfg!(target_os = "macos") {
            ("/set", "/home/ada/Library/Application Support")
        } else {
            ("/set", "/home/ada/.local/state")
        };
        assert_eq!(find(set).as_deref(), Some(Path::new(set)));
        assert_eq!(find("relative").as_deref(), Some(Path::new(usual)));
        assert_eq!(find("").as_deref(), Some(Path::new(usual)));
        assert_eq!(UserFolder::Config.find(|_| None), None);
    }
}
