//! Finds names and patterns of the configuration that match nothing: in rules, quotas, lists, overlays and
//! tables of clients.

use printable::{LetterCase, Pattern};
use registry::{KnownNames, ServerRules};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tool::{ServerName, is_same_member_name, near};

use crate::{built_in, gateway::Gateway, settings::Settings};

/// The number of similar names that are shown beside a rule.
const NEAR_MAX: usize = 3;

/// A name or pattern that matches nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdleRule {
    /// Its place: `rule 2`, `server git`, `client cursor`.
    pub about: String,
    /// The rule as it is in the file, and what it does not match.
    pub found: String,
    /// The next step for a person.
    pub next: String,
    /// True if more calls are allowed than intended.
    pub restricts: bool,
}

/// A rule that restricts access and matches nothing.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct IdleRuleStatus {
    /// Its place in the configuration.
    pub about: String,
    /// The rule as it is in the file, and what it does not match.
    pub found: String,
    /// The next step for a person.
    pub next: String,
}

/// Returns the rules that restrict access and match nothing.
pub fn list_idle_rules(gateway: &Gateway) -> Vec<IdleRuleStatus> {
    let settings = gateway.settings();
    let known = gateway.catalog.registry.known_names();
    let idle = find_idle_rules(&settings, &known).into_iter();
    let idle = idle.filter(|rule| rule.restricts);
    idle.map(|rule| IdleRuleStatus {
        about: rule.about,
        found: rule.found,
        next: rule.next,
    })
    .collect()
}

/// The names of one kind: `server`, for the key of that name too.
struct Names<'n> {
    kind: &'static str,
    all: Vec<&'n str>,
    /// The command that lists them.
    list: String,
}

impl<'n> Names<'n> {
    fn new(
        kind: &'static str,
        list: impl Into<String>,
        all: impl Iterator<Item = &'n str>,
    ) -> Self {
        Self {
            kind,
            all: all.collect(),
            list: list.into(),
        }
    }

    fn has(&self, pattern: &str) -> bool {
        let fits = matcher(pattern);
        self.all.iter().any(|name| fits(name))
    }

    /// Makes the finding that none of them fits this rule, which contains `written`.
    fn report(&self, about: &str, rule: &str, written: &str, restricts: bool) -> IdleRule {
        let near = near(written, self.all.iter().copied(), NEAR_MAX);
        IdleRule {
            about: about.to_owned(),
            found: format!("`{rule}` matches no known {}", self.kind),
            next: match near.as_slice() {
                [] => self.list.clone(),
                near => format!("did you mean {}? All: {}", near.join(", "), self.list),
            },
            restricts,
        }
    }
}

/// Returns a function that compares in any letter case. The text was read as a pattern before.
fn matcher(pattern: &str) -> impl Fn(&str) -> bool {
    let pattern = Pattern::new(pattern, LetterCase::Ignored).ok();
    move |name| pattern.as_ref().is_none_or(|pattern| pattern.matches(name))
}

/// Finds every name and pattern that matches no known server, tool, argument, category or profile.
/// Patterns of prompts, resources and clients are left out, since others than the known ones may come, and so
/// are tools of a server that never listed them.
pub fn find_idle_rules(settings: &Settings, known: &KnownNames) -> Vec<IdleRule> {
    let own = built_in::tools().into_iter();
    let own = own.map(|tool| tool.tool.name().to_owned()).collect();
    let mut tools = known.tools.clone();
    tools.push((ServerName::built_in(), Some(own)));
    tools.push((ServerName::scripts(), None));
    let servers = || tools.iter().map(|(name, _)| name.as_str());
    let categories = || known.categories.iter().map(String::as_str);
    let profiles = settings.clients.profiles().map(|(name, _)| name);
    let kinds = [
        Names::new("server", "proxy servers", servers()),
        Names::new("category", "proxy search --categories", categories()),
        Names::new("profile", "`[profiles]` of the configuration", profiles),
    ];
    let mut idle = Vec::new();
    for rules in &settings.rules().servers {
        idle.extend(find_in_server(rules, known));
    }
    for (number, rule) in (1..).zip(settings.policy.written()) {
        let restricts = rule.get("decision").is_none_or(|it| it != "allow");
        let about = format!("rule {number}");
        idle.extend(find_in_rule(&about, rule, restricts, &kinds, &tools));
    }
    for (number, quota) in (1..).zip(&*settings.quotas) {
        let written: Map<_, _> = serde_json::from_str(&quota.written).unwrap_or_default();
        let about = format!("quota {number}");
        idle.extend(find_in_rule(&about, &written, true, &kinds, &tools));
    }
    let both = servers().chain(categories());
    let both = Names::new(
        "server or category",
        "proxy servers, proxy search --categories",
        both,
    );
    let tables = settings
        .clients
        .tables()
        .map(|(name, rule)| (format!("client {name}"), rule));
    let profiles = settings.clients.profiles();
    let profiles = profiles.map(|(name, rule)| (format!("profile {name}"), rule));
    for (about, rule) in tables.chain(profiles) {
        for (key, globs) in [("allow", &rule.allow), ("deny", &rule.deny)] {
            let globs = globs.iter().filter(|glob| !both.has(glob));
            idle.extend(globs.map(|it| both.report(&about, &format!("{key} = {it:?}"), it, true)));
        }
    }
    idle.sort_by_key(|rule| !rule.restricts);
    idle
}

fn find_in_server(rules: &ServerRules, known: &KnownNames) -> Vec<IdleRule> {
    let listed = known.tools.iter().find(|(name, _)| *name == rules.name);
    let Some((_, Some(tools))) = listed else {
        return Vec::new();
    };
    let about = format!("server {}", rules.name);
    let list = format!("proxy search '*' --server {}", rules.name);
    let names = Names::new(
        "tool of this server",
        list.as_str(),
        tools.iter().map(String::as_str),
    );
    let mut idle = Vec::new();
    for (key, globs, restricts) in [("allow", &rules.allow, false), ("deny", &rules.deny, true)] {
        for glob in globs {
            let pattern = Pattern::new(glob, LetterCase::Matters);
            if pattern.is_ok_and(|pattern| !tools.iter().any(|tool| pattern.matches(tool))) {
                idle.push(names.report(&about, &format!("tools.{key} {glob:?}"), glob, restricts));
            }
        }
    }
    for tool in rules.overlays.keys().filter(|tool| !tools.contains(tool)) {
        idle.push(names.report(&about, &format!("overlay.{tool}"), tool, true));
    }
    let Some(arguments) = known.arguments.get(&rules.name) else {
        return idle;
    };
    let mut check = |key: &str, set: Vec<&String>, known: Vec<&String>| {
        let known = known.into_iter().map(String::as_str);
        let known = Names::new("argument of this server", list.as_str(), known);
        for name in set {
            if !known.all.iter().any(|it| is_same_member_name(it, name)) {
                idle.push(known.report(&about, &format!("{key}{name}"), name, true));
            }
        }
    };
    let set = rules.arguments.keys().collect();
    check("arguments.", set, arguments.values().flatten().collect());
    for (tool, overlay) in &rules.overlays {
        // A tool that does not exist is reported already.
        if let Some(arguments) = arguments.get(tool) {
            let key = format!("overlay.{tool}.arguments.");
            check(
                &key,
                overlay.arguments.keys().collect(),
                arguments.iter().collect(),
            );
        }
    }
    idle
}

fn find_in_rule(
    about: &str,
    rule: &Map<String, Value>,
    restricts: bool,
    kinds: &[Names<'_>],
    tools: &[(ServerName, Option<Vec<String>>)],
) -> Vec<IdleRule> {
    let mut idle = Vec::new();
    for names in kinds {
        for text in texts(rule, names.kind).filter(|text| !names.has(text)) {
            let written = format!("{} = {text:?}", names.kind);
            idle.push(names.report(about, &written, text, restricts));
        }
    }
    let scope: Vec<_> = texts(rule, "server").map(matcher).collect();
    let scope = tools
        .iter()
        .filter(|(server, _)| scope.is_empty() || scope.iter().any(|fits| fits(server.as_str())));
    let scope: Vec<_> = scope.collect();
    let full: Vec<String> = scope
        .iter()
        .flat_map(|(server, tools)| {
            tools
                .iter()
                .flatten()
                .map(move |tool| format!("{server}/{tool}"))
        })
        .collect();
    for text in texts(rule, "tool").filter(|_| !scope.is_empty()) {
        let fits = matcher(text);
        let own = |full: &str| fits(full) || full.split_once('/').is_some_and(|(_, it)| fits(it));
        let of_server = text.split_once('/').map(|(server, _)| matcher(server));
        let may_have =
            |server: &ServerName| of_server.as_ref().is_none_or(|it| it(server.as_str()));
        let is_unknown = scope
            .iter()
            .any(|(server, tools)| tools.is_none() && may_have(server));
        if !is_unknown && !full.iter().any(|it| own(it)) {
            let names = Names::new("tool", "proxy search '*'", full.iter().map(String::as_str));
            idle.push(names.report(about, &format!("tool = {text:?}"), text, restricts));
        }
    }
    idle
}

/// Returns the patterns of a key, one text or a list of them.
fn texts<'r>(rule: &'r Map<String, Value>, key: &str) -> impl Iterator<Item = &'r str> {
    let value = rule.get(key);
    let list = value.and_then(Value::as_array).into_iter().flatten();
    value.into_iter().chain(list).filter_map(Value::as_str)
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeMap, sync::Arc};

    use ::policy::{Policy, Preset, Rule};
    use registry::Overlay;
    use serde_json::json;
    use tool::ArgumentSetting;

    use super::*;
    use crate::{
        ServerSettings,
        policy::{ClientPolicies, ClientRule},
        tests::memory::settings_of,
    };

    fn server(name: &str, enabled: bool) -> ServerSettings {
        ServerSettings {
            enabled,
            ..settings_of(&name.parse().unwrap())
        }
    }

    /// `time` listed its tools, `new` did not, `off` is switched off.
    fn find(change: impl FnOnce(&mut Settings)) -> Vec<String> {
        let mut settings = Settings::in_folder("/nowhere".into());
        settings.servers = vec![
            server("time", true),
            server("new", true),
            server("off", false),
        ];
        change(&mut settings);
        let mut known = KnownNames::of_rules(&settings.rules());
        let own = |names: &[&str]| names.iter().map(ToString::to_string).collect::<Vec<_>>();
        known.tools[0].1 = Some(own(&["convert_time", "now"]));
        let arguments = [("now", own(&["zone"])), ("convert_time", own(&["owner"]))];
        let arguments = arguments.map(|(tool, names)| (tool.to_owned(), names));
        let time = known.tools[0].0.clone();
        known.arguments.insert(time, BTreeMap::from(arguments));
        let describe = |it: IdleRule| {
            let weight = if it.restricts { "Safety" } else { "Remark" };
            format!("{weight} {}: {} ({})", it.about, it.found, it.next)
        };
        let found = find_idle_rules(&settings, &known).into_iter();
        found.map(describe).collect()
    }

    fn rules(settings: &mut Settings, rules: &[Value]) {
        let read = |rule: &Value| Rule::read(rule.as_object().unwrap(), None).unwrap();
        settings.policy = Arc::new(Policy::new(Preset::Open, rules.iter().map(read).collect()));
    }

    #[test]
    fn a_quota_or_profile_that_means_no_server_is_told() {
        let idle = find(|settings| {
            let quota = json!({"calls": 1, "per": "day", "server": ["time", "tme"]});
            let quota = ::policy::Quota::read(quota.as_object().unwrap()).unwrap();
            settings.quotas = Arc::new(vec![quota]);
            let rule = ClientRule {
                allow: vec!["tme".to_owned()],
                ..ClientRule::default()
            };
            let profile = settings.clients.add_profile(
                "work",
                &rule,
                crate::policy::ProfileSelector::default(),
            );
            profile.unwrap();
        });
        let told = idle.join("; ");
        let quota = "Safety quota 1: `server = \"tme\"` matches no known server";
        let profile = "Safety profile work: `allow = \"tme\"` matches no known server";
        assert!(told.contains(quota) && told.contains(profile), "{told}");
    }

    #[track_caller]
    fn check_rule(rule: &Value, expected: &str) {
        let idle = find(|settings| rules(settings, std::slice::from_ref(rule)));
        assert_eq!(idle.join("; "), expected, "{rule}");
    }

    #[test]
    fn a_rule_that_matches_nothing_is_told_with_near_names() {
        for (rule, expected) in [
            (
                json!({"decision": "deny", "tool": "tiem/*"}),
                "Safety rule 1: `tool = \"tiem/*\"` matches no known tool (proxy search '*')",
            ),
            (
                json!({"decision": "ask", "tool": "time/convert_tiem"}),
                "Safety rule 1: `tool = \"time/convert_tiem\"` matches no known tool (did you mean time/convert_time? All: proxy search '*')",
            ),
            (
                json!({"decision": "deny", "server": "tmie"}),
                "Safety rule 1: `server = \"tmie\"` matches no known server (did you mean time? All: proxy servers)",
            ),
            (
                json!({"decision": "allow", "server": "zzz"}),
                "Remark rule 1: `server = \"zzz\"` matches no known server (proxy servers)",
            ),
            (
                json!({"decision": "deny", "category": "finnance"}),
                "Safety rule 1: `category = \"finnance\"` matches no known category (did you mean finance? All: proxy search --categories)",
            ),
            (
                json!({"decision": "deny", "profile": "wrok"}),
                "Safety rule 1: `profile = \"wrok\"` matches no known profile (`[profiles]` of the configuration)",
            ),
            (
                json!({"decision": "deny", "server": "time", "tool": "proxy/run_script"}),
                "Safety rule 1: `tool = \"proxy/run_script\"` matches no known tool (proxy search '*')",
            ),
            (
                json!({"decision": "deny", "tool": ["new/wipe", "TIME/n*", "{off,time}/x"]}),
                "",
            ),
            (
                json!({"decision": "deny", "client": "none", "prompt": "none", "resource": "file:///none/*"}),
                "",
            ),
            (
                json!({"decision": "deny", "server": ["off", "proxy", "scripts"]}),
                "",
            ),
            (
                json!({"decision": "deny", "tool": ["off/*", "proxy/run_script", "scripts/any"]}),
                "",
            ),
        ] {
            check_rule(&rule, expected);
        }
    }

    #[test]
    fn lists_and_overlays_of_servers_and_clients_are_told() {
        let idle = find(|settings| {
            let rules = &mut settings.servers[0].rules;
            rules.deny = vec!["nwo".to_owned(), "now".to_owned()];
            rules.allow = vec!["zzz".to_owned(), "*".to_owned()];
            let set = |name: &str| BTreeMap::from([(name.to_owned(), ArgumentSetting::Hidden)]);
            let overlay = Overlay {
                arguments: set("owner"),
                ..Overlay::default()
            };
            rules.overlays.insert("convert".to_owned(), overlay.clone());
            rules.overlays.insert("now".to_owned(), overlay);
            rules.arguments = set("ower");
            rules.arguments.extend(set("Zone"));
            let list = |names: &[&str]| names.iter().map(ToString::to_string).collect();
            let rule = ClientRule {
                allow: list(&["TIME", "finance", "tiem"]),
                deny: list(&["finnance", "off"]),
                ..ClientRule::default()
            };
            let tables = ["my-*", "nobody"].map(|name| (name.to_owned(), rule.clone()));
            settings.clients = ClientPolicies::new(tables).unwrap();
        });
        let told: Vec<&str> = idle
            .iter()
            .map(|it| it.split(" (").next().unwrap())
            .collect();
        assert_eq!(
            told,
            [
                "Safety server time: `tools.deny \"nwo\"` matches no known tool of this server",
                "Safety server time: `overlay.convert` matches no known tool of this server",
                "Safety server time: `arguments.ower` matches no known argument of this server",
                "Safety server time: `overlay.now.arguments.owner` matches no known argument of this server",
                "Safety client nobody: `allow = \"tiem\"` matches no known server or category",
                "Safety client nobody: `deny = \"finnance\"` matches no known server or category",
                "Safety client my-*: `allow = \"tiem\"` matches no known server or category",
                "Safety client my-*: `deny = \"finnance\"` matches no known server or category",
                "Remark server time: `tools.allow \"zzz\"` matches no known tool of this server",
            ]
        );
    }
}
