//! Our own texts with variables, built piece by piece.

/// A text that is being built: plain text is escaped once the text after it is known.
#[derive(Debug, Default)]
pub(super) struct Template {
    done: String,
    pub(super) plain: String,
}

impl Template {
    fn flush(&mut self, before_variable: bool) {
        let plain = std::mem::take(&mut self.plain);
        for (at, c) in plain.char_indices() {
            self.done.push(c);
            let next = plain[at + c.len_utf8()..].chars().next();
            let opens = next.map_or(before_variable, |next| next == '{' || next == '$');
            if c == '$' && opens {
                self.done.push('$');
            }
        }
    }

    pub(super) fn variable(&mut self, name: &str, default: Option<&str>) {
        self.flush(true);
        match default {
            Some(default) => self.done += &format!("${{{name}:-{default}}}"),
            None => self.done += &format!("${{{name}}}"),
        }
    }

    pub(super) fn finish(mut self) -> String {
        self.flush(false);
        self.done
    }
}
