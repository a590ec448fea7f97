//! What of a registry one client may see.

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use tool::ServerName;

/// Rules over the names of servers and categories. A denied one stays out though it is allowed.
#[derive(Debug, Clone)]
pub struct View {
    /// None admits everything.
    allow: Option<GlobSet>,
    deny: GlobSet,
    deny_text: Vec<String>,
}

impl View {
    /// Globs, in any letter case; no `allow` at all admits everything.
    pub fn new(allow: &[String], deny: &[String]) -> Result<Self, globset::Error> {
        let allowed = (!allow.is_empty()).then(|| compile(allow)).transpose()?;
        Ok(Self {
            allow: allowed,
            deny: compile(deny)?,
            deny_text: deny.to_vec(),
        })
    }

    /// The rule that keeps a tool of this server and category out.
    pub fn refuses(&self, server: &ServerName, category: &str) -> Option<String> {
        let names = [server.as_str(), category];
        let denying = names.iter().find_map(|name| {
            let first = self.deny.matches(name).first().copied();
            first.map(|at| format!("deny {:?}", self.deny_text[at]))
        });
        denying.or_else(|| {
            // Our own tools serve the ones that are seen.
            let is_ours = *server == ServerName::built_in();
            let allows = |allow: &GlobSet| names.iter().any(|name| allow.is_match(name));
            let admitted = is_ours || self.allow.as_ref().is_none_or(allows);
            (!admitted).then(|| "not in allow".to_owned())
        })
    }

    pub fn admits(&self, server: &ServerName, category: &str) -> bool {
        self.refuses(server, category).is_none()
    }
}

fn compile(globs: &[String]) -> Result<GlobSet, globset::Error> {
    let mut builder = GlobSetBuilder::new();
    for glob in globs {
        builder.add(GlobBuilder::new(glob).case_insensitive(true).build()?);
    }
    builder.build()
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
        check(&["files"], &[], tool, Some("not in allow"));
        check(&["github"], &["source*"], tool, Some("deny \"source*\""));
        check(&[], &["x", "GitHub"], tool, Some("deny \"GitHub\""));
    }
}
