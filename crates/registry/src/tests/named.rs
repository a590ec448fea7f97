//! Finding a tool by its canonical name without loading the other servers.

use std::fs;

use super::{news, rules, server};
use crate::{Registry, Rules, ServerRules};

fn registry(folder: &std::path::Path, rules: Rules) -> Registry {
    let registry = Registry::open(folder, rules).unwrap();
    let all = vec![
        news("mail", &["send: Send a mail", "drop: Drop a mail"]),
        news("maps", &["route: Find a route"]),
    ];
    registry.commit(all, true, 1_000).unwrap();
    registry
}

#[test]
fn a_name_needs_its_own_server_alone() {
    let folder = tempfile::tempdir().unwrap();
    drop(registry(folder.path(), rules(&["mail", "maps"])));
    for snapshot in fs::read_dir(folder.path().join("snapshots")).unwrap() {
        let path = snapshot.unwrap().path();
        if path.to_string_lossy().contains("maps") {
            fs::write(path, "not read").unwrap();
        }
    }
    let registry = Registry::open(folder.path(), rules(&["mail", "maps"])).unwrap();
    assert!(registry.named("mail/send").is_none(), "not loaded yet");
    assert!(registry.known_server(&server("mail")).is_none());

    let entry = registry.load_named("mail/send").unwrap();
    assert_eq!(entry.at.to_string(), "mail/send");
    assert_eq!(registry.named("mail/drop").unwrap().at.tool, "drop");
    let known = registry.known_server(&server("mail")).unwrap();
    assert_eq!(
        (known.server_name.as_str(), known.tools),
        ("mail-server", 2)
    );
    assert!(registry.loaded().is_none(), "nothing else is loaded");

    // A changed list is loaded again.
    registry
        .commit(vec![news("mail", &["send: Post a letter"])], true, 2_000)
        .unwrap();
    assert!(registry.named("mail/send").is_none() && registry.named("mail/drop").is_none());
    assert!(registry.load_named("mail/drop").is_none());
    let entry = registry.load_named("mail/send").unwrap();
    assert_eq!(entry.tool.description(), "Post a letter");
}

#[test]
fn every_other_name_is_left_to_all_servers() {
    let folder = tempfile::tempdir().unwrap();
    let mut rules = rules(&["mail", "maps"]);
    rules.servers[0] = ServerRules {
        deny: vec!["drop".to_owned()],
        ..rules.servers[0].clone()
    };
    let registry = registry(folder.path(), rules);
    for name in [
        "mail/drop",
        "Mail/send",
        "mail_send",
        "send",
        "mail",
        "mail/",
        "nobody/send",
        "mail/nothing",
        "",
    ] {
        assert!(registry.load_named(name).is_none(), "{name}");
    }
    let generation = registry.generation().unwrap();
    for name in ["mail/send", "maps/route"] {
        let named = registry.named(name).unwrap();
        assert!(std::sync::Arc::ptr_eq(
            &named,
            generation.find(name).unwrap()
        ));
    }
    assert!(registry.named("mail/drop").is_none());
}
