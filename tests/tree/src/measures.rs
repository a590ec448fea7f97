//! Figures of the source tree without code that is only compiled for tests, one line per crate.

use std::fmt::Write as _;

use proc_macro2::Span;
use syn::{Attribute, Visibility, spanned::Spanned as _, visit::Visit};

use crate::{
    circles,
    source::{Crate, SourceFile},
};

/// The number of lines of a function beyond which it may do more than one thing.
const LONG_LINES: usize = 25;
/// The number of lines of a function beyond which the build fails.
const FUNCTION_LINES_MAX: usize = 100;

/// First words of doc comments that put a relative clause where a noun belongs.
const VAGUE_WORDS: [&str; 7] = [
    "What", "Who", "Whoever", "Where", "How", "Whether", "Nobody",
];

#[derive(Debug, Default)]
struct Measures {
    files: Vec<usize>,
    functions: Vec<usize>,
    comments: usize,
    /// The number of doc comments, and of those that begin with a word of [`VAGUE_WORDS`].
    docs: usize,
    vague: usize,
    public: usize,
    documented: usize,
    unwraps: usize,
    expects: usize,
    circles: Vec<usize>,
}

/// Formats the figures of every crate and of all, with the aims beside those of all.
pub(crate) fn table(crates: &[Crate]) -> String {
    let mut text = format!(
        "{:<18}{:>6}{:>8}{:>6}  {:<13}{:>10}  {:<11}{:>5}{:>9}{:>8}{:>16}  {}\n",
        "crate",
        "files",
        "lines",
        "share",
        "file",
        "functions",
        "function",
        "> 25",
        "comments",
        "docs",
        "unwrap/expect",
        "circles"
    );
    let each: Vec<(&str, Measures)> = crates.iter().map(|it| (it.name.as_str(), of(it))).collect();
    let lines = |it: &Measures| it.files.iter().sum::<usize>();
    let whole: usize = each.iter().map(|(_, it)| lines(it)).sum();
    let mut totals = [Measures::default(), Measures::default()];
    let mut largest = 0;
    for ((name, measures), of) in each.into_iter().zip(crates) {
        row(&mut text, name, &measures, whole);
        largest = largest.max(percent(lines(&measures), whole));
        totals[usize::from(is_of_tests(of))].add(measures);
    }
    let [mut all, tests] = totals;
    row(&mut text, "all crates", &all, whole);
    row(&mut text, "all tests", &tests, whole);
    all.add(tests);
    text.push_str("file and function: lines in the middle / at the ninth tenth / at most\n\n");
    add_aims(&mut text, &all, largest);
    text
}

/// Returns true if the crate is in `tests/`, which no user installs.
fn is_of_tests(of: &Crate) -> bool {
    of.files[0].path.starts_with("tests/")
}

/// Appends the figures of all beside the aims of CONTRIBUTING.
fn add_aims(text: &mut String, all: &Measures, largest: usize) {
    let [file, file_most, _] = spread(&all.files);
    let [function, function_most, _] = spread(&all.functions);
    let too_long = all.functions.iter();
    let too_long = too_long.filter(|lines| **lines > FUNCTION_LINES_MAX);
    let documented = percent(all.documented, all.public);
    writeln!(text, "{:<54}{:>6}  aim", "of all", "is").expect(INFALLIBLE);
    for (what, is, aim) in [
        ("lines of a file, in the middle", file, "at most 140"),
        (
            "lines of a file, at the ninth tenth",
            file_most,
            "at most 350",
        ),
        ("lines of a function, in the middle", function, "at most 8"),
        (
            "lines of a function, at the ninth tenth",
            function_most,
            "at most 22",
        ),
        ("functions of more than 100 lines", too_long.count(), "none"),
        (
            "percent of public items documented",
            documented,
            "at least 95",
        ),
        (
            "percent of doc comments that begin with What, Who, ...",
            percent(all.vague, all.docs),
            "at most 2",
        ),
        ("circles of files", all.circles.len(), "none"),
        (
            "percent of all lines in the largest crate",
            largest,
            "at most 20",
        ),
    ] {
        writeln!(text, "{what:<55}{is:>5}  {aim}").expect(INFALLIBLE);
    }
}

const INFALLIBLE: &str = "a string takes anything";

fn of(of: &Crate) -> Measures {
    let mut measures = Measures {
        circles: circles::of_crate(of)
            .iter()
            .map(std::collections::BTreeSet::len)
            .collect(),
        ..Measures::default()
    };
    for file in &of.files {
        measures.read(file);
    }
    measures
}

impl Measures {
    fn read(&mut self, file: &SourceFile) {
        let lines = file.text.lines().enumerate();
        let ours = lines.filter(|(at, _)| !file.test_lines.contains(&(at + 1)));
        let ours: Vec<&str> = ours.map(|(_, line)| line.trim()).collect();
        self.files.push(ours.len());
        self.comments += ours.iter().filter(|line| line.starts_with("//")).count();
        let begins = (0..ours.len()).filter_map(|at| {
            let before = at.checked_sub(1).map(|at| doc_of(ours[at]));
            doc_of(ours[at]).filter(|_| before.flatten().is_none())
        });
        for begin in begins {
            self.docs += 1;
            let word = begin.split(|c: char| !c.is_alphabetic()).next();
            self.vague += usize::from(word.is_some_and(|word| VAGUE_WORDS.contains(&word)));
        }
        self.visit_file(&file.syntax);
    }

    fn add(&mut self, other: Self) {
        self.files.extend(other.files);
        self.functions.extend(other.functions);
        self.circles.extend(other.circles);
        self.comments += other.comments;
        self.docs += other.docs;
        self.vague += other.vague;
        self.public += other.public;
        self.documented += other.documented;
        self.unwraps += other.unwraps;
        self.expects += other.expects;
    }

    fn item(&mut self, visibility: &Visibility, attributes: &[Attribute]) {
        if matches!(visibility, Visibility::Public(_)) {
            self.public += 1;
            let is_documented = attributes.iter().any(|it| it.path().is_ident("doc"));
            self.documented += usize::from(is_documented);
        }
    }

    fn function(&mut self, first: Span, last: Span) {
        self.functions
            .push(last.end().line + 1 - first.start().line);
    }
}

impl<'a> Visit<'a> for Measures {
    fn visit_item_fn(&mut self, it: &'a syn::ItemFn) {
        self.item(&it.vis, &it.attrs);
        self.function(it.sig.span(), it.block.span());
        syn::visit::visit_item_fn(self, it);
    }

    fn visit_impl_item_fn(&mut self, it: &'a syn::ImplItemFn) {
        self.item(&it.vis, &it.attrs);
        self.function(it.sig.span(), it.block.span());
        syn::visit::visit_impl_item_fn(self, it);
    }

    fn visit_trait_item_fn(&mut self, it: &'a syn::TraitItemFn) {
        if let Some(block) = &it.default {
            self.function(it.sig.span(), block.span());
        }
        syn::visit::visit_trait_item_fn(self, it);
    }

    fn visit_item_struct(&mut self, it: &'a syn::ItemStruct) {
        self.item(&it.vis, &it.attrs);
    }

    fn visit_item_enum(&mut self, it: &'a syn::ItemEnum) {
        self.item(&it.vis, &it.attrs);
    }

    fn visit_item_trait(&mut self, it: &'a syn::ItemTrait) {
        self.item(&it.vis, &it.attrs);
        syn::visit::visit_item_trait(self, it);
    }

    fn visit_item_const(&mut self, it: &'a syn::ItemConst) {
        self.item(&it.vis, &it.attrs);
        syn::visit::visit_item_const(self, it);
    }

    fn visit_item_type(&mut self, it: &'a syn::ItemType) {
        self.item(&it.vis, &it.attrs);
    }

    fn visit_expr_method_call(&mut self, it: &'a syn::ExprMethodCall) {
        self.unwraps += usize::from(it.method == "unwrap");
        self.expects += usize::from(it.method == "expect");
        syn::visit::visit_expr_method_call(self, it);
    }
}

fn row(text: &mut String, name: &str, it: &Measures, whole: usize) {
    let lines: usize = it.files.iter().sum();
    let long = it
        .functions
        .iter()
        .filter(|lines| **lines > LONG_LINES)
        .count();
    let in_circles: usize = it.circles.iter().sum();
    let circles = match it.circles.len() {
        0 => "none".to_owned(),
        count => format!("{count}, {in_circles} files"),
    };
    writeln!(
        text,
        "{name:<18}{:>6}{lines:>8}{:>5}%  {:<13}{:>10}  {:<11}{long:>5}{:>8}%{:>7}%{:>16}  {circles}",
        it.files.len(),
        percent(lines, whole),
        join_spread(&it.files),
        it.functions.len(),
        join_spread(&it.functions),
        percent(it.comments, lines),
        percent(it.documented, it.public),
        format!("{}/{}", it.unwraps, it.expects),
    )
    .expect(INFALLIBLE);
}

/// Returns the text of a doc comment line.
fn doc_of(line: &str) -> Option<&str> {
    let text = line
        .strip_prefix("///")
        .or_else(|| line.strip_prefix("//!"))?;
    Some(text.trim())
}

fn percent(part: usize, whole: usize) -> usize {
    (part * 200 + whole) / (whole * 2).max(1)
}

fn join_spread(counts: &[usize]) -> String {
    spread(counts).map(|count| count.to_string()).join("/")
}

/// Returns the median, the 90th percentile and the maximum.
fn spread(counts: &[usize]) -> [usize; 3] {
    let mut sorted = counts.to_vec();
    sorted.sort_unstable();
    let at = |percent: usize| sorted.get((sorted.len().saturating_sub(1)) * percent / 100);
    [50, 90, 100].map(|percent| at(percent).copied().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn what_is_counted() {
        let folder = tempfile::tempdir().unwrap();
        let text = "\
//! A crate.

/// What it does.
/// How it does it.
pub fn one() {
    let _ = Some(1).unwrap();
}
pub struct Unsaid;
impl Unsaid {
    fn two(&self) -> u8 { Some(2).expect(\"why\") }
}
#[cfg(test)]
mod tests {
    fn three() {}
}
";
        let entry = folder.path().join("lib.rs");
        fs::write(&entry, text).unwrap();
        let measures = of(&Crate::read(folder.path(), "it", &entry).unwrap());
        assert_eq!(measures.files, [11]);
        assert_eq!((measures.docs, measures.vague), (2, 1));
        assert_eq!(measures.functions, [3, 1]);
        assert_eq!(
            (measures.comments, measures.public, measures.documented),
            (3, 2, 1)
        );
        assert_eq!((measures.unwraps, measures.expects), (1, 1));
    }

    #[test]
    fn a_spread_is_middle_ninth_tenth_and_most() {
        let to_eleven: Vec<usize> = (1..=11).collect();
        assert_eq!(join_spread(&to_eleven), "6/10/11");
        assert_eq!(join_spread(&[]), "0/0/0");
    }
}
