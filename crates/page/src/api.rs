//! The routes by page, and their list.

pub(crate) mod answer;
pub(crate) mod calls;
pub(crate) mod changes;
pub(crate) mod clients;
pub(crate) mod configuration;
pub(crate) mod people;
pub(crate) mod servers;
pub(crate) mod session;
pub(crate) mod tools;

use hyper::Method;

use self::answer::Object;
use crate::{
    hub::Message,
    reply::{JSON, LINES},
    routes::{Nothing, RouteTable, SESSION},
};

fn get(path: &'static str) -> (Method, &'static str) {
    (Method::GET, path)
}

fn post(path: &'static str) -> (Method, &'static str) {
    (Method::POST, path)
}

/// Adds every route. `openapi.json` has them in this order.
pub(crate) fn add_routes(routes: &mut RouteTable) {
    add_state(routes);
    add_servers(routes);
    add_tools(routes);
    add_calls(routes);
    add_configuration(routes);
}

fn add_state(routes: &mut RouteTable) {
    let (openapi, about) = (get("/api/v1/openapi.json"), "Describe this API");
    routes.add_raw::<Nothing, Nothing, Object, _>(openapi, about, JSON, session::describe);
    routes.add(post(SESSION), "Trade a code for a token", session::begin);
    let about = "End the token of this request";
    routes.add((Method::DELETE, SESSION), about, session::end);
    let about = "Read the status of the daemon";
    routes.add_blocking(get("/api/v1/status"), about, |it| Ok(session::status(&it)));
    let (live, about) = (get("/api/v1/live"), "Follow the state: one message a line");
    routes.add_raw::<Nothing, Nothing, Message, _>(live, about, LINES, session::live);
}

fn add_servers(routes: &mut RouteTable) {
    let about = "List the servers";
    routes.add_blocking(get("/api/v1/servers"), about, |it| Ok(servers::list(&it)));
    let about = "Add a server by a recipe or an address";
    routes.add(post("/api/v1/servers"), about, servers::add);
    let about = "Read a server in detail";
    routes.add(get("/api/v1/servers/{name}"), about, servers::detail);
    let about = "Change a server: enable, disable, restart, reindex, or begin a login";
    routes.add(post("/api/v1/servers/{name}/{action}"), about, servers::act);
    let about = "List recipes of servers";
    routes.add(get("/api/v1/recipes"), about, servers::recipes);
}

fn add_tools(routes: &mut RouteTable) {
    let about = "Search tools as a model does, with reasons";
    routes.add(get("/api/v1/tools"), about, tools::search);
    let about = "Describe a tool";
    routes.add(get("/api/v1/tools/{server}/{tool}"), about, tools::describe);
    let (forbid, about) = (
        post("/api/v1/tools/{server}/{tool}/forbid"),
        "Forbid a tool, for a client or for all, by a rule before all others",
    );
    routes.add_blocking(forbid, about, tools::forbid);
    let about = "Call a tool, or show what a call would do";
    routes.add(post("/api/v1/calls"), about, tools::call);
    let about = "List definitions that changed since they were accepted";
    routes.add_blocking(get("/api/v1/reviews"), about, |call| people::reviews(&call));
    let about = "Accept or refuse a definition";
    routes.add_blocking(post("/api/v1/reviews"), about, people::decide_reviews);
}

fn add_calls(routes: &mut RouteTable) {
    let about = "List calls, the newest first";
    routes.add_blocking(get("/api/v1/calls"), about, calls::list);
    let about = "Read a part of a cut result";
    routes.add(get("/api/v1/results/{handle}"), about, calls::read_result);
    let about = "End a call in flight";
    routes.add(post("/api/v1/running/{id}/cancel"), about, calls::cancel);
    let about = "List the questions that people can answer in place of clients";
    routes.add(get("/api/v1/questions"), about, people::questions);
    let about = "Answer a question in place of the client that was asked";
    routes.add(post("/api/v1/questions/{id}"), about, people::answer);
    let about = "List the clients and what they see";
    routes.add_blocking(get("/api/v1/clients"), about, |it| Ok(clients::list(&it)));
    let about = "End the session of a client";
    routes.add(post("/api/v1/clients/{number}/end"), about, clients::end);
    let about = "Read figures of the last days";
    routes.add(get("/api/v1/figures"), about, calls::figures);
}

fn add_configuration(routes: &mut RouteTable) {
    let (read, about) = (
        get("/api/v1/configuration"),
        "Read rules, quotas, mistakes and changes",
    );
    routes.add_blocking(read, about, |it| configuration::read(&it));
    let about = "Test a call against the rules";
    routes.add(post("/api/v1/policy/test"), about, configuration::test);
    let (undo, about) = (
        post("/api/v1/changes/{id}/undo"),
        "Undo a change of the configuration",
    );
    routes.add_blocking(undo, about, |it| changes::undo(&it));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::routes::find_route;

    #[test]
    fn a_path_with_another_method_says_which_it_has() {
        let mut table = RouteTable::default();
        add_routes(&mut table);
        let status = |method: Method, path| {
            let found = find_route(&table.list, &method, path);
            found.err().map(|it| it.status.as_u16())
        };
        assert_eq!(status(Method::GET, "/api/v1/servers"), None);
        assert_eq!(status(Method::PUT, "/api/v1/servers"), Some(405));
        assert_eq!(status(Method::OPTIONS, "/api/v1/servers"), Some(405));
        assert_eq!(status(Method::GET, "/api/v1/nothing"), Some(404));
    }
}
