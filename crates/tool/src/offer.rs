//! What a server offers besides tools: prompts, resources and templates of resources.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// The longest name of a prompt, URI of a resource or URI template, in bytes. They stand in errors,
/// and data belongs elsewhere.
const ID_BYTES_MAX: usize = 4 * 1024;

/// The longest part of a refused name that is told, in characters.
const ID_CHARS_TOLD: usize = 60;

/// The three lists of a server, and what it says that it can do.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Offer {
    /// What it announced when the connection was opened.
    pub capabilities: BTreeSet<Capability>,
    /// In the server's order, each name once.
    pub prompts: Vec<Item>,
    /// In the server's order, each URI once.
    pub resources: Vec<Item>,
    /// In the server's order, each URI template once.
    pub templates: Vec<Item>,
}

/// A capability of a server besides `tools`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Capability {
    /// `prompts`.
    Prompts,
    /// `resources`.
    Resources,
    /// `resources.subscribe`; from revision 2026-07-28 on every server with resources.
    Subscribe,
    /// `completions`.
    Completions,
}

/// A kind of what is listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ItemKind {
    /// Of `prompts/list`.
    Prompt,
    /// Of `resources/list`.
    Resource,
    /// Of `resources/templates/list`.
    Template,
}

impl ItemKind {
    /// The member that tells one from the others of its list.
    pub fn id_key(self) -> &'static str {
        match self {
            Self::Prompt => "name",
            Self::Resource => "uri",
            Self::Template => "uriTemplate",
        }
    }

    /// The member of a result that holds the list.
    pub fn list_key(self) -> &'static str {
        match self {
            Self::Prompt => "prompts",
            Self::Resource => "resources",
            Self::Template => "resourceTemplates",
        }
    }
}

/// One element of such a list, byte for byte as its server sent it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    json: Box<str>,
    id: Box<str>,
}

impl Item {
    /// Reads one element of a list; the error says why it is left out.
    pub fn parse(kind: ItemKind, json: &str) -> Result<Self, String> {
        let key = kind.id_key();
        let none = || format!("an element of `{}` without `{key}`", kind.list_key());
        let id = text_member(json, key).filter(|id| !id.is_empty());
        let id = id.ok_or_else(none)?;
        if id.len() > ID_BYTES_MAX {
            let told = printable::one_line_of(&id, ID_CHARS_TOLD);
            let bytes = id.len();
            return Err(format!(
                "`{told}`: its `{key}` has {bytes} bytes, over {ID_BYTES_MAX}"
            ));
        }
        Ok(Self {
            json: json.into(),
            id: id.into(),
        })
    }

    /// The prompt's name, the resource's URI or the URI template, as its server has it.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The whole element.
    pub fn json(&self) -> &str {
        &self.json
    }

    /// A member that is a text.
    pub fn text(&self, key: &str) -> Option<String> {
        text_member(&self.json, key)
    }
}

impl Offer {
    /// One of the lists.
    pub fn list(&self, kind: ItemKind) -> &[Item] {
        match kind {
            ItemKind::Prompt => &self.prompts,
            ItemKind::Resource => &self.resources,
            ItemKind::Template => &self.templates,
        }
    }

    /// Whether the server announced it.
    pub fn has(&self, capability: Capability) -> bool {
        self.capabilities.contains(&capability)
    }
}

fn text_member(json: &str, key: &str) -> Option<String> {
    // Serde would read a list as well.
    if !json.trim_start().starts_with('{') {
        return None;
    }
    let members: std::collections::HashMap<String, &RawValue> = serde_json::from_str(json).ok()?;
    serde_json::from_str(members.get(key)?.get()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_item_is_kept_as_it_came_and_needs_what_names_it() {
        let json = r#"{ "uri":"file:///a","size":1.0, "name" : "a"}"#;
        let item = Item::parse(ItemKind::Resource, json).unwrap();
        assert_eq!((item.json(), item.id()), (json, "file:///a"));
        assert_eq!(item.text("name").as_deref(), Some("a"));
        assert_eq!(item.text("size"), None);
        let check = |kind, json: &str, expected: &str| {
            let error = Item::parse(kind, json).unwrap_err();
            assert_eq!(error, expected);
        };
        let none = "an element of `resourceTemplates` without `uriTemplate`";
        check(ItemKind::Template, json, none);
        for other in ["[]", "7", r#"{"name":7}"#, r#"{"name":""}"#, ""] {
            check(
                ItemKind::Prompt,
                other,
                "an element of `prompts` without `name`",
            );
        }
        let long = format!(r#"{{"name":"{}"}}"#, "x".repeat(ID_BYTES_MAX + 1));
        let error = Item::parse(ItemKind::Prompt, &long).unwrap_err();
        assert!(
            error.ends_with("its `name` has 4097 bytes, over 4096"),
            "{error}"
        );
    }
}
