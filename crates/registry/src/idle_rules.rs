//! Finds configuration rules that match no tool, and the names that a rule can match.

use std::collections::{BTreeMap, BTreeSet};

use tool::{ServerName, Tool, is_same_member_name, near, parameters};

use crate::allow_deny::{AllowDeny, LetterCase};
use crate::catalog::Records;
use crate::categories;
use crate::server_rules::{Rules, ServerRules};

/// A rule for tools that its server does not have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdleRule {
    /// The server.
    pub server: ServerName,
    /// The rule as it appears in the configuration: `tools.deny "delete_*"`, `overlay.serch`.
    pub rule: String,
    /// True if the rule denies or changes tools: without effect, it admits more than intended.
    pub restricts: bool,
    /// Tools with similar names.
    pub near: Vec<String>,
}

/// The names of the arguments of each tool of a server.
pub type ToolArguments = BTreeMap<String, Vec<String>>;

/// Returns the names of the arguments of each tool.
pub fn list_arguments<'t>(tools: impl IntoIterator<Item = &'t Tool>) -> ToolArguments {
    let list = |tool: &Tool| {
        let names = parameters(&tool.input_schema()).into_iter();
        let names = names.map(|it| it.name).collect();
        (tool.name().to_owned(), names)
    };
    tools.into_iter().map(list).collect()
}

/// The tools of the configured servers, and all categories.
#[derive(Debug, Clone, Default)]
pub struct KnownNames {
    /// The servers in the order of the configuration, disabled ones last; `None` for tools that
    /// were not listed yet.
    pub tools: Vec<(ServerName, Option<Vec<String>>)>,
    /// The same for prompts; filled only by [`crate::Registry::known_prompts`].
    pub prompts: Vec<(ServerName, Option<Vec<String>>)>,
    /// The arguments of the tools of servers whose arguments the configuration sets; filled only by
    /// [`crate::Registry::known_arguments`].
    pub arguments: BTreeMap<ServerName, ToolArguments>,
    /// The categories of servers and tools, and those of the built-in rules.
    pub categories: BTreeSet<String>,
}

impl KnownNames {
    /// Creates the names from the configuration alone.
    pub fn of_rules(rules: &Rules) -> Self {
        Self::new(rules, &Records::default())
    }

    pub(crate) fn new(rules: &Rules, records: &Records) -> Self {
        let of = |rules: &ServerRules| {
            let record = records.servers.get(rules.name.as_str());
            let record = record.filter(|record| record.surveyed_at > 0);
            (rules.name.clone(), record.map(|it| it.tools.clone()))
        };
        let disabled = rules.disabled.iter().map(|name| (name.clone(), None));
        let configured = rules.servers.iter().flat_map(|rules| {
            let overlays = rules.overlays.values();
            let overlays = overlays.filter_map(|overlay| overlay.category.clone());
            rules.category.clone().into_iter().chain(overlays)
        });
        let records = records.servers.values();
        let guessed = records.filter_map(|it| it.category.clone());
        let known = categories::list().map(str::to_owned);
        Self {
            tools: rules.servers.iter().map(of).chain(disabled).collect(),
            categories: configured.chain(guessed).chain(known).collect(),
            ..Self::default()
        }
    }

    fn tools_of(&self, server: &ServerName) -> Option<&[String]> {
        let (_, tools) = self.tools.iter().find(|(name, _)| name == server)?;
        tools.as_deref()
    }
}

/// Returns the rules for tools that have no effect, and the servers that have such rules but whose
/// tools were not listed yet.
pub fn find_idle(rules: &Rules, known: &KnownNames) -> (Vec<IdleRule>, Vec<ServerName>) {
    let (mut idle, mut unlisted) = (Vec::new(), Vec::new());
    for rules in &rules.servers {
        match known.tools_of(&rules.name) {
            Some(tools) => {
                idle.extend(find_of(rules, tools));
                if let Some(arguments) = known.arguments.get(&rules.name) {
                    idle.extend(find_argument_settings(rules, arguments));
                }
            }
            None if has_rules(rules) => unlisted.push(rules.name.clone()),
            None => {}
        }
    }
    (idle, unlisted)
}

fn has_rules(rules: &ServerRules) -> bool {
    let lists = rules.allow.iter().chain(&rules.deny).next();
    lists.is_some() || !rules.overlays.is_empty() || rules.sets_arguments()
}

fn find_of(rules: &ServerRules, tools: &[String]) -> Vec<IdleRule> {
    let known = || tools.iter().map(String::as_str);
    let means_none = |glob: &str| {
        let only = AllowDeny::new(&[glob.to_owned()], &[], LetterCase::Matters);
        only.is_ok_and(|only| tools.iter().all(|tool| only.refuses(&[tool]).is_some()))
    };
    let globs = [
        ("tools.allow", &rules.allow, false),
        ("tools.deny", &rules.deny, true),
    ];
    let globs = globs.into_iter().flat_map(|(key, globs, restricts)| {
        let idle_globs = globs.iter().filter(|glob| means_none(glob));
        idle_globs.map(move |glob| (format!("{key} {glob:?}"), restricts, glob.as_str()))
    });
    let overlays = rules.overlays.keys().filter(|name| !tools.contains(name));
    let overlays = overlays.map(|name| (format!("overlay.{name}"), true, name.as_str()));
    globs
        .chain(overlays)
        .map(|(rule, restricts, name)| IdleRule::new(rules, rule, restricts, (name, known())))
        .collect()
}

impl IdleRule {
    /// Makes one with the known names that are similar to the one in the rule.
    fn new<'n>(
        rules: &ServerRules,
        rule: String,
        restricts: bool,
        (name, known): (&str, impl Iterator<Item = &'n str>),
    ) -> Self {
        let near = near(name, known, NEAR_MAX).into_iter();
        Self {
            server: rules.name.clone(),
            rule,
            restricts,
            near: near.map(str::to_owned).collect(),
        }
    }
}

/// Finds settings of arguments that no tool, or not this tool, has.
fn find_argument_settings(rules: &ServerRules, tools: &ToolArguments) -> Vec<IdleRule> {
    let idle = |rule: String, name: &str, known: &BTreeSet<&str>| {
        IdleRule::new(rules, rule, true, (name, known.iter().copied()))
    };
    let is_in = |known: &BTreeSet<&str>, name: &str| {
        known
            .iter()
            .any(|argument| is_same_member_name(argument, name))
    };
    let all: BTreeSet<&str> = tools.values().flatten().map(String::as_str).collect();
    let of_server = rules.arguments.keys();
    let of_server = of_server.filter(|name| !is_in(&all, name));
    let mut found: Vec<IdleRule> = of_server
        .map(|name| idle(format!("arguments.{name}"), name, &all))
        .collect();
    for (tool, overlay) in &rules.overlays {
        // A tool that does not exist is told of already.
        let Some(arguments) = tools.get(tool) else {
            continue;
        };
        let own: BTreeSet<&str> = arguments.iter().map(String::as_str).collect();
        let names = overlay.arguments.keys();
        let names = names.filter(|name| !is_in(&own, name));
        let rule = |name: &str| format!("overlay.{tool}.arguments.{name}");
        found.extend(names.map(|name| idle(rule(name), name, &own)));
    }
    found
}

/// The maximum number of similar names shown for a rule.
const NEAR_MAX: usize = 3;

#[cfg(test)]
mod tests {
    use tool::ArgumentSetting;

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

    #[test]
    fn a_setting_of_an_argument_that_no_tool_has_is_told() {
        let mut rules = ServerRules::plain("git".parse().unwrap());
        let preset = |name: &str| BTreeMap::from([(name.to_owned(), ArgumentSetting::Hidden)]);
        rules.arguments = preset("ower");
        let arguments = preset("repo");
        let overlay = Overlay {
            arguments,
            ..Overlay::default()
        };
        rules.overlays.insert("git_log".to_owned(), overlay);
        rules.arguments.extend(preset("Owner"));
        let json = r#"{"name": "git_log", "inputSchema": {"properties": {"owner": {}}}}"#;
        let known = list_arguments([&Tool::parse(json).unwrap()]);
        let idle = find_argument_settings(&rules, &known);
        let told: Vec<_> = idle.iter().map(|it| it.rule.as_str()).collect();
        assert_eq!(told, ["arguments.ower", "overlay.git_log.arguments.repo"]);
        assert_eq!(idle[0].near, ["owner"]);
    }
}
