//! Command-line programs as tools (0036): the schema of a command, and the words of one call.

#[cfg(test)]
mod tests;
mod words;

use serde::Deserialize;
use serde_json::{Map, Value, json};

use self::words::{CommandWord, Placeholder};
use crate::Template;

/// One table `[commands.NAME]` of the configuration.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct CommandDefinition {
    /// The program and its arguments, with placeholders.
    pub command: Vec<String>,
    /// The text that the program reads from stdin, with placeholders.
    pub stdin: Option<String>,
    /// The types of placeholders, as a JSON object.
    pub args: Option<String>,
    /// Exit codes of a success. Empty: 0.
    pub ok_codes: Vec<i32>,
    /// A second name.
    pub title: Option<String>,
    /// The description for models.
    pub description: Option<String>,
    /// True if it changes nothing.
    pub read_only: Option<bool>,
    /// Words that find it, for the registry.
    pub tags: Vec<String>,
}

/// A command-line program as a tool. It is always checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandTool {
    pub(crate) name: String,
    /// Its element of `tools/list`.
    pub(crate) listed: Value,
    pub(crate) program: Template,
    words: Vec<CommandWord>,
    stdin: Option<CommandWord>,
    pub(crate) ok_codes: Vec<i32>,
}

/// The programs that are the tools of one server, and what they share.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandSet {
    /// Each program once.
    pub tools: Vec<CommandTool>,
    /// Variables in addition to the inherited ones.
    pub env: Vec<(String, Template)>,
    /// The working folder; `None`: that of the client, else the home folder.
    pub cwd: Option<Template>,
}

/// The longest name of a command, in characters.
const NAME_CHARS_MAX: usize = 64;

/// The types of an argument: a value of each is one word.
const TYPES: [&str; 4] = ["string", "integer", "number", "boolean"];

impl CommandTool {
    /// Checks a definition. The error is a fragment without a full stop.
    pub fn new(name: &str, definition: &CommandDefinition) -> Result<Self, String> {
        let is_allowed = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
        if name.is_empty() || name.len() > NAME_CHARS_MAX || !name.chars().all(is_allowed) {
            return Err(format!(
                "a command's name has letters, digits, `_`, `-`, `.`, at most {NAME_CHARS_MAX}"
            ));
        }
        let words = definition.command.iter().map(|it| CommandWord::parse(it));
        let mut words = words.collect::<Result<Vec<_>, _>>()?.into_iter();
        let program = words
            .next()
            .ok_or("no program: write `command = [\"PROGRAM\", ...]`")?;
        let stdin = definition.stdin.as_deref().map(CommandWord::parse);
        let mut tool = Self {
            name: name.to_owned(),
            listed: Value::Null,
            program: program
                .into_text()
                .ok_or("the program cannot be a placeholder")?,
            words: words.collect(),
            stdin: stdin.transpose()?,
            ok_codes: definition.ok_codes.clone(),
        };
        tool.listed = tool.list(definition)?;
        Ok(tool)
    }

    fn list(&self, definition: &CommandDefinition) -> Result<Value, String> {
        let args = serde_json::from_str(definition.args.as_deref().unwrap_or("{}"));
        let schema = self.derive_schema(args.map_err(|error| error.to_string())?)?;
        if tool::Checker::new(&schema.to_string()).is_blind() {
            return Err("the types are no valid JSON schema".to_owned());
        }
        let line = definition.command.join(" ");
        let start = definition.command[0].rfind('/').map_or(0, |at| at + 1);
        let description = definition.description.clone();
        let mut listed = json!({
            "name": self.name,
            "description": description.unwrap_or_else(|| format!("Runs `{}`.", &line[start..])),
            "inputSchema": schema,
        });
        if let Some(value) = definition.read_only {
            listed["annotations"] = json!({"readOnlyHint": value});
        }
        if let Some(title) = &definition.title {
            listed["title"] = title.as_str().into();
        }
        Ok(listed)
    }

    fn placeholders(&self) -> impl Iterator<Item = &Placeholder> {
        let words = self.words.iter().chain(&self.stdin);
        words.flat_map(CommandWord::placeholders)
    }

    fn derive_schema(&self, mut args: Map<String, Value>) -> Result<Value, String> {
        let mut schema = json!({"type": "object", "properties": {}, "additionalProperties": false});
        let mut required = Vec::new();
        for it in self.placeholders() {
            let property = &mut schema["properties"][&it.name];
            if property.is_null() {
                *property = read_type(it, args.shift_remove(&it.name))?;
                if !it.is_optional && property.get("default").is_none() {
                    required.push(it.name.as_str());
                }
            }
        }
        if let Some(name) = args.keys().next() {
            return Err(format!("`args.{name}`: there is no `{{{name}}}`"));
        }
        if !required.is_empty() {
            schema["required"] = json!(required);
        }
        Ok(schema)
    }

    /// Returns the arguments of one call and its stdin, or the reason why it cannot be made.
    pub(crate) fn fill(
        &self,
        arguments: &Map<String, Value>,
    ) -> Result<(Vec<Template>, Option<Template>), String> {
        let properties = &self.listed["inputSchema"]["properties"];
        let (mut filled, mut is_safe) = (Vec::new(), false);
        for word in &self.words {
            filled.extend(word.fill(properties, arguments, is_safe)?);
            // No option follows.
            is_safe |= word.is_dashes();
        }
        let stdin = self.stdin.as_ref();
        let stdin = stdin.map(|it| it.fill(properties, arguments, true));
        Ok((filled, stdin.transpose()?.into_iter().flatten().next()))
    }
}

impl CommandSet {
    /// Lists the templates, each with its configuration key.
    pub(crate) fn texts(&self) -> Vec<(String, &Template)> {
        let mut texts = Vec::new();
        for tool in &self.tools {
            let words = tool.words.iter().chain(&tool.stdin);
            let all = words.flat_map(CommandWord::texts).chain([&tool.program]);
            texts.extend(all.map(|text| (format!("commands.{}", tool.name), text)));
        }
        let env = self.env.iter();
        texts.extend(env.map(|(name, text)| (format!("servers.commands.env.{name}"), text)));
        let cwd = self.cwd.iter();
        texts.extend(cwd.map(|text| ("servers.commands.cwd".to_owned(), text)));
        texts
    }
}

/// Returns the schema of one argument; of a list, `declared` is the type of an element.
fn read_type(it: &Placeholder, declared: Option<Value>) -> Result<Value, String> {
    let mut property = match declared.unwrap_or_else(|| json!({})) {
        kind @ Value::String(_) => json!({ "type": kind }),
        property => property,
    };
    let is_known = |kind: &Value| TYPES.iter().any(|it| kind == it);
    if property.get("type").is_none() && property.get("enum").is_none() && property.is_object() {
        property["type"] = TYPES[0].into();
    } else if !property.get("type").is_none_or(is_known) || !property.is_object() {
        let types = TYPES.join("`, `");
        return Err(format!("`args.{}`: the type is none of `{types}`", it.name));
    }
    if !it.is_list {
        return Ok(property);
    }
    let mut list = json!({"type": "array"});
    for key in ["description", "default"] {
        if let Some(value) = property.as_object_mut().and_then(|it| it.shift_remove(key)) {
            list[key] = value;
        }
    }
    list["items"] = property;
    Ok(list)
}
