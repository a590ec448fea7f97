//! Programs that start servers, and their versions.

use std::collections::{BTreeMap, BTreeSet};

use fleet::Launch;
use gateway::Settings;

use super::{Check, recipe_of};

/// Programs that the enabled servers are started with and whose version is checked: `node`, `uv`,
/// `docker`, `python3`.
pub fn programs(settings: &Settings) -> BTreeSet<&'static str> {
    let of_command = |command: &str| match command.rsplit('/').next()? {
        "npx" | "npm" | "node" => Some("node"),
        "uvx" | "uv" => Some("uv"),
        "docker" => Some("docker"),
        "python" | "python3" | "pipx" => Some("python3"),
        _ => None,
    };
    let commands = settings
        .enabled()
        .filter(|server| server.spec.image.is_none())
        .filter_map(|server| match &server.spec.launch {
            Launch::Child { command, .. } => command.plain(),
            Launch::Remote { .. } | Launch::Commands(_) => None,
        });
    commands
        .filter_map(|command| of_command(&command))
        .collect()
}

/// Finds servers whose newest release needs a newer Node.js or Python than the installed one: `npx` and
/// `uvx` then take an older release without a message.
pub fn check_runtimes(
    settings: &Settings,
    versions: &BTreeMap<&'static str, String>,
) -> Vec<Check> {
    let mut checks = Vec::new();
    // The programs in a container are not checked.
    for server in (settings.enabled()).filter(|it| it.spec.image.is_none()) {
        let Some(recipe) = recipe_of(&server.spec.launch) else {
            continue;
        };
        let wants = [
            ("node", "Node.js", &recipe.node),
            ("python3", "Python", &recipe.python),
        ];
        for (program, called, range) in wants {
            let (Some(range), Some(version)) = (range, versions.get(program)) else {
                continue;
            };
            if recipes::fits(version, range) == Some(false) {
                let package = recipe.package.as_deref().unwrap_or_default();
                let found = format!(
                    "the newest `{package}` requires {called} {range}; with {version} an older \
                    release runs, or none"
                );
                let about = format!("server {}", server.spec.name);
                let check = Check::warning(about, found);
                checks.push(check.then(format!("install a newer {called}")));
            }
        }
    }
    checks
}
