//! A mistake in the configuration: its place, its description, and the fix.

use std::{
    fmt,
    path::{Path, PathBuf},
};

use printable::{mask_address, mask_secrets};

/// Every mistake that was found, in the order of the file, then variables, then flags.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigError {
    /// The path as the user gave it, so that an editor can open it.
    pub file: PathBuf,
    /// At least one.
    pub mistakes: Vec<Mistake>,
}

/// One mistake, and its fix.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mistake {
    /// Its place.
    pub place: MistakePlace,
    /// Dotted, as it would be written in the file; empty if it is about no key.
    pub key: String,
    /// The description: a fragment without a full stop.
    pub what: String,
    /// The fix, if one is known.
    pub hint: Option<String>,
}

impl Mistake {
    /// Returns true if it is among these, at any place.
    pub fn is_in(&self, others: &[Self]) -> bool {
        let is_same = |other: &Self| other.what == self.what && other.key == self.key;
        others.iter().any(is_same)
    }
}

/// The place of a mistake.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MistakePlace {
    /// The file as a whole.
    File,
    /// Both count from one; the column counts characters.
    Line {
        /// The line.
        line: usize,
        /// The column in it.
        column: usize,
    },
    /// A variable of the environment.
    Variable(String),
    /// A flag of the command line.
    Flag(&'static str),
    /// The file of the configuration that the nodes of a cluster share.
    Shared(PathBuf),
}

impl MistakePlace {
    /// Returns the variable, the flag, or the file with the line. `file` is the path as it is shown.
    pub(super) fn origin(&self, file: &Path) -> String {
        match self {
            Self::File => file.display().to_string(),
            Self::Line { line, .. } => format!("{}:{line}", file.display()),
            Self::Variable(name) => name.clone(),
            Self::Flag(name) => (*name).to_owned(),
            Self::Shared(path) => path.display().to_string(),
        }
    }
}

/// A mistake in a value, before its place is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Fault {
    pub(super) what: String,
    pub(super) hint: Option<String>,
}

impl Fault {
    pub(super) fn new(what: impl Into<String>, hint: impl Into<String>) -> Self {
        Self {
            what: what.into(),
            hint: Some(hint.into()),
        }
    }

    pub(super) fn bare(what: impl Into<String>) -> Self {
        Self {
            what: what.into(),
            hint: None,
        }
    }

    /// Describes a former key.
    pub(super) fn removed(replacement: &str) -> Self {
        Self::bare(format!("this key was removed: {replacement}"))
    }

    pub(super) fn at(self, place: MistakePlace, key: impl Into<String>) -> Mistake {
        Mistake {
            place,
            key: key.into(),
            what: self.what,
            hint: self.hint,
        }
    }
}

/// The limit of printed mistakes: a file of a megabyte can have a mistake in every line.
const MISTAKES_SHOWN_MAX: usize = 50;

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, mistake) in self.mistakes.iter().take(MISTAKES_SHOWN_MAX).enumerate() {
            f.write_str(if index == 0 { "" } else { "\n" })?;
            self.print(mistake, f)?;
        }
        match self.mistakes.len().saturating_sub(MISTAKES_SHOWN_MAX) {
            0 => Ok(()),
            more => write!(f, "\nand {more} more"),
        }
    }
}

impl std::error::Error for ConfigError {}

impl ConfigError {
    fn print(&self, mistake: &Mistake, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&mistake.place.origin(&self.file))?;
        if let MistakePlace::Line { column, .. } = mistake.place {
            write!(f, ":{column}")?;
        }
        if !mistake.key.is_empty() {
            write!(f, ": {}", mistake.key)?;
        }
        write!(f, ": {}", mistake.what)?;
        match &mistake.hint {
            Some(hint) => write!(f, "\n    hint: {}", hint.replace('\n', "\n          ")),
            None => Ok(()),
        }
    }
}

/// The most characters of a user's own text that a message repeats.
const SHOWN_CHARS_MAX: usize = 60;

/// Returns a user's own text for a message: one line, printable, not too long, with everything that
/// looks secret masked. Messages end up in logs.
pub(super) fn shown(text: &str) -> String {
    cut(&mask_secrets(text, None))
}

/// Does the same for the value of this key.
pub(super) fn shown_value(key: &str, text: &str) -> String {
    cut(&mask_secrets(text, Some(key)))
}

/// Does the same for a text in the place of an address: the password in a mistyped address cannot be
/// located.
pub(super) fn shown_address(text: &str) -> String {
    cut(&mask_address(text))
}

fn cut(text: &str) -> String {
    if text.len() <= SHOWN_CHARS_MAX && !text.contains(char::is_control) {
        return text.to_owned();
    }
    let mut chars = text.chars();
    let mut cut = String::new();
    for c in chars.by_ref().take(SHOWN_CHARS_MAX) {
        if c.is_control() {
            cut.extend(c.escape_default());
        } else {
            cut.push(c);
        }
    }
    if chars.next().is_some() {
        cut.push('…');
    }
    cut
}

/// Returns a dotted key as it is written in TOML.
pub(super) fn key_of(path: &[impl AsRef<str>]) -> String {
    let parts = path.iter().map(|part| shown_key(part.as_ref()));
    parts.collect::<Vec<_>>().join(".")
}

/// Returns a part of a key as it is written in TOML: quoted if required.
pub(super) fn shown_key(name: &str) -> String {
    let bare = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if !name.is_empty() && name.chars().all(bare) {
        shown(name)
    } else {
        format!("\"{}\"", shown(name))
    }
}
