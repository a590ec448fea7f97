//! The rules for a client, by the name that it announces.

use std::sync::Arc;

use globset::{Glob, GlobMatcher};
use registry::{BUILT_IN_CATEGORY, View};
use tool::ServerName;

/// All tables, the exact names first, then the longest patterns.
#[derive(Debug, Clone, Default)]
pub struct ClientPolicies(Vec<ClientTable>);

#[derive(Debug, Clone)]
struct ClientTable {
    name: String,
    written: ClientRule,
    pattern: Option<GlobMatcher>,
    max_tokens: Option<u64>,
    view: Option<Arc<View>>,
    hides_resources: bool,
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
    pub name: String,
    /// The table that it comes from, as written; `None` if the client has none.
    pub table: Option<String>,
    /// The limit in the configuration.
    max_tokens: Option<u64>,
    /// The known limit of the client program.
    takes_tokens: Option<u64>,
    /// The visible servers; `None`: all of them.
    pub view: Option<Arc<View>>,
    /// Resources are neither announced nor listed to it.
    pub hides_resources: bool,
    /// The part of the catalogue that its instructions name.
    pub catalog: ShownCatalog,
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
            ClientTable::new(&name, &rule)
                .map_err(|error| (name, format!("no pattern: {}", error.kind())))
        });
        let mut tables = tables.collect::<Result<Vec<_>, _>>()?;
        tables.sort_by_key(|table| (table.pattern.is_some(), usize::MAX - table.name.len()));
        Ok(Self(tables))
    }

    /// The rules for the client that announced this name.
    pub fn of(&self, announced: Option<&str>) -> ClientPolicy {
        let name = announced.unwrap_or_default().to_lowercase();
        let table = self.0.iter().find(|table| table.means(&name));
        let known = TAKEN_TOKENS.iter().find(|(known, _)| *known == name);
        ClientPolicy {
            table: table.map(|table| format!("clients.{:?}", table.name)),
            name: name.clone(),
            max_tokens: table.and_then(|table| table.max_tokens),
            takes_tokens: known.map(|(_, tokens)| *tokens),
            view: table.and_then(|table| table.view.clone()),
            hides_resources: table.is_some_and(|table| table.hides_resources),
            catalog: table.map(|table| table.written.catalog).unwrap_or_default(),
            is_configured: true,
        }
    }

    /// The tables as written, by their names.
    pub(crate) fn tables(&self) -> impl Iterator<Item = (&str, &ClientRule)> {
        self.0
            .iter()
            .map(|table| (table.name.as_str(), &table.written))
    }

    /// Returns true if the table matches a client of this name.
    pub(crate) fn means(&self, table: &str, client: &str) -> bool {
        let mut tables = self.0.iter().filter(|it| it.name == table);
        tables.any(|table| table.means(&client.to_lowercase()))
    }

    /// The rules for the same client in this configuration.
    pub(crate) fn renew(&self, policy: &Arc<ClientPolicy>) -> Arc<ClientPolicy> {
        if policy.is_configured {
            Arc::new(self.of(Some(&policy.name)))
        } else {
            Arc::clone(policy)
        }
    }
}

impl ClientTable {
    fn new(name: &str, rule: &ClientRule) -> Result<Self, globset::Error> {
        let is_pattern = name.contains(['*', '?', '{', '[']);
        let lower = name.to_lowercase();
        let has_rules = !rule.allow.is_empty() || !rule.deny.is_empty();
        let view = has_rules.then(|| View::new(&rule.allow, &rule.deny));
        Ok(Self {
            name: name.to_owned(),
            written: rule.clone(),
            pattern: is_pattern
                .then(|| Glob::new(&lower).map(|glob| glob.compile_matcher()))
                .transpose()?,
            max_tokens: rule.max_tokens,
            view: view.transpose()?.map(Arc::new),
            hides_resources: rule.hides_resources,
        })
    }

    /// `name` is in lower case.
    fn means(&self, name: &str) -> bool {
        match &self.pattern {
            Some(pattern) => pattern.is_match(name),
            None => self.name.to_lowercase() == name,
        }
    }
}

impl ClientPolicy {
    /// The policy of a person at the command line: rules for calls apply to them as to any client,
    /// tables of clients do not.
    pub fn of_command_line() -> Self {
        Self {
            name: COMMAND_LINE.to_owned(),
            ..Self::default()
        }
    }

    /// The rule that hides a tool of this server and category from the client.
    pub fn refuses(&self, server: &ServerName, category: &str) -> Option<String> {
        self.view.as_ref()?.refuses(server, category)
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
    use super::{ClientPolicies, ClientRule};

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
