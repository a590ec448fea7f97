//! Imports servers into our configuration: existing servers stay, and a server that would be a mistake
//! is left out and reported.

use std::collections::{BTreeMap, BTreeSet};

use clients::{
    Home, ImportedServer, LeftOut, Need, ServerEntry, TranslatedServer, describe_spelling, is_same,
    list_differences, read_text,
};
use config::{
    Environment, Mistake, Overrides,
    edit::{Document, NewServer, StoredSecrets, describe_stored},
};
use secrets::Secret;
use tool::ServerName;

use super::naming;
use crate::{advice::translate, naming::valid_name};

/// A server that is now in the configuration.
#[derive(Debug)]
pub struct Received {
    /// Its name there.
    pub name: ServerName,
    /// The imported server, with its origin and remarks.
    pub taken: ImportedServer,
    /// True if it was in the configuration before, perhaps under another name.
    pub was_there: bool,
    /// The folders to which it is limited, or no longer, for the person.
    pub folder_remark: Option<String>,
}

/// The result of importing servers.
#[derive(Debug, Default)]
pub struct Receiving {
    /// The servers that are in the configuration.
    pub received: Vec<Received>,
    /// The servers that were left out.
    pub left: Vec<LeftOut>,
    /// Secrets that the document now names and no longer contains; they must be stored before it is
    /// written.
    pub secrets: StoredSecrets,
}

/// The choices of a person about an import.
#[derive(Debug, Clone, Copy, Default)]
pub struct ImportOptions<'s> {
    /// True if the server of a project is not limited to its folder.
    pub is_everywhere: bool,
    /// The secrets in the store, by name, without values that cannot be read. No new secret gets one of
    /// these names.
    pub stored: Option<&'s BTreeMap<String, Option<Secret>>>,
}

/// Adds the servers to the document. Nothing is written.
pub fn receive(
    document: &mut Document,
    mut all: Vec<ImportedServer>,
    home: &Home,
    overrides: &Overrides,
    env: &Environment,
    options: ImportOptions<'_>,
) -> Receiving {
    let nothing = BTreeMap::new();
    let stored = options.stored.unwrap_or(&nothing);
    let mut others = known_servers(document, home, stored);
    let known = others.clone();
    let mut kept: BTreeSet<String> = stored.keys().cloned().collect();
    let before = document.check(overrides, env).err().unwrap_or_default();
    let mut receiving = Receiving::default();
    let mut secrets = BTreeMap::new();
    // A server for all folders keeps its name.
    all.sort_by_key(|taken| !taken.project_folders().is_empty());
    for mut taken in all {
        let mut folders = taken.project_folders();
        if options.is_everywhere {
            folders.clear();
        }
        let (name, was_there, profile) = match find_same(&known, &taken) {
            Some((name, server)) => {
                taken
                    .remarks
                    .extend(describe_spelling(server, &taken.server));
                (name.clone(), true, document.widen_folders(name, &folders))
            }
            None => match add(document, &mut taken, &kept, &others) {
                Ok((name, found)) => {
                    kept.extend(found.iter().map(|(name, _)| name.to_string()));
                    secrets.insert(name.clone(), found);
                    others.push((name.clone(), taken.server.clone()));
                    let limit = || document.limit_to_folders(&name, &folders);
                    let profile = (!folders.is_empty()).then(limit);
                    (name, false, profile)
                }
                Err(why) => {
                    receiving.leave(taken, &why);
                    continue;
                }
            },
        };
        receiving.received.push(Received {
            name,
            taken,
            was_there,
            folder_remark: profile.map(|profile| describe_folders(&folders, &profile)),
        });
    }
    receiving.leave_mistaken(document, overrides, env, &before, &mut secrets);
    receiving.secrets = secrets.into_values().flatten().collect();
    receiving
}

/// Returns the same server in the configuration: of several the one that has its name.
fn find_same<'k>(
    known: &'k [(ServerName, TranslatedServer)],
    taken: &ImportedServer,
) -> Option<&'k (ServerName, TranslatedServer)> {
    let same = known.iter();
    let same = same.filter(|(_, server)| is_same(server, &taken.server));
    let own = taken.entries.first().map(|entry| entry.name.as_str());
    same.min_by_key(|(name, _)| Some(name.as_str()) != own)
}

fn describe_folders(folders: &[String], profile: &str) -> String {
    match folders {
        [] => "no longer limited to a folder".to_owned(),
        folders => format!(
            "only for clients that work in {} (`[profiles.{profile}]`); `--everywhere` imports it for all",
            folders.join(", ")
        ),
    }
}

impl Receiving {
    /// Removes the new servers that caused a mistake; a mistake outside the servers' tables removes all
    /// new ones.
    fn leave_mistaken(
        &mut self,
        document: &mut Document,
        overrides: &Overrides,
        env: &Environment,
        before: &[Mistake],
        secrets: &mut BTreeMap<ServerName, StoredSecrets>,
    ) {
        let after = document.check(overrides, env).err().unwrap_or_default();
        let new: Vec<&Mistake> = after.iter().filter(|it| !it.is_in(before)).collect();
        for received in std::mem::take(&mut self.received) {
            let name = received.name.as_str();
            let its = new.iter().find(|it| is_of(it, name));
            let mistake = its.or_else(|| new.iter().find(|it| !it.key.starts_with("servers.")));
            match mistake.filter(|_| !received.was_there) {
                None => self.received.push(received),
                Some(mistake) => {
                    let (key, what) = (&mistake.key, &mistake.what);
                    let why = format!("not valid in the configuration: `{key}`: {what}");
                    let removed = document.remove_server(name);
                    let removed = removed.map_err(|error| error.to_string());
                    secrets.remove(&received.name);
                    self.leave(received.taken, &removed.err().unwrap_or(why));
                }
            }
        }
    }

    fn leave(&mut self, taken: ImportedServer, why: &str) {
        let entries = taken.entries.into_iter();
        self.left.extend(entries.map(|entry| LeftOut {
            entry,
            why: why.to_owned(),
        }));
    }
}

fn is_of(mistake: &Mistake, server: &str) -> bool {
    let key = mistake.key.strip_prefix("servers.");
    let rest = key.and_then(|key| key.strip_prefix(server));
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

type Added = (ServerName, StoredSecrets);

fn add(
    document: &mut Document,
    taken: &mut ImportedServer,
    kept: &BTreeSet<String>,
    others: &[(ServerName, TranslatedServer)],
) -> Result<Added, String> {
    let servers = document.servers();
    let is_free = |name: &str| servers.iter().all(|it| it != name);
    let name = naming::name(taken, is_free).ok_or("no name can be derived for it")?;
    taken.remarks.extend(describe_like(&name, taken, others));
    let rules = document.list_rules_of(name.as_str()).into_iter();
    taken
        .remarks
        .extend(rules.map(|rule| format!("its name is already used by {rule}")));
    let added = document.add_server(&name, &write_out(taken), || kept.clone());
    let secrets = added.map_err(|error| error.to_string())?;
    taken.remarks.extend(describe_stored(&secrets));
    Ok((name, secrets))
}

/// Describes the server that has the name of this one, or else one that is started alike: how they
/// differ, and that both are kept.
fn describe_like(
    name: &ServerName,
    taken: &ImportedServer,
    others: &[(ServerName, TranslatedServer)],
) -> Option<String> {
    let base = valid_name(&taken.entries.first()?.name).filter(|base| base != name);
    if let Some(base) = base {
        let other = others.iter().find(|(other, _)| *other == base);
        let parts = other.map(|(_, server)| list_differences(server, &taken.server));
        let parts = parts.map(|parts| format!(", which differs in its {}", parts.join(", ")));
        let parts = parts.unwrap_or_default();
        return Some(format!(
            "`{base}` is another server{parts}: both are kept, this one as `{name}`"
        ));
    }
    let is_alike = |parts: &Vec<&str>| {
        let mut parts = parts.iter();
        parts.all(|part| !["command", "arguments", "address"].contains(part))
    };
    others.iter().find_map(|(other, server)| {
        let parts = list_differences(server, &taken.server);
        let parts = Some(parts).filter(is_alike)?.join(", ");
        Some(format!(
            "differs from `{other}` in its {parts}: both are kept"
        ))
    })
}

/// The servers of the document, in the form in which those of clients are compared: with the values of
/// stored secrets.
fn known_servers(
    document: &Document,
    home: &Home,
    stored: &BTreeMap<String, Option<Secret>>,
) -> Vec<(ServerName, TranslatedServer)> {
    let entries = read_text(&document.text()).unwrap_or_default();
    let fill = |text: &mut String| {
        for (name, value) in stored {
            let Some(value) = value else { continue };
            // Text read as another client's entry has our variables escaped.
            let reference = format!("$${{secret:{name}}}");
            if text.contains(&reference) {
                *text = text.replace(&reference, &printable::escape_template(value.expose()));
            }
        }
    };
    let one = |entry: &ServerEntry| {
        let mut server = translate(entry, home).ok()?.server;
        server.args.iter_mut().chain(&mut server.url).for_each(fill);
        let pairs = server.env.iter_mut().chain(&mut server.headers);
        pairs.for_each(|(_, value)| fill(value));
        Some((entry.name.parse().ok()?, server))
    };
    entries.iter().filter_map(one).collect()
}

/// Returns the table of a server, with a comment that names its origin and the open steps.
fn write_out(taken: &ImportedServer) -> NewServer {
    let mut origins: Vec<String> = taken.entries.iter().map(ServerEntry::origin).collect();
    origins.dedup();
    let mut comment = vec![format!("From {}.", origins.join(", "))];
    let need = |need: &Need| format!("Needs the variable {}: {}.", need.variable, need.what);
    comment.extend(taken.needs.iter().map(need));
    let one_line = |line: &String| line.replace(char::is_control, " ");
    let server = taken.server.clone();
    NewServer {
        comment: comment.iter().map(one_line).collect(),
        command: server.command,
        args: server.args,
        env: server.env,
        inherit_env: server.inherit_env,
        cwd: server.cwd,
        url: server.url,
        headers: server.headers,
        is_disabled: !server.enabled,
        timeout_s: server
            .timeout_s
            .filter(|timeout| *timeout > TIMEOUT_S_DEFAULT),
        is_per_client: server.is_per_client,
        allow: server.allow,
        deny: server.deny,
        ..NewServer::default()
    }
}

/// The default timeout of a call, in seconds; only longer ones are written. A client's shorter limit
/// still applies in the client.
const TIMEOUT_S_DEFAULT: u64 = 60;
