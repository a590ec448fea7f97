//! Filters names with allow and deny globs.

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};

/// The compiled `allow` and `deny` lists of a configuration. `deny` overrides `allow`; without
/// `allow` every name is admitted.
#[derive(Debug, Clone)]
pub(crate) struct AllowDeny {
    allow: Option<GlobSet>,
    deny: GlobSet,
    deny_text: Vec<String>,
}

/// The rule that excludes a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exclusion<'a> {
    /// The first glob of `deny` that matches the name.
    Denied(&'a str),
    NotAllowed,
}

/// The case sensitivity of globs: if ignored, `GitHub` matches `github`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LetterCase {
    Matters,
    Ignored,
}

impl AllowDeny {
    pub(crate) fn new(
        allow: &[String],
        deny: &[String],
        case: LetterCase,
    ) -> Result<Self, globset::Error> {
        let allowed = (!allow.is_empty()).then(|| compile(allow, case));
        Ok(Self {
            allow: allowed.transpose()?,
            deny: compile(deny, case)?,
            deny_text: deny.to_vec(),
        })
    }

    /// Returns the rule that excludes an item with these names, if there is one.
    pub(crate) fn refuses(&self, names: &[&str]) -> Option<Exclusion<'_>> {
        // The usual case, for every tool at every start.
        if self.allow.is_none() && self.deny.is_empty() {
            return None;
        }
        let denying = names
            .iter()
            .find_map(|name| self.deny.matches(name).first().copied());
        if let Some(at) = denying {
            return Some(Exclusion::Denied(&self.deny_text[at]));
        }
        let allows = |allow: &GlobSet| names.iter().any(|name| allow.is_match(name));
        let is_allowed = self.allow.as_ref().is_none_or(allows);
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

fn compile(globs: &[String], case: LetterCase) -> Result<GlobSet, globset::Error> {
    let mut builder = GlobSetBuilder::new();
    for glob in globs {
        let is_insensitive = case == LetterCase::Ignored;
        builder.add(
            GlobBuilder::new(glob)
                .case_insensitive(is_insensitive)
                .build()?,
        );
    }
    builder.build()
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
