//! Answers of servers that are asked for their tools.

use fleet::Placement;
use futures::StreamExt as _;
use gateway::{Gateway, Settings, survey};
use printable::{count_of, group_digits};
use registry::{PinTrouble, ShownDefinition, Subject};
use setup::doctor::{Check, CheckVerdict};
use tool::ServerName;

/// Asks every server without a known problem for its tools, all in processes of their own; their
/// answers are not stored.
pub(super) async fn check(
    settings: Settings,
    before: &[Check],
    offline: bool,
) -> anyhow::Result<Vec<Check>> {
    let gateway = Gateway::new(settings)?;
    let registry = &gateway.catalog.registry;
    let mut checks: Vec<Check> = registry.pin_trouble().iter().map(describe_pins).collect();
    checks.extend(registry.list_damaged().iter().map(describe_damage));
    checks.extend(registry.list_signs().iter().map(describe_signs));
    if !offline {
        let settings = gateway.settings();
        let is_broken = |name: &ServerName| {
            let about = format!("server {name}");
            let is_it = |it: &Check| it.verdict == CheckVerdict::Problem && it.about == about;
            before.iter().any(is_it)
        };
        let whole = settings.enabled().filter(|server| {
            let placement = &server.spec.placement;
            // Another node may run it, and it must not run twice.
            let is_own = matches!(placement, Placement::Everywhere | Placement::Client);
            is_own && !is_broken(&server.spec.name) && fleet::find_command(&server.spec).is_ok()
        });
        let names = whole.map(|server| server.spec.name.clone()).collect();
        let asking = survey::survey(&gateway.catalog, names, gateway::estimate_definition);
        let mut answers = std::pin::pin!(asking);
        let mut told = Vec::new();
        while let Some(answer) = answers.next().await {
            let state_dir = &settings.state_dir;
            let has_log = gateway::has_log(state_dir, &answer.news.server);
            told.push(describe_answer(&answer, has_log));
        }
        told.sort_by(|one, other| one.about.cmp(&other.about));
        checks.extend(told);
        checks.extend(describe_requests(&gateway));
        gateway.stop().await;
    }
    Ok(checks)
}

/// The number of tools that have example requests. A search finds the others by their definitions alone.
fn describe_requests(gateway: &Gateway) -> Option<Check> {
    let generation = gateway.catalog.registry.generation().ok()?;
    let servers = generation
        .entries()
        .filter(|it| !it.at.server.is_built_in());
    let (all, with) = (servers.count(), generation.with_requests());
    let found = format!(
        "{} of {} have example requests",
        group_digits(with),
        count_of(all, "tool")
    );
    let mut check = Check::fine("search", found);
    check.next = (with < all).then(|| "proxy enrich".to_owned());
    Some(check)
}

/// A definition that may be meant to steer the model that reads it.
fn describe_signs((shown, signs): &(ShownDefinition, Vec<String>)) -> Check {
    let (name, server) = (printable::one_line(&shown.name()), &shown.server);
    let signs = signs.join("\n");
    let signs = printable::prose(&signs);
    match shown.subject {
        Subject::Tool(_) => Check::warning(format!("tool {name}"), signs).then(format!(
            "proxy describe {name}; `tools.deny` in [servers.{server}] hides it"
        )),
        _ => Check::warning(name, signs).then(format!(
            "`enabled = false` in [servers.{server}] disables the server"
        )),
    }
}

/// The pins, where nothing counts as accepted.
fn describe_pins(trouble: &PinTrouble) -> Check {
    let found = format!("{trouble}; nothing counts as accepted until it is reviewed");
    let check = Check::warning("pins", found);
    match trouble {
        PinTrouble::Newer(_) => check
            .then("use the newer version of proxy, or move the file away and run `proxy review`"),
        PinTrouble::Unreadable(_) => check.then("make the file readable for you"),
        _ => check.then("proxy review"),
    }
}

fn describe_damage((server, why): &(ServerName, String)) -> Check {
    let found = format!("its snapshot is damaged ({why}); its next use repeats the survey");
    Check::warning(format!("server {server}"), found).then(format!("proxy reindex {server}"))
}

fn describe_answer(asked: &survey::SurveyOutcome, has_log: bool) -> Check {
    let name = &asked.news.server;
    let log = has_log.then(|| format!("proxy logs {name}"));
    let about = format!("server {name}");
    let seconds = asked.seconds;
    match &asked.news.outcome {
        Ok(snapshot) if snapshot.tools.is_empty() => {
            let found = format!("answered in {seconds:.1} s, and has no tools");
            let mut check = Check::warning(about, found);
            check.next = log;
            check
        }
        Ok(snapshot) => {
            let (tools, protocol) = (snapshot.tools.len(), &snapshot.protocol);
            let left_out = asked.dropped.len();
            let tools = count_of(tools, "tool");
            let found = format!("{tools} in {seconds:.1} s, revision {protocol}");
            if left_out == 0 {
                return Check::fine(about, found);
            }
            let left_out = count_of(left_out, "tool");
            Check::warning(about, format!("{found}; {left_out} left out"))
                .then(format!("proxy reindex {name}"))
        }
        Err(why) => {
            let next: Vec<String> = why.hint.clone().into_iter().chain(log).collect();
            let mut check = Check::problem(about, why.why.as_str());
            check.next = (!next.is_empty()).then(|| next.join("; or: "));
            check
        }
    }
}
