//! The routes by page, and their list.

pub(crate) mod answer;
pub(crate) mod calls;
pub(crate) mod changes;
pub(crate) mod clients;
pub(crate) mod configuration;
pub(crate) mod figures;
pub(crate) mod people;
pub(crate) mod reviews;
pub(crate) mod servers;
pub(crate) mod session;
pub(crate) mod tools;

use answer::Done;
use figures::{FiguresAnswer, FiguresQuery};
use hyper::Method;

use crate::{
    hub::Message,
    routes::{Nothing, RouteTable, SESSION},
};

/// Adds every route. `openapi.json` has them in this order.
pub(crate) fn add_routes(routes: &mut RouteTable) {
    add_state(routes);
    add_servers(routes);
    add_tools(routes);
    add_calls(routes);
    add_figures(routes);
    add_configuration(routes);
}

fn add_state(routes: &mut RouteTable) {
    let about = "Describe this API";
    routes.get("/api/v1/openapi.json", about, session::describe);
    routes.post(SESSION, "Trade a code for a token", session::begin);
    let about = "End the token of this request";
    routes.add_raw::<Nothing, Nothing, Done, _>(Method::DELETE, SESSION, about, &[], session::end);
    let about = "Read the status of the daemon";
    routes.get("/api/v1/status", about, session::status);
    let about = "Read the whole state";
    routes.get("/api/v1/overview", about, session::overview);
    let (path, about) = ("/api/v1/live", "Follow the state: one message a line");
    let lines = &["application/x-ndjson"];
    routes.add_raw::<Nothing, Nothing, Message, _>(Method::GET, path, about, lines, session::live);
}

fn add_servers(routes: &mut RouteTable) {
    routes.get("/api/v1/servers", "List the servers", servers::list);
    let about = "Add a server by a recipe or an address";
    routes.post("/api/v1/servers", about, servers::add);
    let about = "Read a server in detail";
    routes.get("/api/v1/servers/{name}", about, servers::detail);
    let about = "Change a server: enable, disable, restart, reindex, or begin a login";
    routes.post("/api/v1/servers/{name}/{action}", about, servers::act);
    let about = "Propose a program as a server; a person accepts it in a terminal";
    routes.post("/api/v1/proposals", about, people::propose);
    let about = "Take a proposal, once";
    routes.post("/api/v1/proposals/{code}/take", about, people::take);
    let about = "List recipes of servers";
    routes.get("/api/v1/recipes", about, servers::recipes);
}

fn add_tools(routes: &mut RouteTable) {
    let about = "Search tools as a model does, with reasons";
    routes.get("/api/v1/tools", about, tools::search);
    let about = "Describe a tool";
    routes.get("/api/v1/tools/{server}/{tool}", about, tools::describe);
    let about = "Call a tool, or show what a call would do";
    routes.post("/api/v1/calls", about, tools::call);
    let about = "List definitions that changed since they were accepted";
    routes.get("/api/v1/reviews", about, reviews::list);
    let about = "Accept or refuse a definition";
    routes.post("/api/v1/reviews", about, reviews::decide);
}

fn add_calls(routes: &mut RouteTable) {
    let about = "List calls, the newest first";
    routes.get("/api/v1/calls", about, calls::list);
    let about = "Read a part of a cut result";
    routes.get("/api/v1/results/{handle}", about, calls::read_result);
    let about = "End a call in flight";
    routes.post("/api/v1/running/{id}/cancel", about, calls::cancel);
    let about = "List the questions that people can answer in place of clients";
    routes.get("/api/v1/questions", about, people::list);
    let about = "Answer a question in place of the client that was asked";
    routes.post("/api/v1/questions/{id}", about, people::answer);
    let about = "List the clients and what they see";
    routes.get("/api/v1/clients", about, clients::list);
    let about = "End the session of a client";
    routes.post("/api/v1/clients/{number}/end", about, clients::end);
}

fn add_figures(routes: &mut RouteTable) {
    let (path, about) = ("/api/v1/figures", "Read figures of the last days");
    let others = &["text/csv"];
    routes.add_raw::<FiguresQuery, Nothing, FiguresAnswer, _>(
        Method::GET,
        path,
        about,
        others,
        figures::read,
    );
}

fn add_configuration(routes: &mut RouteTable) {
    let about = "Read rules, mistakes and changes";
    routes.get("/api/v1/configuration", about, configuration::read);
    let about = "Test a call against the rules";
    routes.post("/api/v1/policy/test", about, configuration::test);
    routes.post("/api/v1/rules", "Add a rule", configuration::add_rule);
    let about = "Remove a rule";
    routes.post(
        "/api/v1/rules/{number}/remove",
        about,
        configuration::remove_rule,
    );
    let about = "Undo a change of the configuration";
    routes.post("/api/v1/changes/{id}/undo", about, changes::undo);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_with_another_method_says_which_it_has() {
        let mut table = RouteTable::default();
        add_routes(&mut table);
        let routes = table.into_routes();
        let status = |method: Method, path| {
            routes
                .find(&method, path)
                .err()
                .map(|it| it.status.as_u16())
        };
        assert_eq!(status(Method::GET, "/api/v1/servers"), None);
        assert_eq!(status(Method::PUT, "/api/v1/servers"), Some(405));
        assert_eq!(status(Method::OPTIONS, "/api/v1/servers"), Some(405));
        assert_eq!(status(Method::GET, "/api/v1/nothing"), Some(404));
    }
}
