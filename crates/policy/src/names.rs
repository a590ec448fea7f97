//! The names of a call in every spelling that is compared.

use crate::{
    Effects, RequestKind, Subject,
    matcher::FoldedText,
    path::{self, Readings},
};

/// The names of a call, prepared for comparison.
#[derive(Debug)]
pub(crate) struct CallNames<'a> {
    pub(crate) client: FoldedText<'a>,
    pub(crate) profiles: Vec<FoldedText<'a>>,
    pub(crate) server: FoldedText<'a>,
    pub(crate) name: FoldedText<'a>,
    /// `server/name`.
    pub(crate) full: FoldedText<'a>,
    /// Other spellings of a resource's address.
    pub(crate) spellings: Vec<FoldedText<'a>>,
    /// True if a resource may be any file.
    pub(crate) may_be_any_file: bool,
    pub(crate) category: FoldedText<'a>,
    pub(crate) kind: RequestKind,
    pub(crate) effects: Effects,
}

impl<'a> CallNames<'a> {
    pub(crate) fn new(call: &Subject<'a>, spellings: &'a Spellings) -> Self {
        Self {
            client: FoldedText::new(call.client),
            profiles: call.profiles.iter().map(|it| FoldedText::new(it)).collect(),
            server: FoldedText::new(call.server),
            name: FoldedText::new(call.name),
            full: FoldedText::new(&spellings.full),
            spellings: spellings
                .of_address
                .iter()
                .map(|it| FoldedText::new(it))
                .collect(),
            may_be_any_file: spellings.may_be_any_file,
            category: FoldedText::new(call.category),
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
        if call.kind == RequestKind::Resource {
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
