//! Patterns of names and values with `*`, `?`, `[...]` and `{a,b}`: the one language of patterns in the
//! configuration. Simple patterns are compared within nanoseconds.

use std::{borrow::Cow, fmt};

use globset::GlobBuilder;
use regex::bytes::{Regex, RegexBuilder};

/// The effect of letter case on a comparison: if ignored, `GitHub` matches `github`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LetterCase {
    /// Texts of different case differ.
    Matters,
    /// Texts of different case are the same.
    Ignored,
}

/// A compiled pattern. `*` matches any characters, `/` included.
#[derive(Debug, Clone)]
pub struct Pattern {
    written: String,
    shape: Shape,
    case: LetterCase,
}

#[derive(Debug, Clone)]
enum Shape {
    Any,
    Whole(String),
    Begins(String),
    Ends(String),
    Glob(Box<Regex>),
}

impl Pattern {
    /// Compiles a pattern. The error describes the fault in the pattern.
    pub fn new(pattern: &str, case: LetterCase) -> Result<Self, String> {
        let compared = match case {
            LetterCase::Matters => Cow::Borrowed(pattern),
            LetterCase::Ignored => Cow::Owned(pattern.to_lowercase()),
        };
        let is_plain = |text: &str| !text.contains(['*', '?', '[', '{', '\\']);
        let shape = if compared == "*" || compared == "**" {
            Shape::Any
        } else if let Some(whole) = unescape(&compared) {
            Shape::Whole(whole)
        } else if let Some(rest) = compared.strip_suffix('*').filter(|rest| is_plain(rest)) {
            Shape::Begins(rest.to_owned())
        } else if let Some(rest) = compared.strip_prefix('*').filter(|rest| is_plain(rest)) {
            Shape::Ends(rest.to_owned())
        } else {
            Shape::Glob(Box::new(compile(&compared)?))
        };
        Ok(Self {
            written: pattern.to_owned(),
            shape,
            case,
        })
    }

    /// The pattern as it is written.
    pub fn as_str(&self) -> &str {
        &self.written
    }

    /// Returns true if it matches every text.
    pub fn matches_all(&self) -> bool {
        matches!(self.shape, Shape::Any)
    }

    /// Returns true if it matches one text only.
    pub fn is_exact(&self) -> bool {
        matches!(self.shape, Shape::Whole(_))
    }

    /// Returns true if it matches the text.
    pub fn matches(&self, text: &str) -> bool {
        match self.case {
            LetterCase::Matters => self.fits(text),
            LetterCase::Ignored => self.fits(&text.to_lowercase()),
        }
    }

    /// Returns true if it matches the text.
    pub fn matches_folded(&self, text: &FoldedText<'_>) -> bool {
        self.fits(match self.case {
            LetterCase::Matters => &text.written,
            LetterCase::Ignored => &text.lower,
        })
    }

    fn fits(&self, text: &str) -> bool {
        match &self.shape {
            Shape::Any => true,
            Shape::Whole(whole) => text == whole,
            Shape::Begins(start) => text.starts_with(start.as_str()),
            Shape::Ends(end) => text.ends_with(end.as_str()),
            Shape::Glob(glob) => glob.is_match(text.as_bytes()),
        }
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.written)
    }
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        (&self.written, self.case) == (&other.written, other.case)
    }
}

impl Eq for Pattern {}

/// Makes the expression of a pattern. `globset` itself does not match it, because it
/// takes `\` for `/` on Windows, in patterns and in texts: rules mean the same everywhere.
fn compile(pattern: &str) -> Result<Regex, String> {
    let glob = GlobBuilder::new(pattern).backslash_escape(true).build();
    let glob = glob.map_err(|error| error.kind().to_string())?;
    let mut expression = RegexBuilder::new(glob.regex());
    let expression = expression.dot_matches_new_line(true).build();
    expression.map_err(|error| error.to_string())
}

/// Special characters of a pattern; a class of one of them matches that character.
const SPECIAL: [char; 7] = ['*', '?', '[', ']', '{', '}', '\\'];

/// Returns the pattern that matches exactly this text.
pub fn escape_pattern(text: &str) -> String {
    let mut pattern = String::with_capacity(text.len());
    for c in text.chars() {
        if SPECIAL.contains(&c) {
            pattern.extend(['[', c, ']']);
        } else {
            pattern.push(c);
        }
    }
    pattern
}

/// Returns the only text that a pattern matches; `None` if it matches several, or is invalid.
fn unescape(pattern: &str) -> Option<String> {
    let mut text = String::with_capacity(pattern.len());
    let mut rest = pattern;
    while let Some(at) = rest.find(['*', '?', '[', '{', '\\']) {
        let (plain, class) = rest.split_at(at);
        let c = class.strip_prefix('[')?.chars().next()?;
        if !SPECIAL.contains(&c) {
            return None;
        }
        text.push_str(plain);
        text.push(c);
        rest = class.get(2..)?.strip_prefix(']')?;
    }
    text.push_str(rest);
    Some(text)
}

/// A text to be compared with several patterns, in its own and in lower case.
#[derive(Debug)]
pub struct FoldedText<'a> {
    written: Cow<'a, str>,
    lower: String,
}

impl<'a> FoldedText<'a> {
    /// Makes one.
    pub fn new(written: impl Into<Cow<'a, str>>) -> Self {
        let written = written.into();
        Self {
            lower: written.to_lowercase(),
            written,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(pattern: &str, text: &str, expected: bool) {
        let compiled = Pattern::new(pattern, LetterCase::Ignored).unwrap();
        assert_eq!(compiled.matches(text), expected, "{pattern} {text}");
        let folded = compiled.matches_folded(&FoldedText::new(text));
        assert_eq!(folded, expected, "{pattern} {text}");
    }

    proptest! {
        #[test]
        fn an_escaped_text_is_a_pattern_of_that_text_alone(
            text in "(\\PC|[\\\\\\[\\]{}*?!',^\\-\n\r\t\u{0}aA/]){1,12}",
            other in "[\\\\\\[\\]{}*?!a/]{1,4}",
        ) {
            let pattern = Pattern::new(&escape_pattern(&text), LetterCase::Matters);
            prop_assert!(pattern.is_ok(), "{:?}", pattern);
            let pattern = pattern.unwrap();
            prop_assert!(pattern.is_exact() && pattern.matches(&text));
            prop_assert_eq!(pattern.matches(&other), text == other);
            let folded = Pattern::new(&escape_pattern(&text), LetterCase::Ignored).unwrap();
            prop_assert!(folded.matches(&text));
            // The expression of the whole pattern means the same.
            prop_assert!(compile(&escape_pattern(&text)).unwrap().is_match(text.as_bytes()));
            // Another program reads the file with the patterns in it.
            #[cfg(unix)]
            prop_assert!(globset::Glob::new(&escape_pattern(&text)).unwrap().compile_matcher().is_match(&text));
        }
    }

    #[test]
    fn every_shape_means_what_the_glob_means() {
        check("*", "", true);
        check("delete_*", "Delete_repo", true);
        check("delete_*", "undelete_repo", false);
        check("*_repo", "delete_repo", true);
        check("get_repo", "GET_REPO", true);
        check("get_repo", "get_repos", false);
        check("{get,list}_*", "list_repos", true);
        check("?et", "get", true);
        check("*a*b*", "xxaxxbxx", true);
        let exact = Pattern::new("Get", LetterCase::Matters).unwrap();
        assert!(exact.matches("Get") && !exact.matches("get"));
        assert!(Pattern::new("[", LetterCase::Matters).is_err());
    }
}
