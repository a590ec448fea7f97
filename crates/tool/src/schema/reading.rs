//! One traversal of a schema: follows references, joins alternatives, and stops at limits.

use std::{borrow::Cow, cell::Cell, collections::HashMap};

use serde_json::Value;

/// Steps one reading may take. References can make a small schema describe an endless tree.
const STEPS_MAX: u32 = 10_000;
/// The deepest that a reading goes: nobody reads further, and the stack is finite.
const DEPTH_MAX: u8 = 24;
/// References followed from one place before it counts as a cycle.
const REFERENCES_MAX: usize = 16;

/// One traversal of a schema, with a limit of steps.
#[derive(Debug)]
pub(crate) struct Reading<'a> {
    root: &'a Value,
    steps: Cell<u32>,
}

impl<'a> Reading<'a> {
    pub(crate) fn new(root: &'a Value) -> Self {
        let steps = Cell::new(STEPS_MAX);
        Self { root, steps }
    }

    pub(crate) fn root<'r>(&'r self) -> Node<'r>
    where
        'a: 'r,
    {
        self.node(self.root)
    }

    /// The schema at a JSON pointer into the document.
    pub(crate) fn at(&self, pointer: &str) -> Option<Node<'_>> {
        self.root.pointer(pointer).map(|at| self.node(at))
    }

    fn node<'r>(&'r self, at: &'r Value) -> Node<'r> {
        let depth = 0;
        Node {
            at,
            depth,
            reading: self,
        }
    }

    /// The target of a local reference. Other documents are never fetched.
    fn target(&self, reference: &str) -> Option<&Value> {
        resolve_pointer(self.root, reference.strip_prefix('#')?)
    }

    fn is_worn_out(&self) -> bool {
        let is_worn_out = self.steps.get() == 0;
        self.spend(1);
        is_worn_out
    }

    fn spend(&self, steps: u32) {
        self.steps.set(self.steps.get().saturating_sub(steps));
    }
}

/// The place that the fragment of a reference points to, where it is a JSON pointer.
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
pub(crate) struct Node<'a> {
    at: &'a Value,
    depth: u8,
    reading: &'a Reading<'a>,
}

/// One property of an object schema.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Field<'a> {
    pub(crate) name: &'a str,
    pub(crate) required: bool,
    pub(crate) node: Node<'a>,
}

impl<'a> Node<'a> {
    pub(crate) fn get(&self, keyword: &str) -> Option<&'a Value> {
        self.at.get(keyword)
    }

    pub(crate) fn is_spent(&self) -> bool {
        self.depth >= DEPTH_MAX || self.reading.is_worn_out()
    }

    /// Counts work that is done for this place beside looking at it.
    pub(crate) fn spend(&self, steps: u32) {
        self.reading.spend(steps);
    }

    fn child(&self, at: &'a Value) -> Self {
        let depth = self.depth.saturating_add(1);
        Self { at, depth, ..*self }
    }

    /// The schema after references are followed and lone `allOf` wrappers are removed.
    pub(crate) fn resolve(self) -> Self {
        let mut node = self;
        for _ in 0..REFERENCES_MAX {
            let Some(next) = node.stands_for() else { break };
            node = Self { at: next, ..node };
        }
        node
    }

    fn stands_for(&self) -> Option<&'a Value> {
        if let Some(reference) = self.get("$ref").and_then(Value::as_str) {
            return self.reading.target(reference);
        }
        let says_itself = [
            "type",
            "properties",
            "required",
            "enum",
            "const",
            "anyOf",
            "oneOf",
        ];
        if says_itself
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

    /// A member, of which the one beside a reference wins over the one that it points to.
    pub(crate) fn annotation(&self, keyword: &str) -> Option<&'a Value> {
        self.get(keyword).or_else(|| self.resolve().get(keyword))
    }

    pub(crate) fn description(&self) -> Option<&'a str> {
        self.annotation("description").and_then(Value::as_str)
    }

    pub(crate) fn parts(&self, keyword: &str) -> Vec<Self> {
        let parts = self.get(keyword).and_then(Value::as_array);
        let parts = parts.into_iter().flatten();
        parts.map(|part| self.child(part)).collect()
    }

    /// The schemas of `anyOf` or `oneOf`.
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

    /// The properties, required ones first, else in the schema's order.
    ///
    /// `allOf` adds to them; of `anyOf` and `oneOf` every alternative's are taken, and only what
    /// all of them require is required.
    pub(crate) fn fields(self) -> Vec<Field<'a>> {
        let mut fields = Fields::default();
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
struct Fields<'a> {
    list: Vec<Field<'a>>,
    index: HashMap<&'a str, usize>,
}

impl<'a> Fields<'a> {
    fn read(&mut self, node: Node<'a>) {
        if node.is_spent() {
            return;
        }
        let beside = node;
        let node = node.resolve();
        self.read_own(beside);
        self.read_own(node);
        for part in node.parts("allOf") {
            self.read(part);
        }
        self.read_alternatives(node.alternatives());
    }

    fn read_own(&mut self, node: Node<'a>) {
        let properties = node.get("properties").and_then(Value::as_object);
        for (name, schema) in properties.into_iter().flatten() {
            if node.reading.is_worn_out() {
                return;
            }
            self.add(name, false, node.child(schema));
        }
        let required = node.get("required").and_then(Value::as_array);
        for name in required.into_iter().flatten().filter_map(Value::as_str) {
            if node.reading.is_worn_out() {
                return;
            }
            self.add(name, true, node.child(&Value::Bool(true)));
        }
    }

    fn read_alternatives(&mut self, alternatives: Vec<Node<'a>>) {
        let count = alternatives.len();
        let mut required_in: HashMap<&str, usize> = HashMap::new();
        for alternative in alternatives {
            let mut fields = Fields::default();
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

    /// The first schema given for a name is the one people see; being required alone says nothing
    /// about a value.
    fn add(&mut self, name: &'a str, required: bool, node: Node<'a>) {
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
