//! The app that shows a tool's results, and the callers that a tool is for: `_meta.ui` of a definition
//! (SEP-1865).

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::{Literal, Tool};

/// The scheme of every app.
const SCHEME: &str = "ui://";

/// The member of `_meta` that named the app in drafts of the extension.
const DRAFT_KEY: &str = "ui/resourceUri";

/// The beginning of the members that name an app.
static UI: Literal = Literal::new("\"ui");

#[derive(Deserialize)]
struct Definition<'a> {
    #[serde(rename = "_meta", borrow, default)]
    meta: BTreeMap<String, &'a RawValue>,
}

/// The members of `_meta.ui`; one of an unexpected type counts as absent.
#[derive(Default)]
struct Ui {
    uri: Option<String>,
    visibility: Option<Vec<String>>,
}

impl Ui {
    fn of(json: &str) -> Self {
        // Nearly every definition has no app, and is not parsed.
        if !UI.is_in(json) {
            return Self::default();
        }
        let Ok(Definition { meta }) = serde_json::from_str(json) else {
            return Self::default();
        };
        let ui = meta.get("ui").map_or("{}", |raw| raw.get());
        let ui: BTreeMap<String, &RawValue> = serde_json::from_str(ui).unwrap_or_default();
        let uri = ui.get("resourceUri").or_else(|| meta.get(DRAFT_KEY));
        let uri = uri.and_then(|raw| serde_json::from_str(raw.get()).ok());
        let visibility = ui.get("visibility");
        Self {
            uri: uri.filter(|it: &String| it.starts_with(SCHEME)),
            visibility: visibility.and_then(|raw| serde_json::from_str(raw.get()).ok()),
        }
    }

    fn is_for(&self, caller: &str) -> bool {
        let visibility = self.visibility.as_ref();
        visibility.is_none_or(|all| all.iter().any(|it| it == caller))
    }
}

impl Tool {
    /// Returns the URI of the app that shows the tool's results.
    pub fn app(&self) -> Option<String> {
        Ui::of(self.json()).uri
    }

    /// Returns false if the tool is for apps of its server alone.
    pub fn is_for_models(&self) -> bool {
        Ui::of(self.json()).is_for("model")
    }

    /// Returns false if the tool is for models alone.
    pub fn is_for_apps(&self) -> bool {
        Ui::of(self.json()).is_for("app")
    }
}

#[cfg(test)]
mod tests {
    use crate::Tool;

    #[track_caller]
    fn check(meta: &str, app: Option<&str>, for_models: bool, for_apps: bool) {
        let tool = Tool::parse(&format!(r#"{{"name":"t","_meta":{meta}}}"#)).unwrap();
        let callers = (tool.is_for_models(), tool.is_for_apps());
        assert_eq!(tool.app().as_deref(), app, "{meta}");
        assert_eq!(callers, (for_models, for_apps), "{meta}");
    }

    #[test]
    fn a_definition_names_its_app_and_its_callers() {
        check("{}", None, true, true);
        check("7", None, true, true);
        let app = r#"{"ui":{"resourceUri":"ui://a/b.html"}}"#;
        check(app, Some("ui://a/b.html"), true, true);
        check(r#"{"ui/resourceUri":"ui://a"}"#, Some("ui://a"), true, true);
        let both = r#"{"ui/resourceUri":"ui://old","ui":{"resourceUri":"ui://new"}}"#;
        check(both, Some("ui://new"), true, true);
        check(r#"{"ui":{"resourceUri":"https://a"}}"#, None, true, true);
        check(r#"{"ui":{"resourceUri":7}}"#, None, true, true);
        check(r#"{"ui":{"visibility":["app"]}}"#, None, false, true);
        check(r#"{"ui":{"visibility":["model"]}}"#, None, true, false);
        check(r#"{"ui":{"visibility":[]}}"#, None, false, false);
        check(r#"{"ui":{"visibility":"app"}}"#, None, true, true);
    }
}
