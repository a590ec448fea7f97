//! Servers taken into our configuration: what is there already stays, and one that would be a
//! mistake is left out with the mistake.

use clients::{
    Entry, Home, LeftOut, Need, SecretPlace, Server, Taken, is_same, read_text, translate,
};
use config::{
    Environment, Mistake, Overrides,
    edit::{Document, NewServer},
};
use secrets::{Secret, SecretName};
use tool::ServerName;

use super::naming;

/// A server that is in the configuration now.
#[derive(Debug)]
pub struct Received {
    /// Its name there.
    pub name: ServerName,
    /// What was taken over, from where, with what remarks.
    pub taken: Taken,
    /// It was there before, perhaps under another name.
    pub was_there: bool,
}

/// What became of the servers that were to be taken in.
#[derive(Debug, Default)]
pub struct Receiving {
    /// Those that are in the configuration.
    pub received: Vec<Received>,
    /// Those that are not.
    pub left: Vec<LeftOut>,
    /// Secrets that the document names now in place of holding them: to be kept before it is
    /// written.
    pub secrets: Vec<(SecretName, Secret)>,
}

/// Adds the servers to the document. Nothing is written.
pub fn receive(
    document: &mut Document,
    all: Vec<Taken>,
    home: &Home,
    overrides: &Overrides,
    env: &Environment,
) -> Receiving {
    let known = known_servers(document, home);
    let mut receiving = Receiving::default();
    let mut mistakes = document.check(overrides, env).err().unwrap_or_default();
    for mut taken in all {
        if let Some((name, _)) = known
            .iter()
            .find(|(_, server)| is_same(server, &taken.server))
        {
            let (name, was_there) = (name.clone(), true);
            receiving.received.push(Received {
                name,
                taken,
                was_there,
            });
            continue;
        }
        match add(document, &mut taken, &mut mistakes, overrides, env) {
            Ok((name, secrets)) => {
                receiving.secrets.extend(secrets);
                receiving.received.push(Received {
                    name,
                    taken,
                    was_there: false,
                });
            }
            Err(why) => {
                let entries = taken.entries.into_iter();
                receiving.left.extend(entries.map(|entry| LeftOut {
                    entry,
                    why: why.clone(),
                }));
            }
        }
    }
    receiving
}

fn add(
    document: &mut Document,
    taken: &mut Taken,
    mistakes: &mut Vec<Mistake>,
    overrides: &Overrides,
    env: &Environment,
) -> Result<(ServerName, Vec<(SecretName, Secret)>), String> {
    let servers = document.servers();
    let is_free = |name: &str| servers.iter().all(|it| it != name);
    let name = naming::name(taken, is_free).ok_or("no name can be made for it")?;
    let rules = document.list_rules_of(name.as_str()).into_iter();
    taken
        .remarks
        .extend(rules.map(|rule| format!("it is named already by {rule}")));
    let mut server = write_out(taken);
    let secrets = take_secrets(&name, taken, &mut server);
    document
        .add_server(&name, &server)
        .map_err(|error| error.to_string())?;
    let after = document.check(overrides, env).err().unwrap_or_default();
    if let Some(mistake) = after.iter().find(|it| !it.is_in(mistakes)) {
        let why = format!(
            "our configuration would not take it: `{}`: {}",
            mistake.key, mistake.what
        );
        document
            .remove_server(name.as_str())
            .map_err(|error| error.to_string())?;
        return Err(why);
    }
    *mistakes = after;
    Ok((name, secrets))
}

/// Puts the name of a secret where it stands: the server is known again by all but that.
fn take_secrets(
    name: &ServerName,
    taken: &mut Taken,
    server: &mut NewServer,
) -> Vec<(SecretName, Secret)> {
    let mut kept: Vec<(SecretName, Secret)> = Vec::new();
    taken.secrets.retain(|secret| {
        let label = label(&secret.place, &server.args);
        let text = match &secret.place {
            SecretPlace::Env(variable) => find_text(&mut server.env, variable),
            SecretPlace::Header(header) => find_text(&mut server.headers, header),
            SecretPlace::Argument(index) => server.args.get_mut(*index),
            SecretPlace::Url => server.url.as_mut(),
        };
        let is_free = |key: &SecretName| kept.iter().all(|(it, _)| it != key);
        let names = (1..).map(|number| match number {
            1 => format!("{name}.{label}"),
            number => format!("{name}.{label}-{number}"),
        });
        let mut parsed = names.map_while(|name| name.parse::<SecretName>().ok());
        let key = parsed.find(is_free);
        // A `$` in it would be one of ours, or the escape of one.
        let (Some(text), Some(key), false) = (text, key, secret.value.contains('$')) else {
            return true;
        };
        let Some(at) = find_value(text, &secret.value) else {
            return true;
        };
        text.replace_range(at..at + secret.value.len(), &format!("${{secret:{key}}}"));
        kept.push((key, Secret::new(secret.value.as_str())));
        false
    });
    if !kept.is_empty() {
        let names: Vec<&str> = kept.iter().map(|(key, _)| key.as_str()).collect();
        taken.remarks.push(format!(
            "kept by `proxy secret`, and not in the file: {}",
            names.join(", ")
        ));
    }
    kept
}

/// What a secret is called behind the name of its server.
fn label(place: &SecretPlace, args: &[String]) -> String {
    match place {
        SecretPlace::Env(name) | SecretPlace::Header(name) => name.clone(),
        SecretPlace::Url => "url".to_owned(),
        SecretPlace::Argument(index) => {
            let arg = args.get(*index).map_or("", String::as_str);
            let before = index.checked_sub(1).and_then(|it| args.get(it));
            let named = arg.split_once('=').map(|(name, _)| name);
            let named = named.filter(|name| !name.contains("://"));
            let option = named.or_else(|| Some(before?.as_str()).filter(|it| it.starts_with("--")));
            let option = option.map(|it| it.trim_start_matches('-'));
            let option = option.filter(|it| it.parse::<SecretName>().is_ok());
            option.map_or_else(|| format!("argument-{}", index + 1), str::to_owned)
        }
    }
}

fn find_text<'a>(texts: &'a mut [(String, String)], name: &str) -> Option<&'a mut String> {
    let found = texts.iter_mut().find(|(it, _)| it == name);
    found.map(|(_, text)| text)
}

/// Where a secret begins in its text: as a password, as a value, at the end, or anywhere.
fn find_value(text: &str, value: &str) -> Option<usize> {
    let behind = |sign: &str, end: &str| {
        let found = text.find(&format!("{sign}{value}{end}"));
        found.map(|at| at + sign.len())
    };
    behind(":", "@")
        .or_else(|| behind("=", ""))
        .or_else(|| text.strip_suffix(value).map(str::len))
        .or_else(|| text.find(value))
}

/// The servers of the document, in the words in which others' are compared.
fn known_servers(document: &Document, home: &Home) -> Vec<(ServerName, Server)> {
    let entries = read_text(&document.text()).unwrap_or_default();
    let one = |entry: &Entry| {
        let server = translate(entry, home).ok()?.server;
        Some((entry.name.parse().ok()?, server))
    };
    entries.iter().filter_map(one).collect()
}

/// The table of a server, with where it is from and what is still to be done above it.
fn write_out(taken: &Taken) -> NewServer {
    let mut origins: Vec<String> = taken.entries.iter().map(Entry::origin).collect();
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

/// Calls may take as long as this anyway. A client's shorter limit is its own: where it is shorter
/// than our default, it goes on waiting as long as it does.
const TIMEOUT_S_DEFAULT: u64 = 60;
