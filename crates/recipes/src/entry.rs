//! The configuration of a server that was added from its recipe.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use serde_json::{Map, Value};

use crate::recipe::{Parameter, Recipe, RecipeScope, StartMethod};
use crate::template::{fill, variables};

/// The values that the user gave when a server was added.
#[derive(Debug, Clone, Default)]
pub struct RecipeValues {
    /// The values of parameters.
    pub parameters: BTreeMap<String, String>,
    /// The names of optional variables that have a value, wherever that is stored.
    pub variables: BTreeSet<String>,
}

/// A parameter or variable that a recipe requires.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RequiredValue {
    /// The name of the variable or parameter.
    pub name: String,
    /// A description of its value.
    pub what: String,
    /// The place where the person gets it.
    pub origin: Option<String>,
    /// True if it must not be shown while it is typed.
    pub is_secret: bool,
    /// True for a parameter of the recipe, false for a variable of the server.
    pub is_parameter: bool,
}

/// The table `[servers.NAME]`; its keys are those of the configuration, and it is serialised as
/// such.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct ServerTable {
    /// The program of a local server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// Its arguments.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<String>,
    /// The address of a remote server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// `"client"` if the server is not shared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scope: Option<&'static str>,
    /// The start timeout, if the default is too short.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start_timeout_s: Option<u64>,
    /// The environment: fixed texts, and `${VAR}` for each variable for which the user has a value.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// Headers whose variables have values.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
}

impl Recipe {
    /// Returns true if the server works without any value from the user: no key, login or parameter.
    pub fn needs_nothing(&self) -> bool {
        let is_open = self.auth == crate::recipe::Auth::None;
        is_open && self.missing(&BTreeMap::new()).is_empty() && self.required().next().is_none()
    }

    /// Returns the required parameters that have no value: those that the user still has to be asked
    /// for.
    pub fn missing(&self, values: &BTreeMap<String, String>) -> Vec<&Parameter> {
        let has_none = |parameter: &&Parameter| {
            let is_optional = parameter.default.is_some() || !parameter.args.is_empty();
            !is_optional && !values.contains_key(&parameter.name)
        };
        self.parameters.iter().filter(has_none).collect()
    }

    /// Returns the values that a person still has to be asked for: the parameters without a value, and the
    /// required variables.
    pub fn required_values(&self, values: &BTreeMap<String, String>) -> Vec<RequiredValue> {
        let missing = self.missing(values).into_iter().map(|it| RequiredValue {
            name: it.name.clone(),
            what: it.what.clone(),
            origin: None,
            is_secret: false,
            is_parameter: true,
        });
        let variables = self.required().map(|it| RequiredValue {
            name: it.name.clone(),
            what: it.what.clone(),
            origin: it.origin.clone(),
            is_secret: it.secret,
            is_parameter: false,
        });
        missing.chain(variables).collect()
    }

    /// Returns the table for the configuration, or the parameters that are missing.
    ///
    /// A required variable is in the table even if it was not given, so that a start without it
    /// names the variable.
    pub fn entry(&self, given: &RecipeValues) -> Result<ServerTable, Vec<&Parameter>> {
        let missing = self.missing(&given.parameters);
        if !missing.is_empty() {
            return Err(missing);
        }
        let values = self.values(given);
        let mut entry = ServerTable {
            scope: (self.scope == RecipeScope::Client).then_some("client"),
            start_timeout_s: self.start_timeout_s,
            ..ServerTable::default()
        };
        match &self.way {
            StartMethod::Command(command) => {
                let chosen = self.parameters.iter();
                let chosen = chosen.filter(|it| values.contains_key(it.name.as_str()));
                let words = command.iter().chain(chosen.flat_map(|it| &it.args));
                let mut filled = words.map(|text| fill(text, &values));
                entry.command = filled.next();
                entry.args = filled.collect();
                entry.env = self.filled_env(given, &values);
            }
            StartMethod::Remote { url, headers, .. } => {
                entry.url = Some(fill(url, &values));
                let counts = |text: &&String| variables(text).all(|name| self.has(name, given));
                let headers = headers.iter().filter(|(_, text)| counts(text));
                let filled = headers.map(|(name, text)| (name.clone(), fill(text, &values)));
                entry.headers = filled.collect();
            }
        }
        Ok(entry)
    }

    /// Returns the arguments of the recipe's example, with parameters replaced as far as they are
    /// given.
    pub fn example_arguments(&self, given: &RecipeValues) -> Option<Map<String, Value>> {
        let values = self.values(given);
        let filled = Value::Object(self.example.as_ref()?.arguments.clone());
        match fill_value(filled, &values) {
            Value::Object(arguments) => Some(arguments),
            _ => None,
        }
    }

    fn values<'a>(&'a self, given: &'a RecipeValues) -> BTreeMap<&'a str, &'a str> {
        let value = |parameter: &'a Parameter| {
            let said = given.parameters.get(&parameter.name);
            let value = said.or(parameter.default.as_ref())?;
            Some((parameter.name.as_str(), value.as_str()))
        };
        self.parameters.iter().filter_map(value).collect()
    }

    fn filled_env(
        &self,
        given: &RecipeValues,
        values: &BTreeMap<&str, &str>,
    ) -> BTreeMap<String, String> {
        let known = self.env.iter();
        let known = known.map(|(name, text)| (name.clone(), fill(text, values)));
        let asked = self.variables.iter().map(|variable| &variable.name);
        let asked = asked.filter(|name| self.has(name, given));
        let asked = asked.map(|name| (name.clone(), format!("${{{name}}}")));
        known.chain(asked).collect()
    }

    /// Returns true if a variable has a value, or is required.
    fn has(&self, name: &str, given: &RecipeValues) -> bool {
        given.variables.contains(name) || self.required().any(|variable| variable.name == name)
    }
}

fn fill_value(value: Value, values: &BTreeMap<&str, &str>) -> Value {
    match value {
        Value::String(text) => Value::String(fill(&text, values)),
        Value::Array(items) => {
            let items = items.into_iter().map(|item| fill_value(item, values));
            Value::Array(items.collect())
        }
        Value::Object(members) => {
            let members = members.into_iter();
            let filled = members.map(|(key, value)| (key, fill_value(value, values)));
            Value::Object(filled.collect())
        }
        other => other,
    }
}
