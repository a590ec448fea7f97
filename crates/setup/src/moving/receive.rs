//! Imports servers into our configuration: existing servers stay, and a server that would be a mistake
//! is left out and reported.

use std::collections::{BTreeMap, BTreeSet};

use clients::{
    Home, ImportedServer, LeftOut, Need, SecretPlace, ServerEntry, TranslatedServer, is_same,
    read_text,
};
use config::{
    Environment, Mistake, Overrides,
    edit::{Document, NewServer},
};
use secrets::{Secret, SecretName};
use tool::ServerName;

use super::naming;
use crate::advice::translate;

/// A server that is now in the configuration.
#[derive(Debug)]
pub struct Received {
    /// Its name there.
    pub name: ServerName,
    /// The imported server, with its origin and remarks.
    pub taken: ImportedServer,
    /// True if it was in the configuration before, perhaps under another name.
    pub was_there: bool,
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
    pub secrets: Vec<(SecretName, Secret)>,
}

/// Adds the servers to the document. Nothing is written. No secret gets one of the names in `kept`.
pub fn receive(
    document: &mut Document,
    all: Vec<ImportedServer>,
    home: &Home,
    overrides: &Overrides,
    env: &Environment,
    kept: &BTreeSet<String>,
) -> Receiving {
    let known = known_servers(document, home);
    let before = document.check(overrides, env).err().unwrap_or_default();
    let mut receiving = Receiving::default();
    let mut secrets = BTreeMap::new();
    for mut taken in all {
        let same = known
            .iter()
            .find(|(_, server)| is_same(server, &taken.server));
        let added = match same {
            Some((name, _)) => Ok((name.clone(), true)),
            None => add(document, &mut taken, kept).map(|(name, found)| {
                secrets.insert(name.clone(), found);
                (name, false)
            }),
        };
        match added {
            Ok((name, was_there)) => receiving.received.push(Received {
                name,
                taken,
                was_there,
            }),
            Err(why) => receiving.leave(taken, &why),
        }
    }
    receiving.leave_mistaken(document, overrides, env, &before, &mut secrets);
    receiving.secrets = secrets.into_values().flatten().collect();
    receiving
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
        secrets: &mut BTreeMap<ServerName, Vec<(SecretName, Secret)>>,
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

type Added = (ServerName, Vec<(SecretName, Secret)>);

fn add(
    document: &mut Document,
    taken: &mut ImportedServer,
    kept: &BTreeSet<String>,
) -> Result<Added, String> {
    let servers = document.servers();
    let is_free = |name: &str| servers.iter().all(|it| it != name);
    let name = naming::name(taken, is_free).ok_or("no name can be derived for it")?;
    let rules = document.list_rules_of(name.as_str()).into_iter();
    taken
        .remarks
        .extend(rules.map(|rule| format!("its name is already used by {rule}")));
    let mut server = write_out(taken);
    let secrets = take_secrets(&name, taken, &mut server, |name| kept.contains(name));
    document
        .add_server(&name, &server)
        .map_err(|error| error.to_string())?;
    Ok((name, secrets))
}

/// Replaces each secret by its name. The server is still recognized, because all but the secrets is
/// compared.
fn take_secrets(
    name: &ServerName,
    taken: &mut ImportedServer,
    server: &mut NewServer,
    is_kept: impl Fn(&str) -> bool,
) -> Vec<(SecretName, Secret)> {
    let mut keys: Vec<Option<SecretName>> = Vec::new();
    for secret in &taken.secrets {
        let label = label(secret);
        let is_free = |key: &SecretName| {
            !is_kept(key.as_str()) && keys.iter().flatten().all(|known| known != key)
        };
        let mut names = (1..NAMES_MAX).filter_map(|number| secret_name(name, &label, number));
        keys.push(names.find(is_free));
    }
    let mut kept: Vec<(SecretName, Secret)> = Vec::new();
    // Replaces from the end, so that earlier places stay valid.
    let found = std::mem::take(&mut taken.secrets).into_iter().zip(keys);
    for (secret, key) in found.rev() {
        let text = match &secret.place {
            SecretPlace::Env(variable) => find_text(&mut server.env, variable),
            SecretPlace::Header(header) => find_text(&mut server.headers, header),
            SecretPlace::Argument(index) => server.args.get_mut(*index),
            SecretPlace::Url => server.url.as_mut(),
        };
        let (Some(text), Some(key)) = (text, key) else {
            taken.secrets.insert(0, secret);
            continue;
        };
        let before = &text[..secret.range.start];
        let dollars = before.len() - before.trim_end_matches('$').len();
        // A plain `$` before our `${` is written `$$`.
        let escape = if dollars % 2 == 1 { "$" } else { "" };
        text.replace_range(secret.range, &format!("{escape}${{secret:{key}}}"));
        kept.push((key, Secret::new(secret.value.replace("$$", "$"))));
    }
    kept.reverse();
    if !kept.is_empty() {
        let names: Vec<&str> = kept.iter().map(|(key, _)| key.as_str()).collect();
        taken.remarks.push(format!(
            "stored by `proxy secret`, not in the file: {}",
            names.join(", ")
        ));
    }
    kept
}

/// The limit of numbered names for one label.
const NAMES_MAX: usize = 1_000;

/// Returns `SERVER.LABEL`, or `SERVER.LABEL-NUMBER`; the label is cut if the name would be too long.
fn secret_name(server: &ServerName, label: &str, number: usize) -> Option<SecretName> {
    let end = match number {
        1 => String::new(),
        number => format!("-{number}"),
    };
    let room = secrets::NAME_CHARS_MAX.saturating_sub(server.as_str().len() + 1 + end.len());
    let label = label.get(..room).unwrap_or(label);
    format!("{server}.{label}{end}").parse().ok()
}

/// Returns the label of a secret, which follows the name of its server.
fn label(secret: &clients::Secret) -> String {
    let named = secret.name.clone();
    let label = match &secret.place {
        SecretPlace::Env(name) | SecretPlace::Header(name) => name.clone(),
        SecretPlace::Url => named.unwrap_or_else(|| "url".to_owned()),
        SecretPlace::Argument(index) => named.unwrap_or_else(|| format!("argument-{}", index + 1)),
    };
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    label.replace(|c| !plain(c), "-")
}

fn find_text<'a>(texts: &'a mut [(String, String)], name: &str) -> Option<&'a mut String> {
    let found = texts.iter_mut().find(|(it, _)| it == name);
    found.map(|(_, text)| text)
}

/// The servers of the document, in the form in which those of clients are compared.
fn known_servers(document: &Document, home: &Home) -> Vec<(ServerName, TranslatedServer)> {
    let entries = read_text(&document.text()).unwrap_or_default();
    let one = |entry: &ServerEntry| {
        let server = translate(entry, home).ok()?.server;
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
