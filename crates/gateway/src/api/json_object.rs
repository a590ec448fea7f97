//! A JSON object that a request contains.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// A JSON object as its text: numbers keep all their digits.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(try_from = "Box<RawValue>")]
pub struct JsonObject(Box<RawValue>);

impl JsonObject {
    /// Returns the text.
    pub fn get(&self) -> &str {
        self.0.get()
    }
}

impl Default for JsonObject {
    fn default() -> Self {
        Self(RawValue::from_string("{}".to_owned()).expect("it is JSON"))
    }
}

impl TryFrom<Box<RawValue>> for JsonObject {
    type Error = &'static str;

    fn try_from(text: Box<RawValue>) -> Result<Self, Self::Error> {
        if text.get().starts_with('{') {
            return Ok(Self(text));
        }
        Err("expected an object")
    }
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for JsonObject {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "JsonObject".into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        serde_json::Map::<String, serde_json::Value>::json_schema(generator)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_keeps_its_text_and_another_value_is_refused() {
        let text = r#"{"id": 12345678901234567890123, "rate": 0.1000}"#;
        let object: JsonObject = serde_json::from_str(text).unwrap();
        assert_eq!(serde_json::to_string(&object).unwrap(), text);
        assert!(serde_json::from_str::<JsonObject>("[1]").is_err());
    }
}
