//! The names under which a script reaches a server: `nano-banana`, `nano_banana` and `nanoBanana`.

use std::collections::BTreeMap;

use serde::Serialize;

/// The globals of every script except `fs`. A server of the same name is reached as `tools.NAME`.
pub(crate) const GLOBALS: [&str; 12] = [
    "args",
    "console",
    "describe",
    "help",
    "print",
    "result",
    "search",
    "setTimeout",
    "sleep",
    "structuredClone",
    "tools",
    "workspace",
];

/// The server of each name, or why the name means none: several servers have it. The exact name of a
/// server is always its own.
#[derive(Debug, Serialize)]
pub struct ServerNames(BTreeMap<String, Result<String, String>>);

impl ServerNames {
    /// Derives the names of these servers.
    pub fn new(servers: &[String]) -> Self {
        let mut named: BTreeMap<String, Vec<&str>> = BTreeMap::new();
        for server in servers {
            for name in [server.replace('-', "_"), to_camel_case(server)] {
                let owners = named.entry(name).or_default();
                if !owners.contains(&server.as_str()) {
                    owners.push(server);
                }
            }
        }
        for server in servers {
            named.insert(server.clone(), vec![server]);
        }
        let one = |(name, owners): (String, Vec<&str>)| {
            let owner = match owners.as_slice() {
                [owner] => Ok((*owner).to_owned()),
                _ => Err(explain_collision(&name, &owners)),
            };
            (name, owner)
        };
        Self(named.into_iter().map(one).collect())
    }

    /// Returns the server with this name, or why it cannot be told; `None` if no server has it.
    pub(crate) fn find(&self, name: &str) -> Option<Result<&str, &str>> {
        let owner = self.0.get(name)?;
        Some(owner.as_deref().map_err(String::as_str))
    }

    /// Returns the names that mean this server alone.
    pub fn of(&self, server: &str) -> Vec<&str> {
        let own = self.0.iter();
        let own = own.filter(|(_, owner)| owner.as_deref() == Ok(server));
        own.map(|(name, _)| name.as_str()).collect()
    }

    /// Returns those of these names that are globals.
    pub fn globals_of(&self, server: &str) -> Vec<&str> {
        let mut names = self.of(server);
        names.retain(|name| !GLOBALS.contains(name));
        names
    }
}

fn explain_collision(name: &str, owners: &[&str]) -> String {
    let owners = owners.join(" and ");
    format!("{name} may be {owners}; write tools[\"NAME\"] with one of these names")
}

/// `nano-banana` is `nanoBanana`.
fn to_camel_case(server: &str) -> String {
    let mut words = server.split('-');
    let mut name = words.next().unwrap_or_default().to_owned();
    for word in words {
        let mut letters = word.chars();
        name.extend(letters.next().map(|first| first.to_ascii_uppercase()));
        name.push_str(letters.as_str());
    }
    name
}

#[cfg(test)]
mod tests {
    use super::ServerNames;

    #[test]
    fn a_name_means_one_server_or_says_why_not() {
        let servers = ["nano-banana", "nano--banana", "a-1", "a1", "git"].map(str::to_owned);
        let names = ServerNames::new(&servers);
        let check = |name: &str, expected: Option<Result<&str, &str>>| {
            assert_eq!(names.find(name), expected, "{name}");
        };
        check("nano-banana", Some(Ok("nano-banana")));
        check("nano_banana", Some(Ok("nano-banana")));
        check("nano__banana", Some(Ok("nano--banana")));
        // The exact name wins.
        check("a1", Some(Ok("a1")));
        check("a_1", Some(Ok("a-1")));
        check("git", Some(Ok("git")));
        check("Git", None);
        let why = names.find("nanoBanana").unwrap().unwrap_err();
        assert!(
            why.starts_with("nanoBanana may be nano-banana and nano--banana;"),
            "{why}"
        );
        assert_eq!(names.of("a-1"), ["a-1", "a_1"]);
        assert_eq!(names.of("git"), ["git"]);
        let names = ServerNames::new(&servers[..1]);
        assert_eq!(
            names.of("nano-banana"),
            ["nano-banana", "nanoBanana", "nano_banana"]
        );
    }
}
