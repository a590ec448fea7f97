//! The owner of scripts, across sessions and restarts.

use std::sync::Arc;

use tool::Digest;

#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(crate) enum Caller {
    /// A person at the command line.
    #[default]
    Person,
    /// Over HTTP, a token of the configuration or the subject of a login.
    Token(Arc<str>),
    /// A client by the name that it announces.
    Client(Arc<str>),
}

impl Caller {
    /// The name of its folder: a digest, since a client's name may be any text.
    pub(crate) fn folder_name(&self) -> String {
        let of = |kind: &str, name: &str| format!("{kind}-{}", Digest::of_bytes(name.as_bytes()));
        match self {
            Self::Person => "person".to_owned(),
            Self::Token(name) => of("token", name),
            Self::Client(name) => of("client", name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_caller_has_a_folder_of_its_own_whatever_its_name() {
        let token = |name: &str| Caller::Token(name.into());
        let client = |name: &str| Caller::Client(name.into());
        let callers = [
            Caller::Person,
            token("a"),
            token("b"),
            client("a"),
            client("A"),
            client(""),
            client("../token"),
            client("person"),
            client(&"x".repeat(10_000)),
        ];
        let names: Vec<String> = callers.iter().map(Caller::folder_name).collect();
        let apart: std::collections::BTreeSet<&String> = names.iter().collect();
        assert_eq!(apart.len(), names.len(), "{names:?}");
        let is_plain = |name: &&String| {
            let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-';
            name.len() < 100 && name.chars().all(is_plain)
        };
        assert!(names.iter().all(|name| is_plain(&name)), "{names:?}");
        assert_eq!(token("a").folder_name(), names[1]);
    }
}
