//! Arguments that the configuration sets in place of a caller.

use std::{borrow::Cow, collections::BTreeMap};

use serde_json::{Map, Value};

use crate::{Violation, parameters};

/// The setting of one argument, from a table `arguments` of the configuration.
#[derive(Debug, Clone, PartialEq)]
pub enum ArgumentSetting {
    /// Every call contains this value. A caller neither sees nor sets the argument.
    Fixed(Value),
    /// No call contains the argument. A caller neither sees nor sets it.
    Hidden,
    /// A call contains this value unless its caller sets another.
    Default(Value),
}

impl ArgumentSetting {
    /// Reads `{ fixed = VALUE }`, `{ default = VALUE }` or `{ hidden = true }`. The error says what is
    /// wrong.
    pub fn read(written: &Value) -> Result<Self, &'static str> {
        let members = written.as_object().ok_or("not a table")?;
        let mut members = members.iter();
        match (members.next(), members.next()) {
            (Some((key, value)), None) => match (key.as_str(), value) {
                ("fixed", value) => Ok(Self::Fixed(value.clone())),
                ("default", value) => Ok(Self::Default(value.clone())),
                ("hidden", Value::Bool(true)) => Ok(Self::Hidden),
                ("hidden", _) => Err("`hidden` is not `true`"),
                _ => Err("an unknown key"),
            },
            _ => Err("not exactly one key"),
        }
    }

    fn is_callers(&self) -> bool {
        matches!(self, Self::Default(_))
    }
}

/// The settings of the arguments of one tool.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ArgumentSettings(BTreeMap<String, ArgumentSetting>);

impl ArgumentSettings {
    /// Joins the settings of a server with those of one of its tools, which win. A value of the server's
    /// settings is sent only to a tool whose schema has the argument; no caller sets it at any tool.
    pub fn new(
        of_server: &BTreeMap<String, ArgumentSetting>,
        of_tool: &BTreeMap<String, ArgumentSetting>,
        schema: &str,
    ) -> Self {
        let mut settings = of_tool.clone();
        if !of_server.is_empty() {
            let declared = parameters(schema);
            for (name, setting) in of_server {
                let setting = match setting {
                    it if declared.iter().any(|it| it.name == *name) => it.clone(),
                    it if it.is_callers() => continue,
                    _ => ArgumentSetting::Hidden,
                };
                settings.entry(name.clone()).or_insert(setting);
            }
        }
        Self(settings)
    }

    /// Returns true if no argument is set.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the schema that a caller sees: without fixed and hidden arguments, and with the defaults.
    pub fn show<'s>(&self, schema: Cow<'s, str>) -> Cow<'s, str> {
        if self.is_empty() {
            return schema;
        }
        let Ok(mut root) = serde_json::from_str::<Value>(&schema) else {
            return schema;
        };
        if let Some(place) = referred(&root)
            && let Some(target) = root.pointer_mut(&place)
        {
            self.change_object(target, 0);
        }
        self.change_object(&mut root, 0);
        Cow::Owned(root.to_string())
    }

    /// Changes the schema of the whole arguments, and its parts that concern the same object.
    fn change_object(&self, schema: &mut Value, depth: usize) {
        let Some(schema) = schema.as_object_mut().filter(|_| depth < DEPTH_MAX) else {
            return;
        };
        for (name, setting) in &self.0 {
            if let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) {
                match (setting, properties.get_mut(name)) {
                    (ArgumentSetting::Default(value), Some(Value::Object(property))) => {
                        property.insert("default".to_owned(), value.clone());
                    }
                    (ArgumentSetting::Default(_), _) => {}
                    // The other properties keep their order.
                    _ => drop(properties.shift_remove(name)),
                }
            }
            if let (Some(Value::Array(required)), true) = (
                schema.get_mut("required"),
                setting != &ArgumentSetting::Hidden,
            ) {
                required.retain(|it| it != name);
            }
        }
        for keyword in ["allOf", "anyOf", "oneOf"] {
            let parts = schema.get_mut(keyword).and_then(Value::as_array_mut);
            for part in parts.into_iter().flatten() {
                self.change_object(part, depth + 1);
            }
        }
    }

    /// Returns a violation for each argument of a caller that only the configuration sets.
    pub fn refuse(&self, given: &Map<String, Value>) -> Vec<Violation> {
        let refused = self
            .0
            .iter()
            .filter(|(name, setting)| !setting.is_callers() && given.contains_key(*name));
        let violation = |(name, setting): (&String, &ArgumentSetting)| Violation {
            path: name.clone(),
            message: match setting {
                ArgumentSetting::Fixed(_) => "the configuration sets this argument; leave it out",
                _ => "the configuration does not allow this argument; leave it out",
            }
            .to_owned(),
        };
        refused.map(violation).collect()
    }

    /// Removes the arguments that a caller may not set, from an example.
    pub fn remove_from(&self, example: &mut Map<String, Value>) {
        example.retain(|name, _| self.0.get(name).is_none_or(ArgumentSetting::is_callers));
    }

    /// Returns the members that the arguments of a caller lack.
    pub fn complete(&self, given: &Map<String, Value>) -> Map<String, Value> {
        let added = self.0.iter().filter_map(|(name, setting)| match setting {
            ArgumentSetting::Fixed(value) | ArgumentSetting::Default(value)
                if !given.contains_key(name) =>
            {
                Some((name.clone(), value.clone()))
            }
            _ => None,
        });
        added.collect()
    }

    /// Says of violations at arguments that a caller did not give which key of the configuration causes them.
    pub fn explain(&self, given: &Map<String, Value>, violations: &mut [Violation]) {
        for violation in violations {
            let end = violation.path.find(['.', '[']);
            let argument = &violation.path[..end.unwrap_or(violation.path.len())];
            if self.0.contains_key(argument) && !given.contains_key(argument) {
                let from = format!(" (the configuration sets it: `arguments.{argument}`)");
                violation.message.push_str(&from);
            }
        }
    }
}

/// The deepest nesting of `allOf`, `anyOf` and `oneOf` that is changed.
const DEPTH_MAX: usize = 4;

/// Returns the place of the schema that the whole schema refers to.
fn referred(root: &Value) -> Option<String> {
    let reference = root.get("$ref")?.as_str()?;
    reference.strip_prefix('#').map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn table(written: &Value) -> BTreeMap<String, ArgumentSetting> {
        let members = written.as_object().unwrap().iter();
        let read = members.map(|(name, it)| (name.clone(), ArgumentSetting::read(it).unwrap()));
        read.collect()
    }

    #[test]
    fn a_setting_has_exactly_one_key() {
        let check = |written: Value, expected: Result<ArgumentSetting, &'static str>| {
            assert_eq!(ArgumentSetting::read(&written), expected, "{written}");
        };
        check(
            json!({"fixed": null}),
            Ok(ArgumentSetting::Fixed(Value::Null)),
        );
        check(
            json!({"default": [1]}),
            Ok(ArgumentSetting::Default(json!([1]))),
        );
        check(json!({"hidden": true}), Ok(ArgumentSetting::Hidden));
        check(json!({"hidden": false}), Err("`hidden` is not `true`"));
        check(json!({}), Err("not exactly one key"));
        check(
            json!({"fixed": 1, "default": 2}),
            Err("not exactly one key"),
        );
        check(json!({"fxed": 1}), Err("an unknown key"));
        check(json!("acme"), Err("not a table"));
    }

    #[test]
    fn a_caller_sees_the_arguments_that_are_left() {
        let settings = table(&json!({
            "owner": {"fixed": "acme"}, "debug": {"hidden": true}, "limit": {"default": 10},
        }));
        let check = |schema: Value, expected: Value| {
            let settings = ArgumentSettings::new(&settings, &BTreeMap::new(), &schema.to_string());
            let shown = settings.show(Cow::Owned(schema.to_string()));
            assert_eq!(shown, expected.to_string());
        };
        check(
            json!({"type": "object", "required": ["owner", "repo", "limit"], "properties": {
                "owner": {"type": "string"}, "repo": {"type": "string"}, "debug": {},
                "limit": {"type": "integer"}}}),
            json!({"type": "object", "required": ["repo"], "properties": {
                "repo": {"type": "string"}, "limit": {"type": "integer", "default": 10}}}),
        );
        check(
            json!({"$ref": "#/$defs/a", "$defs": {"a": {"properties": {"owner": {}, "x": {}}}}}),
            json!({"$ref": "#/$defs/a", "$defs": {"a": {"properties": {"x": {}}}}}),
        );
        check(
            json!({"properties": {"owner": {}, "x": {}}, "anyOf": [{"required": ["owner", "x"]}]}),
            json!({"properties": {"x": {}}, "anyOf": [{"required": ["x"]}]}),
        );
    }

    #[test]
    fn settings_of_a_server_are_for_tools_that_have_the_argument() {
        let of_server = table(&json!({"owner": {"fixed": "acme"}, "limit": {"default": 10}}));
        let of_tool = table(&json!({"owner": {"fixed": "other"}}));
        let given = Map::new();
        let check =
            |of_tool: &BTreeMap<String, ArgumentSetting>, schema: Value, expected: Value| {
                let settings = ArgumentSettings::new(&of_server, of_tool, &schema.to_string());
                assert_eq!(Value::Object(settings.complete(&given)), expected);
                let owner = json!({"owner": "evil", "limit": 1});
                assert_eq!(settings.refuse(owner.as_object().unwrap()).len(), 1);
            };
        let both = json!({"properties": {"owner": {}, "limit": {}}});
        let none = BTreeMap::new();
        check(&none, both.clone(), json!({"limit": 10, "owner": "acme"}));
        check(&none, json!({}), json!({}));
        check(&of_tool, both, json!({"limit": 10, "owner": "other"}));
        check(&of_tool, json!({}), json!({"owner": "other"}));
    }
}
