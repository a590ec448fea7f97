//! The routes by page, and their list.

pub(crate) mod calls;
pub(crate) mod changes;
pub(crate) mod clients;
pub(crate) mod configuration;
pub(crate) mod figures;
pub(crate) mod reviews;
pub(crate) mod servers;
pub(crate) mod session;
pub(crate) mod tools;

use hyper::Method;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use crate::{
    live::Message,
    routes::{Nothing, RouteTable},
};

/// A change was made.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub(crate) struct Done {
    /// One sentence.
    pub(crate) message: String,
    /// The number with which the change can be undone.
    pub(crate) undo: Option<u64>,
    /// The differing lines of the configuration.
    pub(crate) diff: Option<String>,
    /// The name of a new server.
    pub(crate) name: Option<String>,
}

impl Done {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            ..Self::default()
        }
    }
}

/// Any JSON object, as another part of the program writes it.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(transparent)]
pub(crate) struct Object(#[schemars(with = "serde_json::Map<String, Value>")] pub(crate) Value);

/// Adds every route. `openapi.json` has them in this order.
pub(crate) fn add_routes(routes: &mut RouteTable) {
    routes.get("/api/v1/openapi.json", "Describe this API", session::describe);
    routes.post(crate::routes::SESSION, "Trade a code for a token", session::begin);
    routes.add_raw::<Nothing, Nothing, Done, _>(
        Method::DELETE,
        crate::routes::SESSION,
        "End the token of this request",
        &[],
        session::end,
    );
    routes.get("/api/v1/overview", "Read the whole state", session::overview);
    let live = &["application/x-ndjson"];
    let about = "Follow the state: one message a line";
    routes.add_raw::<Nothing, Nothing, Message, _>(Method::GET, "/api/v1/live", about, live, session::live);
    routes.get("/api/v1/servers", "List the servers", servers::list);
    routes.post("/api/v1/servers", "Add a server by a recipe or an address", servers::add);
    routes.get("/api/v1/servers/{name}", "Read a server in detail", servers::detail);
    let about = "Change a server: enable, disable, restart, reindex";
    routes.post("/api/v1/servers/{name}/{action}", about, servers::act);
    routes.get("/api/v1/recipes", "List recipes of servers", servers::recipes);
    routes.get("/api/v1/tools", "Search tools as a model does, with reasons", tools::search);
    routes.get("/api/v1/tools/{server}/{tool}", "Describe a tool", tools::describe);
    routes.post("/api/v1/calls", "Call a tool, or show what a call would do", tools::call);
    routes.get("/api/v1/reviews", "List definitions that changed since they were accepted", reviews::list);
    routes.post("/api/v1/reviews", "Accept or refuse a definition", reviews::decide);
    routes.get("/api/v1/calls", "List calls, the newest first", calls::list);
    routes.get("/api/v1/results/{handle}", "Read a part of a cut result", calls::read_result);
    routes.post("/api/v1/running/{id}/cancel", "End a call in flight", calls::cancel);
    routes.get("/api/v1/clients", "List the clients and what they see", clients::list);
    routes.post("/api/v1/clients/{number}/end", "End the session of a client", clients::end);
    routes.add_raw::<figures::FiguresQuery, Nothing, Object, _>(
        Method::GET,
        "/api/v1/figures",
        "Read figures of the last days",
        &["text/csv"],
        figures::read,
    );
    routes.get("/api/v1/configuration", "Read rules, mistakes and changes", configuration::read);
    routes.post("/api/v1/policy/test", "Test a call against the rules", configuration::test);
    routes.post("/api/v1/rules", "Add a rule", configuration::add_rule);
    routes.post("/api/v1/rules/{number}/remove", "Remove a rule", configuration::remove_rule);
    routes.post("/api/v1/changes/{id}/undo", "Undo a change of the configuration", changes::undo);
}
