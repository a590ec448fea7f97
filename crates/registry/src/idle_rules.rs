//! Rules of the configuration that mean no tool.

use tool::{ServerName, near};

use crate::allow_deny::{AllowDeny, LetterCase};
use crate::catalog::Records;
use crate::server_rules::{Rules, ServerRules};

/// A rule about tools that its server does not have, by its last survey.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdleRule {
    /// The server.
    pub server: ServerName,
    /// The rule as a person looks for it: `tools.deny "delete_*"`, `overlay.serch`.
    pub rule: String,
    /// Tools whose names are near.
    pub near: Vec<String>,
}

/// The rules without effect, of servers whose tools are known.
pub(crate) fn find_idle(rules: &Rules, records: &Records) -> Vec<IdleRule> {
    let surveyed = rules.servers.iter().filter_map(|server_rules| {
        let record = records.servers.get(server_rules.name.as_str())?;
        (record.surveyed_at > 0).then_some((server_rules, record.tools.as_slice()))
    });
    surveyed
        .flat_map(|(rules, tools)| find_of(rules, tools))
        .collect()
}

fn find_of(rules: &ServerRules, tools: &[String]) -> Vec<IdleRule> {
    let idle = |rule: String, name: &str| IdleRule {
        server: rules.name.clone(),
        rule,
        near: near(name, tools.iter().map(String::as_str), NEAR_MAX)
            .into_iter()
            .map(str::to_owned)
            .collect(),
    };
    let means_none = |glob: &str| {
        let only = AllowDeny::new(&[glob.to_owned()], &[], LetterCase::Matters);
        only.is_ok_and(|only| tools.iter().all(|tool| only.refuses(&[tool]).is_some()))
    };
    let globs = [("tools.allow", &rules.allow), ("tools.deny", &rules.deny)];
    let globs = globs.into_iter().flat_map(|(key, globs)| {
        let idle_globs = globs.iter().filter(|glob| means_none(glob));
        idle_globs.map(move |glob| (format!("{key} {glob:?}"), glob.as_str()))
    });
    let overlays = rules.overlays.keys().filter(|name| !tools.contains(name));
    let overlays = overlays.map(|name| (format!("overlay.{name}"), name.as_str()));
    globs
        .chain(overlays)
        .map(|(rule, name)| idle(rule, name))
        .collect()
}

/// Names that are shown beside a rule.
const NEAR_MAX: usize = 3;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server_rules::Overlay;

    #[test]
    fn rules_that_mean_no_tool_are_told_with_what_is_near() {
        let mut rules = ServerRules::plain("git".parse().unwrap());
        rules.allow = vec!["git_*".to_owned(), "svn_*".to_owned()];
        rules.deny = vec!["git_pussh".to_owned(), "git_{push,reset}".to_owned()];
        for name in ["git_statsu", "git_push"] {
            rules.overlays.insert(name.to_owned(), Overlay::default());
        }
        let tools = ["git_push", "git_status", "git_log"].map(str::to_owned);
        let idle = find_of(&rules, &tools);
        let told: Vec<_> = idle.iter().map(|it| it.rule.as_str()).collect();
        assert_eq!(
            told,
            [
                "tools.allow \"svn_*\"",
                "tools.deny \"git_pussh\"",
                "overlay.git_statsu"
            ]
        );
        assert_eq!(idle[1].near, ["git_push"]);
        assert_eq!(idle[2].near, ["git_status"]);
    }
}
