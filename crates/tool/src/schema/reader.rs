//! A bounded traversal of a schema that follows references and merges alternatives.

use std::{borrow::Cow, cell::Cell, collections::HashMap};

use serde_json::Value;

/// The most steps of one traversal. References can make a small schema describe an endless tree.
const STEPS_MAX: u32 = 10_000;
/// The deepest nesting that is read: no signature shows more, and the stack is finite.
const DEPTH_MAX: u8 = 24;
/// The most references in a chain; a longer one counts as a cycle.
const REFERENCES_MAX: usize = 16;

/// One traversal of a schema, with a limit of steps.
#[derive(Debug)]
pub(crate) struct SchemaReader<'a> {
    root: &'a Value,
    steps: Cell<u32>,
}

impl<'a> SchemaReader<'a> {
    pub(crate) fn new(root: &'a Value) -> Self {
        let steps = Cell::new(STEPS_MAX);
        Self { root, steps }
    }

    pub(crate) fn root<'r>(&'r self) -> SchemaNode<'r>
    where
        'a: 'r,
    {
        self.node(self.root)
    }

    pub(crate) fn at(&self, pointer: &str) -> Option<SchemaNode<'_>> {
        self.root.pointer(pointer).map(|at| self.node(at))
    }

    fn node<'r>(&'r self, at: &'r Value) -> SchemaNode<'r> {
        let depth = 0;
        SchemaNode {
            at,
            depth,
            reader: self,
        }
    }

    /// Takes a step. Returns false if no steps are left.
    fn take_step(&self) -> bool {
        let has_steps = self.steps.get() > 0;
        self.spend(1);
        has_steps
    }

    fn spend(&self, steps: u32) {
        self.steps.set(self.steps.get().saturating_sub(steps));
    }
}

/// Returns the target of a reference whose fragment is a JSON pointer.
pub(crate) fn resolve_pointer<'a>(root: &'a Value, fragment: &str) -> Option<&'a Value> {
    root.pointer(&decode_percent(fragment))
}

fn decode_percent(text: &str) -> Cow<'_, str> {
    if !text.contains('%') {
        return Cow::Borrowed(text);
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, tail)) = rest.split_first() {
        let hex = tail.get(..2).filter(|_| first == b'%');
        let hex = hex.and_then(|hex| str::from_utf8(hex).ok());
        if let Some(byte) = hex.and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            bytes.push(byte);
            rest = &tail[2..];
        } else {
            bytes.push(first);
            rest = tail;
        }
    }
    Cow::Owned(String::from_utf8_lossy(&bytes).into_owned())
}

/// A schema inside a document.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SchemaNode<'a> {
    at: &'a Value,
    depth: u8,
    reader: &'a SchemaReader<'a>,
}

/// One property of an object schema.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Field<'a> {
    pub(crate) name: &'a str,
    pub(crate) required: bool,
    pub(crate) node: SchemaNode<'a>,
}

impl<'a> SchemaNode<'a> {
    pub(crate) fn get(&self, keyword: &str) -> Option<&'a Value> {
        self.at.get(keyword)
    }

    pub(crate) fn is_spent(&self) -> bool {
        self.depth >= DEPTH_MAX || !self.reader.take_step()
    }

    /// Counts further work for this node.
    pub(crate) fn spend(&self, steps: u32) {
        self.reader.spend(steps);
    }

    fn child(&self, at: &'a Value) -> Self {
        let depth = self.depth.saturating_add(1);
        Self { at, depth, ..*self }
    }

    /// Follows references, and unwraps `allOf` with a single schema.
    pub(crate) fn resolve(self) -> Self {
        let mut node = self;
        for _ in 0..REFERENCES_MAX {
            let Some(next) = node.target() else { break };
            node = Self { at: next, ..node };
        }
        node
    }

    fn target(&self) -> Option<&'a Value> {
        if let Some(reference) = self.get("$ref").and_then(Value::as_str) {
            // Other documents are never fetched.
            return resolve_pointer(self.reader.root, reference.strip_prefix('#')?);
        }
        let own_keywords = [
            "type",
            "properties",
            "required",
            "enum",
            "const",
            "anyOf",
            "oneOf",
        ];
        if own_keywords
            .iter()
            .any(|keyword| self.get(keyword).is_some())
        {
            return None;
        }
        match self.get("allOf")?.as_array()?.as_slice() {
            [only] => Some(only),
            _ => None,
        }
    }

    /// Returns a keyword of this schema, or else of the target of its reference.
    pub(crate) fn annotation(&self, keyword: &str) -> Option<&'a Value> {
        self.get(keyword).or_else(|| self.resolve().get(keyword))
    }

    /// Returns the schema of one of the own properties.
    pub(crate) fn property(&self, name: &str) -> Option<Self> {
        let properties = self.get("properties")?.as_object()?;
        properties.get(name).map(|at| self.child(at))
    }

    pub(crate) fn description(&self) -> Option<&'a str> {
        self.annotation("description").and_then(Value::as_str)
    }

    pub(crate) fn parts(&self, keyword: &str) -> Vec<Self> {
        let parts = self.get(keyword).and_then(Value::as_array);
        let parts = parts.into_iter().flatten();
        parts.map(|part| self.child(part)).collect()
    }

    /// Returns the schemas of `anyOf` and `oneOf`.
    pub(crate) fn alternatives(&self) -> Vec<Self> {
        let mut alternatives = self.parts("anyOf");
        alternatives.extend(self.parts("oneOf"));
        alternatives
    }

    pub(crate) fn items(&self) -> Option<Self> {
        match self.get("items")? {
            items @ (Value::Object(_) | Value::Bool(_)) => Some(self.child(items)),
            _ => None,
        }
    }

    /// Returns the properties, required ones first, otherwise in the schema's order.
    ///
    /// They include those of `allOf` and of all alternatives in `anyOf` and `oneOf`. A property of an
    /// alternative is required only if all alternatives require it.
    pub(crate) fn fields(self) -> Vec<Field<'a>> {
        let mut fields = FieldCollector::default();
        fields.read(self);
        fields.list.sort_by_key(|field| !field.required);
        fields.list
    }

    /// Returns true if the schema explicitly allows properties beyond the named ones.
    pub(crate) fn is_open(self) -> bool {
        match self.resolve().get("additionalProperties") {
            Some(Value::Bool(open)) => *open,
            Some(Value::Object(_)) => true,
            _ => false,
        }
    }
}

#[derive(Default)]
struct FieldCollector<'a> {
    list: Vec<Field<'a>>,
    index: HashMap<&'a str, usize>,
}

impl<'a> FieldCollector<'a> {
    fn read(&mut self, node: SchemaNode<'a>) {
        if node.is_spent() {
            return;
        }
        self.read_own(node);
        let node = node.resolve();
        self.read_own(node);
        for part in node.parts("allOf") {
            self.read(part);
        }
        self.read_alternatives(node.alternatives());
    }

    fn read_own(&mut self, node: SchemaNode<'a>) {
        let properties = node.get("properties").and_then(Value::as_object);
        for (name, schema) in properties.into_iter().flatten() {
            if !node.reader.take_step() {
                return;
            }
            self.add(name, false, node.child(schema));
        }
        let required = node.get("required").and_then(Value::as_array);
        for name in required.into_iter().flatten().filter_map(Value::as_str) {
            if !node.reader.take_step() {
                return;
            }
            self.add(name, true, node.child(&Value::Bool(true)));
        }
    }

    fn read_alternatives(&mut self, alternatives: Vec<SchemaNode<'a>>) {
        let count = alternatives.len();
        let mut required_in: HashMap<&str, usize> = HashMap::new();
        for alternative in alternatives {
            let mut fields = FieldCollector::default();
            fields.read(alternative);
            for field in fields.list {
                *required_in.entry(field.name).or_default() += usize::from(field.required);
                self.add(field.name, false, field.node);
            }
        }
        for (name, times) in required_in {
            if times == count {
                self.list[self.index[name]].required = true;
            }
        }
    }

    /// Adds a property. Its first schema is kept; an entry of `required` has none.
    fn add(&mut self, name: &'a str, required: bool, node: SchemaNode<'a>) {
        let next = self.list.len();
        let at = *self.index.entry(name).or_insert(next);
        if at == next {
            self.list.push(Field {
                name,
                required,
                node,
            });
        }
        let field = &mut self.list[at];
        field.required |= required;
        if field.node.at == &Value::Bool(true) {
            field.node = node;
        }
    }
}
