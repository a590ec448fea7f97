//! Filters names with allow and deny patterns.

use printable::{LetterCase, Pattern};

/// The compiled `allow` and `deny` lists of a configuration. `deny` overrides `allow`; without
/// `allow` every name is admitted.
#[derive(Debug, Clone)]
pub(crate) struct AllowDeny {
    allow: Vec<Pattern>,
    deny: Vec<Pattern>,
}

/// The rule that excludes a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exclusion<'a> {
    /// The first pattern of `deny` that matches the name.
    Denied(&'a str),
    NotAllowed,
}

impl AllowDeny {
    /// The error describes the first pattern that is none.
    pub(crate) fn new(allow: &[String], deny: &[String], case: LetterCase) -> Result<Self, String> {
        let compile = |patterns: &[String]| {
            let patterns = patterns.iter().map(|pattern| Pattern::new(pattern, case));
            patterns.collect::<Result<Vec<_>, _>>()
        };
        Ok(Self {
            allow: compile(allow)?,
            deny: compile(deny)?,
        })
    }

    /// Returns the rule that excludes an item with these names, if there is one.
    pub(crate) fn refuses(&self, names: &[&str]) -> Option<Exclusion<'_>> {
        let fits = |pattern: &&Pattern| names.iter().any(|name| pattern.matches(name));
        if let Some(denying) = self.deny.iter().find(fits) {
            return Some(Exclusion::Denied(denying.as_str()));
        }
        let is_allowed = self.allow.is_empty() || self.allow.iter().any(|pattern| fits(&pattern));
        (!is_allowed).then_some(Exclusion::NotAllowed)
    }
}

impl Exclusion<'_> {
    /// Formats the rule as in the configuration; `prefix` precedes the key `allow` or `deny`.
    pub(crate) fn in_configuration(self, prefix: &str) -> String {
        match self {
            Self::Denied(glob) => format!("{prefix}deny {glob:?}"),
            Self::NotAllowed => format!("{prefix}allow, which does not name it"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(case: LetterCase, names: &[&str], expected: Option<&str>) {
        let [allow, deny] = [["git*", "Files"], ["git_push*", "secret"]];
        let [allow, deny] = [allow, deny].map(|globs| globs.map(str::to_owned));
        let rules = AllowDeny::new(&allow, &deny, case).unwrap();
        let refusal = rules.refuses(names);
        let told = refusal.map(|refusal| refusal.in_configuration("tools."));
        assert_eq!(told.as_deref(), expected, "{names:?}");
    }

    #[test]
    fn deny_wins_over_allow_and_case_counts_where_it_matters() {
        use LetterCase::{Ignored, Matters};
        check(Matters, &["git_log"], None);
        check(Matters, &["git_push"], Some(r#"tools.deny "git_push*""#));
        check(
            Matters,
            &["GIT_PUSH"],
            Some("tools.allow, which does not name it"),
        );
        check(Ignored, &["GIT_PUSH"], Some(r#"tools.deny "git_push*""#));
        check(Ignored, &["files"], None);
        check(
            Matters,
            &["files"],
            Some("tools.allow, which does not name it"),
        );
        // One matching name is enough to allow or deny an item.
        check(Matters, &["x", "git"], None);
        check(Matters, &["git", "secret"], Some(r#"tools.deny "secret""#));
        let nothing = AllowDeny::new(&[], &[], Matters).unwrap();
        assert_eq!(nothing.refuses(&["x"]), None);
    }
}
