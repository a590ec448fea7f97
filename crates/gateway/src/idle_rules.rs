//! Finds rules, deny lists, overlays and client tables of the configuration that match nothing.

use std::collections::BTreeSet;

use ::policy::{IdlePattern, KnownNames as PolicyNames, PatternKey, PolicyVerdict};
use registry::{KnownNames, News, Registry, View, find_idle, list_arguments};
use tool::{ServerName, near};

use crate::{
    built_in,
    policy::{COMMAND_LINE, ClientRule},
    settings::Settings,
};

/// The number of similar names that are shown beside a rule.
const NEAR_MAX: usize = 3;

/// Names that widely used clients announce. A rule for one of them is no mistake before it connects.
const KNOWN_CLIENTS: [&str; 17] = [
    COMMAND_LINE,
    "claude-code",
    "claude-ai",
    "codex-mcp-client",
    "cursor-vscode",
    "cursor",
    "gemini-cli-mcp-client",
    "opencode",
    "visual studio code",
    "windsurf-client",
    "zed",
    "cline",
    "roo code",
    "goose",
    "continue-client",
    "mcp-inspector",
    "librechat",
];

/// The command that lists all clients.
const CLIENTS: &str = "proxy stats --by client";

/// The severity of a rule that matches nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Weight {
    /// More calls are allowed than intended.
    Safety,
    /// Fewer calls are allowed than intended, or the rule is for a client that has not connected
    /// yet.
    Remark,
}

/// A rule that matches nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdleRule {
    /// Its place: `rule 2`, `server git`, `client cursor`.
    pub about: String,
    /// The rule as it is in the file, and what it does not match.
    pub found: String,
    /// The next step for a person.
    pub next: String,
    /// The severity of the finding.
    pub weight: Weight,
}

/// The rules that match nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct IdleRules {
    /// Rules that certainly match nothing.
    pub idle: Vec<IdleRule>,
    /// Servers in rules whose tools were never listed: it is not known what these rules match.
    pub unlisted: Vec<ServerName>,
}

/// The names that the rules of these settings can match. Those of prompts are read from the snapshots,
/// and only where a rule names any.
pub fn list_known_names(registry: &Registry, settings: &Settings) -> KnownNames {
    let mut known = registry.known_names();
    if settings.policy.names_prompts() {
        known.prompts = registry.known_prompts();
    }
    known.arguments = registry.known_arguments();
    known
}

/// Finds every rule, list and table that matches no known server, tool, category or client.
///
/// `known` is what the registry has; `asked` are servers that were asked for their tools just now.
/// `clients` are the names of clients that were seen, or that have rules by another way.
pub fn find_idle_rules(
    settings: &Settings,
    mut known: KnownNames,
    asked: &[News],
    clients: &BTreeSet<String>,
) -> IdleRules {
    for news in asked {
        let Ok(snapshot) = &news.outcome else {
            continue;
        };
        let server = &news.server;
        let arguments = list_arguments(&snapshot.tools);
        known.arguments.insert(server.clone(), arguments);
        if let Some((_, tools)) = known.tools.iter_mut().find(|(it, _)| it == server) {
            let names = snapshot.tools.iter().map(|tool| tool.name().to_owned());
            *tools = Some(names.collect());
        }
        if let Some((_, prompts)) = known.prompts.iter_mut().find(|(it, _)| it == server) {
            let names = snapshot.offer.prompts.iter().map(|it| it.id().to_owned());
            *prompts = Some(names.collect());
        }
    }
    add_our_own(&mut known);
    let mut found = find_in_servers(settings, &known);
    find_in_rules(settings, &known, clients, &mut found);
    find_in_clients(settings, &known, clients, &mut found);
    find_in_quotas(settings, &known, &mut found);
    found.idle.sort_by_key(|rule| rule.weight);
    found.unlisted.sort();
    found.unlisted.dedup();
    found
}

fn add_our_own(known: &mut KnownNames) {
    let own = built_in::tools().into_iter();
    let own = own.map(|tool| tool.tool.name().to_owned()).collect();
    known.tools.push((ServerName::built_in(), Some(own)));
    let scripts = ServerName::scripts();
    if known.tools.iter().all(|(name, _)| *name != scripts) {
        known.tools.push((scripts, None));
    }
}

fn find_in_servers(settings: &Settings, known: &KnownNames) -> IdleRules {
    let (idle, unlisted) = find_idle(&settings.rules(), known);
    let describe = |rule: registry::IdleRule| IdleRule {
        found: format!("`{}` matches none of its tools", rule.rule),
        next: advise(&rule.near, &format!("proxy list {}", rule.server)),
        about: format!("server {}", rule.server),
        weight: if rule.restricts {
            Weight::Safety
        } else {
            Weight::Remark
        },
    };
    IdleRules {
        idle: idle.into_iter().map(describe).collect(),
        unlisted,
    }
}

fn find_in_rules(
    settings: &Settings,
    known: &KnownNames,
    clients: &BTreeSet<String>,
    found: &mut IdleRules,
) {
    let plain = |list: &[(ServerName, Option<Vec<String>>)]| -> Vec<_> {
        let list = list.iter();
        list.map(|(name, all)| (name.to_string(), all.clone()))
            .collect()
    };
    let (servers, prompts) = (plain(&known.tools), plain(&known.prompts));
    let categories: Vec<String> = known.categories.iter().cloned().collect();
    let clients: Vec<String> = list_clients(clients).collect();
    let profiles = settings.clients.profiles();
    let profiles: Vec<String> = profiles.map(|(name, _)| name.to_owned()).collect();
    let names = PolicyNames {
        servers: &servers,
        prompts: &prompts,
        categories: &categories,
        clients: &clients,
        profiles: &profiles,
    };
    for pattern in settings.policy.find_idle(names) {
        if !pattern.unlisted.is_empty() {
            let unlisted = pattern.unlisted.iter().filter_map(|name| name.parse().ok());
            // A server that is switched off has no tools that could be listed.
            let enabled = |name: &ServerName| settings.enabled().any(|it| it.spec.name == *name);
            found.unlisted.extend(unlisted.filter(enabled));
            continue;
        }
        found.idle.push(describe_pattern(&pattern, names));
    }
}

fn describe_pattern(pattern: &IdlePattern, names: PolicyNames<'_>) -> IdleRule {
    let written = pattern.pattern.as_str();
    let servers = || names.servers.iter().map(|(name, _)| name);
    let (near, all) = match pattern.key {
        PatternKey::Server => (list_near(written, servers()), "proxy servers"),
        PatternKey::Category => {
            let near = list_near(written, names.categories);
            (near, "proxy list --categories")
        }
        PatternKey::Client => (list_near(written, names.clients), CLIENTS),
        PatternKey::Profile => {
            let near = list_near(written, names.profiles);
            (near, "`[profiles]` of the configuration")
        }
        PatternKey::Tool => (near_names(written, names.servers), "proxy list"),
        PatternKey::Prompt => (near_names(written, names.prompts), "proxy search prompts"),
    };
    let key = pattern.key.as_str();
    let is_client = pattern.key == PatternKey::Client;
    IdleRule {
        about: format!("rule {}", pattern.rule),
        found: if is_client {
            format!("`{key} = {written:?}`: no client of this name has been seen yet")
        } else {
            format!("`{key} = {written:?}` matches no known {key}")
        },
        next: advise(&near, all),
        weight: match pattern.verdict {
            PolicyVerdict::Ask | PolicyVerdict::Deny if !is_client => Weight::Safety,
            _ => Weight::Remark,
        },
    }
}

/// Similar tools or prompts; for a pattern that names an unknown server, the pattern with a similar
/// server name.
fn near_names(written: &str, known: &[(String, Option<Vec<String>>)]) -> Vec<String> {
    let servers = || known.iter().map(|(name, _)| name);
    if let Some((server, rest)) = written.split_once('/')
        && servers().all(|known| known != server)
    {
        let near = list_near(server, servers()).into_iter();
        return near.map(|near| near + "/" + rest).collect();
    }
    let is_full = written.contains('/');
    let tools = known.iter().flat_map(|(server, tools)| {
        let tools = tools.iter().flatten();
        tools.map(move |tool| {
            if is_full {
                format!("{server}/{tool}")
            } else {
                tool.clone()
            }
        })
    });
    let tools: BTreeSet<String> = tools.collect();
    list_near(written, &tools)
}

fn list_near<'a, N: AsRef<str> + ?Sized + 'a>(
    written: &str,
    names: impl IntoIterator<Item = &'a N>,
) -> Vec<String> {
    let near = near(written, names.into_iter().map(AsRef::as_ref), NEAR_MAX);
    near.into_iter().map(str::to_owned).collect()
}

fn find_in_clients(
    settings: &Settings,
    known: &KnownNames,
    clients: &BTreeSet<String>,
    found: &mut IdleRules,
) {
    let all: Vec<String> = list_clients(clients).collect();
    for (name, rule) in settings.clients.tables() {
        let about = format!("client {name}");
        if !all
            .iter()
            .any(|client| settings.clients.means(name, client))
        {
            found.idle.push(IdleRule {
                about: about.clone(),
                found: "no client of this name has been seen yet".to_owned(),
                next: advise(&list_near(name, &all), CLIENTS),
                weight: Weight::Remark,
            });
        }
        find_in_lists(&about, rule, known, found);
    }
    for (name, rule) in settings.clients.profiles() {
        find_in_lists(&format!("profile {name}"), rule, known, found);
    }
}

fn find_in_quotas(settings: &Settings, known: &KnownNames, found: &mut IdleRules) {
    let servers: Vec<String> = known.tools.iter().map(|(it, _)| it.to_string()).collect();
    for (number, quota) in (1..).zip(&*settings.quotas) {
        for written in quota.find_idle_servers(&servers) {
            found.idle.push(IdleRule {
                about: format!("quota {number}"),
                found: format!("`server = {written:?}` matches no known server"),
                next: advise(&list_near(written, &servers), "proxy servers"),
                weight: Weight::Safety,
            });
        }
    }
}

fn find_in_lists(about: &str, rule: &ClientRule, known: &KnownNames, found: &mut IdleRules) {
    let servers = || known.tools.iter().map(|(name, _)| name);
    let categories = || known.categories.iter().map(String::as_str);
    for (key, globs) in [("allow", &rule.allow), ("deny", &rule.deny)] {
        for glob in globs {
            // The text was read as a pattern before.
            let Ok(only) = View::new(&[], std::slice::from_ref(glob)) else {
                continue;
            };
            let is_met = servers().any(|name| !only.admits(name, ""))
                || categories().any(|it| !only.admits(&ServerName::scripts(), it));
            if is_met {
                continue;
            }
            let names = servers().map(ServerName::as_str).chain(categories());
            let near = list_near(glob, names);
            found.idle.push(IdleRule {
                about: about.to_owned(),
                found: format!("`{key} = {glob:?}` matches no known server and no category"),
                next: advise(&near, "proxy servers, proxy list --categories"),
                weight: Weight::Safety,
            });
        }
    }
}

fn list_clients(seen: &BTreeSet<String>) -> impl Iterator<Item = String> {
    let known = KNOWN_CLIENTS.iter().map(ToString::to_string);
    known.chain(seen.iter().map(|name| name.to_lowercase()))
}

fn advise(near: &[String], all: &str) -> String {
    match near {
        [] => all.to_owned(),
        near => format!("did you mean {}? All: {all}", near.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use ::policy::{Policy, Preset, Rule};
    use registry::Overlay;
    use serde_json::{Value, json};

    use super::*;
    use crate::{ServerSettings, policy::ClientPolicies, tests::memory::settings_of};

    fn server(name: &str, enabled: bool) -> ServerSettings {
        ServerSettings {
            enabled,
            ..settings_of(&name.parse().unwrap())
        }
    }

    /// `time` was asked for its tools, `new` was not, `off` is switched off.
    fn find(change: impl FnOnce(&mut Settings)) -> (Vec<String>, Vec<String>) {
        let mut settings = Settings::in_folder("/nowhere".into());
        settings.servers = vec![
            server("time", true),
            server("new", true),
            server("off", false),
        ];
        change(&mut settings);
        let mut known = KnownNames::of_rules(&settings.rules());
        known.tools[0].1 = Some(vec!["convert_time".to_owned(), "now".to_owned()]);
        let prompts = |it: &str| (it == "time").then(|| vec!["plan_day".to_owned()]);
        let names = known.tools.iter().map(|(name, _)| name.clone());
        known.prompts = names.map(|it| (it.clone(), prompts(it.as_str()))).collect();
        let seen = BTreeSet::from(["My-Agent".to_owned()]);
        let found = find_idle_rules(&settings, known, &[], &seen);
        let tell =
            |it: &IdleRule| format!("{:?} {}: {} ({})", it.weight, it.about, it.found, it.next);
        let unlisted = found.unlisted.iter().map(ToString::to_string);
        (found.idle.iter().map(tell).collect(), unlisted.collect())
    }

    fn rules(settings: &mut Settings, rules: &[Value]) {
        let read = |rule: &Value| Rule::read(rule.as_object().unwrap(), None).unwrap();
        settings.policy = Arc::new(Policy::new(Preset::Open, rules.iter().map(read).collect()));
    }

    #[test]
    fn a_quota_or_profile_that_means_no_server_is_told() {
        let (idle, _) = find(|settings| {
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
        let (idle, _) = find(|settings| rules(settings, std::slice::from_ref(rule)));
        assert_eq!(idle.join("; "), expected, "{rule}");
    }

    #[test]
    fn a_rule_that_matches_nothing_is_told_with_near_names() {
        for (rule, expected) in [
            (
                json!({"decision": "deny", "tool": "tiem/*"}),
                "Safety rule 1: `tool = \"tiem/*\"` matches no known tool (did you mean time/*? All: proxy list)",
            ),
            (
                json!({"decision": "ask", "tool": "time/convert_tiem"}),
                "Safety rule 1: `tool = \"time/convert_tiem\"` matches no known tool (did you mean time/convert_time? All: proxy list)",
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
                "Safety rule 1: `category = \"finnance\"` matches no known category (did you mean finance? All: proxy list --categories)",
            ),
            (
                json!({"decision": "deny", "prompt": "time/plan_dya"}),
                "Safety rule 1: `prompt = \"time/plan_dya\"` matches no known prompt (did you mean time/plan_day? All: proxy search prompts)",
            ),
            (
                json!({"decision": "deny", "prompt": ["plan_*", "off/x"]}),
                "",
            ),
            (
                json!({"decision": "deny", "client": "my-agnet"}),
                "Remark rule 1: `client = \"my-agnet\"`: no client of this name has been seen yet (did you mean my-agent? All: proxy stats --by client)",
            ),
            (
                json!({"decision": "deny", "client": ["proxy-cli", "claude-code"]}),
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
    fn of_tools_that_nobody_has_listed_it_is_told_that_nothing_is_known() {
        let (idle, unlisted) = find(|settings| {
            rules(settings, &[json!({"decision": "deny", "tool": "new/wipe"})]);
        });
        assert_eq!((idle.len(), unlisted), (0, vec!["new".to_owned()]));
        let (idle, unlisted) =
            find(|settings| settings.servers[1].rules.deny = vec!["x".to_owned()]);
        assert_eq!((idle.len(), unlisted), (0, vec!["new".to_owned()]));
    }

    #[test]
    fn lists_and_overlays_of_servers_and_clients_are_told() {
        let (idle, _) = find(|settings| {
            let rules = &mut settings.servers[0].rules;
            rules.deny = vec!["nwo".to_owned(), "now".to_owned()];
            rules.allow = vec!["zzz".to_owned(), "*".to_owned()];
            rules
                .overlays
                .insert("convert".to_owned(), Overlay::default());
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
                "Safety server time: `tools.deny \"nwo\"` matches none of its tools",
                "Safety server time: `overlay.convert` matches none of its tools",
                "Safety client nobody: `allow = \"tiem\"` matches no known server and no category",
                "Safety client nobody: `deny = \"finnance\"` matches no known server and no category",
                "Safety client my-*: `allow = \"tiem\"` matches no known server and no category",
                "Safety client my-*: `deny = \"finnance\"` matches no known server and no category",
                "Remark server time: `tools.allow \"zzz\"` matches none of its tools",
                "Remark client nobody: no client of this name has been seen yet",
            ]
        );
    }
}
