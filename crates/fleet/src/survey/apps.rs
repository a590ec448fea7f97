//! The apps of a server's tools. No list has them: each page that a tool names is read once, for the
//! domains and permissions that it needs. Its text is not kept.

use jsonrpc::{Fields, Json, quote};
use serde_json::{Value, value::RawValue};
use tokio::time::{Instant, timeout_at};
use tool::{ItemKind, OfferItem, Tool};

use crate::{
    Request,
    limits::{APP_NEEDS_BYTES_MAX, APPS_MAX, OFFER_TIMEOUT},
    link::Link,
};

/// The members of `_meta.ui` of a page that decide on what it may reach.
const NEEDS: [&str; 2] = ["csp", "permissions"];

/// Reads the apps. Returns the reasons for unknown needs as well: such an app gets no domain and no
/// permission.
pub(super) async fn read(
    link: &Link,
    tools: &[Tool],
    resources: &[OfferItem],
) -> (Vec<OfferItem>, Vec<String>) {
    let (mut apps, mut dropped) = (Vec::new(), Vec::new());
    let deadline = Instant::now() + OFFER_TIMEOUT;
    for uri in tools.iter().filter_map(Tool::app) {
        if apps.iter().any(|app: &OfferItem| app.id() == uri) {
            continue;
        }
        if apps.len() == APPS_MAX {
            dropped.push(format!("apps: over {APPS_MAX}"));
            break;
        }
        let listed = resources.iter().find(|it| it.id() == uri);
        let listed = listed.and_then(|it| needs_of(it.json()));
        let needs = match read_page(link, &uri, deadline).await {
            Ok(page) => needs_in_page(page.as_str()).or(listed),
            Err(why) => {
                let shown = printable::one_line_of(&uri, 60);
                dropped.push(format!("the needs of the app `{shown}`: {why}"));
                listed
            }
        };
        let uri = Value::from(uri);
        let needs = needs.filter(|it| it.len() <= APP_NEEDS_BYTES_MAX);
        let needs = needs.map(|needs| format!(r#","needs":{needs}"#));
        let item = format!(r#"{{"uri":{uri}{}}}"#, needs.unwrap_or_default());
        match OfferItem::parse(ItemKind::App, &item) {
            Ok(app) => apps.push(app),
            Err(why) => dropped.push(why),
        }
    }
    (apps, dropped)
}

async fn read_page(link: &Link, uri: &str, deadline: Instant) -> Result<Json, String> {
    let uri = Json::of_built(quote(uri));
    let request = Request::new("resources/read", vec![("uri".into(), uri)]);
    match timeout_at(deadline, link.ask(&request)).await {
        Ok(answer) => answer.map_err(|error| error.to_string()),
        Err(_) => Err(format!(
            "the apps took longer than {} s",
            OFFER_TIMEOUT.as_secs()
        )),
    }
}

/// Returns the needs that the content of a page names.
fn needs_in_page(result: &str) -> Option<String> {
    let contents = Fields::of(result)?.get("contents")?.get();
    let contents: Vec<&RawValue> = serde_json::from_str(contents).ok()?;
    needs_of(contents.first()?.get())
}

/// Returns the needs in `_meta.ui` of a listed resource or of a content, as JSON.
fn needs_of(element: &str) -> Option<String> {
    let meta = Fields::of(element)?.get("_meta")?.get();
    let ui = Fields::of(Fields::of(meta)?.get("ui")?.get())?;
    let needs = NEEDS
        .into_iter()
        .filter_map(|key| Some((key, ui.filled(key)?)));
    let needs: Vec<String> = needs.map(|(key, raw)| format!("\"{key}\":{raw}")).collect();
    Some(format!("{{{}}}", needs.join(",")))
}

#[cfg(test)]
mod tests {
    use super::{needs_in_page, needs_of};

    #[test]
    fn the_needs_of_a_page_are_those_of_its_content_or_of_its_entry() {
        let entry = r#"{"uri":"ui://a","_meta":{"ui":{"csp":{"connectDomains":["https://a"]},"prefersBorder":true}}}"#;
        let needs = r#"{"csp":{"connectDomains":["https://a"]}}"#;
        assert_eq!(needs_of(entry).as_deref(), Some(needs));
        let page = format!(r#"{{"contents":[{entry}]}}"#);
        assert_eq!(needs_in_page(&page).as_deref(), Some(needs));
        let none = r#"{"contents":[{"uri":"ui://a","_meta":{"ui":{"permissions":null}}}]}"#;
        assert_eq!(needs_in_page(none).as_deref(), Some("{}"));
        for other in [r#"{"contents":[]}"#, r#"{"contents":[{"uri":"a"}]}"#, "7"] {
            assert_eq!(needs_in_page(other), None, "{other}");
        }
    }
}
