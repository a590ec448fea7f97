//! Files that name each other in a circle, and crates that only some files may name.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    arrows::{WRITTEN, Written},
    resolve::{edges, names_crate},
    source::Crate,
};

/// Circles of files, and files that name what only others may.
pub(crate) fn wrong(written: &Written, crates: &[Crate]) -> Vec<String> {
    let circles = crates.iter().flat_map(of_crate);
    let mut wrong: Vec<String> = circles
        .map(|circle| {
            let files: Vec<&str> = circle.iter().map(String::as_str).collect();
            format!("a circle of files: {}", files.join(", "))
        })
        .collect();
    wrong.extend(named_elsewhere(written, crates));
    wrong
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

/// The largest sets in which each reaches each.
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

    /// A crate of these files, in a folder of its own; its circles.
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
