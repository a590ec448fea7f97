//! Describes a long text in one line.

use std::collections::BTreeMap;

use printable::{count_of, group_digits};
use serde::{
    Deserialize, Deserializer,
    de::{DeserializeSeed, IgnoredAny, MapAccess, SeqAccess, Visitor},
};
use serde_json::value::RawValue;

use crate::{
    TextKind, TextPiece,
    kind::{found_in, heading, level},
};

/// The most keys, columns, headings or files that are listed.
const NAMES_MAX: usize = 12;

/// The longest name, in characters.
const NAME_CHARS_MAX: usize = 40;

/// The items of an array whose keys are read.
const ITEMS_SEEN: usize = 50;

/// Describes the kind and the amount of the text: `847 items of {id, title, labels[]}`.
pub fn describe_shape(piece: &TextPiece<'_>) -> String {
    let text = piece.text;
    let lines = || count_of(count_lines(text), "line");
    match piece.kind {
        TextKind::Json => of_json(text).unwrap_or_else(|| "JSON".to_owned()),
        TextKind::JsonLines => of_json_lines(text),
        TextKind::Table(delimiter) => of_table(text, delimiter),
        TextKind::Markdown => format!("{} of Markdown{}", lines(), headings(text)),
        TextKind::Log => format!("{} of log{}", lines(), levels(text)),
        TextKind::Search => of_search(text),
        TextKind::Code => format!("{} of code", lines()),
        TextKind::Binary => of_binary(text),
        TextKind::Text if text.contains('\n') => lines(),
        TextKind::Text => format!(
            "1 line of {} characters",
            group_digits(text.chars().count())
        ),
    }
}

/// Counts the items of a text: those of the longest array of JSON, or the lines of any other text.
pub fn count_items(piece: &TextPiece<'_>) -> usize {
    if piece.kind != TextKind::Json {
        return count_lines(piece.text);
    }
    let whole = Value::read(piece.text).unwrap_or_default();
    let longest = || whole.members.iter().filter_map(|(_, it)| it.items).max();
    whole.items.or_else(longest).unwrap_or(1)
}

/// Counts the lines of a text; the last one may lack its end.
pub fn count_lines(text: &str) -> usize {
    let ends = memchr::memchr_iter(b'\n', text.as_bytes()).count();
    ends + usize::from(!text.is_empty() && !text.ends_with('\n'))
}

fn name(name: &str) -> String {
    printable::one_line_of(name, NAME_CHARS_MAX)
}

/// Lists the first names, with `…` if there are more.
fn list(mut names: impl Iterator<Item = String>) -> String {
    let mut first: Vec<String> = names.by_ref().take(NAMES_MAX).collect();
    if names.next().is_some() {
        first.push("…".to_owned());
    }
    first.join(", ")
}

/// A value of JSON, some levels deep.
#[derive(Default)]
struct Value {
    /// `[]` for an array, `{}` for an object.
    mark: &'static str,
    /// The number of all items of an array.
    items: Option<usize>,
    /// The first members of an object, or of the objects in an array, in order.
    members: Vec<(String, Value)>,
}

fn of_json(text: &str) -> Option<String> {
    let whole = Value::read(text)?;
    if let Some(items) = whole.items {
        return Some(format!("{}{}", count_of(items, "item"), whole.of_keys()));
    }
    let widest = whole.members.iter().max_by_key(|(_, value)| value.items);
    let widest = widest.map(|(key, _)| key);
    let members = whole.members.iter().map(|(key, value)| match value.items {
        Some(items) => {
            let of_keys = widest.filter(|it| *it == key).map(|_| value.of_keys());
            let of_keys = of_keys.unwrap_or_default();
            format!("{}[{}]{of_keys}", name(key), group_digits(items))
        }
        None => format!("{}{}", name(key), value.mark),
    });
    Some(format!("object {{{}}}", list(members)))
}

impl Value {
    /// Reads an array or an object in one pass.
    fn read(text: &str) -> Option<Self> {
        let level = match text.trim_start().as_bytes().first()? {
            b'[' => Level::Array,
            b'{' => Level::Whole,
            _ => return None,
        };
        let mut json = serde_json::Deserializer::from_str(text);
        let value = level.deserialize(&mut json).ok()?;
        json.end().ok()?;
        Some(value)
    }

    /// Lists the keys of the items that are objects.
    fn of_keys(&self) -> String {
        if self.members.is_empty() {
            return String::new();
        }
        let keys = self.members.iter();
        let keys = keys.map(|(key, value)| format!("{}{}", name(key), value.mark));
        format!(" of {{{}}}", list(keys))
    }
}

/// The place of a value in the whole: an object, an array in it, an item of that array, a member of that
/// item. The content of a member is not read.
#[derive(Clone, Copy, PartialEq)]
enum Level {
    Whole,
    Array,
    Item,
    Member,
}

impl<'de> DeserializeSeed<'de> for Level {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        if self != Self::Member {
            return deserializer.deserialize_any(self);
        }
        let mark = mark_of(<&RawValue>::deserialize(deserializer)?.get());
        Ok(Value {
            mark,
            ..Value::default()
        })
    }
}

impl<'de> Visitor<'de> for Level {
    type Value = Value;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("any JSON")
    }

    fn visit_bool<E>(self, _: bool) -> Result<Value, E> {
        Ok(Value::default())
    }

    fn visit_i64<E>(self, _: i64) -> Result<Value, E> {
        Ok(Value::default())
    }

    fn visit_u64<E>(self, _: u64) -> Result<Value, E> {
        Ok(Value::default())
    }

    fn visit_f64<E>(self, _: f64) -> Result<Value, E> {
        Ok(Value::default())
    }

    fn visit_str<E>(self, _: &str) -> Result<Value, E> {
        Ok(Value::default())
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::default())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let (mut members, mut count) = (Vec::<(String, Value)>::new(), 0);
        let inner = if self == Self::Array {
            Self::Item
        } else {
            Self::Member
        };
        while count < ITEMS_SEEN
            && let Some(item) = items.next_element_seed(inner)?
        {
            count += 1;
            for member in item.members {
                if members.len() <= NAMES_MAX && !members.iter().any(|(key, _)| *key == member.0) {
                    members.push(member);
                }
            }
        }
        while items.next_element::<IgnoredAny>()?.is_some() {
            count += 1;
        }
        Ok(Value {
            mark: "[]",
            items: Some(count),
            members,
        })
    }

    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<Value, A::Error> {
        let mut members = Vec::new();
        while let Some(key) = object.next_key::<String>()? {
            if members.len() > NAMES_MAX {
                object.next_value::<IgnoredAny>()?;
                continue;
            }
            let inner = if self == Self::Whole {
                Self::Array
            } else {
                Self::Member
            };
            members.push((key, object.next_value_seed(inner)?));
        }
        Ok(Value {
            mark: "{}",
            members,
            ..Value::default()
        })
    }
}

/// Returns `[]` for an array, `{}` for an object.
fn mark_of(json: &str) -> &'static str {
    match json.as_bytes().first() {
        Some(b'[') => "[]",
        Some(b'{') => "{}",
        _ => "",
    }
}

fn of_json_lines(text: &str) -> String {
    let items = text.lines().filter(|line| !line.trim().is_empty());
    let first: Vec<&str> = items.take(ITEMS_SEEN).collect();
    let value = Value::read(&format!("[{}]", first.join(","))).unwrap_or_default();
    let keys = value.of_keys();
    format!("{} of JSON{keys}", count_of(count_lines(text), "line"))
}

/// Returns the first record of a table, which usually contains the column names.
pub fn find_columns(text: &str) -> &str {
    let end = memchr::memchr(b'\n', text.as_bytes()).unwrap_or(text.len());
    text[..end].trim_end()
}

fn of_table(text: &str, delimiter: u8) -> String {
    let first = find_columns(text);
    let names = first.split(char::from(delimiter));
    let columns = names.clone().count();
    let names = list(names.map(|it| name(it.trim_matches('"'))));
    let rows = count_of(count_lines(text), "line");
    format!("{rows} of a table with {columns} columns: {names}")
}

fn headings(text: &str) -> String {
    let found = text.lines().filter_map(|line| {
        let rank = heading(line).filter(|rank| *rank <= 2)?;
        Some(name(&line[rank..]))
    });
    let found = list(found);
    if found.is_empty() {
        return found;
    }
    format!("; sections: {found}")
}

fn levels(text: &str) -> String {
    let mut counts = BTreeMap::<&str, usize>::new();
    for (level, _) in text.lines().filter_map(level) {
        *counts.entry(level).or_default() += 1;
    }
    let order = [
        "FATAL", "CRITICAL", "ERROR", "WARN", "INFO", "DEBUG", "TRACE",
    ];
    let counts = order
        .iter()
        .filter_map(|level| Some((level, counts.get(level)?)));
    let counts: Vec<String> = counts
        .map(|(level, count)| format!("{level} {}", group_digits(*count)))
        .collect();
    if counts.is_empty() {
        return String::new();
    }
    format!(": {}", counts.join(", "))
}

fn of_search(text: &str) -> String {
    let (mut files, mut total) = (Vec::<(&str, usize)>::new(), 0);
    for path in text.lines().filter_map(found_in) {
        total += 1;
        match files.last_mut() {
            Some((last, count)) if *last == path => *count += 1,
            _ => files.push((path, 1)),
        }
    }
    let places = count_of(files.len(), "file");
    let matches = count_of(total, "line");
    let named = files
        .iter()
        .map(|(path, count)| format!("{} {}", name(path), group_digits(*count)));
    format!("{matches} found in {places}: {}", list(named))
}

fn of_binary(text: &str) -> String {
    let chars = group_digits(text.len());
    let body = text.split_once(";base64,").map_or(text, |(_, body)| body);
    if !body.is_ascii() {
        return format!("binary data, {chars} bytes as text");
    }
    let digits = body
        .bytes()
        .filter(|byte| !byte.is_ascii_whitespace() && *byte != b'=');
    let bytes = group_digits(digits.count() * 3 / 4);
    format!("base64, {chars} characters, {bytes} bytes")
}
