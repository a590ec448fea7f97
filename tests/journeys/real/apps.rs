//! Apps of real servers, and of a hostile one, in a host in a real browser.

use std::path::Path;

use journeys::{
    house::{Fake, House},
    port::ReservedPort,
    real_apps::RealApps,
};

use super::clients::{servers, variables};
use crate::{house, house_with_daemon, programs};

/// Returns the apps, a house with their servers, the variables of the host, and its port.
async fn ready(house: House) -> (RealApps, House, Vec<String>, ReservedPort) {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap();
    let apps = RealApps::ready(target);
    let port = ReservedPort::new();
    for server in apps.servers(port.number()) {
        house.add(server);
    }
    house.indexed().await;
    let mut host = variables(&house);
    host.push(format!("CANARY_PORT={}", port.number()));
    (apps, house, host, port)
}

#[tokio::test]
#[cfg_attr(offline, ignore = "calls real programs")]
async fn twelve_apps_are_shown_and_a_hostile_one_reaches_nothing() {
    let (apps, house, mut host, _port) = ready(house_with_daemon::<Fake>([])).await;
    let restart = programs().proxy.display().to_string();
    host.push(format!("RESTART={restart}"));
    let site = house.site().await;
    let [command, address] = servers(&house, &site);
    apps.show("v2-auto", "all", &command, &host).await;
    apps.show("v2", "few", &address, &host).await;
    apps.show("v2-auto", "few", &address, &host).await;
    site.stop().await;
    house.stops_clean().await;
}

#[tokio::test]
#[cfg_attr(offline, ignore = "calls real programs")]
async fn apps_are_shown_without_a_daemon() {
    let (apps, house, host, _port) = ready(house::<Fake>([])).await;
    let program = programs().proxy.display().to_string();
    let alone = [program, "serve".to_owned(), "--standalone".to_owned()];
    let command = [vec!["env".to_owned()], variables(&house), alone.to_vec()].concat();
    apps.show("v2", "few", &command, &host).await;
    house.stops_clean().await;
}
