//! The parsed crates of this repository: files, modules, names and imports. Code that is compiled
//! only for tests is left out.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result};
use syn::{Attribute, Item, UseTree, Visibility, spanned::Spanned as _, visit_mut::VisitMut};

use crate::packages::Packages;

pub(crate) struct Crate {
    pub(crate) name: String,
    pub(crate) files: Vec<SourceFile>,
    /// The first module is the root.
    pub(crate) modules: Vec<Module>,
}

pub(crate) struct SourceFile {
    /// The path relative to the root of the repository.
    pub(crate) path: String,
    pub(crate) text: String,
    /// The line numbers, from 1, of code that is compiled only for tests.
    pub(crate) test_lines: BTreeSet<usize>,
    pub(crate) syntax: syn::File,
}

pub(crate) struct Module {
    pub(crate) parent: usize,
    pub(crate) file: usize,
    pub(crate) children: BTreeMap<String, usize>,
    /// The names defined here.
    pub(crate) names: BTreeSet<String>,
    pub(crate) imports: Vec<Import>,
    /// The other items, which may use names without importing them.
    pub(crate) items: Vec<Item>,
}

#[derive(Debug)]
pub(crate) struct Import {
    /// The imported name, or `*` for everything.
    pub(crate) name: String,
    pub(crate) path: Vec<String>,
    pub(crate) is_public: bool,
}

/// Reads every library and program of this repository.
pub(crate) fn crates(root: &Path, packages: &Packages) -> Result<Vec<Crate>> {
    let mut crates = Vec::new();
    for package in packages.ours() {
        let kinds = ["lib", "bin", "proc-macro"];
        let is_source = |kind: &String| kinds.contains(&kind.as_str());
        for target in &package.targets {
            if target.kind.iter().any(is_source) {
                crates.push(Crate::read(root, &target.name, &target.src_path)?);
            }
        }
    }
    Ok(crates)
}

impl Crate {
    pub(crate) fn read(root: &Path, name: &str, entry: &Path) -> Result<Self> {
        let mut made = Self {
            name: name.to_owned(),
            files: Vec::new(),
            modules: Vec::new(),
        };
        let folder = entry.parent().context("a source file lies in a folder")?;
        made.read_file(root, entry, folder, 0)?;
        Ok(made)
    }

    /// Reads a file and its child modules, whose folder is `folder`.
    fn read_file(
        &mut self,
        root: &Path,
        path: &Path,
        folder: &Path,
        parent: usize,
    ) -> Result<usize> {
        let text = fs::read_to_string(path).with_context(|| path.display().to_string())?;
        let mut syntax = syn::parse_file(&text).with_context(|| path.display().to_string())?;
        let mut tests = Tests::default();
        tests.visit_file_mut(&mut syntax);
        let items = syntax.items.clone();
        self.files.push(SourceFile {
            path: path
                .strip_prefix(root)
                .unwrap_or(path)
                .display()
                .to_string(),
            text,
            test_lines: tests.lines,
            syntax,
        });
        self.read_items(root, items, folder, (parent, self.files.len() - 1))
    }

    fn read_items(
        &mut self,
        root: &Path,
        items: Vec<Item>,
        folder: &Path,
        (parent, file): (usize, usize),
    ) -> Result<usize> {
        let module = self.modules.len();
        self.modules.push(Module {
            parent,
            file,
            children: BTreeMap::new(),
            names: BTreeSet::new(),
            imports: Vec::new(),
            items: Vec::new(),
        });
        for item in items {
            match item {
                Item::Mod(child) => {
                    let name = child.ident.to_string();
                    let inside = folder.join(&name);
                    let index = match child.content {
                        Some((_, items)) => {
                            self.read_items(root, items, &inside, (module, file))?
                        }
                        None => self.read_file(root, &file_of(&inside), &inside, module)?,
                    };
                    self.modules[module].children.insert(name, index);
                }
                Item::Use(it) => {
                    let is_public = !matches!(it.vis, Visibility::Inherited);
                    let imports = &mut self.modules[module].imports;
                    flatten(&it.tree, &mut Vec::new(), is_public, imports);
                }
                other => {
                    self.modules[module].names.extend(name_of(&other));
                    self.modules[module].items.push(other);
                }
            }
        }
        Ok(module)
    }
}

/// Returns `a/b.rs`, or `a/b/mod.rs` if there is no such file.
fn file_of(inside: &Path) -> PathBuf {
    let flat = inside.with_extension("rs");
    if flat.exists() {
        flat
    } else {
        inside.join("mod.rs")
    }
}

pub(crate) fn flatten(
    tree: &UseTree,
    path: &mut Vec<String>,
    is_public: bool,
    to: &mut Vec<Import>,
) {
    let import = |name: String, path: &[String], last: Option<String>| Import {
        name,
        path: path.iter().cloned().chain(last).collect(),
        is_public,
    };
    match tree {
        UseTree::Path(it) => {
            path.push(it.ident.to_string());
            flatten(&it.tree, path, is_public, to);
            path.pop();
        }
        UseTree::Group(it) => {
            for tree in &it.items {
                flatten(tree, path, is_public, to);
            }
        }
        UseTree::Glob(_) => to.push(import("*".to_owned(), path, None)),
        UseTree::Name(it) => {
            let name = it.ident.to_string();
            // `use a::{self}` is `use a`.
            let (name, last) = match path.last() {
                Some(own) if name == "self" => (own.clone(), None),
                _ => (name.clone(), Some(name)),
            };
            to.push(import(name, path, last));
        }
        UseTree::Rename(it) => to.push(import(
            it.rename.to_string(),
            path,
            Some(it.ident.to_string()),
        )),
    }
}

fn name_of(item: &Item) -> Option<String> {
    let ident = match item {
        Item::Const(it) => &it.ident,
        Item::Enum(it) => &it.ident,
        Item::Fn(it) => &it.sig.ident,
        Item::Macro(it) => it.ident.as_ref()?,
        Item::Static(it) => &it.ident,
        Item::Struct(it) => &it.ident,
        Item::Trait(it) => &it.ident,
        Item::Type(it) => &it.ident,
        Item::Union(it) => &it.ident,
        _ => return None,
    };
    Some(ident.to_string())
}

/// Removes code that is only compiled for tests, and records its lines.
#[derive(Debug, Default)]
struct Tests {
    lines: BTreeSet<usize>,
}

impl Tests {
    fn is_test(&mut self, attributes: &[Attribute], span: proc_macro2::Span) -> bool {
        let is_test = attributes.iter().any(is_for_tests);
        if is_test {
            self.lines.extend(span.start().line..=span.end().line);
        }
        is_test
    }
}

impl VisitMut for Tests {
    fn visit_file_mut(&mut self, file: &mut syn::File) {
        file.items
            .retain(|item| !self.is_test(attributes_of(item), item.span()));
        syn::visit_mut::visit_file_mut(self, file);
    }

    fn visit_item_mod_mut(&mut self, module: &mut syn::ItemMod) {
        if let Some((_, items)) = &mut module.content {
            items.retain(|item| !self.is_test(attributes_of(item), item.span()));
        }
        syn::visit_mut::visit_item_mod_mut(self, module);
    }

    fn visit_item_impl_mut(&mut self, block: &mut syn::ItemImpl) {
        block.items.retain(|item| match item {
            syn::ImplItem::Fn(it) => !self.is_test(&it.attrs, it.span()),
            syn::ImplItem::Const(it) => !self.is_test(&it.attrs, it.span()),
            _ => true,
        });
        syn::visit_mut::visit_item_impl_mut(self, block);
    }
}

fn is_for_tests(attribute: &Attribute) -> bool {
    let is_cfg = attribute.path().is_ident("cfg");
    // `test`, or `all(test, ...)`.
    let is_test = |list: &syn::MetaList| {
        let text = list.tokens.to_string().replace(' ', "");
        text == "test" || text.starts_with("all(test,")
    };
    (is_cfg && attribute.meta.require_list().is_ok_and(is_test))
        || attribute.path().is_ident("test")
}

fn attributes_of(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(it) => &it.attrs,
        Item::Enum(it) => &it.attrs,
        Item::Fn(it) => &it.attrs,
        Item::Impl(it) => &it.attrs,
        Item::Macro(it) => &it.attrs,
        Item::Mod(it) => &it.attrs,
        Item::Static(it) => &it.attrs,
        Item::Struct(it) => &it.attrs,
        Item::Trait(it) => &it.attrs,
        Item::Type(it) => &it.attrs,
        Item::Use(it) => &it.attrs,
        _ => &[],
    }
}
