//! Rules of the configuration that match nothing, as `config check` and `doctor` report them.

use gateway::{IdleRule, Settings, find_idle_rules};
use registry::{KnownNames, Registry};
use setup::doctor::Check;

/// The checks of all of them, using the state on disk; no server is asked. A rule that restricts access and
/// matches nothing is a problem, any other a warning.
pub(super) fn check(settings: &Settings) -> Vec<Check> {
    let rules = settings.rules();
    // A missing folder is not created for this.
    let is_there = settings.state_dir.is_dir();
    let registry = is_there.then(|| Registry::open(&settings.state_dir, rules.clone()));
    let known = match registry {
        Some(Ok(registry)) => registry.known_names(),
        _ => KnownNames::of_rules(&rules),
    };
    let describe = |rule: IdleRule| {
        let check = if rule.restricts {
            Check::problem(&rule.about, &rule.found)
        } else {
            Check::warning(&rule.about, &rule.found)
        };
        check.then(&rule.next)
    };
    let found = find_idle_rules(settings, &known).into_iter();
    found.map(describe).collect()
}
