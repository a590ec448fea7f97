//! Skills behind the proxy: those of servers of the official SDK, read by its skills client.

use std::path::Path;

use journeys::{
    house::{Fake, House, fake},
    real_apps::RealApps,
};
use serde_json::{Value, json};

use super::clients::servers;
use crate::{house_with_daemon, real_clients};

const NAMES: [&str; 2] = ["acme", "zeta"];

fn papers(server: &str) -> Fake {
    let main = format!("---\nname: invoices\ndescription: Invoices of {server}.\n---\n# Steps\n");
    let files = [("SKILL.md", main.as_str()), ("references/FORMS.md", server)];
    fake(server).skill("invoices", &files)
}

/// Reads every file of both skills with the skills client of the SDK, over both transports in both eras.
async fn reads(house: House) {
    let clients = real_clients();
    house.indexed().await;
    let site = house.site().await;
    for server in servers(&house, &site) {
        for mode in ["v2", "v2-auto"] {
            let seen = clients.passing("skills.mjs", mode, &server).await;
            let says = (&seen["supported"], &seen["directoryRead"]);
            assert_eq!(says, (&json!(true), &json!(false)));
            assert_eq!(seen["unknown"], -32602, "{seen}");
            let found = seen["found"].as_array().unwrap();
            assert_eq!(found.len(), 2, "{seen}");
            for (skill, name) in found.iter().zip(NAMES) {
                let root = format!("proxy://{name}/skill://invoices");
                assert_eq!(skill["uri"], format!("{root}/SKILL.md"));
                let says = (&skill["name"], &skill["verified"]);
                assert_eq!(says, (&json!("invoices"), &json!(true)));
                assert_eq!(skill["relative"], *name);
                let files: &Vec<Value> = skill["others"].as_array().unwrap();
                assert!(files.iter().all(|it| it[1] == true), "{seen}");
                let forms = json!([format!("{root}/references/FORMS.md"), true, name]);
                assert_eq!(files[1], forms);
            }
        }
    }
    site.stop().await;
    house.stops_clean().await;
}

#[tokio::test]
#[cfg_attr(offline, ignore = "calls real programs")]
async fn the_skills_client_of_the_sdk_finds_and_proves_every_file() {
    reads(house_with_daemon(NAMES.map(papers))).await;
}

#[tokio::test]
#[cfg_attr(offline, ignore = "calls real programs")]
async fn skills_of_servers_of_the_sdk_pass() {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap();
    let sdk = RealApps::ready(target);
    let house = house_with_daemon::<Fake>([]);
    for name in NAMES {
        house.add(sdk.skills(name));
    }
    reads(house).await;
}
