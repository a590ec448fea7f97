//! The rules for a client, by the name that it announces.

use std::{path::PathBuf, sync::Arc};

use printable::{LetterCase, Pattern};
use registry::{BUILT_IN_CATEGORY, View};
use tool::ServerName;

use crate::{
    Connection,
    project::{PROJECT_FILE, ProjectRule},
};

/// The tables of clients and of profiles.
#[derive(Debug, Clone, Default)]
pub struct ClientPolicies {
    /// The exact names first, then the longest patterns.
    tables: Vec<ClientTable>,
    profiles: Vec<Profile>,
}

/// A table `[profiles.NAME]`.
#[derive(Debug, Clone)]
struct Profile {
    table: ClientTable,
    folders: Vec<PathBuf>,
    outside_folders: Vec<PathBuf>,
    callers: Vec<Pattern>,
}

/// The sessions that a profile applies to without being named by their clients.
#[derive(Debug, Clone, Default)]
pub struct ProfileSelector {
    /// Folders: it applies to a client that works in one of them, or below.
    pub folders: Vec<PathBuf>,
    /// Folders: it applies to a client that works in none of them and below none. A client whose folder
    /// is not known is such a client. Empty: it applies to no client for this reason.
    pub outside_folders: Vec<PathBuf>,
    /// Patterns of `token NAME` and `oauth SUBJECT`, the credentials of clients over HTTP.
    pub callers: Vec<String>,
}

#[derive(Debug, Clone)]
struct ClientTable {
    name: Arc<str>,
    written: ClientRule,
    pattern: Pattern,
    view: Option<Arc<View>>,
}

/// The part of the catalogue that the instructions for a client name.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ShownCatalog {
    /// The number of tools.
    None,
    /// The servers, with the number of their tools.
    #[default]
    Servers,
    /// The name of each tool, if there are few.
    Names,
    /// The line of each tool that a search shows, if there are few.
    Signatures,
}

/// One `[clients.NAME]` table as written.
#[derive(Debug, Clone, Default)]
pub struct ClientRule {
    /// The limit of one result, in tokens.
    pub max_tokens: Option<u64>,
    /// Servers and categories that it sees; empty: all.
    pub allow: Vec<String>,
    /// Servers and categories that it does not see.
    pub deny: Vec<String>,
    /// Resources are neither announced nor listed to it.
    pub hides_resources: bool,
    /// The part of the catalogue that its instructions name.
    pub catalog: ShownCatalog,
}

/// The rules for one client.
#[derive(Debug, Clone, Default)]
pub struct ClientPolicy {
    /// The name that the client announced, in lower case; empty if it announced none.
    pub name: Arc<str>,
    /// The table that it comes from, as written; `None` if the client has none.
    pub table: Option<String>,
    max_tokens: Option<u64>,
    /// The known limit of the client program.
    takes_tokens: Option<u64>,
    /// The visible servers; `None`: all of them.
    pub view: Option<Arc<View>>,
    /// Resources are neither announced nor listed to it.
    pub hides_resources: bool,
    /// The part of the catalogue that its instructions name.
    pub catalog: ShownCatalog,
    /// The profiles that apply as well.
    pub profiles: Vec<Arc<str>>,
    /// The file of the project that applies as well.
    project: Option<Arc<ProjectRule>>,
    /// Each list of visible servers with the table that it comes from.
    lists: Vec<(String, Arc<View>)>,
    /// The policy comes from the configuration; a person at the command line is not bound by its
    /// tables.
    is_configured: bool,
}

/// The client name of calls from the command line.
pub const COMMAND_LINE: &str = "proxy-cli";

/// The tokens of one result that a known program accepts directly. Claude Code counts a result of
/// more than about 12,500 before it shows it, and writes one of more than 25,000 to a file. Codex,
/// with a model that it does not know, keeps some 12,000 characters.
const TAKEN_TOKENS: [(&str, u64); 2] = [("claude-code", 12_000), ("codex-mcp-client", 2_500)];

impl ClientPolicies {
    /// The error is the name whose table has an invalid pattern, and why.
    pub fn new(
        rules: impl IntoIterator<Item = (String, ClientRule)>,
    ) -> Result<Self, (String, String)> {
        let tables = rules.into_iter().map(|(name, rule)| {
            let table = ClientTable::new(&name, rule);
            table.map_err(|error| (name, error))
        });
        let mut tables = tables.collect::<Result<Vec<_>, _>>()?;
        tables.sort_by_key(|table| (!table.pattern.is_exact(), usize::MAX - table.name.len()));
        Ok(Self {
            tables,
            profiles: Vec::new(),
        })
    }

    /// Adds a profile. The error says which pattern is invalid.
    pub fn add_profile(
        &mut self,
        name: &str,
        rule: &ClientRule,
        selector: ProfileSelector,
    ) -> Result<(), String> {
        let callers = selector
            .callers
            .iter()
            .map(|pattern| Pattern::new(pattern, LetterCase::Matters));
        let callers = callers.collect::<Result<_, _>>();
        self.profiles.push(Profile {
            table: ClientTable::new(name, rule.clone())?,
            folders: selector.folders,
            outside_folders: selector.outside_folders,
            callers: callers.map_err(|error| format!("no pattern: {error}"))?,
        });
        Ok(())
    }

    /// The profiles as written, by their names.
    pub fn profiles(&self) -> impl Iterator<Item = (&str, &ClientRule)> {
        let profiles = self.profiles.iter();
        profiles.map(|it| (&*it.table.name, &it.table.written))
    }

    /// The profiles of a connection, each with the reason: `serve --profile`, a URL, a token, a folder.
    /// All of them apply.
    pub fn choose(&self, connection: &Connection) -> Vec<(Arc<str>, String)> {
        let mut chosen: Vec<(Arc<str>, String)> = Vec::new();
        let mut choose = |name: &Arc<str>, why: String| {
            if chosen.iter().all(|(known, _)| known != name) {
                chosen.push((Arc::clone(name), why));
            }
        };
        if let Some(name) = &connection.profile {
            let why = match connection.transport {
                "http" => format!("the address /mcp/{name}"),
                _ => "serve --profile".to_owned(),
            };
            choose(name, why);
        }
        let project = connection.project.as_ref();
        if let Some(name) = project.and_then(|it| it.profile.as_deref()) {
            choose(&Arc::from(name), PROJECT_FILE.to_owned());
        }
        let roots = connection.roots.load();
        for profile in &self.profiles {
            let is_in = |folder: &&PathBuf| {
                let cwd = connection.cwd.as_deref().into_iter();
                let mut places = cwd.chain(roots.iter().map(PathBuf::as_path));
                places.any(|place| place.starts_with(folder))
            };
            if let Some(folder) = profile.folders.iter().find(is_in) {
                choose(&profile.table.name, format!("folder {}", folder.display()));
            }
            let outside = &profile.outside_folders;
            if let Some(first) = outside.first()
                && !outside.iter().any(|folder| is_in(&folder))
            {
                choose(
                    &profile.table.name,
                    format!("not in folder {}", first.display()),
                );
            }
            let is_of = |caller: &&Arc<str>| {
                let mut patterns = profile.callers.iter();
                patterns.any(|pattern| pattern.matches(caller))
            };
            if let Some(caller) = connection.caller.as_ref().filter(is_of) {
                choose(&profile.table.name, caller.to_string());
            }
        }
        chosen
    }

    /// Returns true if the folder of a client may select a profile.
    pub(crate) fn has_folders(&self) -> bool {
        let mut profiles = self.profiles.iter();
        profiles.any(|it| !it.folders.is_empty() || !it.outside_folders.is_empty())
    }

    /// The rules for a connected client, with those of its profiles and its project.
    pub fn of_connection(&self, connection: &Connection, announced: Option<&str>) -> ClientPolicy {
        let mut policy = self.of(connection.rule.as_deref().or(announced));
        let chosen = self.choose(connection).into_iter();
        policy.profiles = chosen.map(|(name, _)| name).collect();
        policy.project.clone_from(&connection.project);
        self.narrow(policy)
    }

    /// Applies the profiles and the project of a policy. A profile that is no longer configured admits
    /// nothing.
    fn narrow(&self, mut policy: ClientPolicy) -> ClientPolicy {
        for name in policy.profiles.clone() {
            let table = format!("profiles.{name:?}");
            match self.profiles.iter().find(|it| it.table.name == name) {
                Some(profile) => policy.narrow(table, &profile.table),
                None => policy.narrow(table, &ClientTable::of_nothing()),
            }
        }
        if let Some(project) = policy.project.clone() {
            let rule = ClientRule {
                max_tokens: project.max_tokens,
                allow: project.allow.clone(),
                deny: project.deny.clone(),
                ..ClientRule::default()
            };
            let table = ClientTable::new(PROJECT_FILE, rule);
            let table = table.unwrap_or_else(|_| ClientTable::of_nothing());
            policy.narrow(PROJECT_FILE.to_owned(), &table);
        }
        policy
    }

    /// The rules for the client that announced this name.
    pub fn of(&self, announced: Option<&str>) -> ClientPolicy {
        let name = announced.unwrap_or_default().to_lowercase();
        let table = self
            .tables
            .iter()
            .find(|table| table.pattern.matches(&name));
        let known = TAKEN_TOKENS.iter().find(|(known, _)| *known == name);
        let mut policy = ClientPolicy {
            name: name.as_str().into(),
            takes_tokens: known.map(|(_, tokens)| *tokens),
            is_configured: true,
            ..ClientPolicy::default()
        };
        if let Some(table) = table {
            let title = format!("clients.{:?}", table.name);
            policy.table = Some(title.clone());
            policy.catalog = table.written.catalog;
            policy.narrow(title, table);
        }
        policy
    }

    /// The tables as written, by their names.
    pub(crate) fn tables(&self) -> impl Iterator<Item = (&str, &ClientRule)> {
        let tables = self.tables.iter();
        tables.map(|table| (&*table.name, &table.written))
    }

    /// The rules for the same client in this configuration.
    pub(crate) fn renew(&self, policy: &Arc<ClientPolicy>) -> Arc<ClientPolicy> {
        if policy.is_configured {
            let renewed = ClientPolicy {
                profiles: policy.profiles.clone(),
                project: policy.project.clone(),
                ..self.of(Some(&policy.name))
            };
            Arc::new(self.narrow(renewed))
        } else {
            Arc::clone(policy)
        }
    }
}

impl ClientTable {
    fn new(name: &str, rule: ClientRule) -> Result<Self, String> {
        let no_pattern = |error: String| format!("no pattern: {error}");
        let has_rules = !rule.allow.is_empty() || !rule.deny.is_empty();
        let view = has_rules.then(|| View::new(&rule.allow, &rule.deny));
        Ok(Self {
            name: name.into(),
            written: rule,
            pattern: Pattern::new(name, LetterCase::Ignored).map_err(no_pattern)?,
            view: view.transpose().map_err(no_pattern)?.map(Arc::new),
        })
    }

    /// A table that admits no server.
    fn of_nothing() -> Self {
        let rule = ClientRule {
            deny: vec!["*".to_owned()],
            ..ClientRule::default()
        };
        Self::new("*", rule).expect("the pattern is ours")
    }
}

impl ClientPolicy {
    /// The policy of a person at the command line: rules for calls apply to them as to any client,
    /// tables of clients do not.
    pub fn of_command_line() -> Self {
        Self {
            name: COMMAND_LINE.into(),
            ..Self::default()
        }
    }

    /// Applies another table as well.
    fn narrow(&mut self, title: String, table: &ClientTable) {
        if let Some(view) = &table.view {
            let both = self.view.as_ref().map(|own| Arc::new(own.and(view)));
            self.view = Some(both.unwrap_or_else(|| Arc::clone(view)));
            self.lists.push((title, Arc::clone(view)));
        }
        let limits = [self.max_tokens, table.written.max_tokens];
        self.max_tokens = limits.into_iter().flatten().min();
        self.hides_resources |= table.written.hides_resources;
    }

    /// The rule that hides a tool of this server and category from the client, and its table.
    pub fn refuses(&self, server: &ServerName, category: &str) -> Option<(String, &str)> {
        let mut lists = self.lists.iter();
        lists.find_map(|(title, view)| Some((view.refuses(server, category)?, title.as_str())))
    }

    /// Returns true if a tool of this server and category is shown to the client.
    pub fn sees(&self, server: &ServerName, category: &str) -> bool {
        self.refuses(server, category).is_none()
    }

    /// Returns true if the client may call our own tools, `proxy/...`: no text names them to another.
    pub(crate) fn sees_ours(&self) -> bool {
        self.sees(&ServerName::built_in(), BUILT_IN_CATEGORY)
    }

    /// The largest part of a result that the client gets at once if its call sets no limit: the
    /// limit of the tool or server (`of_tool`), else that of the person for this client, else
    /// `otherwise`; never more than the client accepts.
    pub fn max_tokens(&self, of_tool: Option<u64>, otherwise: u64) -> u64 {
        let said = of_tool.or(self.max_tokens).unwrap_or(otherwise);
        let most = self.max_tokens.or(self.takes_tokens);
        most.map_or(said, |most| said.min(most))
    }
}

#[cfg(test)]
mod tests {
    use std::{path::Path, sync::Arc};

    use super::{ClientPolicies, ClientRule, ProfileSelector};
    use crate::{Connection, project::ProjectRule};

    #[test]
    fn profiles_and_projects_narrow_what_a_client_sees() {
        let mut clients = clients(&["cursor"]);
        let rule = |allow: &str, max_tokens: u64| ClientRule {
            max_tokens: Some(max_tokens),
            allow: vec![allow.to_owned()],
            ..ClientRule::default()
        };
        let selector = ProfileSelector {
            folders: vec!["/projects".into()],
            callers: vec!["token ci*".to_owned()],
            ..ProfileSelector::default()
        };
        let work = clients.add_profile("work", &rule("git*", 3_000), selector);
        work.unwrap();
        let small = ProfileSelector::default();
        clients
            .add_profile("small", &rule("*", 500), small)
            .unwrap();
        let check = |connection: Connection, seen: &[&str], reason: &str, tokens: u64| {
            let policy = clients.of_connection(&connection, Some("cursor"));
            let servers = ["github", "gitlab", "notes", "finance"];
            let sees = |it: &&str| policy.sees(&it.parse().unwrap(), "");
            let all: Vec<_> = servers.into_iter().filter(sees).collect();
            assert_eq!(all, seen);
            let chosen = clients.choose(&connection).into_iter();
            let reasons: Vec<String> = chosen.map(|(name, why)| format!("{name}: {why}")).collect();
            assert_eq!(reasons.join("; "), reason);
            assert_eq!(policy.max_tokens(None, 4_000), tokens);
            let renewed = clients.renew(&Arc::new(policy));
            assert_eq!(renewed.max_tokens(None, 4_000), tokens);
        };
        let plain = Connection::default;
        check(plain(), &["github", "gitlab", "notes"], "", 8_000);
        let in_folder = Connection {
            cwd: Some(Path::new("/projects/a").into()),
            ..plain()
        };
        check(
            in_folder,
            &["github", "gitlab"],
            "work: folder /projects",
            3_000,
        );
        let by_token = Connection {
            caller: Some("token ci-2".into()),
            profile: Some("small".into()),
            transport: "http",
            ..plain()
        };
        let reasons = "small: the address /mcp/small; work: token ci-2";
        check(by_token, &["github", "gitlab"], reasons, 500);
        let project = ProjectRule {
            profile: Some("work".to_owned()),
            deny: vec!["github".to_owned()],
            ..ProjectRule::default()
        };
        let in_project = Connection {
            project: Some(Arc::new(project)),
            ..plain()
        };
        check(in_project, &["gitlab"], "work: .proxy.toml", 3_000);
        let gone = Connection {
            profile: Some("gone".into()),
            ..plain()
        };
        check(gone, &[], "gone: serve --profile", 8_000);
    }

    #[test]
    fn a_profile_for_clients_outside_of_folders_hides_a_server_elsewhere() {
        let mut clients = clients(&[]);
        let rule = ClientRule {
            deny: vec!["notes".to_owned()],
            ..ClientRule::default()
        };
        let selector = ProfileSelector {
            outside_folders: vec!["/a/site".into(), "/b".into()],
            ..ProfileSelector::default()
        };
        clients
            .add_profile("notes-elsewhere", &rule, selector)
            .unwrap();
        assert!(clients.has_folders());
        let sees = |cwd: Option<&str>, roots: &[&str]| {
            let connection = Connection {
                cwd: cwd.map(|cwd| Path::new(cwd).into()),
                ..Connection::default()
            };
            let roots = roots.iter().map(std::path::PathBuf::from).collect();
            connection.roots.store(Arc::new(roots));
            let policy = clients.of_connection(&connection, None);
            assert!(policy.sees(&"github".parse().unwrap(), ""));
            policy.sees(&"notes".parse().unwrap(), "")
        };
        assert!(sees(Some("/a/site"), &[]));
        assert!(sees(Some("/b/c"), &[]));
        assert!(sees(Some("/"), &["/a/site/src"]));
        assert!(!sees(Some("/a"), &[]));
        assert!(!sees(Some("/a/sites"), &["/c"]));
        assert!(!sees(None, &[]));
    }

    fn clients(names: &[&str]) -> ClientPolicies {
        let table = |name: &&str| {
            let rule = ClientRule {
                max_tokens: Some(8_000),
                deny: vec!["finance".to_owned()],
                ..ClientRule::default()
            };
            ((*name).to_owned(), rule)
        };
        ClientPolicies::new(names.iter().map(table)).expect("the patterns are good")
    }

    #[track_caller]
    fn check(announced: Option<&str>, expected: Option<&str>) {
        let clients = clients(&["Codex", "c*", "cursor*", "*"]);
        let table = clients.of(announced).table;
        assert_eq!(table.as_deref(), expected);
    }

    #[test]
    fn an_exact_name_goes_first_then_the_longest_pattern() {
        check(Some("codex"), Some("clients.\"Codex\""));
        check(Some("Cursor-VSCode"), Some("clients.\"cursor*\""));
        check(Some("claude-code"), Some("clients.\"c*\""));
        check(None, Some("clients.\"*\""));
        assert!(clients(&["codex"]).of(Some("gemini")).table.is_none());
    }

    #[test]
    fn a_client_gets_what_it_takes_and_what_the_person_says() {
        let plain = ClientPolicies::default();
        let known = plain.of(Some("claude-code"));
        assert_eq!(known.max_tokens(None, 4_000), 4_000);
        assert_eq!(known.max_tokens(Some(50_000), 4_000), 12_000);
        assert_eq!(
            plain.of(Some("codex-mcp-client")).max_tokens(None, 4_000),
            2_500
        );
        let unknown = plain.of(Some("other"));
        assert_eq!(unknown.max_tokens(Some(50_000), 4_000), 50_000);
        let said = clients(&["claude-code"]).of(Some("claude-code"));
        assert_eq!(said.max_tokens(None, 4_000), 8_000);
        assert_eq!(said.max_tokens(Some(500), 4_000), 500);
        assert_eq!(said.max_tokens(Some(50_000), 4_000), 8_000);
    }
}
