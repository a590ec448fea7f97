//! Lines that are not valid TOML, and their effects: one unreadable line must not cause more mistakes.

use std::collections::BTreeSet;

use toml::de::Error;

use super::walk::PlacedFault;
use crate::{
    lines::LineIndex,
    mistake::{Fault, shown, shown_value},
};

#[derive(Debug)]
pub(super) struct Broken<'a> {
    pub(super) noted: Vec<PlacedFault>,
    text: &'a str,
    lines: &'a LineIndex<'a>,
    /// Lines are counted from zero.
    unread: BTreeSet<usize>,
    /// Lines whose table is not known, and the line from which on none is known.
    lost: BTreeSet<usize>,
    lost_from: usize,
}

impl<'a> Broken<'a> {
    pub(super) fn new(text: &'a str, lines: &'a LineIndex<'a>, errors: Vec<Error>) -> Self {
        let mut this = Self {
            noted: Vec::new(),
            text,
            lines,
            unread: BTreeSet::new(),
            lost: BTreeSet::new(),
            lost_from: usize::MAX,
        };
        if !errors.is_empty() && text.trim_start().starts_with('{') {
            this.note_other_format("JSON, not TOML");
        } else if !errors.is_empty() && is_yaml(text) {
            this.note_other_format("YAML, not TOML");
        } else {
            this.add(errors);
        }
        this
    }

    /// Adds one mistake per line: further ones are mostly caused by the first.
    fn add(&mut self, mut errors: Vec<Error>) {
        errors.sort_by_key(start);
        for error in errors {
            // An error at the end of the text belongs to the last line with content.
            let byte = start(&error).min(self.text.trim_end().len());
            let line = self.lines.line_of(byte);
            if self.unread.insert(line) {
                self.mark_lost(line, &error);
                let fault = self.explain(&error, line);
                self.noted.push(note_at(byte, fault));
            }
        }
    }

    /// A broken header loses its table; a list or text without end loses all that follows.
    fn mark_lost(&mut self, line: usize, error: &Error) {
        if self.lines.is_header(line) {
            let below = line + 1..self.lines.count();
            self.lost
                .extend(below.take_while(|&line| !self.lines.is_header(line)));
        } else if error.message().starts_with("unclosed") {
            self.lost_from = self.lost_from.min(line);
        }
    }

    fn note_other_format(&mut self, what: &str) {
        let hint = "write each server as a table: `[servers.NAME]`, below it `command = \"npx\"` \
                    and `args = [\"-y\", \"PACKAGE\"]`; `proxy add FILE` imports the servers of \
                        another program's file";
        self.lost_from = 0;
        self.noted.push(note_at(0, Fault::new(what, hint)));
    }

    /// Returns the mistakes that no unreadable line explains.
    pub(super) fn keep_independent(&self, mut noted: Vec<PlacedFault>) -> Vec<PlacedFault> {
        let any = !self.noted.is_empty();
        noted.retain(|noted| {
            let line = self.lines.line_of(noted.byte);
            let lost = line >= self.lost_from || self.lost.contains(&line);
            !(lost || self.unread.contains(&line) || noted.missing && any)
        });
        noted
    }

    fn explain(&self, error: &Error, line: usize) -> Fault {
        if error.message() == "duplicate key" {
            let key = error
                .span()
                .and_then(|span| self.text.get(span))
                .unwrap_or_default();
            let hint = "it is also set above; keep one of the two";
            return Fault::new(format!("`{}` is a duplicate", shown(key)), hint);
        }
        let line = self.lines.line(line);
        if line.contains(['“', '”', '„', '‘', '’']) {
            let hint = "write straight quotes: `\"` or `'`";
            return Fault::new("not TOML: curly quotes", hint);
        }
        let key = line.split('=').next().unwrap_or_default().trim();
        match bare_text(line) {
            Some(text) => explain_bare_text(key, text),
            None => explain_message(error.message()),
        }
    }
}

/// Returns true if the first line with content is a key of YAML: a word and a colon, no `=`.
fn is_yaml(text: &str) -> bool {
    let mut lines = text.lines().map(str::trim);
    let first = lines.find(|line| !line.is_empty() && !line.starts_with(['#', '-']));
    let key = first.and_then(|line| line.strip_suffix(':'));
    key.is_some_and(|key| !key.is_empty() && !key.contains(char::is_whitespace))
}

fn start(error: &Error) -> usize {
    error.span().map_or(0, |span| span.start)
}

fn note_at(byte: usize, fault: Fault) -> PlacedFault {
    PlacedFault {
        byte,
        key: String::new(),
        fault,
        missing: false,
    }
}

fn explain_message(message: &str) -> Fault {
    let what = format!("not TOML: {message}");
    let hint = match message {
        "key with no value, expected `=`" => "write `key = value`",
        "invalid basic string, expected `\"`" => "close the text with `\"`",
        "unclosed table, expected `]`" => "close the name of the table with `]`",
        _ if message.starts_with("missing escaped value")
            || message.starts_with("too few unicode value digits") =>
        {
            "write `\\\\` for a `\\`, or put the text in single quotes"
        }
        _ if message.starts_with("string values must be quoted") => "write every text in quotes",
        _ => return Fault::bare(what),
    };
    Fault::new(what, hint)
}

/// Returns the value of a line such as `command = npx`, which the parser reports as an invalid number.
fn bare_text(line: &str) -> Option<&str> {
    let (_, value) = line.split_once('=')?;
    let value = value.split('#').next().unwrap_or_default().trim();
    let starts = value.starts_with(|c: char| c.is_alphabetic() || "~/.$@".contains(c));
    let plain = !value.contains(['"', '\'', '[', ']', '{', '}', '=']);
    let keyword = ["true", "false", "inf", "nan"].contains(&value);
    (starts && (plain || value.starts_with("${")) && !keyword).then_some(value)
}

fn explain_bare_text(key: &str, text: &str) -> Fault {
    let hint = match text.to_lowercase().as_str() {
        "true" | "yes" | "on" => "write `true`".to_owned(),
        "false" | "no" | "off" => "write `false`".to_owned(),
        _ => format!("write it in quotes: `\"{}\"`", shown_value(key, text)),
    };
    Fault::new("not TOML: text without quotes", hint)
}
