//! The check of a call's arguments against its tool's input schema.

mod coerce;
mod finding;
mod violation;

use jsonschema::Validator;
use serde_json::{Map, Value};

use crate::schema::Reading;

pub use violation::Violation;

/// An input schema made ready to check arguments.
///
/// Making one costs up to milliseconds, a check that passes about one microsecond: make it when
/// it is first needed and keep it.
#[derive(Debug)]
pub struct Checker {
    ready: Option<Ready>,
}

#[derive(Debug)]
struct Ready {
    schema: Value,
    validator: Validator,
}

impl Checker {
    /// Never fails: what cannot be compiled (an unknown dialect, a reference to another document,
    /// which is never fetched) gives a checker that passes everything, for the server to judge.
    pub fn new(schema: &str) -> Self {
        let ready = serde_json::from_str(schema).ok().and_then(Ready::new);
        Self { ready }
    }

    /// Whether this checker passes everything because its schema could not be compiled.
    pub fn is_blind(&self) -> bool {
        self.ready.is_none()
    }

    /// `Ok(None)`: fine as they came. `Ok(Some)`: fine after values were read the only way the
    /// schema allows. `Err`: every violation at once.
    pub fn check(
        &self,
        arguments: &Map<String, Value>,
    ) -> Result<Option<Map<String, Value>>, Vec<Violation>> {
        let Some(ready) = &self.ready else {
            return Ok(None);
        };
        let mut value = Value::Object(arguments.clone());
        if ready.validator.is_valid(&value) {
            return Ok(None);
        }
        coerce::coerce(&ready.validator, &mut value);
        let violations = ready.violations(&value);
        match value {
            Value::Object(arguments) if violations.is_empty() => Ok(Some(arguments)),
            _ => Err(violations),
        }
    }

    /// Whether the value satisfies the schema as it is; `false` where that cannot be told.
    pub(crate) fn accepts(&self, value: &Value) -> bool {
        let ready = self.ready.as_ref();
        ready.is_some_and(|ready| ready.validator.is_valid(value))
    }
}

impl Ready {
    fn new(schema: Value) -> Option<Self> {
        // Formats are annotations by default in the newest draft, and servers differ in what they
        // take for a URI: refusing what the server would take is worse than letting it answer.
        let options = jsonschema::options()
            .offline()
            .should_validate_formats(false);
        let validator = options.build(&schema).ok()?;
        Some(Self { schema, validator })
    }

    fn violations(&self, value: &Value) -> Vec<Violation> {
        let reading = Reading::new(&self.schema);
        let errors: Vec<_> = self.validator.iter_errors(value).collect();
        violation::of_errors(&errors, &reading)
    }
}

#[cfg(test)]
mod tests;
