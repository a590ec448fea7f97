//! Clients on this machine: whether their entry is this program, and what else they list.

use std::path::Path;

use clients::{ClientProgram, Home, ServerEntry, TranslatedServer, is_same};
use fleet::{Launch, Template};
use gateway::Settings;
use setup::{doctor::Check, moving::serves_as_us, translate};

/// Reads the files of every client that is installed, and changes nothing.
pub(super) fn check(settings: &Settings) -> Vec<Check> {
    let Some(folder) = std::env::home_dir() else {
        return vec![Check::unknown("clients", "no home folder is known").then("export HOME=...")];
    };
    let home = Home::new(folder, std::env::vars());
    let ours: Vec<(String, TranslatedServer)> = settings.enabled().filter_map(as_listed).collect();
    let installed = clients::find(&home);
    let mut checks = Vec::new();
    for installed in &installed {
        let about = format!("client {}", installed.client.name);
        let reading = installed.read(&home);
        let mistakes = reading.mistakes.iter();
        checks.extend(mistakes.map(|why| Check::warning(&about, why).then("correct that file")));
        let mut found: Vec<Check> = (reading.entries.iter())
            .filter(|entry| !entry.is_off)
            .filter_map(|entry| check_entry(installed.client, entry, &home, &ours))
            .collect();
        if found.is_empty() {
            let count = reading.entries.len();
            found.push(Check::fine(&about, format!("lists {count} servers")));
        }
        checks.extend(found);
    }
    checks
}

fn check_entry(
    client: &ClientProgram,
    entry: &ServerEntry,
    home: &Home,
    ours: &[(String, TranslatedServer)],
) -> Option<Check> {
    let listed = translate(entry, home).ok()?.server;
    let about = &format!("client {}", client.name);
    let name = &entry.name;
    if let Some(command) = listed.command.as_deref().map(Path::new)
        && serves_as_us(command, &listed.args)
    {
        return check_build(about, name, command);
    }
    let (same, _) = ours.iter().find(|(_, server)| is_same(server, &listed))?;
    let found = format!("still lists `{name}`, which is server {same} here");
    let next = format!(
        "proxy init --client {} replaces it by the entry of proxy",
        client.id
    );
    Some(Check::warning(about, found).then(next))
}

fn check_build(about: &str, name: &str, command: &Path) -> Option<Check> {
    if !command.is_absolute() {
        return None;
    }
    let ours = std::env::current_exe().ok()?.canonicalize().ok()?;
    let entry = format!("its entry `{name}` starts");
    let shown = command.display();
    let check = match command.canonicalize() {
        Ok(theirs) if theirs == ours => return None,
        Ok(_) => Check::warning(about, format!("{entry} another build, {shown}")),
        Err(_) => Check::problem(about, format!("{entry} {shown}, which does not exist")),
    };
    Some(check.then(format!("change the command to {}", ours.display())))
}

/// A server of ours as a client would list it; `None` if part of it is in a variable.
fn as_listed(server: &gateway::ServerSettings) -> Option<(String, TranslatedServer)> {
    let listed = match &server.spec.launch {
        Launch::Child { command, args, .. } => TranslatedServer {
            command: Some(command.plain()?),
            args: args.iter().map(Template::plain).collect::<Option<_>>()?,
            ..TranslatedServer::default()
        },
        Launch::Remote { url, .. } => TranslatedServer {
            url: Some(url.plain()?),
            ..TranslatedServer::default()
        },
        Launch::Commands(_) => return None,
    };
    Some((server.spec.name.to_string(), listed))
}
