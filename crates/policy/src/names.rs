//! The names of a call in every spelling that is compared.

use printable::FoldedText;

use crate::{
    Effects, RequestKind, Subject,
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
    pub(crate) fn new(call: &Subject<'a>) -> Self {
        let profiles = call.profiles.iter();
        let mut names = Self {
            client: FoldedText::new(call.client),
            profiles: profiles.map(|it| FoldedText::new(&**it)).collect(),
            server: FoldedText::new(call.server),
            name: FoldedText::new(call.name),
            full: FoldedText::new(format!("{}/{}", call.server, call.name)),
            spellings: Vec::new(),
            may_be_any_file: false,
            category: FoldedText::new(call.category),
            kind: call.kind,
            effects: call.effects,
        };
        if call.kind == RequestKind::Resource {
            let readings = Readings::of(call.name, None);
            names.may_be_any_file = readings.may_name_any_file(call.name);
            let files = readings.whole.iter().map(|path| format!("file://{path}"));
            let spellings = files.chain(path::spellings_of_address(call.name));
            names.spellings = spellings.map(FoldedText::new).collect();
        }
        names
    }
}
