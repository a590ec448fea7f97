//! Clients, and what they see.

use daemon::status::{ClientStatus, describe_client, policy_of};
use serde::Serialize;

use super::answer::Done;
use crate::{
    error::ApiError,
    routes::{Call, Nothing},
};

/// The connected clients.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct Clients {
    clients: Vec<SeeingClient>,
}

#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct SeeingClient {
    #[serde(flatten)]
    client: ClientStatus,
    /// The servers whose tools it finds.
    servers: Vec<String>,
    /// The largest part of a result that it gets at once.
    max_result_tokens: u64,
}

pub(crate) fn list(call: &Call<Nothing, Nothing>) -> Clients {
    let gateway = &call.page.daemon.gateway;
    let settings = gateway.settings();
    let catalog = gateway.catalog.registry.catalog();
    let clients = gateway.clients.list().into_iter();
    let clients = clients.filter(|it| it.connection.transport != "shell");
    let clients = clients.map(|client| {
        let policy = policy_of(&settings, &client);
        let seen = catalog.servers.iter();
        let seen = seen.filter(|it| policy.sees(&it.name, &it.category));
        SeeingClient {
            client: describe_client(&settings, &client),
            servers: seen.map(|it| it.name.to_string()).collect(),
            max_result_tokens: policy.max_tokens(None, settings.results.max_tokens),
        }
    });
    Clients {
        clients: clients.collect(),
    }
}

pub(crate) async fn end(call: Call<Nothing, Nothing>) -> Result<Done, ApiError> {
    let number = call.path[0].parse().ok();
    let ended = number.and_then(|number| call.page.daemon.gateway.clients.end(number));
    match ended {
        Some(name) => Ok(Done::new(format!("the session of {name} has ended"))),
        None => Err(ApiError::not_found("the client is gone")),
    }
}
