//! Dependencies between files: each name is resolved to the file that defines it.

use std::collections::{BTreeMap, BTreeSet};

use proc_macro2::{TokenStream, TokenTree};
use quote::ToTokens as _;
use syn::{ItemUse, visit::Visit};

use crate::source::{Crate, Import, Module, flatten};

/// The maximum length of a chain of imports that name other imports; a longer one is not resolved.
const STEPS_MAX: usize = 32;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Resolution {
    /// An item defined in this file.
    Item(usize),
    Module(usize),
    /// A name of another crate, or a local name.
    Outside,
}

/// Returns for each file the files that define the names it uses. A parent that only declares a
/// module or re-exports its names does not depend on it.
pub(crate) fn edges(of: &Crate) -> BTreeMap<usize, BTreeSet<usize>> {
    let mut edges: BTreeMap<usize, BTreeSet<usize>> = BTreeMap::new();
    for (index, module) in of.modules.iter().enumerate() {
        let named = NamedItem::of(module);
        let used = |import: &&Import| !import.is_public || named.words.contains(&import.name);
        let imports = module.imports.iter().filter(used);
        let imports = imports.map(|import| &import.path);
        for path in imports.chain(&named.paths) {
            if let Resolution::Item(file) = of.resolve(index, path, 0)
                && file != module.file
            {
                edges.entry(module.file).or_default().insert(file);
            }
        }
    }
    edges
}

/// Returns true if the file with this index names this crate.
pub(crate) fn names_crate(of: &Crate, file: usize, name: &str) -> bool {
    let modules = of.modules.iter().filter(|module| module.file == file);
    modules.into_iter().any(|module| {
        let named = NamedItem::of(module);
        let imports = module.imports.iter().map(|import| &import.path);
        let mut paths = imports.chain(&named.paths);
        paths.any(|path| path.first().is_some_and(|first| first == name))
    })
}

impl Crate {
    fn resolve(&self, from: usize, path: &[String], steps: usize) -> Resolution {
        let Some((first, rest)) = path.split_first().filter(|_| steps < STEPS_MAX) else {
            return Resolution::Outside;
        };
        let mut found = match first.as_str() {
            "crate" => Resolution::Module(0),
            "self" => Resolution::Module(from),
            "super" => Resolution::Module(self.modules[from].parent),
            name => self.look_up(from, name, steps + 1),
        };
        for segment in rest {
            found = match (found, segment.as_str()) {
                (Resolution::Module(module), "self") => Resolution::Module(module),
                (Resolution::Module(module), "super") => {
                    Resolution::Module(self.modules[module].parent)
                }
                (Resolution::Module(module), name) => self.look_up(module, name, steps + 1),
                (other, _) => return other,
            };
        }
        found
    }

    fn look_up(&self, module: usize, name: &str, steps: usize) -> Resolution {
        let here = &self.modules[module];
        if here.names.contains(name) {
            return Resolution::Item(here.file);
        }
        if let Some(child) = here.children.get(name) {
            return Resolution::Module(*child);
        }
        if let Some(import) = here.imports.iter().find(|import| import.name == name) {
            return self.resolve(module, &import.path, steps + 1);
        }
        let globs = here.imports.iter().filter(|import| import.name == "*");
        let through = globs.filter_map(|glob| match self.resolve(module, &glob.path, steps + 1) {
            Resolution::Module(other) if other != module && steps < STEPS_MAX => {
                Some(self.look_up(other, name, steps + 1))
            }
            _ => None,
        });
        through
            .into_iter()
            .find(|found| *found != Resolution::Outside)
            .unwrap_or(Resolution::Outside)
    }
}

/// Names that the items of a module use, apart from its own imports.
#[derive(Debug, Default)]
struct NamedItem {
    words: BTreeSet<String>,
    paths: Vec<Vec<String>>,
}

impl NamedItem {
    fn of(module: &Module) -> Self {
        let mut named = Self::default();
        for item in &module.items {
            named.visit_item(item);
            named.read(item.to_token_stream());
        }
        named
    }

    /// Reads every `a::b::c`, including those in macros.
    fn read(&mut self, tokens: TokenStream) {
        let mut path: Vec<String> = Vec::new();
        let (mut colons, mut is_open) = (0, false);
        for token in tokens {
            match token {
                TokenTree::Ident(ident) => {
                    if !is_open {
                        self.end(&mut path);
                    }
                    self.words.insert(ident.to_string());
                    path.push(ident.to_string());
                    (colons, is_open) = (0, false);
                }
                TokenTree::Punct(punct) if punct.as_char() == ':' => {
                    colons += 1;
                    is_open = colons == 2 && !path.is_empty();
                }
                TokenTree::Group(group) => {
                    self.end(&mut path);
                    self.read(group.stream());
                    (colons, is_open) = (0, false);
                }
                _ => {
                    self.end(&mut path);
                    (colons, is_open) = (0, false);
                }
            }
        }
        self.end(&mut path);
    }

    fn end(&mut self, path: &mut Vec<String>) {
        let path = std::mem::take(path);
        if path.len() > 1 {
            self.paths.push(path);
        }
    }
}

/// Reads imports inside functions.
impl Visit<'_> for NamedItem {
    fn visit_item_use(&mut self, item: &ItemUse) {
        let mut imports = Vec::new();
        flatten(&item.tree, &mut Vec::new(), false, &mut imports);
        self.paths
            .extend(imports.into_iter().map(|import| import.path));
    }
}
