//! Cycles of files and of modules that name each other, and crates that only some files may name.

use std::collections::{BTreeMap, BTreeSet};

use proc_macro2::{TokenStream, TokenTree};
use quote::ToTokens as _;

use crate::{
    arrows::{WRITTEN, Written},
    resolve::{edges, names_crate},
    source::{Crate, SourceFile},
};

/// Returns the cycles of files and of modules, and the files that name a crate reserved for others.
pub(crate) fn wrong(written: &Written, crates: &[Crate]) -> Vec<String> {
    let circles = crates.iter().flat_map(of_crate);
    let mut wrong: Vec<String> = circles
        .map(|circle| format!("a circle of files: {}", join(&circle)))
        .collect();
    wrong.extend(of_siblings(written, crates));
    for of in crates {
        let types = inherent_methods(of);
        wrong.extend(types.iter().filter_map(|(name, files)| {
            let mut circles = of_methods(of, files).into_iter();
            let circle = join(&circles.next()?);
            Some(format!(
                "methods of `{name}` call each other in a circle of files: {circle}"
            ))
        }));
    }
    wrong.extend(named_elsewhere(written, crates));
    wrong
}

fn join(circle: &BTreeSet<String>) -> String {
    let paths: Vec<&str> = circle.iter().map(String::as_str).collect();
    paths.join(", ")
}

/// Returns the cycles of modules that are not known, and known ones that are gone.
fn of_siblings(written: &Written, crates: &[Crate]) -> Vec<String> {
    let circles: Vec<BTreeSet<String>> = crates.iter().flat_map(of_modules).collect();
    let new = circles
        .iter()
        .filter(|circle| !circle.is_subset(&written.known_circles))
        .map(|circle| format!("a circle of modules: {}", join(circle)));
    let gone = written
        .known_circles
        .iter()
        .filter(|path| !circles.iter().any(|circle| circle.contains(*path)))
        .map(|path| format!("{path} is in no circle: take it out of `known_circles` in {WRITTEN}"));
    new.chain(gone).collect()
}

/// The inherent methods of one type in one file.
#[derive(Debug, Default)]
struct Methods {
    names: BTreeSet<String>,
    /// Methods that they call on `self`.
    called: BTreeSet<String>,
}

/// Returns the methods by type and file. Types of one crate that share a name count as one.
fn inherent_methods(of: &Crate) -> BTreeMap<String, BTreeMap<usize, Methods>> {
    let mut types: BTreeMap<String, BTreeMap<usize, Methods>> = BTreeMap::new();
    for (index, SourceFile { syntax, .. }) in of.files.iter().enumerate() {
        for item in &syntax.items {
            let syn::Item::Impl(block) = item else {
                continue;
            };
            let syn::Type::Path(path) = &*block.self_ty else {
                continue;
            };
            let (None, Some(last)) = (&block.trait_, path.path.segments.last()) else {
                continue;
            };
            let methods = types.entry(last.ident.to_string()).or_default();
            let methods = methods.entry(index).or_default();
            for item in &block.items {
                if let syn::ImplItem::Fn(method) = item {
                    methods.names.insert(method.sig.ident.to_string());
                    find_calls(method.block.to_token_stream(), &mut methods.called);
                }
            }
        }
    }
    types
}

/// Adds every `self.name` and `Self::name` of these tokens, including those within macros.
fn find_calls(tokens: TokenStream, to: &mut BTreeSet<String>) {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    for (at, token) in tokens.iter().enumerate() {
        match token {
            TokenTree::Group(group) => find_calls(group.stream(), to),
            TokenTree::Ident(ident) if *ident == "self" || *ident == "Self" => {
                let rest = tokens[at + 1..].iter();
                let mut rest = rest.skip_while(|it| matches!(it, TokenTree::Punct(_)));
                if let Some(TokenTree::Ident(name)) = rest.next() {
                    to.insert(name.to_string());
                }
            }
            _ => {}
        }
    }
}

fn of_methods(of: &Crate, files: &BTreeMap<usize, Methods>) -> Vec<BTreeSet<String>> {
    let calls =
        |from: &usize, to: &usize| from != to && !files[from].called.is_disjoint(&files[to].names);
    let edges = files.keys().map(|from| {
        let to = files.keys().filter(|to| calls(from, to)).copied();
        (*from, to.collect())
    });
    paths_of_circles(of, &edges.collect())
}

fn named_elsewhere(written: &Written, crates: &[Crate]) -> Vec<String> {
    let mut wrong = Vec::new();
    for (name, files) in &written.only_in {
        let mut naming: BTreeSet<&String> = BTreeSet::new();
        for of in crates {
            let files = of.files.iter().enumerate();
            let files = files.filter(|(index, _)| names_crate(of, *index, name));
            naming.extend(files.map(|(_, file)| &file.path));
        }
        let more = naming.iter().filter(|file| !files.contains(**file));
        wrong.extend(
            more.map(|file| format!("{file} names `{name}`; {WRITTEN} says where that may be")),
        );
        let less = files.iter().filter(|file| !naming.contains(file));
        wrong.extend(less.map(|file| {
            format!("{file} does not name `{name}`: take it out of `only_in` in {WRITTEN}")
        }));
    }
    wrong
}

pub(crate) fn of_crate(of: &Crate) -> Vec<BTreeSet<String>> {
    paths_of_circles(of, &edges(of))
}

/// Returns the cycles of modules with the same parent, by their files. A module is its file with all files
/// below it.
fn of_modules(of: &Crate) -> Vec<BTreeSet<String>> {
    let mut siblings: BTreeMap<usize, BTreeSet<usize>> = BTreeMap::new();
    for (from, to) in edges(of) {
        let line_of_from = line_of(of, from);
        for to in to {
            let mut pairs = line_of_from.iter().zip(line_of(of, to));
            if let Some((from, to)) = pairs.find(|(from, to)| **from != *to) {
                siblings.entry(*from).or_default().insert(to);
            }
        }
    }
    paths_of_circles(of, &siblings)
}

/// Returns the files of the modules from the root down to this file.
fn line_of(of: &Crate, file: usize) -> Vec<usize> {
    let first = of.modules.iter().position(|module| module.file == file);
    let mut module = first.expect("a file has a module");
    let mut line = vec![file];
    while module != 0 {
        module = of.modules[module].parent;
        line.push(of.modules[module].file);
    }
    line.dedup();
    line.reverse();
    line
}

fn paths_of_circles(of: &Crate, edges: &BTreeMap<usize, BTreeSet<usize>>) -> Vec<BTreeSet<String>> {
    let path = |file: usize| of.files[file].path.clone();
    circles(of.files.len(), edges)
        .into_iter()
        .map(|circle| circle.into_iter().map(path).collect())
        .collect()
}

/// Returns the strongly connected components.
fn circles(count: usize, edges: &BTreeMap<usize, BTreeSet<usize>>) -> Vec<BTreeSet<usize>> {
    let reached: Vec<BTreeSet<usize>> = (0..count).map(|from| reach(from, edges)).collect();
    let mut circles: Vec<BTreeSet<usize>> = Vec::new();
    for from in 0..count {
        let mutual = |to: &&usize| reached[**to].contains(&from);
        let circle: BTreeSet<usize> = reached[from].iter().filter(mutual).copied().collect();
        if circle.len() > 1 && !circles.contains(&circle) {
            circles.push(circle);
        }
    }
    circles
}

fn reach(from: usize, edges: &BTreeMap<usize, BTreeSet<usize>>) -> BTreeSet<usize> {
    let mut reached = BTreeSet::new();
    let mut next = vec![from];
    while let Some(file) = next.pop() {
        let found = edges.get(&file).into_iter().flatten();
        next.extend(found.copied().filter(|to| reached.insert(*to)));
    }
    reached
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// Checks the cycles of a crate of these files in a temporary folder.
    #[track_caller]
    fn check(name: &str, files: &[(&str, &str)], expected: &[&[&str]]) {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        for (path, text) in files {
            let path = folder.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let made = Crate::read(folder, name, &folder.join("lib.rs")).unwrap();
        let found = of_crate(&made);
        let expected: Vec<BTreeSet<String>> = expected
            .iter()
            .map(|circle| circle.iter().map(ToString::to_string).collect())
            .collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn methods_of_one_type_that_call_each_other_across_files_are_found() {
        let folder = tempfile::tempdir().unwrap();
        let read = |b: &str| {
            for (path, text) in [
                ("lib.rs", "mod a; mod b; pub struct T;"),
                (
                    "a.rs",
                    "impl crate::T { pub fn one(&self) { print!(\"{}\", self.two()); } fn three(&self) {} }",
                ),
                ("b.rs", b),
            ] {
                fs::write(folder.path().join(path), text).unwrap();
            }
            let made = Crate::read(folder.path(), "planted", &folder.path().join("lib.rs"));
            wrong(&Written::default(), &[made.unwrap()])
        };
        let planted = "impl crate::T { pub fn two(&self) -> u8 { self.three(); 2 } }";
        assert_eq!(
            read(planted),
            ["methods of `T` call each other in a circle of files: a.rs, b.rs"]
        );
        let none = "impl crate::T { pub fn two(&self) -> u8 { 2 } }";
        assert_eq!(read(none), Vec::<String>::new());
    }

    #[test]
    fn files_that_name_each_other_are_found() {
        check(
            "two",
            &[
                ("lib.rs", "mod a; mod b;"),
                ("a.rs", "use crate::b::B; pub struct A(B);"),
                (
                    "b.rs",
                    "pub struct B; fn make() { let _ = crate::a::A(B); }",
                ),
            ],
            &[&["a.rs", "b.rs"]],
        );
    }

    #[test]
    fn modules_that_name_each_other_through_files_below_them_are_found() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("a")).unwrap();
        for (path, text) in [
            ("lib.rs", "mod a; mod b; mod c; pub struct Root;"),
            ("a.rs", "mod deep; mod low;"),
            (
                "a/deep.rs",
                "pub struct Deep(crate::b::B, super::low::Low);",
            ),
            ("a/low.rs", "pub struct Low(crate::Root);"),
            ("b.rs", "pub struct B(crate::a::low::Low);"),
            ("c.rs", "pub struct C(crate::a::low::Low, crate::b::B);"),
        ] {
            fs::write(folder.path().join(path), text).unwrap();
        }
        let made = Crate::read(folder.path(), "rooms", &folder.path().join("lib.rs"));
        let made = made.unwrap();
        assert_eq!(of_crate(&made), Vec::new());
        let circle = BTreeSet::from(["a.rs", "b.rs"].map(str::to_owned));
        assert_eq!(of_modules(&made), std::slice::from_ref(&circle));

        let mut written = Written::default();
        let crates = [made];
        let found = of_siblings(&written, &crates);
        assert_eq!(found, ["a circle of modules: a.rs, b.rs"]);
        written.known_circles = circle;
        assert_eq!(of_siblings(&written, &crates), Vec::<String>::new());
        written.known_circles.insert("c.rs".to_owned());
        let gone = "c.rs is in no circle: take it out of `known_circles` in .ci/arrows.toml";
        assert_eq!(of_siblings(&written, &crates), [gone]);
    }

    #[test]
    fn names_are_followed_through_those_that_pass_them_on() {
        check(
            "passed",
            &[
                ("lib.rs", "mod a; mod b; pub use b::B;"),
                ("a.rs", "mod deep; pub use deep::Deep;"),
                (
                    "a/deep.rs",
                    "use crate::{B as Other}; pub struct Deep(Other);",
                ),
                ("b.rs", "use super::a; pub struct B; fn f(_: a::Deep) {}"),
            ],
            &[&["a/deep.rs", "b.rs"]],
        );
    }

    #[test]
    fn a_parent_that_uses_what_it_passes_on_names_it() {
        let child = "pub struct C(super::P);";
        check(
            "facade",
            &[
                ("lib.rs", "mod c; pub use c::C; pub struct P;"),
                ("c.rs", child),
            ],
            &[],
        );
        check(
            "user",
            &[
                ("lib.rs", "mod c; pub use c::C; pub struct P; fn f(_: C) {}"),
                ("c.rs", child),
            ],
            &[&["c.rs", "lib.rs"]],
        );
    }

    #[test]
    fn macros_are_read_and_tests_are_not() {
        check(
            "macros",
            &[
                ("lib.rs", "mod a; mod b;"),
                (
                    "a.rs",
                    "pub fn a() {} fn f() { println!(\"{}\", crate::b::b()); }",
                ),
                (
                    "b.rs",
                    "pub fn b() {} #[cfg(test)] mod tests { use crate::a::a; }",
                ),
            ],
            &[],
        );
        check(
            "macros2",
            &[
                ("lib.rs", "mod a; mod b;"),
                (
                    "a.rs",
                    "pub fn a() {} fn f() { println!(\"{}\", crate::b::b()); }",
                ),
                ("b.rs", "pub fn b() { use crate::a::a; a(); }"),
            ],
            &[&["a.rs", "b.rs"]],
        );
    }
}
