//! The advice of recipes about servers that do not work.

use fleet::{Launch, Template};
use gateway::{ServerSettings, Settings};
use recipes::{Variable, mend, of_arguments};

use super::{Check, CheckVerdict};

/// Adds the advice of a recipe to the failure of its server. If servers were not asked, a mistake in
/// the start line is a warning.
pub fn advise(settings: &Settings, checks: &mut Vec<Check>, was_asked: bool) {
    for server in settings.enabled() {
        let about = format!("server {}", server.spec.name);
        let is_failure = |it: &&mut Check| it.about == about && it.verdict == CheckVerdict::Problem;
        let failure = checks.iter_mut().find(is_failure);
        let pinned = advise_pins(server);
        match (failure, pinned) {
            (Some(failure), Some(advice)) => add(failure, advice),
            (Some(failure), None) => {
                if let Some(advice) = advise_variables(server) {
                    add(failure, advice);
                }
            }
            (None, Some((found, next))) if !was_asked => {
                checks.push(Check::warning(about, found).then(next));
            }
            (None, _) => {}
        }
    }
}

fn add(failure: &mut Check, (found, next): (String, String)) {
    failure.found = format!("{}\n{found}", failure.found);
    failure.next = Some(match &failure.next {
        Some(old) if *old != next => format!("{next}; else: {old}"),
        _ => next,
    });
}

fn advise_pins(server: &ServerSettings) -> Option<(String, String)> {
    let (command, args) = words(server)?;
    let mended = mend(&command, &args)?;
    let package = mended.recipe.package.as_deref().unwrap_or_default();
    let pins: Vec<String> = mended
        .pins
        .iter()
        .map(|pin| format!("`--with {}`: {} (seen {})", pin.with, pin.why, pin.checked))
        .collect();
    let found = format!("`{package}` needs {}", pins.join("; "));
    let added: Vec<String> = mended
        .pins
        .iter()
        .map(|pin| format!("\"--with\", {:?}", pin.with))
        .collect();
    let next = format!(
        "write {} before \"{package}\" in `args` of [servers.{}]",
        added.join(", "),
        server.spec.name
    );
    Some((found, next))
}

fn advise_variables(server: &ServerSettings) -> Option<(String, String)> {
    let (_, args) = words(server)?;
    let Launch::Child { env, .. } = &server.spec.launch else {
        return None;
    };
    let names = env.iter().map(|(name, _)| name);
    let names = names.chain(&server.spec.inherit_env).map(String::as_str);
    let lacking = of_arguments(&args)?.lacks(names, &args);
    let what = |it: &&Variable| format!("{} ({})", it.name, it.what);
    let told: Vec<String> = lacking.iter().map(what).collect();
    let first = lacking.first()?;
    let (name, variable) = (&server.spec.name, &first.name);
    let origin = first.origin.as_ref();
    let origin = origin.map_or_else(String::new, |it| format!(" (its value: {it})"));
    let next = format!(
        "proxy secret set {name}.{variable}{origin}, and write `env.{variable} = \
         \"${{secret:{name}.{variable}}}\"` below [servers.{name}]"
    );
    let found = format!("it needs {}, which is not set", told.join(", "));
    Some((found, next))
}

/// The program and the arguments, as they are written in the configuration.
fn words(server: &ServerSettings) -> Option<(String, Vec<String>)> {
    let Launch::Child { command, args, .. } = &server.spec.launch else {
        return None;
    };
    let args = args.iter().map(Template::to_string);
    Some((command.plain()?, args.collect()))
}
