//! Arguments that the configuration sets in place of a caller.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
};

use serde_json::{Map, Value};

use crate::{Violation, check::NAME_CHARS_MAX, is_same_member_name, parameters, schema::name_text};

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
///
/// Names are compared as rules for calls compare them: without regard to letter case, because some
/// servers read them so (decision 0027). A name that the schema has in exactly this spelling is an
/// argument of its own.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ArgumentSettings {
    /// By the spelling that is sent: the schema's, if it has the argument.
    settings: BTreeMap<String, ArgumentSetting>,
    /// The names of the schema; empty if no argument is set.
    declared: BTreeSet<String>,
}

impl ArgumentSettings {
    /// Joins the settings of a server with those of one of its tools, which win. A value of the server's
    /// settings is sent only to a tool whose schema has the argument; no caller sets it at any tool.
    pub fn new(
        of_server: &BTreeMap<String, ArgumentSetting>,
        of_tool: &BTreeMap<String, ArgumentSetting>,
        schema: &str,
    ) -> Self {
        let mut joined = Self::default();
        if of_server.is_empty() && of_tool.is_empty() {
            return joined;
        }
        let declared = parameters(schema).into_iter();
        joined.declared = declared.map(|parameter| parameter.name).collect();
        joined.add(of_tool, |setting| Some(setting.clone()));
        joined.add(of_server, |setting| {
            (!setting.is_callers()).then_some(ArgumentSetting::Hidden)
        });
        joined
    }

    /// Adds the settings of a table to arguments that have none. `undeclared` returns the setting of an
    /// argument that the schema does not have.
    fn add(
        &mut self,
        table: &BTreeMap<String, ArgumentSetting>,
        undeclared: impl Fn(&ArgumentSetting) -> Option<ArgumentSetting>,
    ) {
        let is_exact = |name: &str| self.declared.contains(name);
        let (exact, other): (Vec<_>, Vec<_>) = table.iter().partition(|(name, _)| is_exact(name));
        for (name, setting) in exact.into_iter().chain(other) {
            let spellings = self.declared.iter().filter(|declared| {
                *declared == name
                    || !self.declared.contains(name) && is_same_member_name(declared, name)
            });
            let mut spellings = spellings.peekable();
            if spellings.peek().is_none() {
                if let Some(setting) = undeclared(setting) {
                    self.settings.entry(name.clone()).or_insert(setting);
                }
                continue;
            }
            for spelling in spellings {
                let entry = self.settings.entry(spelling.clone());
                entry.or_insert_with(|| setting.clone());
            }
        }
    }

    /// Returns the setting that applies to a caller's argument of this name, with the name that is sent.
    fn find(&self, given: &str) -> Option<(&String, &ArgumentSetting)> {
        let exact = self.settings.get_key_value(given);
        if exact.is_some() || self.declared.contains(given) {
            return exact;
        }
        let settings = self.settings.iter();
        let same = settings.filter(|(name, _)| is_same_member_name(name, given));
        // Of several, one that no caller sets.
        same.min_by_key(|(_, setting)| setting.is_callers())
    }

    /// Returns true if no argument is set.
    pub fn is_empty(&self) -> bool {
        self.settings.is_empty()
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
        for (name, setting) in &self.settings {
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
        let refused = given.keys().filter_map(|spelling| {
            let (name, setting) = self.find(spelling)?;
            let rule = match setting {
                ArgumentSetting::Fixed(_) => "the configuration sets this argument",
                ArgumentSetting::Hidden => "the configuration does not allow this argument",
                ArgumentSetting::Default(_) => return None,
            };
            let shown = |name: &str| name_text(&printable::shorten(name, NAME_CHARS_MAX));
            let other = if name == spelling {
                String::new()
            } else {
                format!(", in any spelling of `{}`", shown(name))
            };
            Some(Violation {
                path: shown(spelling),
                message: format!("{rule}{other}; leave it out"),
            })
        });
        refused.collect()
    }

    /// Removes the arguments that a caller may not set, from an example.
    pub fn remove_from(&self, example: &mut Map<String, Value>) {
        example.retain(|name, _| {
            let found = self.find(name);
            found.is_none_or(|(_, setting)| setting.is_callers())
        });
    }

    /// Returns the members that the arguments of a caller lack.
    pub fn complete(&self, given: &Map<String, Value>) -> Map<String, Value> {
        let lacking = self
            .settings
            .iter()
            .filter(|(name, _)| !self.has(given, name));
        let added = lacking.filter_map(|(name, setting)| match setting {
            ArgumentSetting::Fixed(value) | ArgumentSetting::Default(value) => {
                Some((name.clone(), value.clone()))
            }
            ArgumentSetting::Hidden => None,
        });
        added.collect()
    }

    /// Returns true if a caller gave the argument of this setting, in any spelling.
    fn has(&self, given: &Map<String, Value>, name: &str) -> bool {
        let mut found = given.keys().filter_map(|spelling| self.find(spelling));
        found.any(|(sent, _)| sent == name)
    }

    /// Returns the arguments of a caller without each `null` that the check removed or refused and for which the
    /// configuration has a default: the argument counts as left out. Returns `None` if there is no such `null`.
    pub fn without_refused_nulls(
        &self,
        given: &Map<String, Value>,
        checked: &Result<Option<Map<String, Value>>, Vec<Violation>>,
    ) -> Option<Map<String, Value>> {
        let is_refused = |name: &String| match checked {
            Ok(None) => false,
            Ok(Some(mended)) => !mended.contains_key(name),
            Err(violations) => violations.iter().any(|it| argument_of(it) == name),
        };
        let has_default = |name: &String| {
            let setting = self.find(name).map(|(_, setting)| setting);
            setting.is_some_and(ArgumentSetting::is_callers)
        };
        let mut kept = given.clone();
        kept.retain(|name, value| !value.is_null() || !has_default(name) || !is_refused(name));
        (kept.len() < given.len()).then_some(kept)
    }

    /// Says of violations at arguments that a caller did not give which key of the configuration causes them.
    pub fn explain(&self, given: &Map<String, Value>, violations: &mut [Violation]) {
        for violation in violations {
            let argument = argument_of(violation);
            if self.settings.contains_key(argument) && !self.has(given, argument) {
                let from = format!(" (the configuration sets it: `arguments.{argument}`)");
                violation.message.push_str(&from);
            }
        }
    }
}

/// Returns the name of the argument in which a violation is.
fn argument_of(violation: &Violation) -> &str {
    let end = violation.path.find(['.', '[']);
    &violation.path[..end.unwrap_or(violation.path.len())]
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

    fn settings_of_tool(of_tool: &Value, schema: &Value) -> ArgumentSettings {
        ArgumentSettings::new(&BTreeMap::new(), &table(of_tool), &schema.to_string())
    }

    #[expect(clippy::needless_pass_by_value, reason = "cases read better")]
    fn refused(settings: &ArgumentSettings, given: Value) -> Vec<String> {
        let refused = settings.refuse(given.as_object().unwrap()).into_iter();
        refused.map(|violation| violation.path).collect()
    }

    #[expect(clippy::needless_pass_by_value, reason = "cases read better")]
    fn completed(settings: &ArgumentSettings, given: Value) -> Value {
        Value::Object(settings.complete(given.as_object().unwrap()))
    }

    #[test]
    fn names_are_compared_without_letter_case_and_the_schemas_spelling_is_sent() {
        let set = json!({"Owner": {"fixed": "acme"}, "LIMIT": {"default": 7}});

        // The schema's spelling is sent.
        let schema =
            json!({"required": ["owner"], "properties": {"owner": {}, "limit": {}, "x": {}}});
        let one = settings_of_tool(&set, &schema);
        assert_eq!(
            completed(&one, json!({})),
            json!({"limit": 7, "owner": "acme"})
        );
        assert_eq!(
            completed(&one, json!({"Limit": 1})),
            json!({"owner": "acme"})
        );
        assert_eq!(
            refused(&one, json!({"OWNER": 1, "owner": 2, "x": 3})),
            ["OWNER", "owner"]
        );
        let shown = one.show(Cow::Owned(schema.to_string()));
        let expected = json!({"required": [], "properties": {"limit": {"default": 7}, "x": {}}});
        assert_eq!(shown, expected.to_string());
        let mut example = json!({"OWNER": 1, "x": 2}).as_object().unwrap().clone();
        one.remove_from(&mut example);
        assert_eq!(Value::Object(example), json!({"x": 2}));
    }

    #[test]
    fn two_names_of_a_schema_are_two_arguments() {
        let set = json!({"Owner": {"fixed": "acme"}, "LIMIT": {"default": 7}});

        // The exact name of a schema with two, whose other name is an argument of its own.
        let two = settings_of_tool(&set, &json!({"properties": {"owner": {}, "Owner": {}}}));
        assert_eq!(
            completed(&two, json!({"owner": 1})),
            json!({"LIMIT": 7, "Owner": "acme"})
        );
        assert_eq!(
            refused(&two, json!({"owner": 1, "Owner": 2, "OWNER": 3})),
            ["Owner", "OWNER"]
        );

        // All names of a schema that does not have the exact one.
        let other = settings_of_tool(&set, &json!({"properties": {"owner": {}, "OWNER": {}}}));
        assert_eq!(
            completed(&other, json!({})),
            json!({"LIMIT": 7, "OWNER": "acme", "owner": "acme"})
        );
        assert_eq!(
            refused(&other, json!({"owner": 1, "OWNER": 2, "Owner": 3})).len(),
            3
        );

        // A schema without it: sent as the configuration spells it.
        let free = settings_of_tool(&set, &json!({}));
        assert_eq!(
            completed(&free, json!({})),
            json!({"LIMIT": 7, "Owner": "acme"})
        );
        assert_eq!(refused(&free, json!({"owner": 1, "limit": 2})), ["owner"]);

        // Two settings that one spelling may mean: the one that no caller sets.
        let pair = json!({"owner": {"default": 1}, "Owner": {"hidden": true}});
        let pair = settings_of_tool(&pair, &json!({"properties": {"owner": {}, "Owner": {}}}));
        assert_eq!(refused(&pair, json!({"owner": 1, "OWNER": 2})), ["OWNER"]);
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
