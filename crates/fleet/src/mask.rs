//! Secrets taken out of texts that people and models read.

/// Values shorter than this are not masked: they would tear holes into ordinary words, and are
/// no secrets worth the name.
const SECRET_BYTES_MIN: usize = 6;

/// The values that must not appear in a server's messages.
#[derive(Debug, Clone, Default)]
pub(crate) struct Mask {
    secrets: Vec<String>,
}

impl Mask {
    pub(crate) fn new(values: impl IntoIterator<Item = String>) -> Self {
        let mut secrets: Vec<String> = values
            .into_iter()
            .filter(|value| value.len() >= SECRET_BYTES_MIN)
            .collect();
        // The longest first, so that a secret which holds another one goes whole.
        secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        secrets.dedup();
        Self { secrets }
    }

    pub(crate) fn apply(&self, text: &str) -> String {
        let hide = |text: String, secret: &String| text.replace(secret.as_str(), "***");
        self.secrets.iter().fold(text.to_owned(), hide)
    }
}

#[cfg(test)]
mod tests {
    use super::Mask;

    #[test]
    fn secrets_are_hidden_and_short_values_are_not() {
        let secrets = ["hunter2hunter2", "hunter2", "on"].map(str::to_owned);
        let mask = Mask::new(secrets);
        let shown = mask.apply("token hunter2hunter2 or hunter2 is on");
        assert_eq!(shown, "token *** or *** is on");
    }
}
