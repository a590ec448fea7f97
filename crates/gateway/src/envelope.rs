//! The arguments of `execute_dynamic_tool`, and the repair of common mistakes of models.
//!
//! Models stringify, flatten, nest and rename the argument object. Each repair here undoes one of
//! these, in the order of the interface, section 6; none guesses a value.

use std::{borrow::Cow, time::Duration};

use jsonrpc::{Fields, Json, text_of, without_lone_surrogates};
use serde_json::{Map, Value, value::RawValue};

use crate::{definitions::EXECUTE, error::ToolError};

#[derive(Debug)]
pub(crate) struct ExecuteRequest {
    pub(crate) tool_name: String,
    pub(crate) input: Input,
    pub(crate) options: Options,
    /// The repairs that were made, for the log and for tests.
    pub(crate) repairs: Vec<Repair>,
}

/// The tool's arguments: as the client wrote them, or rebuilt by a repair.
#[derive(Debug)]
pub(crate) enum Input {
    AsSent(Box<RawValue>),
    Built(Map<String, Value>),
}

impl Input {
    /// Reads the members. An error says why the text cannot be read, such as half of a character or a
    /// number that is too large.
    pub(crate) fn read(&self) -> serde_json::Result<Map<String, Value>> {
        match self {
            Self::AsSent(raw) => serde_json::from_str(raw.get()),
            Self::Built(map) => Ok(map.clone()),
        }
    }

    /// Reads the members; none if the text cannot be read.
    pub(crate) fn to_map(&self) -> Map<String, Value> {
        self.read().unwrap_or_default()
    }

    /// Returns the input for a tool of ours, which reads text: half a surrogate pair in it is U+FFFD.
    pub(crate) fn without_lone_surrogates(self) -> Self {
        let Self::AsSent(raw) = &self else {
            return self;
        };
        let Cow::Owned(text) = without_lone_surrogates(raw.get()) else {
            return self;
        };
        RawValue::from_string(text).map_or(self, Self::AsSent)
    }

    pub(crate) fn into_json(self) -> Json {
        match self {
            Self::AsSent(raw) => Json::from(raw),
            Self::Built(map) => json_of(&map),
        }
    }
}

pub(crate) fn json_of(map: &Map<String, Value>) -> Json {
    let text = serde_json::to_string(map).expect("a map of values is JSON");
    Json::of_built(text)
}

/// The options beside `tool_input`.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Options {
    pub(crate) timeout_ms: Option<u64>,
    pub(crate) max_tokens: Option<u64>,
    pub(crate) raw: bool,
    pub(crate) dry_run: bool,
    /// The server whose app makes the call.
    pub(crate) app: Option<String>,
}

/// The longest timeout that a call may request, in milliseconds: an hour.
const TIMEOUT_MS_MAX: u64 = 3_600_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Repair {
    /// The whole argument object came as a string.
    WholeParsed,
    AbsentInput,
    InputParsed,
    Flattened,
    NameHoisted,
    Alias,
    Unwrapped,
    /// Server and tool were separate members.
    NamesJoined,
    /// Options were among the tool's arguments.
    OptionsInside,
}

const NAME_ALIASES: [&str; 2] = ["name", "tool"];
const SERVER_ALIASES: [&str; 2] = ["server", "server_name"];
pub(crate) const INPUT_ALIASES: [&str; 5] = ["arguments", "args", "parameters", "params", "input"];
const OPTIONS: [&str; 4] = ["timeout_ms", "max_tokens", "raw", "dry_run"];

/// The longest part of an invalid input that an error repeats, in characters.
const SHOWN_CHARS_MAX: usize = 60;

/// The prefixes that the name of our own tool may have.
const OUR_PREFIXES: [&str; 6] = ["", "proxy/", "proxy.", "proxy:", "proxy__", "mcp__proxy__"];

/// The prefix of an option's name among the tool's arguments: a client that passes on only the
/// members in our schema leaves no other place for it. No schema that a model's API accepts names an
/// argument with a `/` (interface, section 6).
const OPTION_PREFIX: &str = "proxy/";

/// The option of a call that an app makes. Only the page that shows apps sets it, among the tool's
/// arguments; no model is told of it.
const APP: &str = "app";

pub(crate) const SIGNATURE: &str = "(tool_name: string, tool_input: {…})";

impl ExecuteRequest {
    pub(crate) fn parse(arguments: Option<&RawValue>) -> Result<Self, ToolError> {
        let text = arguments.map_or("{}", RawValue::get);
        if let Some(request) = read_plain(text) {
            return Ok(request);
        }
        Envelope::read(text)?.repair()
    }
}

/// The fast path of nearly every call: a name, an object, known options, nothing to repair.
fn read_plain(text: &str) -> Option<ExecuteRequest> {
    let fields = Fields::of(text)?;
    let mut options = Options::default();
    let (mut name, mut input) = (None, None);
    for (key, value) in &fields.0 {
        match key.as_ref() {
            "tool_name" => name = text_of(value).map(Cow::into_owned),
            "tool_input" if value.get().starts_with('{') => input = Some((*value).to_owned()),
            option if OPTIONS.contains(&option) => {
                let value = serde_json::from_str(value.get()).ok()?;
                options.set(option, &value).ok()?;
            }
            _ => return None,
        }
    }
    let input = input?;
    if needs_closer_look(&input) {
        return None;
    }
    Some(ExecuteRequest {
        tool_name: name?,
        input: Input::AsSent(input),
        options,
        repairs: Vec::new(),
    })
}

/// Returns true if an argument object might be an envelope itself or hold options of ours.
fn needs_closer_look(input: &RawValue) -> bool {
    let has_option = |fields: Fields<'_>| {
        let mut keys = fields.0.iter().map(|(key, _)| key);
        keys.any(|key| key.starts_with(OPTION_PREFIX))
    };
    let text = input.get();
    text.contains("tool_name") || text.contains("proxy") && Fields::of(text).is_some_and(has_option)
}

struct Envelope {
    fields: Map<String, Value>,
    options: Options,
    repairs: Vec<Repair>,
}

impl Envelope {
    fn read(text: &str) -> Result<Self, ToolError> {
        let mut repairs = Vec::new();
        let fields = match serde_json::from_str(&without_lone_surrogates(text)) {
            Ok(Value::Object(fields)) => fields,
            Ok(Value::Null) => Map::new(),
            Ok(Value::String(inner)) => {
                repairs.push(Repair::WholeParsed);
                serde_json::from_str(&without_lone_surrogates(&inner)).map_err(|_| {
                    unreadable("", "expected an object, got a string that is no JSON")
                })?
            }
            _ => return Err(unreadable("", "expected an object")),
        };
        Ok(Self {
            fields,
            options: Options::default(),
            repairs,
        })
    }

    fn repair(mut self) -> Result<ExecuteRequest, ToolError> {
        self.unwrap_whole();
        self.options.take(&mut self.fields)?;
        self.unwrap_ourselves()?;
        let name = self.take_name()?;
        let mut input = self.take_input()?;
        let Some(tool_name) = name.or_else(|| self.hoist(&mut input)) else {
            return Err(unreadable("tool_name", "missing; expected string"));
        };
        let tool_name = self.join_server(tool_name, input.is_some());
        let mut input = self.unwrap_input(input, &tool_name);
        if input.as_ref().is_none_or(Map::is_empty) && !self.fields.is_empty() {
            self.repairs.push(Repair::Flattened);
            input = Some(self.fields);
        }
        let mut input = input.unwrap_or_else(|| {
            self.repairs.push(Repair::AbsentInput);
            Map::new()
        });
        if self.options.take_prefixed(&mut input)? {
            self.repairs.push(Repair::OptionsInside);
        }
        Ok(ExecuteRequest {
            tool_name,
            input: Input::Built(input),
            options: self.options,
            repairs: self.repairs,
        })
    }

    /// `{"execute_dynamic_tool": {...}}`, `{"input": {"tool_name": ...}}` and the like: one key that
    /// holds a whole envelope.
    fn unwrap_whole(&mut self) {
        let only = self.fields.iter().next();
        let only = only.filter(|(key, _)| self.fields.len() == 1 && *key != "tool_input");
        if let Some(inner) = only
            .and_then(|(_, value)| as_object(value))
            .filter(has_name)
        {
            self.repairs.push(Repair::Unwrapped);
            self.fields = inner;
        }
    }

    /// `{"tool_name": "execute_dynamic_tool", "tool_input": {"tool_name": ...}}`: a call of our own
    /// tool made through itself.
    fn unwrap_ourselves(&mut self) -> Result<(), ToolError> {
        let names = || std::iter::once("tool_name").chain(NAME_ALIASES);
        while names().any(|key| self.fields.get(key).is_some_and(is_ourselves)) {
            let inputs = std::iter::once("tool_input").chain(INPUT_ALIASES);
            let mut inner = inputs.filter_map(|key| self.fields.get(key).and_then(as_object));
            let Some(inner) = inner.find(has_any_name) else {
                break;
            };
            self.repairs.push(Repair::Unwrapped);
            self.fields = inner;
            self.options.take(&mut self.fields)?;
        }
        Ok(())
    }

    fn take_name(&mut self) -> Result<Option<String>, ToolError> {
        let is_text = |alias: &&str| self.fields.get(*alias).is_some_and(Value::is_string);
        let key = if self.fields.contains_key("tool_name") {
            "tool_name"
        } else if let Some(alias) = NAME_ALIASES.into_iter().find(is_text) {
            self.repairs.push(Repair::Alias);
            alias
        } else {
            return Ok(None);
        };
        match self.fields.shift_remove(key) {
            Some(Value::String(name)) => Ok(Some(name)),
            Some(Value::Null) | None => Ok(None),
            Some(other) => {
                let why = format!("expected string, got {other}");
                Err(unreadable("tool_name", &why))
            }
        }
    }

    /// The argument object: under its own name, or under an alias that holds an object.
    fn take_input(&mut self) -> Result<Option<Map<String, Value>>, ToolError> {
        let has_object = |key: &&str| self.fields.get(*key).and_then(as_object).is_some();
        if !self.fields.contains_key("tool_input")
            && let Some(alias) = INPUT_ALIASES.into_iter().find(has_object)
        {
            self.repairs.push(Repair::Alias);
            return Ok(self.fields.shift_remove(alias).as_ref().and_then(as_object));
        }
        let shown = |text: &str| printable::first_chars(text, SHOWN_CHARS_MAX).to_owned();
        let why = match self.fields.shift_remove("tool_input") {
            None | Some(Value::Null) => return Ok(None),
            Some(Value::Object(input)) => return Ok(Some(input)),
            Some(Value::String(text)) => {
                self.repairs.push(Repair::InputParsed);
                if let Ok(input) = serde_json::from_str(&without_lone_surrogates(&text)) {
                    return Ok(Some(input));
                }
                format!("a string that is no JSON object: {:?}", shown(&text))
            }
            Some(other) => shown(&other.to_string()),
        };
        let why = format!("expected an object, got {why}");
        Err(unreadable("tool_input", &why))
    }

    /// `{"server": "github", "tool": "create_issue", ...}`: the name in two parts. `server` is a part of
    /// the name if the arguments are a separate member, or the tool came as `tool` or `name`: else it
    /// may be an argument.
    fn join_server(&mut self, tool_name: String, arguments_are_apart: bool) -> String {
        let is_apart = arguments_are_apart || self.repairs.contains(&Repair::Alias);
        if tool_name.contains('/') || !is_apart {
            return tool_name;
        }
        let is_text = |key: &&str| self.fields.get(*key).is_some_and(Value::is_string);
        let key = SERVER_ALIASES.into_iter().find(is_text);
        let Some(Value::String(server)) = key.and_then(|key| self.fields.shift_remove(key)) else {
            return tool_name;
        };
        self.repairs.push(Repair::NamesJoined);
        format!("{}/{tool_name}", server.trim())
    }

    /// `tool_name` written inside `tool_input`.
    fn hoist(&mut self, input: &mut Option<Map<String, Value>>) -> Option<String> {
        let inside = input.as_mut()?;
        let Some(Value::String(name)) = inside.shift_remove("tool_name") else {
            return None;
        };
        self.repairs.push(Repair::NameHoisted);
        if let Some(inner) = sole_object(inside) {
            self.repairs.push(Repair::Unwrapped);
            *input = Some(inner);
        }
        Some(name)
    }

    /// `tool_input: {"tool_name": the same, "tool_input": {...}}`: the envelope repeated inside itself.
    fn unwrap_input(
        &mut self,
        input: Option<Map<String, Value>>,
        tool_name: &str,
    ) -> Option<Map<String, Value>> {
        let mut inside = input?;
        let name = inside.get("tool_name").and_then(Value::as_str);
        if name.map(tool::fold) != Some(tool::fold(tool_name)) {
            return Some(inside);
        }
        self.repairs.push(Repair::Unwrapped);
        inside.shift_remove("tool_name");
        Some(sole_object(&inside).unwrap_or(inside))
    }
}

fn is_ourselves(name: &Value) -> bool {
    let name = name.as_str().map(tool::fold).unwrap_or_default();
    name.strip_suffix(EXECUTE)
        .is_some_and(|prefix| OUR_PREFIXES.contains(&prefix))
}

/// The object under the only key, when that key is a name for the argument object.
pub(crate) fn sole_object(fields: &Map<String, Value>) -> Option<Map<String, Value>> {
    let (key, value) = fields.iter().next().filter(|_| fields.len() == 1)?;
    let is_input = key == "tool_input" || INPUT_ALIASES.contains(&key.as_str());
    is_input.then(|| as_object(value)).flatten()
}

fn has_name(fields: &Map<String, Value>) -> bool {
    fields.get("tool_name").is_some_and(Value::is_string)
}

fn has_any_name(fields: &Map<String, Value>) -> bool {
    let is_text = |alias: &str| fields.get(alias).is_some_and(Value::is_string);
    has_name(fields) || NAME_ALIASES.into_iter().any(is_text)
}

/// An object, or a string that holds one.
pub(crate) fn as_object(value: &Value) -> Option<Map<String, Value>> {
    match value {
        Value::Object(map) => Some(map.clone()),
        Value::String(text) => serde_json::from_str(&without_lone_surrogates(text)).ok(),
        _ => None,
    }
}

impl Options {
    /// The time that the caller waits, if it sets one.
    pub(super) fn timeout(&self) -> Option<Duration> {
        let ms = self.timeout_ms?.min(TIMEOUT_MS_MAX);
        Some(Duration::from_millis(ms))
    }

    /// Removes the options beside `tool_input`, in both spellings.
    fn take(&mut self, fields: &mut Map<String, Value>) -> Result<(), ToolError> {
        for key in OPTIONS {
            if let Some(value) = fields.shift_remove(key) {
                self.set(key, &value).map_err(|why| unreadable(key, &why))?;
            }
        }
        self.take_prefixed(fields).map(drop)
    }

    /// Removes the options among a tool's arguments; returns true if there were any. An unknown
    /// option is an error: a misspelt `proxy/dry_run` must not run.
    fn take_prefixed(&mut self, input: &mut Map<String, Value>) -> Result<bool, ToolError> {
        let ours = input.keys().filter(|key| key.starts_with(OPTION_PREFIX));
        let ours: Vec<String> = ours.cloned().collect();
        for key in &ours {
            let option = &key[OPTION_PREFIX.len()..];
            let refused = |why: &str| unreadable(&format!("tool_input.{key}"), why);
            if option == APP {
                let value = input.shift_remove(key).unwrap_or_default();
                let server = value.as_str().ok_or_else(|| refused("expected a server"))?;
                self.app = Some(server.to_owned());
                continue;
            }
            if !OPTIONS.contains(&option) {
                let known = OPTIONS.map(|option| format!("{OPTION_PREFIX}{option}"));
                let why = format!("no such option; there are {}", known.join(", "));
                return Err(refused(&why));
            }
            let value = input.shift_remove(key).unwrap_or_default();
            self.set(option, &value).map_err(|why| refused(&why))?;
        }
        Ok(!ours.is_empty())
    }

    fn set(&mut self, key: &str, value: &Value) -> Result<(), String> {
        if value.is_null() {
            return Ok(());
        }
        let number = || {
            let text = value.as_str().and_then(|text| text.trim().parse().ok());
            let number = value.as_u64().or(text).filter(|number| *number > 0);
            number.ok_or_else(|| format!("expected a positive integer, got {value}"))
        };
        let flag = || match (value, value.as_str()) {
            (Value::Bool(flag), _) => Ok(*flag),
            (_, Some("true")) => Ok(true),
            (_, Some("false")) => Ok(false),
            _ => Err(format!("expected boolean, got {value}")),
        };
        match key {
            "timeout_ms" => self.timeout_ms = Some(number()?),
            "max_tokens" => self.max_tokens = Some(number()?),
            "raw" => self.raw = flag()?,
            _ => self.dry_run = flag()?,
        }
        Ok(())
    }
}

fn unreadable(path: &str, why: &str) -> ToolError {
    ToolError::own_input(EXECUTE, path, why, SIGNATURE)
}

#[cfg(test)]
mod tests;
