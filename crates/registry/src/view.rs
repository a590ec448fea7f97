//! The part of a registry that one client may see.

use printable::LetterCase;
use tool::ServerName;

use crate::allow_deny::{AllowDeny, Exclusion};

/// Rules over the names of servers and categories. A denied one stays out though it is allowed. What all
/// of several lists of rules admit is seen.
#[derive(Debug, Clone)]
pub struct View(Vec<AllowDeny>);

impl View {
    /// Patterns, in any letter case; no `allow` at all admits everything.
    pub fn new(allow: &[String], deny: &[String]) -> Result<Self, String> {
        AllowDeny::new(allow, deny, LetterCase::Ignored).map(|rules| Self(vec![rules]))
    }

    /// Returns the view of what both admit.
    #[must_use]
    pub fn and(&self, other: &Self) -> Self {
        Self(self.0.iter().chain(&other.0).cloned().collect())
    }

    /// The rule that keeps a tool of this server and category out.
    pub fn refuses(&self, server: &ServerName, category: &str) -> Option<String> {
        // Our own tools serve the ones that are seen.
        let is_ours = server.is_built_in();
        let names = [server.as_str(), category];
        let mut refusals = self.0.iter().filter_map(|rules| rules.refuses(&names));
        let refusal = refusals.find(|it| !(is_ours && *it == Exclusion::NotAllowed));
        refusal.map(|it| it.in_configuration(""))
    }

    /// The opposite of [`View::refuses`].
    pub fn admits(&self, server: &ServerName, category: &str) -> bool {
        self.refuses(server, category).is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::View;

    #[track_caller]
    fn check(allow: &[&str], deny: &[&str], at: (&str, &str), expected: Option<&str>) {
        let owned = |globs: &[&str]| globs.iter().map(ToString::to_string).collect::<Vec<_>>();
        let view = View::new(&owned(allow), &owned(deny)).unwrap();
        let refused = view.refuses(&at.0.parse().unwrap(), at.1);
        assert_eq!(refused.as_deref(), expected);
    }

    #[test]
    fn a_rule_means_a_server_or_a_category_and_deny_wins() {
        let tool = ("github", "source control");
        check(&[], &[], tool, None);
        check(&["git*"], &[], tool, None);
        check(&["Source *"], &[], tool, None);
        check(&["files"], &[], tool, Some("allow, which does not name it"));
        check(&["github"], &["source*"], tool, Some("deny \"source*\""));
        check(&[], &["x", "GitHub"], tool, Some("deny \"GitHub\""));
    }
}
