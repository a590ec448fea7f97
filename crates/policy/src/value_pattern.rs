//! Patterns for the values in a call's arguments.

use std::borrow::Cow;

use printable::{LetterCase, Pattern, escape_pattern};
use regex::{Regex, RegexBuilder};

use crate::{
    PolicyVerdict,
    path::{self, Readings},
};

/// The largest size of a compiled regular expression, in bytes.
const REGEX_BYTES_MAX: usize = 1 << 20;

#[derive(Debug, Clone)]
pub(crate) enum ValuePattern {
    Glob(Pattern),
    Regex(Regex),
    /// Folders, as absolute paths.
    Inside(Vec<String>),
    Outside(Vec<String>),
}

/// The treatment of values that may or may not match.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Doubt {
    /// The rule matches if it may match: for a rule that asks or denies.
    Fits,
    /// The rule matches only if it certainly matches: for a rule that allows.
    FitsNot,
}

impl Doubt {
    pub(crate) fn of(verdict: PolicyVerdict) -> Self {
        match verdict {
            PolicyVerdict::Allow => Self::FitsNot,
            PolicyVerdict::Ask | PolicyVerdict::Deny => Self::Fits,
        }
    }

    pub(crate) fn letter_case(self) -> LetterCase {
        match self {
            Self::Fits => LetterCase::Ignored,
            Self::FitsNot => LetterCase::Matters,
        }
    }
}

impl ValuePattern {
    /// Makes a pattern with `*`; a `~` at its beginning is the home folder. The error describes the
    /// fault.
    pub(crate) fn glob(written: &str, home: Option<&str>, doubt: Doubt) -> Result<Self, String> {
        let below_home = written.strip_prefix("~/").zip(home);
        let whole = below_home.map_or(Cow::Borrowed(written), |(rest, home)| {
            let home = escape_pattern(home.trim_end_matches('/'));
            Cow::Owned(format!("{home}/{rest}"))
        });
        Pattern::new(&whole, doubt.letter_case()).map(Self::Glob)
    }

    /// Makes a regular expression. With `Doubt::Fits` it ignores case, and `.` matches line ends. The
    /// error describes the fault in the expression.
    pub(crate) fn regex(written: &str, doubt: Doubt) -> Result<Self, String> {
        let regex = RegexBuilder::new(written)
            .size_limit(REGEX_BYTES_MAX)
            .case_insensitive(doubt == Doubt::Fits)
            .dot_matches_new_line(doubt == Doubt::Fits)
            .build();
        regex.map(Self::Regex).map_err(|error| {
            // The last line of several is the most specific.
            let text = error.to_string();
            let last = text.lines().last().unwrap_or_default();
            let why = last.strip_prefix("error: ").unwrap_or(last);
            format!("invalid regular expression: {why}")
        })
    }

    /// Returns true if a value matches; a value that is not text is not a path.
    pub(crate) fn fits(
        &self,
        value: &str,
        is_text: bool,
        home: Option<&str>,
        doubt: Doubt,
    ) -> bool {
        match self {
            Self::Glob(glob) => {
                let may_climb = glob.as_str().starts_with('/') && is_text;
                fits_in_readings(value, home, doubt, may_climb, |reading| {
                    glob.matches(reading)
                })
            }
            Self::Regex(regex) => {
                fits_in_readings(value, home, doubt, false, |it| regex.is_match(it))
            }
            Self::Inside(_) | Self::Outside(_) if !is_text => false,
            Self::Inside(folders) => is_placed(value, home, doubt, folders, true),
            Self::Outside(folders) => is_placed(value, home, doubt, folders, false),
        }
    }
}

/// Returns true if a path lies inside (or outside) some folders: in any reading if doubt counts as a
/// match, else in all of them.
fn is_placed(
    value: &str,
    home: Option<&str>,
    doubt: Doubt,
    folders: &[String],
    wants_inside: bool,
) -> bool {
    // In doubt, a path that may be inside or outside counts as the case that restricts.
    let is_inside = if wants_inside == (doubt == Doubt::Fits) {
        path::may_be_inside
    } else {
        path::is_inside
    };
    let is_so =
        |path: &String| folders.iter().any(|folder| is_inside(path, folder)) == wants_inside;
    let readings = Readings::of(value, home);
    match doubt {
        Doubt::Fits => {
            readings.whole.iter().any(is_so)
                || readings.may_climb()
                || !wants_inside && !readings.relative.is_empty()
        }
        Doubt::FitsNot => readings.relative.is_empty() && readings.whole.iter().all(is_so),
    }
}

/// Returns true if a value matches as it is written, or as the paths and addresses that a server may
/// read from it. A pattern of whole paths also matches a path that may lead anywhere (`may_climb`).
fn fits_in_readings(
    value: &str,
    home: Option<&str>,
    doubt: Doubt,
    may_climb: bool,
    fits: impl Fn(&str) -> bool,
) -> bool {
    if !value.contains(['/', '\\', '%', ':']) {
        return fits(value);
    }
    let readings = || Readings::of(value, home);
    match doubt {
        Doubt::Fits => {
            fits(value) || {
                let readings = readings();
                let whole = &readings.whole;
                whole.iter().any(|path| fits(path))
                    || readings
                        .relative
                        .iter()
                        .any(|it| fits(&path::tidy_relative(it)))
                    || path::spellings_of_address(value).iter().any(|it| fits(it))
                    || may_climb && value.contains("..") && readings.may_climb()
            }
        }
        // `~` is only another way to write a folder.
        Doubt::FitsNot => {
            (value.starts_with('~') || fits(value)) && {
                let readings = readings();
                !readings.may_climb() && readings.whole.iter().all(|path| fits(path))
            }
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
