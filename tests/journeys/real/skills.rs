//! Skills behind the proxy, read by the skills client of the official SDK.

use journeys::house::{Fake, fake};
use serde_json::{Value, json};

use super::clients::servers;
use crate::{house_with_daemon, real_clients};

fn papers(server: &str) -> Fake {
    let main = format!("---\nname: invoices\ndescription: Invoices of {server}.\n---\n# Steps\n");
    let files = [("SKILL.md", main.as_str()), ("references/FORMS.md", server)];
    fake(server).skill("invoices", &files)
}

#[tokio::test]
#[cfg_attr(offline, ignore = "calls real programs")]
async fn the_skills_client_of_the_sdk_finds_and_proves_every_file() {
    let clients = real_clients();
    let house = house_with_daemon([papers("acme"), papers("zeta")]);
    house.indexed().await;
    let site = house.site().await;
    for server in servers(&house, &site) {
        for mode in ["v2", "v2-auto"] {
            let seen = clients.passing("skills.mjs", mode, &server).await;
            assert_eq!(
                (&seen["supported"], &seen["directoryRead"]),
                (&json!(true), &json!(false))
            );
            assert_eq!(seen["unknown"], -32602, "{seen}");
            let found = seen["found"].as_array().unwrap();
            assert_eq!(found.len(), 2, "{seen}");
            for (skill, name) in found.iter().zip(["acme", "zeta"]) {
                let root = format!("proxy://{name}/skill://invoices");
                assert_eq!(skill["uri"], format!("{root}/SKILL.md"));
                assert_eq!(
                    (&skill["name"], &skill["verified"]),
                    (&json!("invoices"), &json!(true))
                );
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
