//! The capabilities that a client announced for questions of servers.

use fleet::{QuestionKind, ServerQuestion};
use jsonrpc::mcp::{APP_TYPE, APPS_EXTENSION};
use jsonrpc::{Fields, Json, text_of};
use serde_json::{Value, json};

/// The known capabilities, each with a letter, its name, and the part of it.
const KNOWN: [(char, &str, Option<&str>); 9] = [
    ('e', "elicitation", None),
    ('f', "elicitation", Some("form")),
    ('u', "elicitation", Some("url")),
    ('s', "sampling", None),
    ('t', "sampling", Some("tools")),
    ('c', "sampling", Some("context")),
    ('r', "roots", None),
    ('l', "roots", Some("listChanged")),
    ('a', "extensions", Some(APPS_EXTENSION)),
];

/// The capabilities of a client, as it announced them.
#[derive(Debug)]
pub(crate) struct Capabilities(Json);

impl Default for Capabilities {
    fn default() -> Self {
        Self(Json::of_built("{}".to_owned()))
    }
}

impl Capabilities {
    /// Reads announced capabilities; JSON that is no object announces nothing.
    pub(crate) fn read(announced: Json) -> Self {
        if Fields::of(announced.as_str()).is_none() {
            return Self::default();
        }
        Self(announced)
    }

    /// The known capabilities as letters: enough for a session that is resumed.
    pub(crate) fn letters(&self) -> String {
        let known = KNOWN.iter().filter(|(_, capability, part)| match part {
            None => self.lacks(capability).is_none(),
            Some(part) => self.has_part(capability, part),
        });
        known.map(|(letter, ..)| *letter).collect()
    }

    /// Reads capabilities from their letters; an unknown letter is ignored.
    pub(crate) fn of_letters(letters: &str) -> Self {
        let mut announced = serde_json::Map::new();
        for (letter, capability, part) in KNOWN {
            if !letters.contains(letter) {
                continue;
            }
            let capability = announced.entry(capability).or_insert_with(|| json!({}));
            if let Some(part) = part {
                capability[part] = match part {
                    "listChanged" => json!(true),
                    APPS_EXTENSION => json!({"mimeTypes": [APP_TYPE]}),
                    _ => json!({}),
                };
            }
        }
        Self(Json::of_built(Value::from(announced).to_string()))
    }

    pub(crate) fn announced(&self) -> Json {
        self.0.clone()
    }

    /// The capability that a question needs and the client lacks.
    pub(crate) fn find_lacking(&self, question: &ServerQuestion) -> Option<&'static str> {
        let params = Fields::of(question.params.as_str());
        let asks_for = |key| params.as_ref().is_some_and(|it| it.filled(key).is_some());
        match question.kind {
            QuestionKind::Roots => self.lacks("roots"),
            QuestionKind::Sampling => self.lacks("sampling").or_else(|| {
                let with_tools = asks_for("tools") || asks_for("toolChoice");
                let lacks = with_tools && !self.has_part("sampling", "tools");
                lacks.then_some("sampling.tools")
            }),
            QuestionKind::Elicitation => self.lacks("elicitation").or_else(|| {
                let mode = params.as_ref().and_then(|it| text_of(it.get("mode")?));
                if mode.as_deref() == Some("url") {
                    let lacks = !self.has_part("elicitation", "url");
                    return lacks.then_some("elicitation.url");
                }
                // A capability without modes means forms.
                let lacks =
                    self.has_part("elicitation", "url") && !self.has_part("elicitation", "form");
                lacks.then_some("elicitation.form")
            }),
        }
    }

    fn lacks(&self, capability: &'static str) -> Option<&'static str> {
        let fields = Fields::of(self.0.as_str())?;
        fields.filled(capability).is_none().then_some(capability)
    }

    pub(crate) fn shows_apps(&self) -> bool {
        let extensions = Fields::of(self.0.as_str()).and_then(|it| it.get("extensions"));
        let apps = extensions.and_then(|it| Fields::of(it.get())?.filled(APPS_EXTENSION));
        let types = apps.and_then(|it| Fields::of(it.get())?.get("mimeTypes"));
        let types: Option<Vec<String>> = types.and_then(|it| serde_json::from_str(it.get()).ok());
        types.is_some_and(|all| all.iter().any(|it| it == APP_TYPE))
    }

    pub(super) fn has_part(&self, capability: &str, part: &str) -> bool {
        let whole = Fields::of(self.0.as_str()).and_then(|it| it.get(capability));
        let parts = whole.and_then(|it| Fields::of(it.get()));
        parts.is_some_and(|it| it.filled(part).is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(announced: &str, kind: QuestionKind, params: &str, expected: Option<&str>) {
        let json = |text: &str| jsonrpc::json(text.to_owned()).expect("the case is JSON");
        let question = ServerQuestion {
            kind,
            params: json(params),
        };
        let capabilities = Capabilities::read(json(announced));
        assert_eq!(
            capabilities.find_lacking(&question),
            expected,
            "{announced} {params}"
        );
    }

    #[test]
    fn what_is_asked_for_by_name_is_kept_in_letters() {
        let announced = r#"{"elicitation":{"form":{},"url":{}},"sampling":{"tools":{},"odd":1},
            "roots":{"listChanged":true},"experimental":{"x":1},
            "extensions":{"io.modelcontextprotocol/ui":{"mimeTypes":["text/html;profile=mcp-app"]},"x/y":{}}}"#;
        let announced = jsonrpc::json(announced.to_owned()).expect("the case is JSON");
        let letters = Capabilities::read(announced).letters();
        assert_eq!(letters, "efustrla");
        let back = Capabilities::of_letters(&format!("{letters}?"));
        assert!(back.shows_apps());
        let back: Value = serde_json::from_str(back.announced().as_str()).expect("JSON");
        let expected = json!({"elicitation": {"form": {}, "url": {}}, "sampling": {"tools": {}},
            "roots": {"listChanged": true},
            "extensions": {"io.modelcontextprotocol/ui": {"mimeTypes": ["text/html;profile=mcp-app"]}}});
        assert_eq!(back, expected);
        assert_eq!(Capabilities::default().letters(), "");
    }

    #[test]
    fn a_question_needs_what_its_form_needs() {
        use QuestionKind::{Elicitation, Roots, Sampling};
        let url = r#"{"mode":"url"}"#;
        check("{}", Elicitation, "{}", Some("elicitation"));
        check("7", Elicitation, "{}", Some("elicitation"));
        check(r#"{"elicitation":{}}"#, Elicitation, "{}", None);
        check(
            r#"{"elicitation":{}}"#,
            Elicitation,
            url,
            Some("elicitation.url"),
        );
        check(r#"{"elicitation":{"url":{}}}"#, Elicitation, url, None);
        check(
            r#"{"elicitation":{"url":{}}}"#,
            Elicitation,
            "{}",
            Some("elicitation.form"),
        );
        check(
            r#"{"elicitation":{"url":{},"form":{}}}"#,
            Elicitation,
            "{}",
            None,
        );
        check(r#"{"sampling":null}"#, Sampling, "{}", Some("sampling"));
        check(
            r#"{"sampling":{}}"#,
            Sampling,
            r#"{"tools":[]}"#,
            Some("sampling.tools"),
        );
        check(
            r#"{"sampling":{"tools":{}}}"#,
            Sampling,
            r#"{"tools":[]}"#,
            None,
        );
        check(r#"{"roots":{}}"#, Roots, "{}", None);
    }
}
