//! Rules of the configuration that match nothing, as `config check`, `doctor` and `policy test` report
//! them.

use std::collections::BTreeSet;

use config::Config;
use gateway::{IdleRules, Settings, Weight, find_idle_rules, list_known_names};
use registry::{KnownNames, News, Registry};
use setup::doctor::Check;

/// Finds them using the state on disk; no server is asked. `asked` are the servers that were asked just
/// now.
pub(super) fn find(settings: &Settings, clients: &BTreeSet<String>, asked: &[News]) -> IdleRules {
    let rules = settings.rules();
    // A missing folder is not created for this.
    let is_there = settings.state_dir.is_dir();
    let registry = is_there.then(|| Registry::open(&settings.state_dir, rules.clone()));
    let known = match registry {
        Some(Ok(registry)) => list_known_names(&registry, settings),
        _ => KnownNames::of_rules(&rules),
    };
    find_idle_rules(settings, known, asked, clients)
}

/// Clients that were seen in the last days, and scopes of tokens, which have tables like clients.
pub(super) fn list_clients(config: &Config) -> BTreeSet<String> {
    let seen = telemetry::list_clients(&config.gateway.state_dir.join("stats"));
    let scopes = config
        .http
        .oauth
        .iter()
        .flat_map(|guard| guard.scopes.clone());
    seen.unwrap_or_default().into_iter().chain(scopes).collect()
}

/// The checks of all of them, using the state on disk.
pub(super) fn check(config: &Config) -> Vec<Check> {
    to_checks(&find(&config.gateway, &list_clients(config), &[]))
}

/// A rule that restricts access and matches nothing is a problem, any other a warning.
pub(super) fn to_checks(found: &IdleRules) -> Vec<Check> {
    let idle = found.idle.iter().map(|rule| {
        let check = match rule.weight {
            Weight::Safety => Check::problem(&rule.about, &rule.found),
            Weight::Remark => Check::warning(&rule.about, &rule.found),
        };
        check.then(&rule.next)
    });
    let unlisted = found.unlisted.iter().map(|server| {
        let found =
            "its tools were never listed, so it is unknown whether the rules about them match";
        Check::warning(format!("server {server}"), found).then(format!("proxy reindex {server}"))
    });
    idle.chain(unlisted).collect()
}
