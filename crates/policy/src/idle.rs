//! Patterns of rules that match no known name.

use crate::{
    Policy, PolicyVerdict,
    matcher::{FoldedText, Matcher},
    rule::{Rule, fits_any},
};

/// The names that a rule can match.
#[derive(Debug, Clone, Copy)]
pub struct KnownNames<'a> {
    /// Every configured server with its tools; none if they have not been listed yet.
    pub servers: &'a [(String, Option<Vec<String>>)],
    /// The same with its prompts; empty if they were not requested.
    pub prompts: &'a [(String, Option<Vec<String>>)],
    /// Every category.
    pub categories: &'a [String],
    /// Every client that was seen or is widely used.
    pub clients: &'a [String],
    /// Every profile.
    pub profiles: &'a [String],
}

/// The part of a rule that contains a pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PatternKey {
    /// `server`.
    Server,
    /// `tool`.
    Tool,
    /// `prompt`.
    Prompt,
    /// `category`.
    Category,
    /// `client`.
    Client,
    /// `profile`.
    Profile,
}

impl PatternKey {
    /// The key in the configuration.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Server => "server",
            Self::Tool => "tool",
            Self::Prompt => "prompt",
            Self::Category => "category",
            Self::Client => "client",
            Self::Profile => "profile",
        }
    }
}

/// A pattern of a rule that matches nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdlePattern {
    /// The place of the rule in the configuration, counted from 1.
    pub rule: usize,
    /// The decision of the rule.
    pub verdict: PolicyVerdict,
    /// The key that contains the pattern.
    pub key: PatternKey,
    /// The pattern as it is written.
    pub pattern: String,
    /// Servers whose tools or prompts have not been listed yet and may match the pattern. If it is
    /// empty, the pattern matches nothing; else that is unknown.
    pub unlisted: Vec<String>,
}

impl Policy {
    /// Returns true if a rule names prompts.
    pub fn names_prompts(&self) -> bool {
        self.rules.iter().any(|rule| rule.prompt.is_some())
    }

    /// Returns every pattern that matches none of the known names. Resources are left out: a server may
    /// have more of them than it lists.
    pub fn find_idle(&self, known: KnownNames<'_>) -> Vec<IdlePattern> {
        let rules = self.rules.iter().zip(1..);
        rules
            .flat_map(|(rule, number)| find_in(rule, number, known))
            .collect()
    }
}

fn find_in(rule: &Rule, number: usize, known: KnownNames<'_>) -> Vec<IdlePattern> {
    let mut idle = Vec::new();
    let mut note = |key, pattern: &Matcher, unlisted| {
        idle.push(IdlePattern {
            rule: number,
            verdict: rule.verdict,
            key,
            pattern: pattern.written.clone(),
            unlisted,
        });
    };
    let servers: Vec<String> = known.servers.iter().map(|(name, _)| name.clone()).collect();
    let simple = [
        (PatternKey::Server, &rule.server, servers.as_slice()),
        (PatternKey::Category, &rule.category, known.categories),
        (PatternKey::Client, &rule.client, known.clients),
        (PatternKey::Profile, &rule.profile, known.profiles),
    ];
    for (key, patterns, names) in simple {
        for pattern in patterns.iter().flatten() {
            if !names.iter().any(|name| pattern.fits_text(name)) {
                note(key, pattern, Vec::new());
            }
        }
    }
    let in_scope = |server: &str| fits_any(&rule.server, &FoldedText::new(server));
    let listed = [
        (PatternKey::Tool, &rule.tool, known.servers),
        (PatternKey::Prompt, &rule.prompt, known.prompts),
    ];
    for (key, patterns, servers) in listed {
        let scope: Vec<_> = servers.iter().filter(|(name, _)| in_scope(name)).collect();
        if scope.is_empty() {
            continue;
        }
        for pattern in patterns.iter().flatten() {
            let fits = |server: &str, name: &str| {
                pattern.fits_text(name) || pattern.fits_text(&format!("{server}/{name}"))
            };
            let is_met = scope.iter().any(|(server, names)| {
                let mut names = names.iter().flatten();
                names.any(|name| fits(server, name))
            });
            if !is_met {
                let unlisted = scope
                    .iter()
                    .filter(|(server, names)| names.is_none() && may_name_one_of(pattern, server));
                let unlisted = unlisted.map(|(name, _)| name.clone());
                note(key, pattern, unlisted.collect());
            }
        }
    }
    idle
}

/// Returns true if the pattern can match a tool or prompt of this server, whatever names the server
/// has.
fn may_name_one_of(pattern: &Matcher, server: &str) -> bool {
    let Some((before, _)) = pattern.written.split_once('/') else {
        return true;
    };
    // A piece that is not a valid pattern by itself was cut out of braces or brackets: it may match
    // anything.
    Matcher::new(before, true).map_or(true, |of_server| of_server.fits_text(server))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{KnownNames, PatternKey};
    use crate::{Policy, Preset, Rule};

    /// Returns the findings about one rule: each idle pattern, with the servers that have not been
    /// listed.
    fn find(rule: &Value) -> Vec<String> {
        let rule = Rule::read(rule.as_object().unwrap(), None).unwrap();
        let tools = |names: &[&str]| Some(names.iter().map(ToString::to_string).collect());
        let servers = [
            ("time".to_owned(), tools(&["convert_time", "now"])),
            ("notes".to_owned(), tools(&["delete_note", "Write"])),
            ("new".to_owned(), None),
        ];
        let prompts = [
            ("time".to_owned(), tools(&["plan"])),
            ("notes".to_owned(), tools(&[])),
            ("new".to_owned(), None),
        ];
        let known = KnownNames {
            servers: &servers,
            prompts: &prompts,
            categories: &["finance".to_owned(), "utility".to_owned()],
            clients: &["cursor".to_owned()],
            profiles: &[],
        };
        let policy = Policy::new(Preset::Open, vec![rule]);
        let describe = |it: &super::IdlePattern| {
            let key = match it.key {
                PatternKey::Client => "a client",
                key => key.as_str(),
            };
            format!("{key} {} {}", it.pattern, it.unlisted.join(","))
        };
        policy.find_idle(known).iter().map(describe).collect()
    }

    #[track_caller]
    fn check(rule: &Value, expected: &[&str]) {
        let mut rule = rule.clone();
        rule["decision"] = "deny".into();
        assert_eq!(find(&rule), expected, "{rule}");
    }

    #[test]
    fn a_pattern_that_matches_nothing_is_found_under_its_key() {
        for rule in [
            json!({"server": "time"}),
            json!({"server": "TI*"}),
            json!({"tool": "time/*"}),
            json!({"tool": ["now", "notes/write"]}),
            json!({"tool": "{time,notes}/*"}),
            json!({"server": "notes", "tool": "delete_*"}),
            json!({"category": "fin*", "client": "Cursor", "annotation": "destructive"}),
            json!({"resource": "file:///none/*", "arguments": {"/a": "none"}}),
            json!({"prompt": ["plan", "TIME/p*"]}),
        ] {
            check(&rule, &[]);
        }
        check(&json!({"server": ["tiem", "notes"]}), &["server tiem "]);
        check(&json!({"tool": "tiem/*"}), &["tool tiem/* "]);
        check(
            &json!({"server": "time", "tool": "delete_*"}),
            &["tool delete_* "],
        );
        check(&json!({"tool": ["now", "time/nwo"]}), &["tool time/nwo "]);
        check(&json!({"prompt": "notes/plan"}), &["prompt notes/plan "]);
        check(
            &json!({"server": "time", "prompt": ["plan", "plna"]}),
            &["prompt plna "],
        );
        check(&json!({"category": "finnance"}), &["category finnance "]);
        check(&json!({"client": "cursr"}), &["a client cursr "]);
    }

    #[test]
    fn nothing_is_known_of_tools_that_nobody_has_listed() {
        check(&json!({"tool": "new/wipe"}), &["tool new/wipe new"]);
        check(&json!({"tool": "wipe"}), &["tool wipe new"]);
        check(&json!({"server": "new", "tool": "w*"}), &["tool w* new"]);
        check(&json!({"prompt": "plna"}), &["prompt plna new"]);
        check(
            &json!({"tool": "{new,time}/wipe"}),
            &["tool {new,time}/wipe new"],
        );
    }

    #[test]
    fn a_rule_is_counted_from_one_and_keeps_its_verdict() {
        let rule = |it: Value| Rule::read(it.as_object().unwrap(), None).unwrap();
        let rules = vec![
            rule(json!({"decision": "allow", "server": "a"})),
            rule(json!({"decision": "ask", "server": "b"})),
        ];
        let known = KnownNames {
            servers: &[("a".to_owned(), None)],
            prompts: &[],
            categories: &[],
            clients: &[],
            profiles: &[],
        };
        let idle = Policy::new(Preset::Open, rules).find_idle(known);
        assert_eq!((idle.len(), idle[0].rule), (1, 2));
        assert_eq!(idle[0].verdict, crate::PolicyVerdict::Ask);
    }
}
