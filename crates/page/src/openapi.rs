//! `openapi.json`: a file beside this crate, so that the program needs no schemas at run time. The test at
//! the end, with the feature `schema`, makes it from the table of routes:
//! `PROXY_WRITE_DOCS=1 cargo test -p page --features schema openapi`.

/// The description of all routes.
pub(crate) const OPENAPI: &[u8] = include_bytes!("../openapi.json");

#[cfg(feature = "schema")]
pub(crate) use schemars::JsonSchema as Documented;

/// A type of the API, which has a schema with the feature `schema`.
#[cfg(not(feature = "schema"))]
pub(crate) trait Documented {}

#[cfg(not(feature = "schema"))]
impl<T> Documented for T {}

/// Makes the description.
#[cfg(all(test, feature = "schema"))]
pub(crate) mod schema {
    use hyper::Method;
    use schemars::{JsonSchema, Schema, SchemaGenerator, generate::SchemaSettings};
    use serde_json::{Map, Value, json};

    use crate::{
        error::ErrorBody,
        routes::{Route, RouteTable, SESSION},
    };

    /// The schemas of the types of a route.
    pub(crate) struct Schemas {
        query: Schema,
        body: Option<Schema>,
        answer: Schema,
    }

    /// Collects the definitions of all types.
    pub(crate) struct Generator(SchemaGenerator);

    impl Default for Generator {
        fn default() -> Self {
            let settings = SchemaSettings::draft2020_12()
                .with(|it| it.definitions_path = "/components/schemas".into());
            Self(settings.into_generator())
        }
    }

    impl Generator {
        pub(crate) fn describe<Q: JsonSchema, B: JsonSchema, A: JsonSchema>(
            &mut self,
            has_body: bool,
        ) -> Schemas {
            // A parameter has no definitions of its own.
            let inline = SchemaSettings::draft2020_12().with(|it| it.inline_subschemas = true);
            Schemas {
                query: inline.into_generator().into_root_schema_for::<Q>(),
                body: has_body.then(|| self.0.subschema_for::<B>()),
                answer: self.0.subschema_for::<A>(),
            }
        }
    }

    /// Describes all routes (`OpenAPI` 3.1).
    pub(crate) fn describe(table: &mut RouteTable) -> Value {
        let error = table.generator.0.subschema_for::<ErrorBody>();
        let mut paths = Map::new();
        for route in &table.list {
            let path = paths.entry(route.path).or_insert_with(|| json!({}));
            path[route.method.as_str().to_ascii_lowercase()] = describe_route(route, &error);
        }
        json!({
            "openapi": "3.1.0",
            "info": {
                "title": "proxy",
                "version": env!("CARGO_PKG_VERSION"),
                "description": "The API of the web page of a daemon. `proxy web` gives the code that POST /api/v1/session trades for a token.",
            },
            "paths": paths,
            "components": {
                "schemas": table.generator.0.definitions(),
                "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
            },
            "security": [{"token": []}],
        })
    }

    fn describe_route(route: &Route, error: &Schema) -> Value {
        let mut operation = json!({
            "summary": route.about,
            "parameters": parameters(route),
            "responses": {
                "200": {"description": "Done.", "content": {route.kind: {"schema": route.schemas.answer}}},
                "default": {
                    "description": "The error, with the next step.",
                    "content": {"application/json": {"schema": error}},
                },
            },
        });
        if let Some(body) = &route.schemas.body {
            operation["requestBody"] =
                json!({"required": true, "content": {"application/json": {"schema": body}}});
        }
        if route.path == SESSION && route.method == Method::POST {
            operation["security"] = json!([]);
        }
        operation
    }

    fn parameters(route: &Route) -> Vec<Value> {
        let segments = route.path.split('/');
        let names = segments.filter_map(|it| it.strip_prefix('{')?.strip_suffix('}'));
        let in_path = names.map(|name| {
            json!({"name": name, "in": "path", "required": true, "schema": {"type": "string", "minLength": 1}})
        });
        let properties = route
            .schemas
            .query
            .get("properties")
            .and_then(Value::as_object);
        let in_query = properties.into_iter().flatten().map(|(name, schema)| {
            let mut schema = schema.clone();
            let about = schema
                .as_object_mut()
                .and_then(|it| it.remove("description"));
            json!({"name": name, "in": "query", "description": about, "schema": schema})
        });
        in_path.chain(in_query).collect()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::{api::add_routes, routes::RouteTable};

    fn table() -> RouteTable {
        let mut table = RouteTable::default();
        add_routes(&mut table);
        table
    }

    #[test]
    fn openapi_has_every_route() {
        let openapi: Value = serde_json::from_slice(OPENAPI).unwrap();
        let routes = table().list;
        for route in &routes {
            let method = route.method.as_str().to_ascii_lowercase();
            let operation = &openapi["paths"][route.path][method];
            assert_eq!(operation["summary"], route.about, "{}", route.path);
            assert!(operation["responses"]["200"]["content"][route.kind].is_object());
        }
        let paths = openapi["paths"].as_object().unwrap().values();
        let operations = paths.map(|path| path.as_object().unwrap().len());
        assert_eq!(operations.sum::<usize>(), routes.len());
    }

    #[cfg(feature = "schema")]
    #[test]
    fn openapi_has_the_schemas_of_the_types() {
        let made = schema::describe(&mut table());
        let made = format!("{}\n", serde_json::to_string_pretty(&made).unwrap());
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/openapi.json");
        if std::env::var_os("PROXY_WRITE_DOCS").is_some() {
            std::fs::write(file, &made).unwrap();
        }
        let kept = std::fs::read_to_string(file).unwrap();
        assert!(kept == made, "write it again: see the head of openapi.rs");
    }
}
