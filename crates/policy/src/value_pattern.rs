//! What a value in a call's arguments is held against.

use std::borrow::Cow;

use regex::{Regex, RegexBuilder};

use crate::{
    Verdict,
    matcher::{Matcher, Text},
    path,
};

/// The largest program that a regular expression may become, in bytes.
const REGEX_BYTES_MAX: usize = 1 << 20;

/// One condition on a value.
#[derive(Debug, Clone)]
pub(crate) enum ValuePattern {
    Glob(Matcher),
    Regex(Regex),
    /// Folders, from the root on.
    Inside(Vec<String>),
    Outside(Vec<String>),
}

/// How sure a rule has to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Doubt {
    /// It fits where it may fit: of a rule that asks or denies.
    Fits,
    /// Of a rule that allows.
    FitsNot,
}

impl Doubt {
    pub(crate) fn of(verdict: Verdict) -> Self {
        match verdict {
            Verdict::Allow => Self::FitsNot,
            Verdict::Ask | Verdict::Deny => Self::Fits,
        }
    }
}

impl ValuePattern {
    /// A pattern with `*`; `~` at its beginning is the home folder. The error says what is wrong.
    pub(crate) fn glob(written: &str, home: Option<&str>, doubt: Doubt) -> Result<Self, String> {
        let below_home = written.strip_prefix("~/").zip(home);
        let whole = below_home.map_or(Cow::Borrowed(written), |(rest, home)| {
            let home = globset::escape(home.trim_end_matches('/'));
            Cow::Owned(format!("{home}/{rest}"))
        });
        Matcher::new(&whole, doubt == Doubt::Fits).map(Self::Glob)
    }

    /// In doubt without regard to letter case and to ends of lines. The error says what is wrong
    /// with the expression.
    pub(crate) fn regex(written: &str, doubt: Doubt) -> Result<Self, String> {
        let regex = RegexBuilder::new(written)
            .size_limit(REGEX_BYTES_MAX)
            .case_insensitive(doubt == Doubt::Fits)
            .dot_matches_new_line(doubt == Doubt::Fits)
            .build();
        regex.map(Self::Regex).map_err(|error| {
            // The last line of several says what is wrong.
            let text = error.to_string();
            let last = text.lines().last().unwrap_or_default();
            let why = last.strip_prefix("error: ").unwrap_or(last);
            format!("no regular expression: {why}")
        })
    }

    /// Whether a value fits; what is no text is no path.
    pub(crate) fn fits(
        &self,
        value: &str,
        is_text: bool,
        home: Option<&str>,
        doubt: Doubt,
    ) -> bool {
        let folders = match self {
            Self::Glob(glob) => {
                let may_climb = doubt == Doubt::Fits && glob.is_rooted && is_text;
                return fits_in_spellings(value, home, doubt, |it| glob.fits(&Text::new(it)))
                    || may_climb && is_climbing(value, home);
            }
            Self::Regex(regex) => {
                return fits_in_spellings(value, home, doubt, |it| regex.is_match(it));
            }
            Self::Inside(folders) | Self::Outside(folders) => folders,
        };
        if !is_text {
            return false;
        }
        let wants_inside = matches!(self, Self::Inside(_));
        let Some(path) = path::resolve(value, home) else {
            return doubt == Doubt::Fits && (!wants_inside || path::climbs(value));
        };
        // In doubt a path that may be one of both is what restricts.
        let is_inside = if wants_inside == (doubt == Doubt::Fits) {
            path::may_be_inside
        } else {
            path::is_inside
        };
        folders.iter().any(|folder| is_inside(&path, folder)) == wants_inside
    }
}

/// A path from somewhere unknown that leads upwards from there.
fn is_climbing(value: &str, home: Option<&str>) -> bool {
    value.contains("..") && path::resolve(value, home).is_none() && path::climbs(value)
}

/// As it is written, and as the path or address that it may be.
fn fits_in_spellings(
    value: &str,
    home: Option<&str>,
    doubt: Doubt,
    fits: impl Fn(&str) -> bool,
) -> bool {
    if !value.contains(['/', '\\']) {
        return fits(value);
    }
    let whole = path::resolve(value, home);
    match doubt {
        Doubt::Fits => {
            fits(value)
                || match (whole, path::tidy_address(value)) {
                    (Some(path), _) => fits(&path),
                    (None, Some(spellings)) => spellings.iter().any(|it| fits(it)),
                    (None, None) => fits(&path::tidy_relative(value)),
                }
        }
        Doubt::FitsNot => {
            // `~` is no more than another way to write a folder.
            let is_home = value.starts_with('~');
            let whole = whole.map_or_else(|| !path::climbs(value), |path| fits(&path));
            whole && (is_home || fits(value))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn in_doubt_nothing_is_allowed_and_everything_is_asked_about() {
        let glob = "https://docs.example/*";
        let glob = ValuePattern::glob(glob, None, Doubt::FitsNot).expect("a pattern");
        let outside = ValuePattern::Outside(vec!["/srv".to_owned()]);
        let check = |pattern: &ValuePattern, value, restricts, allows| {
            assert_eq!(
                pattern.fits(value, true, None, Doubt::Fits),
                restricts,
                "{value}"
            );
            assert_eq!(
                pattern.fits(value, true, None, Doubt::FitsNot),
                allows,
                "{value}"
            );
        };
        check(&glob, "https://docs.example/a", true, true);
        check(&glob, "https://docs.example/%2e%2e/a", true, false);
        check(&outside, "/srv/a", false, false);
        check(&outside, "/etc", true, true);
        check(&outside, "notes.txt", true, false);
        let rooted = ValuePattern::glob("/etc/*", None, Doubt::Fits).expect("a pattern");
        check(&rooted, "../../etc/passwd", true, false);
        check(&rooted, "etc/passwd", false, false);
    }
}
