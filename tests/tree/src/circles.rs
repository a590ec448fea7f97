//! Cycles of files that name each other, and crates that only some files may name.

use std::collections::{BTreeMap, BTreeSet};

use proc_macro2::{TokenStream, TokenTree};
use quote::ToTokens as _;

use crate::{
    arrows::{WRITTEN, Written},
    resolve::{edges, names_crate},
    source::{Crate, SourceFile},
};

/// Returns the cycles of files, and the files that name a crate reserved for others.
pub(crate) fn wrong(written: &Written, crates: &[Crate]) -> Vec<String> {
    let circles = crates.iter().flat_map(of_crate);
    let mut wrong: Vec<String> = circles
        .map(|circle| {
            let files: Vec<&str> = circle.iter().map(String::as_str).collect();
            format!("a circle of files: {}", files.join(", "))
        })
        .collect();
    for of in crates {
        let types = inherent_methods(of);
        wrong.extend(types.iter().filter_map(|(name, files)| {
            let circles = of_methods(of, files).into_iter();
            let circles: Vec<String> = circles.map(|files| files.join(", ")).collect();
            let circle = circles.first()?;
            Some(format!(
                "methods of `{name}` call each other in a circle of files: {circle}"
            ))
        }));
    }
    wrong.extend(named_elsewhere(written, crates));
    wrong
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

fn of_methods(of: &Crate, files: &BTreeMap<usize, Methods>) -> Vec<Vec<String>> {
    let calls =
        |from: &usize, to: &usize| from != to && !files[from].called.is_disjoint(&files[to].names);
    let edges = files.keys().map(|from| {
        let to = files.keys().filter(|to| calls(from, to)).copied();
        (*from, to.collect())
    });
    let circles = circles(of.files.len(), &edges.collect()).into_iter();
    let path = |file: usize| of.files[file].path.clone();
    circles
        .map(|circle| circle.into_iter().map(path).collect())
        .collect()
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
    let edges = edges(of);
    let circles = circles(of.files.len(), &edges).into_iter();
    let name = |file: usize| of.files[file].path.clone();
    circles
        .map(|circle| circle.into_iter().map(name).collect())
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
