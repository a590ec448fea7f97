//! `openapi.json`, made from the table of routes.

use hyper::Method;
use schemars::Schema;
use serde_json::{Map, Value, json};

use crate::{
    error::ErrorBody,
    routes::{Route, RouteTable, SESSION},
};

/// Describes all routes (`OpenAPI` 3.1).
pub(crate) fn describe(table: &mut RouteTable) -> Value {
    let error = table.generator.subschema_for::<ErrorBody>();
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
            "schemas": table.generator.definitions(),
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
            "200": {"description": "Done.", "content": {route.kind: {"schema": route.answer}}},
            "default": {
                "description": "The error, with the next step.",
                "content": {"application/json": {"schema": error}},
            },
        },
    });
    if let Some(body) = &route.body {
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
    let properties = route.query.get("properties").and_then(Value::as_object);
    let in_query = properties.into_iter().flatten().map(|(name, schema)| {
        let mut schema = schema.clone();
        let about = schema
            .as_object_mut()
            .and_then(|it| it.remove("description"));
        json!({"name": name, "in": "query", "description": about, "schema": schema})
    });
    in_path.chain(in_query).collect()
}
