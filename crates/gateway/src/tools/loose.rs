//! Arguments of our own tools, read as loosely as models write them.

use jsonrpc::without_lone_surrogates;
use serde_json::{Map, Value, value::RawValue};

/// An argument object; any other value reads as an empty object.
#[derive(Debug, Default)]
pub(super) struct Loose(Map<String, Value>);

impl Loose {
    pub(super) fn read(arguments: Option<&RawValue>) -> Self {
        let value = arguments.map(|raw| serde_json::from_str(&without_lone_surrogates(raw.get())));
        match value {
            Some(Ok(Value::Object(map))) => Self(map),
            Some(Ok(Value::String(text))) => {
                let map = serde_json::from_str(&without_lone_surrogates(&text));
                Self(map.unwrap_or_default())
            }
            _ => Self::default(),
        }
    }

    /// The first of `keys` that has a value.
    pub(super) fn get(&self, keys: &[&str]) -> Option<&Value> {
        let values = keys.iter().filter_map(|key| self.0.get(*key));
        values.into_iter().find(|value| !value.is_null())
    }

    /// A text; a number or a boolean is converted to text.
    pub(super) fn text(&self, keys: &[&str]) -> Option<String> {
        let text = match self.get(keys)? {
            Value::String(text) => text.trim().to_owned(),
            Value::Number(number) => number.to_string(),
            Value::Bool(flag) => flag.to_string(),
            _ => return None,
        };
        (!text.is_empty()).then_some(text)
    }

    pub(super) fn number(&self, keys: &[&str]) -> Option<usize> {
        let value = self.get(keys)?;
        let of_text = || value.as_str()?.trim().parse::<f64>().ok();
        let number = value.as_f64().or_else(of_text)?;
        // Saturates below zero and past the end, which the callers clamp further.
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "saturates"
        )]
        Some(number as usize)
    }

    /// A list of texts; a single text is parsed as a JSON list, or is the only element.
    pub(super) fn texts(&self, keys: &[&str]) -> Option<Vec<String>> {
        let of_list = |list: &[Value]| {
            let texts = list.iter().filter_map(Value::as_str);
            texts.map(str::to_owned).collect()
        };
        match self.get(keys)? {
            Value::Array(list) => Some(of_list(list)),
            Value::String(text) if text.trim_start().starts_with('[') => {
                match serde_json::from_str(text) {
                    Ok(Value::Array(list)) => Some(of_list(&list)),
                    _ => Some(vec![text.clone()]),
                }
            }
            Value::String(text) => Some(vec![text.clone()]),
            _ => None,
        }
    }
}
