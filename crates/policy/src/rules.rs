//! All rules of a configuration: the first rule that matches decides, else the preset.

use std::{cell::LazyCell, fmt};

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::{PolicyVerdict, Subject, arguments::JsonNode, names::CallNames, rule::Rule};

/// The decision if no rule fits.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Preset {
    /// Every call is made.
    #[default]
    Open,
    /// A person is asked before destructive calls.
    Careful,
    /// Calls of tools that are not declared read-only are refused.
    ReadOnly,
}

impl Preset {
    /// The word in the configuration.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Careful => "careful",
            Self::ReadOnly => "read-only",
        }
    }

    pub(crate) fn decide(self, call: &Subject<'_>) -> Decision {
        let (verdict, reason) = match self {
            Self::Careful if call.effects.is_destructive => {
                (PolicyVerdict::Ask, Some("it may be destructive".to_owned()))
            }
            Self::ReadOnly if !call.effects.is_read_only => {
                let why = "its server does not annotate it as read-only".to_owned();
                (PolicyVerdict::Deny, Some(why))
            }
            _ => (PolicyVerdict::Allow, None),
        };
        Decision {
            verdict,
            rule: None,
            preset: self,
            reason,
            looks_at_arguments: false,
        }
    }
}

/// The rule that decides a call, by its content.
#[derive(Debug, Clone, PartialEq)]
pub enum Decider {
    /// The rule as it is written.
    Rule(Map<String, Value>),
    /// The preset, because no rule matches.
    Preset(Preset),
}

/// The decision about a call, and its reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// The verdict.
    pub verdict: PolicyVerdict,
    /// The place of the rule in the configuration, counted from 1; none for the preset.
    pub rule: Option<usize>,
    preset: Preset,
    /// The reason in the words of the rule, or ours; none if the rule gives none.
    pub reason: Option<String>,
    /// True if the decision may differ for the same tool with other arguments.
    pub looks_at_arguments: bool,
}

impl Decision {
    /// Returns the rule as it is written, or the preset. The value stays equal as long as the content
    /// does.
    pub fn decider(&self, policy: &Policy) -> Decider {
        let rule = self.rule.and_then(|number| policy.rules.get(number - 1));
        rule.map_or(Decider::Preset(policy.preset), |rule| {
            Decider::Rule(rule.written.clone())
        })
    }

    /// Returns the name of what decided: `rule 2` or `policy = "careful"`.
    pub fn by(&self) -> impl fmt::Display {
        match self.rule {
            Some(number) => format!("rule {number}"),
            None => format!("policy = \"{}\"", self.preset.as_str()),
        }
    }
}

/// The rules of a configuration, and the preset.
#[derive(Debug, Clone, Default)]
pub struct Policy {
    preset: Preset,
    pub(crate) rules: Vec<Rule>,
}

impl Policy {
    /// Makes a policy of rules, in the order of the configuration.
    pub fn new(preset: Preset, rules: Vec<Rule>) -> Self {
        Self { preset, rules }
    }

    /// Returns the number of rules.
    pub fn count_rules(&self) -> usize {
        self.rules.len()
    }

    /// Returns the rules as they are written.
    pub fn written(&self) -> impl Iterator<Item = &Map<String, Value>> {
        self.rules.iter().map(|rule| &rule.written)
    }

    /// Returns the preset, which decides if no rule matches.
    pub fn preset(&self) -> Preset {
        self.preset
    }

    /// Decides a call.
    pub fn decide(&self, call: &Subject<'_>) -> Decision {
        if self.rules.is_empty() {
            return self.preset.decide(call);
        }
        let names = CallNames::new(call);
        let arguments = LazyCell::new(|| JsonNode::read(call.arguments));
        let fits = |(_, rule): &(usize, &Rule)| rule.fits(&names, &arguments);
        let found = self.rules.iter().enumerate().find(fits);
        found.map_or_else(
            || self.preset.decide(call),
            |(at, rule)| Decision {
                verdict: rule.verdict,
                rule: Some(at + 1),
                preset: self.preset,
                reason: rule.reason.clone(),
                looks_at_arguments: !rule.arguments.is_empty(),
            },
        )
    }
}
