//! The lists besides tools that a server announces. A list that cannot be read is left out with the
//! reason, without an effect on the others.

use std::collections::{BTreeSet, HashSet};

use serde_json::value::RawValue;
use tokio::time::timeout;
use tool::{Capability, ItemKind, Offer, OfferItem};

use crate::{
    error::RequestError,
    limits::{
        DROPPED_REASONS_MAX, ITEM_BYTES_MAX, ITEMS_BYTES_MAX, ITEMS_MAX, OFFER_TIMEOUT, PAGES_MAX,
    },
    link::Link,
};

/// Reads the lists. Returns the reasons for missing items as well.
pub(super) async fn read(link: &Link) -> (Offer, Vec<String>) {
    let capabilities = link.about.capabilities.clone();
    let mut lists = ItemKind::ALL.map(ListReading::new);
    let reading = async {
        for list in &mut lists {
            if let Some((capability, method)) = source(list.kind)
                && capabilities.contains(&capability)
            {
                let read = list.read_pages(link, method).await;
                let failed = read.map_err(|why| format!("`{method}`: {why}"));
                list.dropped.extend(failed.err());
            }
        }
    };
    let is_late = timeout(OFFER_TIMEOUT, reading).await.is_err();
    let seconds = OFFER_TIMEOUT.as_secs();
    let late = format!("its prompts and resources took longer than {seconds} s");
    let dropped = is_late.then_some(late).into_iter().collect();
    gather(lists, capabilities, dropped)
}

/// Reads the lists that the text of a snapshot has. Returns the reasons for missing items as well.
pub(super) fn read_kept(text: &str, capabilities: BTreeSet<Capability>) -> (Offer, Vec<String>) {
    let mut lists = ItemKind::ALL.map(ListReading::new);
    let fields = jsonrpc::Fields::of(text);
    for list in &mut lists {
        let key = list.kind.list_key();
        let is_there = fields.as_ref().is_some_and(|it| it.get(key).is_some());
        if let Some(why) = is_there.then(|| list.take(text).err()).flatten() {
            list.dropped.push(format!("`{key}`: {why}"));
        }
    }
    gather(lists, capabilities, Vec::new())
}

fn gather(
    lists: [ListReading; 5],
    capabilities: BTreeSet<Capability>,
    mut dropped: Vec<String>,
) -> (Offer, Vec<String>) {
    let [prompts, resources, templates, skills, apps] = lists.map(|list| {
        dropped.extend(list.dropped);
        list.items
    });
    let offer = Offer {
        capabilities,
        prompts,
        resources,
        templates,
        skills,
        apps,
    };
    (offer, dropped)
}

/// The capability with which a server announces a list, and the method that reads it; apps are in none.
fn source(kind: ItemKind) -> Option<(Capability, &'static str)> {
    match kind {
        ItemKind::Prompt => Some((Capability::Prompts, "prompts/list")),
        ItemKind::Resource => Some((Capability::Resources, "resources/list")),
        ItemKind::Template => Some((Capability::Resources, "resources/templates/list")),
        ItemKind::Skill => Some((Capability::Skills, "skills/list")),
        ItemKind::App => None,
    }
}

/// One list whose pages are being read.
struct ListReading {
    kind: ItemKind,
    items: Vec<OfferItem>,
    ids: HashSet<String>,
    /// The size of all pages so far.
    bytes: usize,
    dropped: Vec<String>,
}

impl ListReading {
    fn new(kind: ItemKind) -> Self {
        Self {
            kind,
            items: Vec::new(),
            ids: HashSet::new(),
            bytes: 0,
            dropped: Vec::new(),
        }
    }

    async fn read_pages(&mut self, link: &Link, method: &'static str) -> Result<(), String> {
        let mut cursors: Vec<String> = Vec::new();
        for _ in 0..PAGES_MAX {
            let cursor = cursors.last().map(String::as_str);
            let page = link.list(method, cursor).await;
            let page = match page {
                // Some servers announce resources and have no templates.
                Err(RequestError::Protocol(_)) if self.kind == ItemKind::Template => return Ok(()),
                page => page.map_err(|error| error.to_string())?,
            };
            self.bytes = self.bytes.saturating_add(page.len());
            let Some(cursor) = self.take(page.as_str())? else {
                return Ok(());
            };
            if self.items.len() >= ITEMS_MAX || self.bytes >= ITEMS_BYTES_MAX {
                return Err(format!(
                    "it goes on after {} elements and {} bytes",
                    self.items.len(),
                    self.bytes
                ));
            }
            if cursors.contains(&cursor) {
                return Err("it repeats a page".to_owned());
            }
            cursors.push(cursor);
        }
        Err(format!("it goes on after {PAGES_MAX} pages"))
    }

    /// Adds one page. Returns the cursor of the next one.
    fn take(&mut self, page: &str) -> Result<Option<String>, String> {
        let page = jsonrpc::Fields::of(page).ok_or("it is malformed")?;
        let elements = page.get(self.kind.list_key()).ok_or("it is malformed")?;
        let elements: Vec<&RawValue> =
            serde_json::from_str(elements.get()).map_err(|error| error.to_string())?;
        for raw in elements {
            match self.read_item(raw.get()) {
                Ok(item) => {
                    self.ids.insert(item.id().to_owned());
                    self.items.push(item);
                }
                Err(why) if self.dropped.len() < DROPPED_REASONS_MAX => self.dropped.push(why),
                Err(_) => {}
            }
        }
        let cursor = page.get("nextCursor").and_then(jsonrpc::text_of);
        Ok(cursor.map(std::borrow::Cow::into_owned))
    }

    fn read_item(&self, json: &str) -> Result<OfferItem, String> {
        let item = OfferItem::parse(self.kind, json)?;
        let told = || printable::one_line_of(item.id(), 60);
        if json.len() > ITEM_BYTES_MAX {
            let bytes = json.len();
            return Err(format!(
                "`{}` has {bytes} bytes, over {ITEM_BYTES_MAX}",
                told()
            ));
        }
        if self.items.len() >= ITEMS_MAX {
            return Err(format!("`{}`: over {ITEMS_MAX} in one list", told()));
        }
        if self.ids.contains(item.id()) {
            return Err(format!("`{}` is listed twice", told()));
        }
        Ok(item)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_flood_is_bounded_and_what_is_no_item_is_left_out() {
        let mut reading = ListReading::new(ItemKind::Resource);
        let page = json!({"resources": [{"uri": "a:1"}, {"uri": "a:1"}, {}, 7], "nextCursor": ""});
        assert_eq!(reading.take(&page.to_string()), Ok(Some(String::new())));
        assert_eq!(reading.items.len(), 1);
        assert_eq!(reading.dropped[0], "`a:1` is listed twice");
        let many: Vec<_> = (0..ITEMS_MAX + 200)
            .map(|n| json!({"uri": format!("b:{n}")}))
            .collect();
        let page = json!({ "resources": many });
        assert_eq!(reading.take(&page.to_string()), Ok(None));
        assert_eq!(reading.items.len(), ITEMS_MAX);
        assert_eq!(reading.dropped.len(), DROPPED_REASONS_MAX);
        let mut reading = ListReading::new(ItemKind::Resource);
        let long = json!({"resources": [{"uri": "a:1", "x": "x".repeat(ITEM_BYTES_MAX)}]});
        assert_eq!(reading.take(&long.to_string()), Ok(None));
        assert!(reading.items.is_empty(), "{:?}", reading.dropped);
        for broken in ["[]", "{}", r#"{"resources":7}"#] {
            assert!(reading.take(broken).is_err(), "{broken}");
        }
    }
}
