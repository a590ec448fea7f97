//! What a value in a call's arguments is held against.

use std::borrow::Cow;

use regex::{Regex, RegexBuilder};

use crate::{
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

impl ValuePattern {
    /// The error says what is wrong with the expression.
    pub(crate) fn regex(written: &str) -> Result<Self, String> {
        let regex = RegexBuilder::new(written)
            .size_limit(REGEX_BYTES_MAX)
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
                return fits_in_spellings(value, home, doubt, |it| glob.fits(&Text::new(it)));
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
        let is_inside = folders.iter().any(|folder| path::is_inside(&path, folder));
        is_inside == wants_inside
    }
}

/// As it is written, and as the path that it may be.
fn fits_in_spellings(
    value: &str,
    home: Option<&str>,
    doubt: Doubt,
    fits: impl Fn(&str) -> bool,
) -> bool {
    let is_path_like = value.contains(['/', '\\']);
    let tidy = is_path_like.then(|| path::resolve(value, home)).flatten();
    if doubt == Doubt::FitsNot && tidy.is_none() && is_path_like && path::climbs(value) {
        return false;
    }
    let tidy = tidy.map_or(Cow::Borrowed(value), Cow::Owned);
    match doubt {
        Doubt::Fits => fits(value) || fits(&tidy),
        Doubt::FitsNot => fits(value) && fits(&tidy),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn in_doubt_nothing_is_allowed_and_everything_is_asked_about() {
        let glob = Matcher::new("https://docs.example/*", false).expect("a pattern");
        let glob = ValuePattern::Glob(glob);
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
    }
}
