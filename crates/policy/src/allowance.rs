//! A rule that permanently allows one tool, prompt or resource, and its place: directly before the rule
//! that a person saw, so that it overrides no other rule.

use std::fmt;

use printable::escape_pattern;

use crate::{Decider, Effects, Policy, PolicyVerdict, RequestKind, Subject, names::CallNames};

/// A tool, prompt or resource that a person permanently allows, and the rule that the person saw.
#[derive(Debug, Clone, PartialEq)]
pub struct Allowance {
    kind: RequestKind,
    server: String,
    name: String,
    category: String,
    effects: Effects,
    /// None: for every client.
    client: Option<String>,
    decider: Decider,
}

/// The reason why something cannot be allowed by its name alone. Rules are counted from 1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotAllowable {
    /// An earlier rule decides by the arguments of a call, and a rule for all calls would override it.
    ReadsArguments(usize),
    /// It is already allowed, by this rule or preset.
    Allowed(String),
    /// Only a rule for certain clients restricts it.
    NamesClients(usize),
    /// The pattern of its name also matches another tool of the server.
    AmbiguousName(String),
    /// The client that asks has no name.
    NamelessClient,
    /// The rules have changed since the person saw them.
    Changed,
}

impl fmt::Display for NotAllowable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ReadsArguments(rule) => write!(
                f,
                "rule {rule} decides by its arguments, and a rule that allows every call would override \
                 that; add a rule with `arguments` to the configuration yourself"
            ),
            Self::Allowed(by) => write!(f, "already allowed by {by}"),
            Self::NamesClients(rule) => write!(
                f,
                "only rule {rule} restricts it, and only for certain clients; select one with \
                `--client NAME`"
            ),
            Self::AmbiguousName(name) => write!(
                f,
                "`{name}` begins with the name of its server, so a rule would also allow another \
                tool; add the rule to the configuration yourself"
            ),
            Self::NamelessClient => f.write_str("the calling client has no name"),
            Self::Changed => {
                f.write_str("the rules of the configuration changed since the question was asked")
            }
        }
    }
}

impl Allowance {
    /// Makes an allowance under the rules by which a person was asked. `call.client` is the client that
    /// it is for; with `for_every_client`, rules for certain clients stay before it.
    pub fn new(
        policy: &Policy,
        call: &Subject<'_>,
        for_every_client: bool,
    ) -> Result<Self, NotAllowable> {
        let client = call.client.to_lowercase();
        if !for_every_client && client.trim().is_empty() {
            return Err(NotAllowable::NamelessClient);
        }
        let name = call.name.to_lowercase();
        let below_server = name.strip_prefix(&call.server.to_lowercase());
        if call.kind != RequestKind::Resource
            && below_server.is_some_and(|rest| rest.starts_with('/'))
        {
            return Err(NotAllowable::AmbiguousName(call.name.to_owned()));
        }
        let mut allowance = Self {
            kind: call.kind,
            server: call.server.to_owned(),
            name: call.name.to_owned(),
            category: call.category.to_owned(),
            effects: call.effects,
            client: (!for_every_client).then_some(client),
            decider: Decider::Preset(policy.preset()),
        };
        (_, allowance.decider) = allowance.find_decider(policy)?;
        Ok(allowance)
    }

    /// The server whose tool, prompt or resource is allowed.
    pub fn server(&self) -> &str {
        &self.server
    }

    /// Returns true if no rule decides before this one is written.
    pub fn is_decided_by_preset(&self) -> bool {
        matches!(self.decider, Decider::Preset(_))
    }

    /// Returns the index at which the rule is inserted: directly before the rule that the person saw.
    pub fn find_place(&self, policy: &Policy) -> Result<usize, NotAllowable> {
        let (index, decider) = self.find_decider(policy)?;
        if decider == self.decider {
            Ok(index)
        } else {
            Err(NotAllowable::Changed)
        }
    }

    /// Returns the rule as it is written.
    pub fn rule(&self) -> Vec<(&'static str, String)> {
        let mut rule = vec![("decision", PolicyVerdict::Allow.as_str().to_owned())];
        rule.extend(
            self.client
                .as_deref()
                .map(|it| ("client", escape_pattern(it))),
        );
        rule.push(("server", escape_pattern(&self.server)));
        let key = match self.kind {
            RequestKind::Tool => "tool",
            RequestKind::Prompt => "prompt",
            RequestKind::Resource => "resource",
        };
        rule.push((key, escape_pattern(&self.name)));
        rule
    }

    /// Returns true if these rules allow it, by the rule at this index.
    pub fn is_allowed_by(&self, policy: &Policy, index: usize) -> bool {
        let decision = policy.decide(&self.subject());
        decision.verdict == PolicyVerdict::Allow && decision.rule == Some(index + 1)
    }

    fn subject(&self) -> Subject<'_> {
        Subject {
            client: self.client.as_deref().unwrap_or_default(),
            profiles: &[],
            server: &self.server,
            kind: self.kind,
            name: &self.name,
            category: &self.category,
            effects: self.effects,
            arguments: "{}",
        }
    }

    /// Finds the first rule that applies to every call of this tool, prompt or resource, and its index.
    fn find_decider(&self, policy: &Policy) -> Result<(usize, Decider), NotAllowable> {
        let subject = self.subject();
        let names = CallNames::new(&subject);
        let mut for_clients = None;
        for (index, rule) in policy.rules.iter().enumerate() {
            if !rule.fits_any_call(&names) {
                continue;
            }
            if self.client.is_none() && !rule.is_for_all_clients() {
                let restricts = rule.verdict != PolicyVerdict::Allow;
                for_clients = for_clients.or(restricts.then_some(index + 1));
                continue;
            }
            if self.client.is_some() && !rule.fits_client(&names) {
                continue;
            }
            if !rule.arguments.is_empty() {
                return Err(NotAllowable::ReadsArguments(index + 1));
            }
            if rule.verdict == PolicyVerdict::Allow {
                let by = format!("rule {}", index + 1);
                return Err(NotAllowable::Allowed(match for_clients {
                    Some(number) => format!("{by}, but for the clients of rule {number}"),
                    None => by,
                }));
            }
            return Ok((index, Decider::Rule(rule.written.clone())));
        }
        let decision = policy.preset().decide(&subject);
        if decision.verdict == PolicyVerdict::Allow {
            let by = NotAllowable::Allowed(decision.by().to_string());
            return Err(for_clients.map_or(by, NotAllowable::NamesClients));
        }
        Ok((policy.count_rules(), Decider::Preset(policy.preset())))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::{Preset, Rule};

    fn policy(rules: &Value) -> Policy {
        let read = |rule: &Value| Rule::read(rule.as_object().unwrap(), Some("/home/me")).unwrap();
        let rules = rules.as_array().unwrap().iter().map(read).collect();
        Policy::new(Preset::Careful, rules)
    }

    fn call<'a>(client: &'a str, name: &'a str) -> Subject<'a> {
        Subject {
            client,
            profiles: &[],
            server: "fs",
            kind: RequestKind::Tool,
            name,
            category: "files",
            effects: Effects {
                is_destructive: true,
                ..Effects::default()
            },
            arguments: "{}",
        }
    }

    /// Returns the rules with the allowance inserted at its place.
    fn with_allowance(rules: &Value, allowance: &Allowance) -> Policy {
        let before = policy(rules);
        let index = allowance.find_place(&before).unwrap();
        let mut written = rules.as_array().unwrap().clone();
        let rule = allowance.rule();
        let rule = rule
            .into_iter()
            .map(|(key, value)| (key.to_owned(), Value::from(value)));
        written.insert(index, Value::Object(rule.collect()));
        let after = policy(&Value::Array(written));
        assert!(allowance.is_allowed_by(&after, index));
        after
    }

    #[track_caller]
    fn check_place(rules: &Value, client: Option<&str>, expected: &Result<usize, NotAllowable>) {
        let before = policy(rules);
        let call = call(client.unwrap_or_default(), "write_file");
        let found = Allowance::new(&before, &call, client.is_none());
        let place = found.and_then(|allowance| {
            with_allowance(rules, &allowance);
            allowance.find_place(&before)
        });
        assert_eq!(&place, expected, "{rules}");
    }

    #[test]
    fn the_rule_goes_directly_before_the_one_that_decides() {
        let ask = json!({"decision": "ask", "tool": "fs/write_*"});
        let other = json!({"decision": "deny", "tool": "fs/delete_*"});
        let guests = json!({"decision": "deny", "client": "guest*", "server": "fs"});
        let secret = json!({"/path": {"inside": "/secret"}});
        let deny_secret = json!({"decision": "deny", "tool": "fs/*", "arguments": secret});
        let allow_tmp =
            json!({"decision": "allow", "tool": "write_file", "arguments": {"/path": "/tmp/*"}});
        check_place(&json!([ask]), Some("cursor"), &Ok(0));
        check_place(&json!([other, guests, ask, other]), Some("Cursor"), &Ok(2));
        check_place(&json!([other]), Some("cursor"), &Ok(1));
        check_place(&json!([]), None, &Ok(0));
        check_place(&json!([other, ask, deny_secret]), Some("cursor"), &Ok(1));
        let reads = |number| Err(NotAllowable::ReadsArguments(number));
        check_place(&json!([deny_secret, ask]), Some("cursor"), &reads(1));
        check_place(&json!([other, deny_secret, ask]), None, &reads(2));
        check_place(&json!([allow_tmp, ask]), Some("cursor"), &reads(1));
        check_place(&json!([deny_secret]), Some("cursor"), &reads(1));
        let allow = json!({"decision": "allow", "server": "fs"});
        let allowed = NotAllowable::Allowed("rule 1".to_owned());
        check_place(&json!([allow, ask]), Some("cursor"), &Err(allowed));
        check_place(&json!([ask]), Some(" "), &Err(NotAllowable::NamelessClient));
        // For every client, rules for certain clients stay before it.
        check_place(&json!([guests, ask]), None, &Ok(1));
        let every = json!({"decision": "ask", "client": "*", "tool": "fs/write_*"});
        check_place(&json!([guests, every]), None, &Ok(1));
        let names_clients = NotAllowable::NamesClients(1);
        check_place(
            &json!([guests, {"decision": "deny", "server": "git"}]),
            None,
            &Ok(2),
        );
        let open = Policy::new(Preset::Open, policy(&json!([guests])).rules);
        let found = Allowance::new(&open, &call("", "write_file"), true);
        assert_eq!(found, Err(names_clients));
        let allowed = "rule 2, but for the clients of rule 1".to_owned();
        let allowed = Err(NotAllowable::Allowed(allowed));
        check_place(&json!([guests, allow]), None, &allowed);
    }

    #[test]
    fn rules_that_are_others_than_the_person_saw_take_no_rule() {
        let seen = json!([{"decision": "ask", "tool": "fs/write_*", "reason": "files"}]);
        let allowance = Allowance::new(&policy(&seen), &call("cursor", "write_file"), false);
        let allowance = allowance.unwrap();
        let check = |rules: Value, expected: Result<usize, NotAllowable>| {
            assert_eq!(allowance.find_place(&policy(&rules)), expected, "{rules}");
        };
        let ask = seen[0].clone();
        let deny = json!({"decision": "deny", "tool": "fs/write_file"});
        let other = json!({"decision": "deny", "tool": "fs/delete_*"});
        check(json!([other, ask]), Ok(1));
        check(json!([deny, ask]), Err(NotAllowable::Changed));
        check(json!([]), Err(NotAllowable::Changed));
        check(
            json!([{"decision": "ask", "tool": "files/write_*", "reason": "files"}]),
            Err(NotAllowable::Changed),
        );
        let reads = json!({"decision": "deny", "arguments": {"/path": "/etc/*"}});
        check(json!([reads, ask]), Err(NotAllowable::ReadsArguments(1)));
    }

    #[test]
    fn a_rule_allows_the_thing_of_its_name_and_no_other() {
        for name in [
            "wipe\\", "w[1]", "{a,b}", "it's", "a\nb", "!x", "*", "ü", "a/b", " ",
        ] {
            let rules = json!([{"decision": "ask", "server": "fs"}]);
            let allowance = Allowance::new(&policy(&rules), &call("c", name), false).unwrap();
            let after = with_allowance(&rules, &allowance);
            for other in ["wipe", "w1", "a", "x", "", "b", "fs/*"] {
                let decision = after.decide(&call("c", other));
                assert_eq!(decision.verdict, PolicyVerdict::Ask, "{name:?} {other:?}");
            }
        }
        let rules = policy(&json!([{"decision": "ask", "server": "fs"}]));
        let found = Allowance::new(&rules, &call("c", "FS/write"), false);
        assert_eq!(
            found,
            Err(NotAllowable::AmbiguousName("FS/write".to_owned()))
        );
        let resource = Subject {
            kind: RequestKind::Resource,
            ..call("c", "file:///a%20b?x=[1]")
        };
        let found = Allowance::new(&rules, &resource, false).unwrap();
        with_allowance(&json!([{"decision": "ask", "server": "fs"}]), &found);
    }
}
