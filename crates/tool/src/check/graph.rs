//! The graph of the schemas in a document, from which [`super::cost`] computes costs.

use std::collections::HashMap;

use serde_json::Value;

use super::pattern::states;
use crate::schema::resolve_pointer;

/// The most uses of `unevaluatedProperties` and `unevaluatedItems` in one document: for each level of
/// nesting, the validator compiles the schemas below once more.
const UNEVALUATED_MAX: usize = 4;
/// The most states of all patterns of a document: the validator compiles one in about 20 ns.
const STATES_MAX: u64 = 50_000;

/// The most schemas of a document that are the target of a reference: the validator takes seconds to
/// follow a chain of ten thousand.
const REFERRED_MAX: usize = 2_000;

/// Every schema that a check can reach, the root first.
#[derive(Debug)]
pub(super) struct Graph {
    pub(super) nodes: Vec<GraphNode>,
    /// True if errors may contain the errors of alternatives, with copies of their values.
    pub(super) has_alternatives: bool,
}

/// One schema: its own cost, and the subschemas that it applies.
#[derive(Debug, Default)]
pub(super) struct GraphNode {
    /// The number of its keywords: each may produce an error.
    pub(super) keywords: u64,
    /// The steps of its keywords and of the values that they compare with.
    pub(super) own: u64,
    /// True if a reference points to this schema, so that the schema may be applied to the same
    /// value again.
    pub(super) is_shared: bool,
    pub(super) states: u64,
    /// The states of the patterns that every key is matched against.
    pub(super) key_states: u64,
    pub(super) compares_items: bool,
    /// True if it checks its subschemas repeatedly (`unevaluatedProperties`).
    pub(super) repeats: bool,
    pub(super) same_value: Vec<(Role, usize)>,
    pub(super) members: HashMap<String, usize>,
    pub(super) every_member: Vec<usize>,
    pub(super) every_key: Vec<usize>,
    pub(super) every_item: Vec<(Role, usize)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// The value has to satisfy the subschema: its errors are reported.
    Required,
    /// The value may satisfy another alternative instead: the errors are nested in an error of the
    /// parent.
    Alternative,
    /// Its result decides, and its errors are not reported: `if`, `not`, `contains`.
    Condition,
}

impl Graph {
    /// Returns `None` if the validator resolves the document's references in another way than this
    /// code, or if the document costs too much to compile.
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
            builder.nodes[at] = GraphNode { is_shared, ..node };
        }
        let nodes = builder.nodes;
        let of_one = |node: &GraphNode| node.states.saturating_add(node.key_states);
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
    /// Node indexes by the memory address of the schema.
    known: HashMap<usize, usize>,
    waiting: Vec<(usize, &'a Value)>,
    nodes: Vec<GraphNode>,
    unevaluated: usize,
}

impl<'a> Builder<'a> {
    fn node(&mut self, schema: &'a Value) -> usize {
        let next = self.nodes.len();
        let at = *self.known.entry(address(schema)).or_insert(next);
        if at == next {
            self.nodes.push(GraphNode::default());
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

    fn read(&mut self, schema: &'a Value) -> Option<GraphNode> {
        let mut node = GraphNode {
            own: 1,
            ..GraphNode::default()
        };
        for (keyword, value) in schema.as_object().into_iter().flatten() {
            node.keywords += 1;
            node.own += 1;
            self.read_keyword(&mut node, keyword, value)?;
        }
        Some(node)
    }

    fn read_keyword(
        &mut self,
        node: &mut GraphNode,
        keyword: &str,
        value: &'a Value,
    ) -> Option<()> {
        match keyword {
            "$ref" | "$dynamicRef" | "$recursiveRef" => {
                for target in self.targets(value.as_str()?)? {
                    let target = self.node(target);
                    self.nodes[target].is_shared = true;
                    node.same_value.push((Role::Required, target));
                }
            }
            "allOf" | "then" | "else" => self.apply(node, Role::Required, value),
            "anyOf" | "oneOf" => self.apply(node, Role::Alternative, value),
            "if" => self.apply(node, Role::Condition, value),
            "not" => {
                // The error contains a copy of the schema.
                node.own = node.own.saturating_add(size(value));
                self.apply(node, Role::Condition, value);
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
                self.repeat(node);
                node.every_member.push(self.node(value));
            }
            "unevaluatedItems" => {
                self.repeat(node);
                node.every_item.push((Role::Required, self.node(value)));
            }
            "propertyNames" => node.every_key.push(self.node(value)),
            "items" | "prefixItems" | "additionalItems" => {
                let items = self.list(value).into_iter();
                node.every_item
                    .extend(items.map(|item| (Role::Required, item)));
            }
            "contains" => node.every_item.push((Role::Condition, self.node(value))),
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

    fn apply(&mut self, node: &mut GraphNode, role: Role, schemas: &'a Value) {
        let schemas = self.list(schemas).into_iter();
        node.same_value.extend(schemas.map(|schema| (role, schema)));
    }

    fn read_dependencies(&mut self, node: &mut GraphNode, value: &'a Value) {
        for dependency in value.as_object().into_iter().flat_map(|map| map.values()) {
            node.own = node.own.saturating_add(1);
            match dependency {
                Value::Array(names) => node.own = node.own.saturating_add(names.len() as u64),
                schema => self.apply(node, Role::Required, schema),
            }
        }
    }

    fn repeat(&mut self, node: &mut GraphNode) {
        node.repeats = true;
        self.unevaluated += 1;
    }

    /// Returns every schema that a reference may point to.
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

/// Schemas by the names in `$anchor` and `$dynamicAnchor`.
struct Anchors<'a>(HashMap<&'a str, Vec<&'a Value>>);

impl<'a> Anchors<'a> {
    /// Returns `None` if a subschema has its own `$id`, which changes the base of the references below
    /// it.
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

/// Returns the keyword that sets the base URI of a schema.
fn id_keyword(root: &Value) -> &'static str {
    let draft = root.get("$schema").and_then(Value::as_str);
    let is_old = draft.is_some_and(|draft| draft.contains("draft-04"));
    if is_old { "id" } else { "$id" }
}

/// Counts the values in a value; a long string counts as several.
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

/// The bytes of text that are copied as fast as another value.
const BYTES_A_STEP: u64 = 64;

pub(super) fn text_size(text: &str) -> u64 {
    1 + text.len() as u64 / BYTES_A_STEP
}

fn address(value: &Value) -> usize {
    std::ptr::from_ref(value).addr()
}
