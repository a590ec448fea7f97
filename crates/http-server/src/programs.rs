//! The two routes of the API that programs with a token of ours may read: the search and the
//! description of tools, as JSON.

use std::sync::Arc;

use gateway::{
    Audience, Connection, Gateway, ToolError, describe_as_json, policy::ClientPolicy, search_json,
};
use hyper::{Response, StatusCode, http::request::Parts};
use registry::Query;
use serde_json::{Value, json};
use url::form_urlencoded;

use super::{
    body::{Body, JSON},
    guarding::Admitted,
};

/// The path of the search; that of a description continues with `/SERVER/TOOL`.
pub(super) const TOOLS: &str = "/api/v1/tools";

/// The hits of one answer if the query does not say.
const HITS_DEFAULT: usize = 20;

/// Answers a search or a description, for the program of this token.
pub(super) async fn read_tools(
    gateway: &Arc<Gateway>,
    head: &Parts,
    admitted: Option<&Admitted>,
) -> Response<Body> {
    let rule = admitted.map(|it| it.rule.as_deref().unwrap_or(&it.name));
    let connection = Connection {
        caller: admitted.map(|it| Arc::clone(&it.caller)),
        transport: "http",
        ..Connection::default()
    };
    let clients = &gateway.settings().clients;
    let policy = clients.of_connection(&connection, rule);
    let path = head.uri.path().strip_prefix(TOOLS).unwrap_or_default();
    let answer = match path.trim_start_matches('/') {
        "" => search(gateway, head.uri.query().unwrap_or_default(), &policy).await,
        name => describe_as_json(&gateway.catalog, &decode(name), &policy).await,
    };
    let (status, json) = match answer {
        Ok(json) => (StatusCode::OK, json),
        Err(error) => {
            let status = match error.code() {
                "invalid_input" => StatusCode::BAD_REQUEST,
                "denied" => StatusCode::FORBIDDEN,
                "unknown_tool" | "ambiguous_tool" => StatusCode::NOT_FOUND,
                _ => StatusCode::BAD_GATEWAY,
            };
            let message = error.text_for(Audience::Person);
            (
                status,
                json!({"error": {"code": error.code(), "message": message}}),
            )
        }
    };
    Body::whole(json.to_string().into()).respond(status, JSON)
}

async fn search(
    gateway: &Arc<Gateway>,
    text: &str,
    policy: &ClientPolicy,
) -> Result<Value, ToolError> {
    let mut query = Query {
        limit: HITS_DEFAULT,
        why: true,
        view: policy.view.clone(),
        ..Query::words("*")
    };
    for (name, value) in form_urlencoded::parse(text.as_bytes()) {
        match &*name {
            "query" => query.asked = Query::words(&*value).asked,
            "category" => query.category = Some(value.into_owned()),
            "tag" => query.tags.push(value.into_owned()),
            "limit" => query.limit = value.parse().unwrap_or(HITS_DEFAULT),
            "offset" => query.offset = value.parse().unwrap_or(0),
            _ => {}
        }
    }
    gateway.survey_new().await;
    let answer = gateway.catalog.search(query, None).await?;
    Ok(search_json(&gateway.catalog, &answer))
}

fn decode(path: &str) -> String {
    let form = format!("v={}", path.replace('+', "%2B").replace('&', "%26"));
    let value = form_urlencoded::parse(form.as_bytes()).next();
    value.map_or_else(String::new, |(_, value)| value.into_owned())
}
