//! Reads the query of an address into the type of its route.

use std::borrow::Cow;

use serde::{
    Deserializer,
    de::{
        DeserializeOwned, Error as _, IntoDeserializer, Visitor,
        value::{Error, MapDeserializer},
    },
    forward_to_deserialize_any,
};
use url::form_urlencoded;

/// Reads a query. A parameter without a value counts as missing.
pub(crate) fn read_query<Q: DeserializeOwned>(query: &str) -> Result<Q, Error> {
    let given = form_urlencoded::parse(query.as_bytes()).filter(|(_, value)| !value.is_empty());
    let members = given.map(|(name, value)| (name, QueryValue(value)));
    Q::deserialize(MapDeserializer::new(members))
}

/// The value of a parameter: a text, which may be that of a number or of a truth value.
struct QueryValue<'de>(Cow<'de, str>);

impl QueryValue<'_> {
    fn parse<T: std::str::FromStr>(&self, wanted: &str) -> Result<T, Error> {
        let refuse = |_| Error::custom(format!("`{}` is not {wanted}", self.0));
        self.0.parse().map_err(refuse)
    }
}

impl<'de> IntoDeserializer<'de> for QueryValue<'de> {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

impl<'de> Deserializer<'de> for QueryValue<'de> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_str(&self.0)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_some(self)
    }

    fn deserialize_u64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_u64(self.parse("a number")?)
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_bool(self.parse("true or false")?)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_enum(self.0.as_ref().into_deserializer())
    }

    forward_to_deserialize_any! {
        i8 i16 i32 i64 i128 u8 u16 u32 u128 f32 f64 char str string bytes byte_buf unit unit_struct
        newtype_struct seq tuple tuple_struct map struct identifier ignored_any
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, Default, PartialEq, Deserialize)]
    #[serde(deny_unknown_fields, default)]
    struct Filter {
        name: Option<String>,
        limit: Option<usize>,
        failures: Option<bool>,
        by: Option<By>,
    }

    #[derive(Debug, PartialEq, Deserialize)]
    #[serde(rename_all = "lowercase")]
    enum By {
        Day,
    }

    #[test]
    fn a_parameter_is_read_as_its_type() {
        let read = |query: &str| read_query::<Filter>(query).map_err(|error| error.to_string());
        let expected = Filter {
            name: Some("42 &".to_owned()),
            limit: Some(7),
            failures: Some(true),
            by: Some(By::Day),
        };
        assert_eq!(
            read("name=42+%26&limit=7&failures=true&by=day"),
            Ok(expected)
        );
        assert_eq!(read("name=&limit="), Ok(Filter::default()));
        assert_eq!(read("limit=-1"), Err("`-1` is not a number".to_owned()));
        for wrong in ["limit=fast", "failures=1", "by=year", "nmae=x"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
