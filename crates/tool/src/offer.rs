//! The prompts, resources, resource templates, skills and apps that a server offers besides tools.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::{Value, value::RawValue};

use crate::{Digest, digest::DuplicateMember};

/// The longest name of a prompt, URI of a resource or URI template, in bytes. They are repeated in
/// errors, and a URI with embedded data would fill them.
const ID_BYTES_MAX: usize = 4 * 1024;

/// The longest part of an invalid name in an error, in characters.
const ID_CHARS_SHOWN_MAX: usize = 60;

/// The lists of a server besides its tools, and its announced capabilities.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Offer {
    /// The capabilities that the server announced when the connection was opened.
    pub capabilities: BTreeSet<Capability>,
    /// In the server's order, each name once.
    pub prompts: Vec<OfferItem>,
    /// In the server's order, each URI once.
    pub resources: Vec<OfferItem>,
    /// In the server's order, each URI template once.
    pub templates: Vec<OfferItem>,
    /// In the server's order, each URI once.
    pub skills: Vec<OfferItem>,
    /// In the order of the tools that name them, each URI once.
    pub apps: Vec<OfferItem>,
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
    /// `extensions` with `io.modelcontextprotocol/skills`.
    Skills,
}

/// A kind of listed item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ItemKind {
    /// Of `prompts/list`.
    Prompt,
    /// Of `resources/list`.
    Resource,
    /// Of `resources/templates/list`.
    Template,
    /// Of `skills/list`.
    Skill,
    /// The page that shows the results of a tool, with the domains and permissions that it needs. No
    /// list has them: a survey reads each page that a tool names.
    App,
}

impl ItemKind {
    /// Every kind.
    pub const ALL: [Self; 5] = [
        Self::Prompt,
        Self::Resource,
        Self::Template,
        Self::Skill,
        Self::App,
    ];

    /// Returns the member that identifies an element of its list.
    pub fn id_key(self) -> &'static str {
        match self {
            Self::Prompt => "name",
            Self::Resource | Self::Skill | Self::App => "uri",
            Self::Template => "uriTemplate",
        }
    }

    /// Returns the member of a result that holds the list.
    pub fn list_key(self) -> &'static str {
        match self {
            Self::Prompt => "prompts",
            Self::Resource => "resources",
            Self::Template => "resourceTemplates",
            Self::Skill => "skills",
            Self::App => "apps",
        }
    }
}

/// One element of these lists, byte for byte as its server sent it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OfferItem {
    json: Box<str>,
    id: Box<str>,
    digest: Digest,
}

/// The members of a resource or template that a model reads. The others change with every write to a
/// file (`size`, `annotations.lastModified`).
const TEXTS_OF_RESOURCES: [&str; 6] = [
    "description",
    "mimeType",
    "name",
    "title",
    "uri",
    "uriTemplate",
];

impl OfferItem {
    /// Parses one element of a list; the error is the reason why it is omitted.
    pub fn parse(kind: ItemKind, json: &str) -> Result<Self, String> {
        let key = kind.id_key();
        let none = || format!("an element of `{}` without `{key}`", kind.list_key());
        let unique = Digest::of_unique(json);
        let id = member::<String>(json, key).filter(|id| !id.is_empty());
        let id = id.ok_or_else(none)?;
        if id.len() > ID_BYTES_MAX {
            let shown = printable::one_line_of(&id, ID_CHARS_SHOWN_MAX);
            let bytes = id.len();
            return Err(format!(
                "`{shown}`: its `{key}` has {bytes} bytes, over {ID_BYTES_MAX}"
            ));
        }
        let whole = unique.map_err(|DuplicateMember(member)| {
            let [id, member] =
                [&*id, &*member].map(|it| printable::one_line_of(it, ID_CHARS_SHOWN_MAX));
            format!("`{id}`: its definition has the member `{member}` twice")
        })?;
        let digest = match kind {
            ItemKind::Prompt | ItemKind::Skill | ItemKind::App => whole,
            ItemKind::Resource | ItemKind::Template => digest_of_texts(json),
        };
        Ok(Self {
            json: json.into(),
            id: id.into(),
            digest,
        })
    }

    /// Returns the digest of the definition; for a resource or template, of its texts alone.
    pub fn digest(&self) -> Digest {
        self.digest
    }

    /// Returns the prompt's name, the resource's URI or the URI template, as sent by the server.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Returns the whole element.
    pub fn json(&self) -> &str {
        &self.json
    }

    /// Returns the element with a mark after its description; of a skill after that of its front matter. An
    /// app has no description, and stays as it is.
    #[must_use]
    pub fn with_mark(self, kind: ItemKind, mark: &str) -> Self {
        let mut element: Value = serde_json::from_str(&self.json).unwrap_or_default();
        let described = match kind {
            ItemKind::App => return self,
            ItemKind::Skill => &mut element["frontmatter"],
            ItemKind::Prompt | ItemKind::Resource | ItemKind::Template => &mut element,
        };
        let description = described["description"].as_str().unwrap_or_default();
        described["description"] = format!("{description} {mark}").trim_start().into();
        Self {
            json: element.to_string().into(),
            ..self
        }
    }

    /// Returns a member of a skill's front matter that is a string.
    pub fn frontmatter(&self, key: &str) -> Option<String> {
        let members: BTreeMap<String, &RawValue> = serde_json::from_str(&self.json).ok()?;
        member(members.get("frontmatter")?.get(), key)
    }

    /// Returns the files of a skill, as its entry lists them; `None` if its content has no digests.
    pub fn skill_files(&self) -> Option<Vec<SkillFile>> {
        #[derive(Deserialize)]
        struct Entry {
            resources: Vec<SkillFile>,
        }
        let entry: Entry = serde_json::from_str(&self.json).ok()?;
        Some(entry.resources)
    }

    /// Returns true if this URI is that of a skill, or of a file in its folder.
    pub fn is_skill_file(&self, uri: &str) -> bool {
        is_in_skill(&self.id, uri)
    }

    /// Returns a member that is a string.
    pub fn text(&self, key: &str) -> Option<String> {
        member(&self.json, key)
    }
}

impl Offer {
    /// Returns one of the lists.
    pub fn list(&self, kind: ItemKind) -> &[OfferItem] {
        match kind {
            ItemKind::Prompt => &self.prompts,
            ItemKind::Resource => &self.resources,
            ItemKind::Template => &self.templates,
            ItemKind::Skill => &self.skills,
            ItemKind::App => &self.apps,
        }
    }

    /// Returns true if the server announced this capability.
    pub fn has(&self, capability: Capability) -> bool {
        self.capabilities.contains(&capability)
    }
}

/// One file of a skill.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SkillFile {
    /// The URI by which it is read.
    pub uri: String,
    /// `sha256:` and 64 hexadecimal digits, of its bytes.
    pub digest: String,
    /// The number of its bytes.
    pub size: u64,
}

/// Returns true if a URI is in the folder of the skill whose `SKILL.md` has the URI `skill`.
pub fn is_in_skill(skill: &str, uri: &str) -> bool {
    let root = skill.strip_suffix("SKILL.md").unwrap_or(skill);
    uri == skill || root.ends_with('/') && uri.starts_with(root)
}

fn digest_of_texts(json: &str) -> Digest {
    let members: BTreeMap<String, &RawValue> = serde_json::from_str(json).unwrap_or_default();
    let texts = members.iter().filter_map(|(key, value)| {
        let is_read = TEXTS_OF_RESOURCES.contains(&key.as_str());
        is_read.then(|| format!("\"{key}\":{value}"))
    });
    Digest::of_json(&format!("{{{}}}", texts.collect::<Vec<_>>().join(",")))
}

/// Returns a member of this type; `None` if the text is not an object.
pub(crate) fn member<T: DeserializeOwned>(json: &str, key: &str) -> Option<T> {
    // Serde would accept a list as well.
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
    fn an_item_with_a_member_twice_is_refused() {
        let check = |kind, json: &str, expected: &str| {
            assert_eq!(OfferItem::parse(kind, json).unwrap_err(), expected);
        };
        check(
            ItemKind::Prompt,
            r#"{"name":"a","arguments":[{"name":"x","n\u0061me":"y"}]}"#,
            "`a`: its definition has the member `name` twice",
        );
        check(
            ItemKind::Resource,
            r#"{"uri":"a:1","description":"a","description":"b"}"#,
            "`a:1`: its definition has the member `description` twice",
        );
    }

    #[test]
    fn of_a_resource_its_texts_are_digested() {
        let digest = |kind, json: &str| OfferItem::parse(kind, json).unwrap().digest();
        let check = |kind, a: &str, b: &str, same: bool| {
            assert_eq!(digest(kind, a) == digest(kind, b), same, "{a} {b}");
        };
        let one = r#"{"uri":"a:1","description":"a","size":1,"annotations":{"lastModified":"x"}}"#;
        let two = r#"{"size":2,"description":"a","uri":"a:1"}"#;
        check(ItemKind::Resource, one, two, true);
        check(
            ItemKind::Resource,
            one,
            r#"{"uri":"a:1","description":"b"}"#,
            false,
        );
        check(ItemKind::Resource, one, r#"{"uri":"a:1"}"#, false);
        let prompt = r#"{"name":"p","_meta":{"x":1}}"#;
        check(ItemKind::Prompt, prompt, r#"{"name":"p"}"#, false);
    }

    #[test]
    fn a_skill_has_its_files_and_its_front_matter() {
        let json = r#"{"uri":"skill://a/pdf/SKILL.md","frontmatter":{"name":"pdf","description":"Fill."},
            "resources":[{"uri":"skill://a/pdf/SKILL.md","digest":"sha256:0","size":3}]}"#;
        let skill = OfferItem::parse(ItemKind::Skill, json).unwrap();
        assert_eq!(skill.frontmatter("name").as_deref(), Some("pdf"));
        assert_eq!(skill.skill_files().unwrap()[0].size, 3);
        for (uri, is_in) in [
            ("skill://a/pdf/SKILL.md", true),
            ("skill://a/pdf/x/y.md", true),
            ("skill://a/pdf2/x.md", false),
            ("skill://a/pdf", false),
        ] {
            assert_eq!(skill.is_skill_file(uri), is_in, "{uri}");
        }
        let dynamic = r#"{"uri":"s://a/SKILL.md","resources":"dynamic"}"#;
        let dynamic = OfferItem::parse(ItemKind::Skill, dynamic).unwrap();
        assert_eq!(dynamic.skill_files(), None);
        assert!(!is_in_skill("s://a", "s://abc"));
    }

    #[test]
    fn an_item_is_kept_as_it_came_and_needs_what_names_it() {
        let json = r#"{ "uri":"file:///a","size":1.0, "name" : "a"}"#;
        let item = OfferItem::parse(ItemKind::Resource, json).unwrap();
        assert_eq!((item.json(), item.id()), (json, "file:///a"));
        assert_eq!(item.text("name").as_deref(), Some("a"));
        assert_eq!(item.text("size"), None);
        let check = |kind, json: &str, expected: &str| {
            let error = OfferItem::parse(kind, json).unwrap_err();
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
        let error = OfferItem::parse(ItemKind::Prompt, &long).unwrap_err();
        assert!(
            error.ends_with("its `name` has 4097 bytes, over 4096"),
            "{error}"
        );
    }
}
