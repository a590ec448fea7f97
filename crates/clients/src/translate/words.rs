//! Variables in texts, translated from each client's syntax to `${X}`.

use std::path::Path;

use super::template::Template;
use crate::{Home, entry::ServerEntry, server::Need, table::Variables};

/// Fills in the variables of one entry, as its client does.
pub(super) struct Words<'a> {
    entry: &'a ServerEntry,
    pub(super) home: &'a Home,
    pub(super) is_per_client: bool,
    pub(super) needs: Vec<Need>,
    pub(super) remarks: Vec<String>,
}

impl<'a> Words<'a> {
    pub(super) fn new(entry: &'a ServerEntry, home: &'a Home) -> Self {
        Self {
            entry,
            home,
            is_per_client: false,
            needs: Vec::new(),
            remarks: Vec::new(),
        }
    }

    pub(super) fn project(&self) -> Option<&Path> {
        self.entry.project.as_deref()
    }

    /// Translates a text of an entry to a template.
    pub(super) fn translate(&mut self, text: &str) -> String {
        let mut template = Template::default();
        let mut rest = text;
        while let Some(c) = rest.chars().next() {
            match self.variable_at(rest, &mut template) {
                Some(length) => rest = &rest[length..],
                None => {
                    template.plain.push(c);
                    rest = &rest[c.len_utf8()..];
                }
            }
        }
        template.finish()
    }

    /// Translates the variable that begins here, if there is one. Returns its length.
    fn variable_at(&mut self, rest: &str, template: &mut Template) -> Option<usize> {
        let style = self.entry.variables;
        let has_braces = style != Variables::None;
        if has_braces && let Some((inner, length)) = enclosed(rest, "${{", "}}") {
            let name = inner.trim();
            let name = name.rsplit('.').next().unwrap_or(name);
            template.variable(valid_name(name)?, None);
            return Some(length);
        }
        if let Some((name, length)) = nested_variable(rest).filter(|_| has_braces) {
            let what = "its value; its default in the entry names another variable, which clients read differently";
            self.put_need(name, what, template);
            return Some(length);
        }
        if let Some((inner, length)) = enclosed(rest, "${", "}") {
            return self.resolve(inner, template).then_some(length);
        }
        let has_dollars = style == Variables::Dollar;
        if has_dollars && let Some((_, length)) = enclosed(rest, "$(", ")") {
            let what = "the output of a command in its entry, which the import does not run";
            self.put_need(&self.own_name("VALUE"), what, template);
            return Some(length);
        }
        if has_dollars && let Some(inner) = rest.strip_prefix('$') {
            let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
            let end = inner.find(|c| !is_name(c)).unwrap_or(inner.len());
            template.variable(valid_name(&inner[..end])?, None);
            return Some(end + 1);
        }
        let (inner, length) = enclosed(rest, "{", "}").filter(|_| has_braces)?;
        match inner.split_once(':')? {
            ("env", name) => template.variable(valid_name(name)?, None),
            ("file", file) => {
                let what = format!("the content of the file {file}");
                self.put_need(&self.own_name("FILE"), &what, template);
            }
            _ => return None,
        }
        Some(length)
    }

    /// Resolves the text inside `${...}` as its client does. Returns false if it has no meaning for the
    /// client.
    fn resolve(&mut self, inner: &str, template: &mut Template) -> bool {
        if self.entry.variables == Variables::None {
            if valid_name(inner).is_some() {
                let remark =
                    format!("its client does not replace `${{{inner}}}`: it stays literal text");
                self.remarks.push(remark);
            }
            return false;
        }
        let (name, default) = match inner.split_once(":-") {
            Some((name, default)) => (name, Some(default)),
            None => (inner, None),
        };
        let is_of_editor = default.is_none() || name == "CLAUDE_PROJECT_DIR";
        if is_of_editor && self.resolve_editor(name, template) {
            return true;
        }
        let Some(name) = valid_name(name) else {
            return false;
        };
        template.variable(name, default);
        true
    }

    fn resolve_editor(&mut self, inner: &str, template: &mut Template) -> bool {
        let home = self.home.folder().to_string_lossy();
        match inner {
            "userHome" => template.plain.push_str(&home),
            "workspaceFolder" | "workspaceRoot" | "CLAUDE_PROJECT_DIR" => self.put_folder(template),
            "__dirname" => match self.project() {
                Some(folder) => template.plain.push_str(&folder.to_string_lossy()),
                None => self.put_need(
                    "BUNDLE_DIR",
                    "the folder that the bundle is unpacked to",
                    template,
                ),
            },
            "workspaceFolderBasename" => match self.project().and_then(Path::file_name) {
                Some(name) => template.plain.push_str(&name.to_string_lossy()),
                None => self.put_need(
                    "WORKSPACE_NAME",
                    "the name of the project's folder",
                    template,
                ),
            },
            "pathSeparator" | "/" => template.plain.push('/'),
            other => match other.split_once(':') {
                Some(("env", name)) => match valid_name(name) {
                    Some(name) => template.variable(name, None),
                    None => return false,
                },
                Some(("input", id)) => self.put_input(id, template),
                Some(("workspaceFolder", _)) => self.put_folder(template),
                Some((kind @ ("config" | "command"), name)) => {
                    let what =
                        format!("the value by which the editor replaces `${{{kind}:{name}}}`");
                    self.put_need(&upper(name), &what, template);
                }
                _ => return false,
            },
        }
        true
    }

    /// Adds the project's folder: the entry's own, or that of the caller.
    fn put_folder(&mut self, template: &mut Template) {
        match self.entry.project.clone() {
            Some(project) => template.plain.push_str(&project.to_string_lossy()),
            None => {
                self.is_per_client = true;
                template.plain.push('.');
                let remark =
                    "it works in the folder of a project: each client gets its own process there";
                if self.remarks.iter().all(|it| it != remark) {
                    self.remarks.push(remark.to_owned());
                }
            }
        }
    }

    fn put_input(&mut self, id: &str, template: &mut Template) {
        let input = self.entry.inputs.iter().find(|input| input["id"] == id);
        let what = input.and_then(|input| input.get("description")?.as_str());
        let what = what.unwrap_or("required by its client");
        self.put_need(&upper(id), what, template);
    }

    fn put_need(&mut self, name: &str, what: &str, template: &mut Template) {
        self.need(name, what);
        template.variable(name, None);
    }

    /// Adds a variable that must be set before the server can start.
    pub(super) fn need(&mut self, name: &str, what: &str) {
        if self.needs.iter().all(|need| need.variable != name) {
            self.needs.push(Need {
                variable: name.to_owned(),
                what: what.to_owned(),
            });
        }
    }

    /// Returns a new name for a value of this entry that has none.
    fn own_name(&self, what: &str) -> String {
        let base = upper(&format!("{}_{what}", self.entry.name));
        match self.needs.len() {
            0 => base,
            count => format!("{base}_{}", count + 1),
        }
    }
}

/// Returns what is between these marks at the beginning of a text, and the length with both marks.
fn enclosed<'t>(text: &'t str, open: &str, close: &str) -> Option<(&'t str, usize)> {
    let inner = text.strip_prefix(open)?;
    let end = inner.find(close)?;
    Some((&inner[..end], open.len() + end + close.len()))
}

/// Returns the name of the variable that begins here if its default contains another one, as in
/// `${VAR:-${HOME}/x}`, and the length of both.
fn nested_variable(text: &str) -> Option<(&str, usize)> {
    let (name, _) = text.strip_prefix("${")?.split_once(":-")?;
    let name = valid_name(name)?;
    let mut depth = 0_usize;
    let mut deepest = 0;
    for (at, c) in text.char_indices() {
        if text[at..].starts_with("${") {
            depth += 1;
            deepest = deepest.max(depth);
        } else if c == '}' {
            depth -= 1;
        }
        if depth == 0 && c == '}' {
            return (deepest > 1).then_some((name, at + 1));
        }
    }
    None
}

/// Returns the text if it is a valid name of a variable.
fn valid_name(name: &str) -> Option<&str> {
    let starts_well = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    let is_name = starts_well && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    is_name.then_some(name)
}

/// Converts any text to the name of a variable.
fn upper(text: &str) -> String {
    let plain = |c: char| {
        if c.is_ascii_alphanumeric() {
            c.to_ascii_uppercase()
        } else {
            '_'
        }
    };
    let name: String = text.chars().map(plain).collect();
    match name.chars().next() {
        Some(c) if c.is_ascii_digit() => format!("_{name}"),
        Some(_) => name,
        None => "VALUE".to_owned(),
    }
}
