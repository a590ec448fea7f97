//! One rule, in its written and its parsed form.

use std::{cell::LazyCell, fmt};

use printable::{FoldedText, LetterCase, Pattern};
use serde_json::{Map, Value};

use crate::{
    Effects, PolicyVerdict, RequestKind,
    arguments::{JsonNode, Pointer},
    names::CallNames,
    path,
    value_pattern::{Doubt, ValuePattern},
};

/// The keys of a rule, in the order in which they are listed.
pub const KEYS: [&str; 11] = [
    "decision",
    "client",
    "profile",
    "server",
    "tool",
    "prompt",
    "resource",
    "category",
    "annotation",
    "arguments",
    "reason",
];

/// One rule, prepared for comparison.
#[derive(Debug, Clone)]
pub struct Rule {
    /// The rule as in the configuration.
    pub(crate) written: Map<String, Value>,
    pub(crate) verdict: PolicyVerdict,
    pub(crate) reason: Option<String>,
    pub(crate) client: Patterns,
    pub(crate) profile: Patterns,
    pub(crate) server: Patterns,
    pub(crate) tool: Patterns,
    pub(crate) prompt: Patterns,
    resource: Patterns,
    pub(crate) category: Patterns,
    annotation: Option<Annotation>,
    /// If there are any, another call of the same tool may not match.
    pub(crate) arguments: Vec<(Pointer, ValuePattern)>,
    home: Option<String>,
}

/// An invalid rule, and the reason.
#[derive(Debug, PartialEq, Eq)]
pub struct Fault {
    /// The key in the rule; empty for the rule itself.
    pub key: String,
    /// A description of the fault.
    pub what: String,
    /// The next step.
    pub hint: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let colon = if self.key.is_empty() { "" } else { ": " };
        write!(f, "{}{colon}{}; {}", self.key, self.what, self.hint)
    }
}

/// The patterns of a key; none if the rule lacks the key. A match of any one of them is enough.
pub(crate) type Patterns = Option<Vec<Pattern>>;

type Annotation = fn(&Effects) -> bool;

const PATTERN_HINT: &str =
    "`*` matches any text, `?` one character, `{a,b}` either; write several as a list";
const VALUE_HINT: &str = "write a pattern, or one of `{ regex = \"...\" }`, \
     `{ inside = \"~/projects\" }`, `{ outside = [\"~/projects\", \"/tmp\"] }`";

impl Rule {
    /// Reads a rule as the configuration has it. `home` replaces `~`.
    pub fn read(written: &Map<String, Value>, home: Option<&str>) -> Result<Self, Fault> {
        if let Some(unknown) = written.keys().find(|key| !KEYS.contains(&key.as_str())) {
            let hint = format!("known keys of a rule: `{}`", KEYS.join("`, `"));
            return Err(fault(unknown, "unknown key", &hint));
        }
        let verdict = read_verdict(written)?;
        let names = |key: &str| read_patterns(written, key, Doubt::of(verdict).letter_case());
        Ok(Self {
            written: written.clone(),
            verdict,
            reason: read_text(written, "reason")?,
            client: read_patterns(written, "client", LetterCase::Ignored)?,
            profile: read_patterns(written, "profile", LetterCase::Ignored)?,
            server: read_patterns(written, "server", LetterCase::Ignored)?,
            tool: names("tool")?,
            prompt: names("prompt")?,
            resource: names("resource")?,
            category: read_patterns(written, "category", LetterCase::Ignored)?,
            annotation: read_annotation(written)?,
            arguments: read_arguments(written, verdict, home)?,
            home: home.map(str::to_owned),
        })
    }

    /// Returns true if the rule applies to this call. `arguments` are read only if the rule checks
    /// them; they are none if they cannot be read.
    pub(crate) fn fits<F: FnOnce() -> Option<JsonNode>>(
        &self,
        call: &CallNames<'_>,
        arguments: &LazyCell<Option<JsonNode>, F>,
    ) -> bool {
        self.fits_client(call)
            && self.fits_any_call(call)
            && (self.arguments.is_empty() || self.fits_arguments(arguments.as_ref()))
    }

    /// Returns true if the rule applies to the client of the call, and to a profile of its session.
    pub(crate) fn fits_client(&self, call: &CallNames<'_>) -> bool {
        let mut profiles = call.profiles.iter();
        fits_any(&self.client, &call.client)
            && (self.profile.is_none() || profiles.any(|it| fits_any(&self.profile, it)))
    }

    /// Returns true if the rule applies to calls by any client.
    pub(crate) fn is_for_all_clients(&self) -> bool {
        let clients = self.client.as_ref();
        let is_for_all = clients.is_none_or(|list| list.iter().any(Pattern::matches_all));
        is_for_all && self.profile.is_none()
    }

    /// Returns true if the rule applies to this call, without regard to client and arguments.
    pub(crate) fn fits_any_call(&self, call: &CallNames<'_>) -> bool {
        fits_any(&self.server, &call.server)
            && fits_any(&self.category, &call.category)
            && self.fits_name(call)
            && self.annotation.is_none_or(|fits| fits(&call.effects))
    }

    /// Returns true if the name matches. A rule that names tools applies to tools; one without names
    /// applies to everything.
    fn fits_name(&self, call: &CallNames<'_>) -> bool {
        let names_any = [&self.tool, &self.prompt, &self.resource];
        if names_any.iter().all(|it| it.is_none()) {
            return true;
        }
        let patterns = match call.kind {
            RequestKind::Tool => &self.tool,
            RequestKind::Prompt => &self.prompt,
            RequestKind::Resource => &self.resource,
        };
        let fits = |pattern: &Pattern| {
            let mut spellings = call.spellings.iter();
            match (call.kind, Doubt::of(self.verdict)) {
                (RequestKind::Tool | RequestKind::Prompt, _) => {
                    pattern.matches_folded(&call.name) || pattern.matches_folded(&call.full)
                }
                (RequestKind::Resource, Doubt::Fits) => {
                    pattern.matches_folded(&call.name)
                        || spellings.any(|spelling| pattern.matches_folded(spelling))
                        || call.may_be_any_file && is_of_files(pattern)
                }
                (RequestKind::Resource, Doubt::FitsNot) => {
                    pattern.matches_folded(&call.name)
                        && (pattern.is_exact()
                            || spellings.all(|spelling| pattern.matches_folded(spelling)))
                }
            }
        };
        patterns.as_ref().is_some_and(|list| list.iter().any(fits))
    }

    fn fits_arguments(&self, arguments: Option<&JsonNode>) -> bool {
        let doubt = Doubt::of(self.verdict);
        let Some(node) = arguments else {
            return doubt == Doubt::Fits;
        };
        let home = self.home.as_deref();
        self.arguments.iter().all(|(pointer, pattern)| {
            let (mut any_fits, mut all_fit, mut any_is_sure) = (false, true, false);
            pointer.find(node, &mut |found| {
                let fits = pattern.fits(found.value, found.is_text, home, doubt);
                any_fits |= fits;
                all_fit &= fits;
                any_is_sure |= found.is_sure;
            });
            match doubt {
                Doubt::Fits => any_fits,
                Doubt::FitsNot => any_is_sure && all_fit,
            }
        })
    }
}

/// Returns true for a pattern of addresses of files.
fn is_of_files(pattern: &Pattern) -> bool {
    let scheme = pattern.as_str().get(.."file:".len());
    scheme.is_some_and(|scheme| scheme.eq_ignore_ascii_case("file:"))
}

pub(crate) fn fits_any(patterns: &Patterns, text: &FoldedText<'_>) -> bool {
    let patterns = patterns.as_ref();
    patterns.is_none_or(|list| list.iter().any(|pattern| pattern.matches_folded(text)))
}

pub(crate) fn fault(key: &str, what: &str, hint: &str) -> Fault {
    Fault {
        key: key.to_owned(),
        what: what.to_owned(),
        hint: hint.to_owned(),
    }
}

fn read_text(written: &Map<String, Value>, key: &str) -> Result<Option<String>, Fault> {
    let hint = "write a text in quotes, or remove the key";
    match written.get(key) {
        None => Ok(None),
        Some(Value::String(text)) if !text.trim().is_empty() => Ok(Some(text.clone())),
        Some(_) => Err(fault(key, "expected text", hint)),
    }
}

fn read_verdict(written: &Map<String, Value>) -> Result<PolicyVerdict, Fault> {
    let text = read_text(written, "decision")?;
    let hint = "write `decision = \"allow\"`, `\"ask\"` or `\"deny\"`";
    let Some(text) = text else {
        return Err(fault("", "the rule has no decision", hint));
    };
    let mut verdicts = PolicyVerdict::ALL.into_iter();
    let verdict = verdicts.find(|it| it.as_str() == text);
    verdict.ok_or_else(|| fault("decision", "unknown decision", hint))
}

fn read_annotation(written: &Map<String, Value>) -> Result<Option<Annotation>, Fault> {
    let hint = "write `\"destructive\"`, `\"read-only\"` or `\"open-world\"`";
    let Some(text) = read_text(written, "annotation")? else {
        return Ok(None);
    };
    let annotation: Annotation = match text.as_str() {
        "destructive" => |it| it.is_destructive,
        "read-only" => |it| it.is_read_only,
        "open-world" => |it| it.is_open_world,
        _ => return Err(fault("annotation", "unknown annotation", hint)),
    };
    Ok(Some(annotation))
}

/// Reads one text, or a list of texts that is not empty.
pub(crate) fn read_texts(value: &Value) -> Option<Vec<&str>> {
    let texts = match value {
        Value::String(text) => vec![text.as_str()],
        Value::Array(items) => items.iter().map(Value::as_str).collect::<Option<_>>()?,
        _ => return None,
    };
    let is_good = !texts.is_empty() && texts.iter().all(|text| !text.is_empty());
    is_good.then_some(texts)
}

pub(crate) fn read_patterns(
    written: &Map<String, Value>,
    key: &str,
    case: LetterCase,
) -> Result<Patterns, Fault> {
    let Some(value) = written.get(key) else {
        return Ok(None);
    };
    let texts = read_texts(value).ok_or_else(|| fault(key, "expected a pattern", PATTERN_HINT))?;
    let read = |text: &str| Pattern::new(text, case);
    let patterns = texts.into_iter().map(read).collect::<Result<_, _>>();
    let no_pattern = |why: String| fault(key, &format!("not a pattern: {why}"), PATTERN_HINT);
    patterns.map(Some).map_err(no_pattern)
}

fn read_arguments(
    written: &Map<String, Value>,
    verdict: PolicyVerdict,
    home: Option<&str>,
) -> Result<Vec<(Pointer, ValuePattern)>, Fault> {
    let Some(value) = written.get("arguments") else {
        return Ok(Vec::new());
    };
    let hint =
        "write `arguments = { \"/path\" = \"*.key\" }`: a place in the arguments, and a pattern";
    let table = value.as_object().filter(|table| !table.is_empty());
    let table = table.ok_or_else(|| fault("arguments", "expected a table", hint))?;
    let read = |(place, value): (&String, &Value)| {
        let key = format!("arguments.\"{place}\"");
        let begin = "begin it with `/`, such as `/path`";
        let pointer = Pointer::parse(place);
        let pointer = pointer.ok_or_else(|| fault(&key, "not a JSON pointer", begin))?;
        let pattern = read_value_pattern(value, Doubt::of(verdict), home)
            .map_err(|what| fault(&key, &what, VALUE_HINT))?;
        Ok((pointer, pattern))
    };
    table.iter().map(read).collect()
}

fn read_value_pattern(
    value: &Value,
    doubt: Doubt,
    home: Option<&str>,
) -> Result<ValuePattern, String> {
    let expected = || "expected a pattern".to_owned();
    if let Some(text) = value.as_str() {
        return ValuePattern::glob(text, home, doubt);
    }
    let table = value.as_object().filter(|table| table.len() == 1);
    let (kind, value) = table
        .and_then(|table| table.iter().next())
        .ok_or_else(expected)?;
    let texts = read_texts(value).ok_or_else(expected)?;
    let folder = |text: &&str| {
        let folder = path::resolve_folder(text, home);
        folder.ok_or_else(|| format!("`{text}` is neither absolute nor begins with `~`"))
    };
    let folders = || texts.iter().map(folder).collect::<Result<Vec<_>, _>>();
    match (kind.as_str(), texts.as_slice()) {
        ("regex", [one]) => ValuePattern::regex(one, doubt),
        ("inside", _) => folders().map(ValuePattern::Inside),
        ("outside", _) => folders().map(ValuePattern::Outside),
        _ => Err(expected()),
    }
}
