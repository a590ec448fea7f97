//! The names of a call in every spelling that is compared.

use crate::{
    Effects, Kind, Subject,
    matcher::Text,
    path::{self, Readings},
};

/// The names of a call, prepared for comparison.
#[derive(Debug)]
pub(crate) struct Names<'a> {
    pub(crate) client: Text<'a>,
    pub(crate) server: Text<'a>,
    pub(crate) name: Text<'a>,
    /// `server/name`.
    pub(crate) full: Text<'a>,
    /// Other spellings of a resource's address.
    pub(crate) spellings: Vec<Text<'a>>,
    /// True if a resource may be any file.
    pub(crate) may_be_any_file: bool,
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
            may_be_any_file: spellings.may_be_any_file,
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
    may_be_any_file: bool,
}

impl Spellings {
    pub(crate) fn new(call: &Subject<'_>) -> Self {
        let mut spellings = Self {
            full: format!("{}/{}", call.server, call.name),
            of_address: Vec::new(),
            may_be_any_file: false,
        };
        if call.kind == Kind::Resource {
            let readings = Readings::of(call.name, None);
            spellings.may_be_any_file = readings.may_name_any_file(call.name);
            let files = readings.whole.iter().map(|path| format!("file://{path}"));
            spellings.of_address.extend(files);
            let addresses = path::spellings_of_address(call.name);
            spellings.of_address.extend(addresses);
        }
        spellings
    }
}
