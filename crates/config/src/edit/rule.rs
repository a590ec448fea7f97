//! A rule for calls, put before the others.

use toml_edit::{ArrayOfTables, DocumentMut, InlineTable, Item, Table, Value};

/// A rule that allows one thing, as it is written.
#[derive(Debug, Clone, Copy)]
pub struct AllowRule<'a> {
    /// `tool`, `prompt` or `resource`.
    pub key: &'a str,
    /// The server.
    pub server: &'a str,
    /// The own name of what is allowed.
    pub name: &'a str,
    /// For this client alone.
    pub client: Option<&'a str>,
}

impl AllowRule<'_> {
    fn members(&self) -> Vec<(&str, String)> {
        let mut members = vec![("decision", "allow".to_owned())];
        members.extend(self.client.map(|client| ("client", policy::escape(client))));
        members.push(("server", policy::escape(self.server)));
        members.push((self.key, policy::escape(self.name)));
        members
    }
}

/// Whether that changed anything: the first rule may be this one already.
pub(super) fn add(toml: &mut DocumentMut, rule: &AllowRule<'_>) -> bool {
    let members = rule.members();
    let is_it = |first: Option<&dyn toml_edit::TableLike>| {
        first.is_some_and(|first| {
            let has = |(key, value): &(&str, String)| {
                first.get(key).and_then(Item::as_str) == Some(value.as_str())
            };
            first.len() == members.len() && members.iter().all(has)
        })
    };
    match toml.get_mut("rules") {
        Some(Item::Value(Value::Array(rules))) => {
            let first = rules.get(0).and_then(Value::as_inline_table);
            if is_it(first.map(|it| it as &dyn toml_edit::TableLike)) {
                return false;
            }
            let mut rule = InlineTable::new();
            for (key, value) in members {
                rule.insert(key, value.into());
            }
            if let Some(first) = rules.get_mut(0) {
                first.decor_mut().set_prefix(" ");
            }
            rules.insert(0, rule);
        }
        Some(Item::ArrayOfTables(rules)) => {
            if is_it(rules.get(0).map(|it| it as &dyn toml_edit::TableLike)) {
                return false;
            }
            let others: Vec<Table> = rules.iter().cloned().collect();
            rules.clear();
            rules.push(table_of(members));
            for rule in others {
                rules.push(rule);
            }
        }
        _ => {
            let mut rules = ArrayOfTables::new();
            rules.push(table_of(members));
            toml.insert("rules", Item::ArrayOfTables(rules));
        }
    }
    true
}

fn table_of(members: Vec<(&str, String)>) -> Table {
    let mut table = Table::new();
    table.decor_mut().set_prefix("\n");
    for (key, value) in members {
        table.insert(key, toml_edit::value(value));
    }
    table
}
