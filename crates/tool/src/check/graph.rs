//! The schemas of a document and how they lead to each other: what [`super::cost`] counts on.

use std::collections::HashMap;

use serde_json::Value;

use super::pattern::states;
use crate::schema::resolve_pointer;

/// Times that `unevaluatedProperties` and `unevaluatedItems` may stand in one document: where
/// they are nested, the validator compiles what is below once more for each of them.
const UNEVALUATED_MAX: usize = 4;
/// States of all patterns of a document together: each takes the validator some 20 ns to make.
const STATES_MAX: u64 = 50_000;

/// Schemas of one document that are referred to: the validator takes some seconds to follow a chain
/// of ten thousand.
const REFERRED_MAX: usize = 2_000;

/// Every schema that a check may reach, the root first.
#[derive(Debug)]
pub(super) struct Graph {
    pub(super) nodes: Vec<Node>,
    /// Some error holds the errors of alternatives, and copies of what they are about.
    pub(super) has_alternatives: bool,
}

/// One schema: what it costs by itself, and which others are asked about which values.
#[derive(Debug, Default)]
pub(super) struct Node {
    /// Its keywords: each may give an error.
    pub(super) keywords: u64,
    /// Its keywords, and what they hold to compare with.
    pub(super) own: u64,
    /// Another place refers to it, so that it may be met again for the same value.
    pub(super) is_shared: bool,
    /// States of its `pattern`.
    pub(super) states: u64,
    /// States of the patterns that every key is matched with.
    pub(super) key_states: u64,
    pub(super) compares_items: bool,
    /// It looks twice at what the others find.
    pub(super) looks_again: bool,
    pub(super) same_value: Vec<(Role, usize)>,
    pub(super) members: HashMap<String, usize>,
    pub(super) every_member: Vec<usize>,
    pub(super) every_key: Vec<usize>,
    pub(super) every_item: Vec<(Role, usize)>,
}

/// A question to another schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// To hold: its errors are ours.
    Required,
    /// To hold, or another does: its errors are kept in one of ours.
    Alternative,
    /// Only whether it holds.
    Asked,
}

impl Graph {
    /// `None` for a document whose references we would not follow as the validator does, or that
    /// costs too much to compile.
    pub(super) fn new(root: &Value) -> Option<Self> {
        let mut builder = Builder {
            anchors: Anchors::of(root)?,
            root,
            known: HashMap::new(),
            waiting: Vec::new(),
            nodes: Vec::new(),
            unevaluated: 0,
        };
        builder.node(root);
        while let Some((at, schema)) = builder.waiting.pop() {
            let node = builder.read(schema)?;
            let is_shared = builder.nodes[at].is_shared;
            builder.nodes[at] = Node { is_shared, ..node };
        }
        let nodes = builder.nodes;
        let of_one = |node: &Node| node.states.saturating_add(node.key_states);
        let total = nodes.iter().map(of_one).fold(0, u64::saturating_add);
        let referred = nodes.iter().filter(|node| node.is_shared).count();
        let is_small = total <= STATES_MAX
            && builder.unevaluated <= UNEVALUATED_MAX
            && referred <= REFERRED_MAX;
        let mut edges = nodes.iter().flat_map(|node| &node.same_value);
        let has_alternatives = edges.any(|(role, _)| *role == Role::Alternative);
        is_small.then_some(Self {
            nodes,
            has_alternatives,
        })
    }
}

struct Builder<'a> {
    root: &'a Value,
    anchors: Anchors<'a>,
    /// By address: each schema of the document stands at one.
    known: HashMap<usize, usize>,
    waiting: Vec<(usize, &'a Value)>,
    nodes: Vec<Node>,
    unevaluated: usize,
}

impl<'a> Builder<'a> {
    fn node(&mut self, schema: &'a Value) -> usize {
        let next = self.nodes.len();
        let at = *self.known.entry(address(schema)).or_insert(next);
        if at == next {
            self.nodes.push(Node::default());
            self.waiting.push((at, schema));
        }
        at
    }

    fn list(&mut self, schemas: &'a Value) -> Vec<usize> {
        match schemas {
            Value::Array(schemas) => schemas.iter().map(|schema| self.node(schema)).collect(),
            schema => vec![self.node(schema)],
        }
    }

    fn read(&mut self, schema: &'a Value) -> Option<Node> {
        let mut node = Node {
            own: 1,
            ..Node::default()
        };
        for (keyword, value) in schema.as_object().into_iter().flatten() {
            node.keywords += 1;
            node.own += 1;
            self.read_keyword(&mut node, keyword, value)?;
        }
        Some(node)
    }

    fn read_keyword(&mut self, node: &mut Node, keyword: &str, value: &'a Value) -> Option<()> {
        match keyword {
            "$ref" | "$dynamicRef" | "$recursiveRef" => {
                for target in self.targets(value.as_str()?)? {
                    let target = self.node(target);
                    self.nodes[target].is_shared = true;
                    node.same_value.push((Role::Required, target));
                }
            }
            "allOf" | "then" | "else" => self.ask(node, Role::Required, value),
            "anyOf" | "oneOf" => self.ask(node, Role::Alternative, value),
            "if" => self.ask(node, Role::Asked, value),
            "not" => {
                // The error holds a copy of the schema.
                node.own = node.own.saturating_add(size(value));
                self.ask(node, Role::Asked, value);
            }
            "dependentSchemas" | "dependencies" => self.read_dependencies(node, value),
            "properties" => {
                for (name, schema) in value.as_object().into_iter().flatten() {
                    node.own += 1;
                    node.members.insert(name.clone(), self.node(schema));
                }
            }
            "patternProperties" => {
                for (pattern, schema) in value.as_object().into_iter().flatten() {
                    node.key_states = node.key_states.saturating_add(states(pattern));
                    node.every_member.push(self.node(schema));
                }
            }
            "additionalProperties" => node.every_member.push(self.node(value)),
            "unevaluatedProperties" => {
                self.look_again(node);
                node.every_member.push(self.node(value));
            }
            "unevaluatedItems" => {
                self.look_again(node);
                node.every_item.push((Role::Required, self.node(value)));
            }
            "propertyNames" => node.every_key.push(self.node(value)),
            "items" | "prefixItems" | "additionalItems" => {
                let items = self.list(value).into_iter();
                node.every_item
                    .extend(items.map(|item| (Role::Required, item)));
            }
            "contains" => node.every_item.push((Role::Asked, self.node(value))),
            "uniqueItems" => node.compares_items = value == &Value::Bool(true),
            "pattern" => {
                let pattern = value.as_str().unwrap_or_default();
                node.states = states(pattern);
                node.own = node.own.saturating_add(size(value));
            }
            "enum" | "const" | "required" | "dependentRequired" | "type" => {
                node.own = node.own.saturating_add(size(value));
            }
            _ => {}
        }
        Some(())
    }

    fn ask(&mut self, node: &mut Node, role: Role, schemas: &'a Value) {
        let schemas = self.list(schemas).into_iter();
        node.same_value.extend(schemas.map(|schema| (role, schema)));
    }

    fn read_dependencies(&mut self, node: &mut Node, value: &'a Value) {
        for dependency in value.as_object().into_iter().flat_map(|map| map.values()) {
            node.own = node.own.saturating_add(1);
            match dependency {
                Value::Array(names) => node.own = node.own.saturating_add(names.len() as u64),
                schema => self.ask(node, Role::Required, schema),
            }
        }
    }

    fn look_again(&mut self, node: &mut Node) {
        node.looks_again = true;
        self.unevaluated += 1;
    }

    /// Every schema that a reference may mean.
    fn targets(&self, reference: &str) -> Option<Vec<&'a Value>> {
        let root_id = self.root.get(id_keyword(self.root)).and_then(Value::as_str);
        let local = root_id.and_then(|id| reference.strip_prefix(id.trim_end_matches('#')));
        let local = local.unwrap_or(reference);
        let fragment = match local.strip_prefix('#') {
            Some(fragment) => fragment,
            None if local.is_empty() => local,
            None => return None,
        };
        if fragment.is_empty() || fragment.starts_with('/') {
            return resolve_pointer(self.root, fragment).map(|target| vec![target]);
        }
        self.anchors.0.get(fragment).cloned()
    }
}

/// Schemas by the names that `$anchor` and `$dynamicAnchor` give them.
struct Anchors<'a>(HashMap<&'a str, Vec<&'a Value>>);

impl<'a> Anchors<'a> {
    /// `None` where a part of the document has an address of its own: references below it mean
    /// other places than they seem to.
    fn of(root: &'a Value) -> Option<Self> {
        let mut anchors = Self(HashMap::new());
        let members = root.as_object().into_iter().flatten();
        members
            .filter(|(name, _)| *name != id_keyword(root))
            .try_for_each(|(name, member)| anchors.read_member(root, root, name, member))?;
        Some(anchors)
    }

    fn read(&mut self, root: &Value, value: &'a Value) -> Option<()> {
        match value {
            Value::Array(items) => items.iter().try_for_each(|item| self.read(root, item)),
            Value::Object(members) => members
                .iter()
                .try_for_each(|(name, member)| self.read_member(root, value, name, member)),
            _ => Some(()),
        }
    }

    fn read_member(
        &mut self,
        root: &Value,
        of: &'a Value,
        name: &str,
        member: &'a Value,
    ) -> Option<()> {
        let Some(text) = member.as_str() else {
            return self.read(root, member);
        };
        let anchor = match name {
            "$anchor" | "$dynamicAnchor" => text,
            _ if name == id_keyword(root) => text.strip_prefix('#')?,
            _ => return Some(()),
        };
        self.0.entry(anchor).or_default().push(of);
        Some(())
    }
}

/// The keyword that gives a schema an address.
fn id_keyword(root: &Value) -> &'static str {
    let draft = root.get("$schema").and_then(Value::as_str);
    let is_old = draft.is_some_and(|draft| draft.contains("draft-04"));
    if is_old { "id" } else { "$id" }
}

/// Values in a value; a long text counts as several.
pub(super) fn size(value: &Value) -> u64 {
    match value {
        Value::Array(items) => items
            .iter()
            .fold(1, |sum: u64, item| sum.saturating_add(size(item))),
        Value::Object(members) => members.iter().fold(1, |sum: u64, (name, member)| {
            sum.saturating_add(text_size(name))
                .saturating_add(size(member))
        }),
        Value::String(text) => text_size(text),
        _ => 1,
    }
}

/// Bytes of text that are copied as fast as another value.
const BYTES_A_STEP: u64 = 64;

pub(super) fn text_size(text: &str) -> u64 {
    1 + text.len() as u64 / BYTES_A_STEP
}

fn address(value: &Value) -> usize {
    std::ptr::from_ref(value).addr()
}
