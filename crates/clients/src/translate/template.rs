//! Our own texts with variables, built piece by piece.

/// A text that is being built: plain text is escaped once the text after it is known.
#[derive(Debug, Default)]
pub(super) struct Template {
    done: String,
    pub(super) plain: String,
}

impl Template {
    fn flush(&mut self) {
        self.done += &printable::escape_template(&std::mem::take(&mut self.plain));
    }

    pub(super) fn variable(&mut self, name: &str, default: Option<&str>) {
        self.flush();
        match default {
            Some(default) => self.done += &format!("${{{name}:-{default}}}"),
            None => self.done += &format!("${{{name}}}"),
        }
    }

    pub(super) fn finish(mut self) -> String {
        self.flush();
        self.done
    }
}
