//! Secrets taken out of texts that people and models read.

/// Values shorter than this are not masked: they would tear holes into ordinary words, and are
/// no secrets worth the name.
const SECRET_BYTES_MIN: usize = 6;

/// What stands in the place of a secret.
const HIDDEN: &str = "***";

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
        // Programs also show what they were given as JSON.
        let quoted = |secret: &String| {
            let quoted = serde_json::Value::from(secret.as_str()).to_string();
            quoted[1..quoted.len() - 1].to_owned()
        };
        let as_json: Vec<String> = secrets.iter().map(quoted).collect();
        secrets.extend(as_json);
        // The longest first, so that a secret which holds another one goes whole.
        secrets.sort_by_cached_key(|secret| (std::cmp::Reverse(secret.len()), secret.clone()));
        secrets.dedup();
        Self { secrets }
    }

    pub(crate) fn apply(&self, text: &str) -> String {
        let hide = |text: String, secret: &String| {
            if text.contains(secret.as_str()) {
                return text.replace(secret.as_str(), HIDDEN);
            }
            text
        };
        self.secrets.iter().fold(text.to_owned(), hide)
    }

    /// For a text whose end was cut off, and with it perhaps the end of a secret.
    pub(crate) fn apply_to_cut(&self, text: &str) -> String {
        let text = self.apply(text);
        let begun = |secret: &String| begun(&text, secret);
        match self.secrets.iter().map(begun).max() {
            Some(bytes @ 1..) => format!("{}{HIDDEN}", &text[..text.len() - bytes]),
            _ => text,
        }
    }
}

/// How many bytes at the end of the text are the beginning of the secret.
fn begun(text: &str, secret: &str) -> usize {
    let starts = secret.char_indices().map(|(at, _)| at).rev();
    let mut starts = starts.filter(|at| text.ends_with(&secret[..*at]));
    starts.next().unwrap_or(0)
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

    #[test]
    fn a_secret_is_hidden_as_json_too() {
        let mask = Mask::new([r#"he said "no""#.to_owned()]);
        assert_eq!(
            mask.apply(r#"{"said":"he said \"no\""}"#),
            r#"{"said":"***"}"#
        );
    }

    #[test]
    fn a_secret_that_was_cut_is_hidden_too() {
        let mask = Mask::new(["hunter2", "señor-secret"].map(str::to_owned));
        let check = |text, shown| assert_eq!(mask.apply_to_cut(text), shown);
        check("it is hunter", "it is ***");
        check("hunter2 is hu", "*** is ***");
        check("hunter2", "***");
        check("dear señ", "dear ***");
        check("nothing here.", "nothing here.");
        check("", "");
    }
}
