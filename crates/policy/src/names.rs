//! The names of a call in every spelling in which they are compared.

use crate::{Effects, Kind, Subject, matcher::Text, path};

/// The names of a call, ready to be compared.
#[derive(Debug)]
pub(crate) struct Names<'a> {
    pub(crate) client: Text<'a>,
    pub(crate) server: Text<'a>,
    pub(crate) name: Text<'a>,
    /// `server/name`.
    pub(crate) full: Text<'a>,
    /// Of a resource: other spellings of its address.
    pub(crate) spellings: Vec<Text<'a>>,
    pub(crate) category: Text<'a>,
    pub(crate) kind: Kind,
    pub(crate) effects: Effects,
}

impl<'a> Names<'a> {
    pub(crate) fn new(call: &Subject<'a>, spellings: &'a Spellings) -> Self {
        Self {
            client: Text::new(call.client),
            server: Text::new(call.server),
            name: Text::new(call.name),
            full: Text::new(&spellings.full),
            spellings: spellings
                .of_address
                .iter()
                .map(|it| Text::new(it))
                .collect(),
            category: Text::new(call.category),
            kind: call.kind,
            effects: call.effects,
        }
    }
}

/// Other spellings of a call's name.
#[derive(Debug)]
pub(crate) struct Spellings {
    full: String,
    of_address: Vec<String>,
}

impl Spellings {
    pub(crate) fn new(call: &Subject<'_>) -> Self {
        Self {
            full: format!("{}/{}", call.server, call.name),
            of_address: match call.kind {
                Kind::Resource => spellings_of_address(call.name),
                Kind::Tool | Kind::Prompt => Vec::new(),
            },
        }
    }
}

/// An address in its shortest spelling, and without what a server may take no notice of.
fn spellings_of_address(written: &str) -> Vec<String> {
    let mut spellings = Vec::new();
    let mut add = |text: &str| match path::resolve(text, None) {
        Some(path) => spellings.push(format!("file://{path}")),
        None => spellings.extend(path::tidy_address(text).into_iter().flatten()),
    };
    add(written);
    if let Some((bare, _)) = written.split_once(['?', '#']) {
        add(bare);
    }
    spellings
}
