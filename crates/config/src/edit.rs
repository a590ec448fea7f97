//! Changes to the file by commands. Comments, order and spelling of everything else stay byte for byte.

use std::{
    collections::BTreeSet,
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
};

use files::{
    form,
    toml::{position, remove_table},
};
use policy::{Allowance, NotAllowable, Policy, PolicyVerdict};
use printable::escape_pattern;
use toml_edit::{DocumentMut, Item, TableLike};
use tool::ServerName;

use super::{
    Config, ConfigError, Environment, Mistake, Overrides, SCHEMA_FILE, SHARED_KEYS, check,
    file::ConfigFile,
};

mod change;
mod error;
mod folder_limit;
mod mentions;
mod new_server;
mod rename;
mod rule;
mod stored_secrets;

pub use change::{Change, change, change_with};
pub use error::EditError;
pub use mentions::RemovedRules;
pub use new_server::NewServer;
pub use stored_secrets::{StoredSecrets, describe_stored};

/// The text of a configuration file being edited. [`change`] alone writes it.
#[derive(Debug, Clone)]
pub struct Document {
    path: PathBuf,
    before: Option<String>,
    /// The lines before the first table of a new file.
    head: String,
    toml: DocumentMut,
}

impl Document {
    /// Reads the file at `path`; a missing file is an empty document.
    pub fn read(path: &Path) -> Result<Self, EditError> {
        let before = match fs::read_to_string(path) {
            Ok(text) => Some(text),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => {
                let path = path.to_owned();
                return Err(EditError::Io { path, error });
            }
        };
        Self::parse(path, before)
    }

    fn parse(path: &Path, before: Option<String>) -> Result<Self, EditError> {
        let text = before.as_deref().unwrap_or_default();
        let toml = form::strip(text).parse().map_err(|_| {
            let mistakes = check::check(text).mistakes;
            let file = path.to_owned();
            EditError::Broken(ConfigError { file, mistakes })
        })?;
        let path = path.to_owned();
        Ok(Self {
            path,
            before,
            head: String::new(),
            toml,
        })
    }

    /// The path given to [`Document::read`].
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The text that was read; `None` if there was no file.
    pub fn before(&self) -> Option<&str> {
        self.before.as_deref()
    }

    /// Returns the text as it would be written.
    pub fn text(&self) -> String {
        let edited = self.toml.to_string();
        match &self.before {
            Some(before) => form::restore(before, &edited),
            None if edited.is_empty() => edited,
            None => format!("{}{edited}", self.head),
        }
    }

    /// Has a new file begin with the line by which editors find its schema. An existing file keeps its text.
    pub fn name_schema(&mut self) {
        self.head = format!("#:schema {SCHEMA_FILE}\n\n");
    }

    /// Returns true if the text differs from the one that was read.
    pub fn is_changed(&self) -> bool {
        self.before.as_deref().unwrap_or_default() != self.text()
    }

    /// The names of the servers, in the order of the file; a name may be invalid.
    pub fn servers(&self) -> Vec<String> {
        let Some(servers) = self.toml.get("servers").and_then(Item::as_table_like) else {
            return Vec::new();
        };
        let mut servers: Vec<_> = servers.iter().collect();
        servers.sort_by_key(|(_, item)| position(item).unwrap_or(isize::MAX));
        servers
            .into_iter()
            .map(|(name, _)| name.to_owned())
            .collect()
    }

    /// The keys of a server's table, or of the whole file.
    pub fn keys(&self, server: Option<&str>) -> Vec<String> {
        let keys = |table: &dyn TableLike| table.iter().map(|(key, _)| key.to_owned()).collect();
        match server {
            Some(name) => self.server(name).map(keys).unwrap_or_default(),
            None => keys(self.toml.as_table()),
        }
    }

    /// Adds a server after the existing ones. Its secrets in clear text are replaced by their names in the
    /// store, and returned; none of them gets a name that `stored_names` returns, which is called only if
    /// there is a secret.
    #[must_use = "the secrets are neither in the document nor stored"]
    pub fn add_server(
        &mut self,
        name: &ServerName,
        server: &NewServer,
        stored_names: impl FnOnce() -> BTreeSet<String>,
    ) -> Result<StoredSecrets, EditError> {
        if self.server(name.as_str()).is_ok() {
            return Err(EditError::Exists(name.clone()));
        }
        let mut server = server.clone();
        let secrets = stored_secrets::take_secrets(name, &mut server, stored_names);
        new_server::insert(&mut self.toml, name, &server);
        Ok(secrets)
    }

    /// Limits a server to clients that work in these folders, by a new profile, and returns the name of
    /// that.
    pub fn limit_to_folders(&mut self, server: &ServerName, folders: &[String]) -> String {
        folder_limit::limit(&mut self.toml, server.as_str(), folders)
    }

    /// Admits clients in these folders too to a server that [`Document::limit_to_folders`] has limited;
    /// with no folder, all clients. Returns the name of the changed profile, if one was changed.
    pub fn widen_folders(&mut self, server: &ServerName, folders: &[String]) -> Option<String> {
        folder_limit::widen(&mut self.toml, server.as_str(), folders)
    }

    /// The names of the commands.
    pub fn commands(&self) -> Vec<String> {
        let commands = self.toml.get("commands").and_then(Item::as_table_like);
        let names = commands.into_iter().flat_map(TableLike::iter);
        names.map(|(name, _)| name.to_owned()).collect()
    }

    /// Adds a command with these values after the existing ones.
    pub fn add_command(&mut self, name: &str, values: &serde_json::Map<String, serde_json::Value>) {
        new_server::insert_command(&mut self.toml, name, values);
    }

    /// Adds the table `cluster` with these values. Fails if there is one.
    pub fn add_cluster(
        &mut self,
        values: &serde_json::Map<String, serde_json::Value>,
    ) -> Result<(), EditError> {
        if self.toml.contains_key("cluster") {
            return Err(EditError::HasCluster);
        }
        new_server::insert_cluster(&mut self.toml, values);
        Ok(())
    }

    /// Returns the part of the text that the nodes of a cluster share.
    pub fn shared_part(&self) -> String {
        let mut shared = self.toml.clone();
        let keys: Vec<String> = shared.iter().map(|(key, _)| key.to_owned()).collect();
        for key in keys {
            if !SHARED_KEYS.contains(&key.as_str()) {
                shared.remove(&key);
            }
        }
        shared.to_string()
    }

    /// Removes a server, with the comment directly above it and the profile of
    /// [`Document::limit_to_folders`]. Returns the name of that profile, if there was one.
    pub fn remove_server(&mut self, name: &str) -> Result<Option<String>, EditError> {
        self.server(name)?;
        remove_table(&mut self.toml, "servers", name);
        Ok(folder_limit::widen(&mut self.toml, name, &[]))
    }

    /// Renames a server. Rules for calls and lists of clients apply to the new name as they did to the
    /// old one; returns those that were changed.
    pub fn rename_server(&mut self, from: &str, to: &ServerName) -> Result<Vec<String>, EditError> {
        self.server(from)?;
        if self.server(to.as_str()).is_ok() {
            return Err(EditError::Exists(to.clone()));
        }
        let (name, rules) = (to.clone(), self.list_rules_of(to.as_str()));
        if !rules.is_empty() {
            return Err(EditError::Named { name, rules });
        }
        let mut renamed = self.toml.clone();
        let changed = mentions::rename(&mut renamed, from, to.as_str())?;
        rename::rename(&mut renamed, from, to.as_str());
        self.toml = renamed;
        Ok(changed)
    }

    /// The rules for calls and lists of clients that name exactly this server, as they are written.
    pub fn list_rules_of(&self, server: &str) -> Vec<String> {
        mentions::list(&self.toml, server)
    }

    /// Removes the rules and entries that name this server alone, and its name from the others.
    pub fn remove_rules_of(&mut self, server: &str) -> RemovedRules {
        mentions::remove(&mut self.toml, server)
    }

    /// Enables or disables a server. Returns true if that changed anything.
    pub fn set_enabled(&mut self, name: &str, enabled: bool) -> Result<bool, EditError> {
        self.server(name)?;
        let server = self.toml["servers"][name]
            .as_table_like_mut()
            .expect("it was found right above");
        let is_enabled = server.get("enabled").and_then(Item::as_bool);
        if is_enabled.unwrap_or(true) == enabled {
            return Ok(false);
        }
        match server.get_mut("enabled").and_then(Item::as_value_mut) {
            Some(value) => {
                let decor = value.decor().clone();
                *value = enabled.into();
                *value.decor_mut() = decor;
            }
            None => {
                server.insert("enabled", toml_edit::value(enabled));
            }
        }
        Ok(true)
    }

    /// Inserts a rule that allows one thing directly before the rule that decided about it when the
    /// user saw it. Fails if the rules have changed since. Returns the number of the new rule, counted
    /// from 1; `None` if it is allowed already.
    pub fn allow(
        &mut self,
        allowance: &Allowance,
        overrides: &Overrides,
        env: &Environment,
    ) -> Result<Option<usize>, EditError> {
        let (servers, server) = (self.servers(), allowance.server());
        let is_ours = ["proxy", "scripts"].contains(&server)
            || server == "commands" && !self.commands().is_empty();
        if !is_ours && servers.iter().all(|known| known != server) {
            let (name, known) = (server.to_owned(), servers);
            return Err(EditError::Unknown { name, known });
        }
        let policy = self.read_policy(overrides, env)?;
        let index = match allowance.find_place(&policy) {
            Ok(index) => index,
            Err(NotAllowable::Allowed(_)) => return Ok(None),
            Err(why) => return Err(EditError::NotAllowable(why)),
        };
        let before = self.toml.clone();
        rule::insert(&mut self.toml, index, &allowance.rule());
        // Rules may also come from other layers than this file.
        let after = self.read_policy(overrides, env);
        let is_so = |after: &Policy| {
            after.count_rules() == policy.count_rules() + 1 && allowance.is_allowed_by(after, index)
        };
        match after {
            Ok(after) if is_so(&after) => Ok(Some(index + 1)),
            after => {
                self.toml = before;
                Err(after
                    .err()
                    .unwrap_or(EditError::NotAllowable(NotAllowable::Changed)))
            }
        }
    }

    /// Inserts a rule before all others of the file that forbids a tool, for the client with this name or
    /// for every client.
    pub fn forbid(&mut self, server: &str, tool: &str, client: Option<&str>) {
        let mut rule = vec![("decision", PolicyVerdict::Deny.as_str().to_owned())];
        rule.extend(client.map(|name| ("client", escape_pattern(name))));
        rule.push(("server", escape_pattern(server)));
        rule.push(("tool", escape_pattern(tool)));
        rule::insert(&mut self.toml, 0, &rule);
    }

    /// Replaces the whole text by an earlier one, if the text is still `expected`.
    pub fn restore(&mut self, expected: &str, text: &str) -> Result<(), EditError> {
        if self.text() != expected {
            return Err(EditError::Changed(self.path.clone()));
        }
        let before = self.before.take();
        *self = Self::parse(&self.path, Some(text.to_owned()))?;
        self.before = before;
        Ok(())
    }

    /// Returns the rules of the text as it would be written, with all layers merged.
    fn read_policy(
        &self,
        overrides: &Overrides,
        env: &Environment,
    ) -> Result<Arc<Policy>, EditError> {
        let read = self.read_text(&self.text(), overrides, env);
        let config = read.map_err(|mistakes| EditError::Mistakes(self.error(mistakes)))?;
        Ok(config.gateway.policy)
    }

    /// Returns the mistakes of the text as it would be written, with all layers merged.
    pub fn check(&self, overrides: &Overrides, env: &Environment) -> Result<(), Vec<Mistake>> {
        self.read_text(&self.text(), overrides, env).map(drop)
    }

    fn read_text(
        &self,
        text: &str,
        overrides: &Overrides,
        env: &Environment,
    ) -> Result<Config, Vec<Mistake>> {
        super::read_layers(&ConfigFile::at(&self.path), text, overrides, env)
    }

    fn error(&self, mistakes: Vec<Mistake>) -> ConfigError {
        let file = self.path.clone();
        ConfigError { file, mistakes }
    }

    fn server(&self, name: &str) -> Result<&dyn TableLike, EditError> {
        let servers = self.toml.get("servers").and_then(Item::as_table_like);
        let server = servers.and_then(|servers| servers.get(name));
        server.and_then(Item::as_table_like).ok_or_else(|| {
            let known = self.servers();
            let name = name.to_owned();
            EditError::Unknown { name, known }
        })
    }
}

#[cfg(test)]
mod tests;
