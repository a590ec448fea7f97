//! A pattern with `*` and `?`, prepared so that simple patterns are compared within nanoseconds.

use std::borrow::Cow;

use globset::GlobBuilder;
use regex::bytes::{Regex, RegexBuilder};

#[derive(Debug, Clone)]
pub(crate) struct Matcher {
    shape: Shape,
    ignores_case: bool,
    /// True if it begins at the root, and so matches whole paths.
    pub(crate) is_rooted: bool,
    /// True if it matches addresses of files.
    pub(crate) is_of_files: bool,
}

#[derive(Debug, Clone)]
enum Shape {
    Any,
    Whole(String),
    Begins(String),
    Ends(String),
    Glob(Box<Regex>),
}

impl Matcher {
    /// Makes a matcher. The error describes the fault in the pattern.
    pub(crate) fn new(pattern: &str, ignores_case: bool) -> Result<Self, String> {
        let lower = pattern.to_lowercase();
        let compared = if ignores_case { &lower } else { pattern };
        let is_plain = |text: &str| !text.contains(['*', '?', '[', '{', '\\']);
        let shape = if compared == "*" || compared == "**" {
            Shape::Any
        } else if let Some(whole) = unescape(compared) {
            Shape::Whole(whole)
        } else if let Some(rest) = compared.strip_suffix('*').filter(|it| is_plain(it)) {
            Shape::Begins(rest.to_owned())
        } else if let Some(rest) = compared.strip_prefix('*').filter(|it| is_plain(it)) {
            Shape::Ends(rest.to_owned())
        } else {
            Shape::Glob(Box::new(compile_pattern(compared)?))
        };
        Ok(Self {
            shape,
            ignores_case,
            is_rooted: pattern.starts_with('/'),
            is_of_files: lower.starts_with("file:"),
        })
    }

    pub(crate) fn fits_all(&self) -> bool {
        matches!(self.shape, Shape::Any)
    }

    /// Returns true if it matches exactly this text and no other.
    pub(crate) fn is(&self, text: &FoldedText<'_>) -> bool {
        matches!(self.shape, Shape::Whole(_)) && self.fits(text)
    }

    pub(crate) fn fits_text(&self, text: &str) -> bool {
        self.fits(&FoldedText::new(text))
    }

    pub(crate) fn fits(&self, text: &FoldedText<'_>) -> bool {
        let is_lower = self.ignores_case;
        let text: &str = if is_lower { &text.lower } else { &text.written };
        match &self.shape {
            Shape::Any => true,
            Shape::Whole(whole) => text == whole,
            Shape::Begins(start) => text.starts_with(start.as_str()),
            Shape::Ends(end) => text.ends_with(end.as_str()),
            Shape::Glob(glob) => glob.is_match(text.as_bytes()),
        }
    }
}

/// Makes the expression of a pattern with `*`, `?` and `{a,b}`. `globset` itself does not match it, because it
/// takes `\` for `/` on Windows, in patterns and in texts: rules mean the same everywhere.
pub fn compile_pattern(pattern: &str) -> Result<Regex, String> {
    let glob = GlobBuilder::new(pattern).backslash_escape(true).build();
    let glob = glob.map_err(|error| error.kind().to_string())?;
    let mut expression = RegexBuilder::new(glob.regex());
    let expression = expression.dot_matches_new_line(true).build();
    expression.map_err(|error| error.to_string())
}

/// Special characters of a pattern; a class of one of them matches that character.
const SPECIAL: [char; 7] = ['*', '?', '[', ']', '{', '}', '\\'];

/// Returns the pattern that matches exactly this text.
pub fn escape(text: &str) -> String {
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

/// A text to be compared, with and without regard to case.
#[derive(Debug)]
pub(crate) struct FoldedText<'a> {
    written: Cow<'a, str>,
    lower: String,
}

impl<'a> FoldedText<'a> {
    pub(crate) fn new(written: impl Into<Cow<'a, str>>) -> Self {
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
        let matcher = Matcher::new(pattern, true).expect("a pattern");
        assert_eq!(
            matcher.fits(&FoldedText::new(text)),
            expected,
            "{pattern} {text}"
        );
    }

    proptest! {
        #[test]
        fn an_escaped_text_is_a_pattern_of_that_text_alone(
            text in "(\\PC|[\\\\\\[\\]{}*?!',^\\-\n\r\t\u{0}aA/]){1,12}",
            other in "[\\\\\\[\\]{}*?!a/]{1,4}",
        ) {
            let matcher = Matcher::new(&escape(&text), false);
            prop_assert!(matcher.is_ok(), "{:?}", matcher);
            let matcher = matcher.unwrap();
            prop_assert!(matcher.is(&FoldedText::new(&text)));
            prop_assert_eq!(matcher.fits(&FoldedText::new(&other)), text == other);
            let folded = Matcher::new(&escape(&text), true).unwrap();
            prop_assert!(folded.fits(&FoldedText::new(&text)));
            // It means the same to those who do not take the short ways.
            prop_assert!(compile_pattern(&escape(&text)).unwrap().is_match(text.as_bytes()));
            // Another program reads the file with the patterns in it.
            #[cfg(unix)]
            prop_assert!(globset::Glob::new(&escape(&text)).unwrap().compile_matcher().is_match(&text));
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
        assert!(Matcher::new("[", false).is_err());
    }
}
