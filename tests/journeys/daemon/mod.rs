//! One daemon for all clients of a configuration.

mod approvals;
mod clients_apart;
mod crowd;
mod figures;
mod http;
mod limits_of_callers;
mod live_config;
mod lost_between;
mod ownership;
mod page;
mod page_people;
mod scope;
mod sharing;
mod two_clients;
mod variables;

use journeys::{
    client::Client,
    fake::Step,
    house::{House, fake},
};
use serde_json::json;

use crate::house_with_daemon;

/// Creates a house whose server echoes, and has a tool that hangs.
async fn echoing() -> House {
    let server = fake("any")
        .tool("echo", Step::Echo)
        .tool("stuck", Step::UntilCancelled);
    let house = house_with_daemon([server]);
    house.indexed().await;
    house
}

/// Creates the same house with a client that has called the server, and returns the id of the daemon.
async fn called() -> (House, Client, u32) {
    let house = echoing().await;
    let client = house.client().await;
    client.execute("any/echo", json!({})).await.good();
    let daemon = house.daemon().await;
    (house, client, daemon)
}
