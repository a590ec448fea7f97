//! Conversion of TypeScript to the JavaScript that the engine runs, and the tool calls in it.
//!
//! Types are blanked out in place, so line numbers stay the same. Syntax for which TypeScript generates
//! code (`enum`, `namespace`) is refused with its replacement.

mod calls;
mod edits;
mod imports;
mod nodes;

use std::borrow::Cow;

use tree_sitter::{Node, Parser};

use self::edits::{Edits, Insertion};
use self::nodes::place_of;
pub(crate) use self::nodes::{Unreadable, nodes, token};
use crate::{
    advice::{JAVASCRIPT_INSTEAD, is_python},
    message::{CallSite, ScriptPosition},
    names::ServerNames,
};

#[derive(Debug)]
pub(crate) struct Compiled {
    /// An expression whose value is an async function.
    pub(crate) javascript: String,
    pub(crate) calls: Vec<CallSite>,
    /// Texts in `javascript` that are not in the script.
    insertions: Vec<Insertion>,
}

impl Compiled {
    /// Returns the place in the script for a place in `javascript`.
    pub(crate) fn place(&self, line: u32, column: Option<u32>) -> ScriptPosition {
        let prefix = Insertion {
            line: 1,
            column: 1,
            chars: u32::try_from(PREFIX.len()).unwrap_or(0),
        };
        let column = column.map(|column| {
            let inserted = self.insertions.iter().map(|it| match it.line {
                // Its columns are counted without the prefix.
                1 => Insertion {
                    column: it.column + prefix.chars,
                    ..*it
                },
                _ => *it,
            });
            let before = [prefix].into_iter().chain(inserted);
            let before = before.filter(|it| it.line == line && it.column < column);
            let chars: u32 = before.map(|it| it.chars).sum();
            column.saturating_sub(chars).max(1)
        });
        ScriptPosition { line, column }
    }
}

const PREFIX: &str = "(async () => {";

/// Nodes that are only types.
const TYPES: [&str; 8] = [
    "type_annotation",
    "type_arguments",
    "type_parameters",
    "asserts_annotation",
    "type_predicate_annotation",
    "implements_clause",
    "accessibility_modifier",
    "override_modifier",
];

/// Statements and members that are only types.
const DECLARATIONS: [&str; 7] = [
    "interface_declaration",
    "type_alias_declaration",
    "ambient_declaration",
    "function_signature",
    "index_signature",
    "method_signature",
    "abstract_method_signature",
];

/// Syntax for which TypeScript generates code, and its replacement.
const UNSUPPORTED: [(&str, &str); 5] = [
    (
        "enum_declaration",
        "write `const X = { A: \"a\" } as const` instead of an enum",
    ),
    ("internal_module", "write an object instead of a namespace"),
    ("module", "write an object instead of a namespace"),
    (
        "import_alias",
        "write `const a = b.c` instead of `import a = b.c`",
    ),
    ("decorator", "there are no decorators: call the function"),
];

const FIELD_INSTEAD: &str = "write the field and `this.name = name` instead of a modifier on a parameter of the constructor";

pub(crate) fn compile(script: &str, servers: &[String]) -> Result<Compiled, Unreadable> {
    let script = &*remove_fence(script)?;
    let tree = parse(script)?;
    let root = tree.root_node();
    if root.has_error() && is_python(script) {
        return Err(Unreadable {
            text: JAVASCRIPT_INSTEAD.to_owned(),
            place: first_error(root).map(|it| place_of(it, script)),
        });
    }
    refuse_unsupported(root, script)?;
    let mut edits = Edits::new(script);
    for node in nodes(root) {
        remove_types(node, &mut edits);
    }
    let names = ServerNames::new(servers);
    imports::replace(root, script, servers, &names, &mut edits)?;
    let tail = return_last(root, script, &mut edits);
    let (body, insertions) = edits.apply();
    Ok(Compiled {
        javascript: format!("{PREFIX}{body}\n{tail}}})"),
        calls: calls::find(root, script, &names)?,
        insertions,
    })
}

/// Removes the text around code that is between lines of three backticks, as in a model's response:
/// that text is blanked out. A script that can be parsed as it is stays unchanged, since it may have
/// such lines in its strings.
fn remove_fence(script: &str) -> Result<Cow<'_, str>, Unreadable> {
    let is_fence = |line: &str| line.trim().starts_with("```");
    let begins = script.trim_start().starts_with("```");
    let has_fence = begins || script.lines().any(is_fence);
    if !has_fence || !begins && !parse(script)?.root_node().has_error() {
        return Ok(Cow::Borrowed(script));
    }
    let mut is_code = false;
    let lines = script.split('\n').map(|line| {
        is_code ^= is_fence(line);
        if is_code && !is_fence(line) { line } else { "" }
    });
    Ok(Cow::Owned(lines.collect::<Vec<_>>().join("\n")))
}

pub(crate) fn parse(script: &str) -> Result<tree_sitter::Tree, Unreadable> {
    let mut parser = Parser::new();
    let language = tree_sitter_typescript::LANGUAGE_TYPESCRIPT.into();
    let parsed = parser.set_language(&language).ok();
    let tree = parsed.and_then(|()| parser.parse(script, None));
    tree.ok_or_else(|| Unreadable {
        text: "the script cannot be read".to_owned(),
        place: None,
    })
}

pub(crate) fn first_error(root: Node<'_>) -> Option<Node<'_>> {
    nodes(root).find(|node| node.is_error() || node.is_missing())
}

/// Refuses syntax for which TypeScript generates code. The error names the replacement.
pub(crate) fn refuse_unsupported(root: Node<'_>, script: &str) -> Result<(), Unreadable> {
    for node in nodes(root) {
        let is_it = |(kind, _): &&(&str, &str)| *kind == node.kind();
        let instead = UNSUPPORTED.iter().find(is_it).map(|(_, instead)| *instead);
        let instead = instead.or_else(|| is_parameter_property(node).then_some(FIELD_INSTEAD));
        if let Some(instead) = instead {
            return Err(Unreadable::at(node, script, instead));
        }
    }
    Ok(())
}

/// Returns true for `constructor(private name: string)`, which would also declare a field.
fn is_parameter_property(node: Node<'_>) -> bool {
    let is_modified = |node| {
        let mut cursor = Node::walk(&node);
        let mut children = node.children(&mut cursor);
        children.any(|it| {
            matches!(
                it.kind(),
                "accessibility_modifier" | "override_modifier" | "readonly"
            )
        })
    };
    matches!(node.kind(), "required_parameter" | "optional_parameter") && is_modified(node)
}

fn remove_types(node: Node<'_>, edits: &mut Edits<'_>) {
    let kind = node.kind();
    let parent = node.parent().map(|it| it.kind());
    if matches!(parent, Some("object_type" | "interface_body")) {
        // It is removed with the type.
        return;
    }
    if DECLARATIONS.contains(&kind) {
        edits.blank_statement(node.byte_range());
    } else if TYPES.contains(&kind) {
        remove_annotation(node, edits);
    } else {
        remove_part(node, edits);
    }
}

/// Removes a type annotation. There must be no line end between the parameters of an arrow function and
/// its arrow.
fn remove_annotation(node: Node<'_>, edits: &mut Edits<'_>) {
    let arrow = node.parent().filter(|it| it.kind() == "arrow_function");
    match arrow.and_then(|function| token(function, "=>")) {
        Some(arrow) if arrow.start_byte() >= node.end_byte() => {
            edits.blank_and_move_lines(node.byte_range(), arrow.end_byte());
        }
        _ => edits.blank(node.byte_range()),
    }
}

fn remove_part(node: Node<'_>, edits: &mut Edits<'_>) {
    match node.kind() {
        "as_expression" | "satisfies_expression" => {
            if let Some(value) = node.named_child(0) {
                edits.blank(value.end_byte()..node.end_byte());
            }
        }
        "non_null_expression" | "variable_declarator" => blank_token(node, "!", edits),
        "optional_parameter" | "method_definition" => blank_token(node, "?", edits),
        "required_parameter" => remove_this_parameter(node, edits),
        "public_field_definition" => {
            for word in ["?", "!", "readonly", "declare", "abstract"] {
                blank_token(node, word, edits);
            }
        }
        "abstract_class_declaration" => blank_token(node, "abstract", edits),
        "throw_statement" => {
            // The engine throws null, too; this null is thrown by the script.
            if let Some(value) = node.named_child(0) {
                edits.insert(value.start_byte(), "$thrown((");
                edits.insert_behind(value.end_byte(), "))");
            }
        }
        "import_statement" | "export_statement" if token(node, "type").is_some() => {
            edits.blank_statement(node.byte_range());
        }
        _ => {}
    }
}

/// Removes a `this` parameter: `function f(this: Window, a: number)` has one parameter.
fn remove_this_parameter(parameter: Node<'_>, edits: &mut Edits<'_>) {
    let pattern = parameter.child_by_field_name("pattern");
    if pattern.is_some_and(|it| it.kind() == "this") {
        let comma = parameter.next_sibling().filter(|it| it.kind() == ",");
        let end = comma.map_or(parameter.end_byte(), |it| it.end_byte());
        edits.blank(parameter.start_byte()..end);
    }
}

fn blank_token(node: Node<'_>, word: &str, edits: &mut Edits<'_>) {
    if let Some(token) = token(node, word) {
        edits.blank(token.byte_range());
    }
}

/// Makes the script return the value of its last expression, or of its `main`. Returns the text to
/// append to the script.
fn return_last(root: Node<'_>, script: &str, edits: &mut Edits<'_>) -> String {
    let mut cursor = root.walk();
    let statements: Vec<Node<'_>> = root.named_children(&mut cursor).collect();
    let is_code = |node: &&Node<'_>| !matches!(node.kind(), "comment" | "empty_statement");
    let main = statements
        .iter()
        .copied()
        .find_map(|it| main_of(it, script));
    for statement in &statements {
        if statement.kind() == "export_statement" {
            remove_export(*statement, edits);
        }
    }
    let Some(last) = statements.iter().rfind(is_code) else {
        return String::new();
    };
    let exported = last.child_by_field_name("value");
    let value = match last.kind() {
        "expression_statement" => last.named_child(0),
        "export_statement" => exported.filter(|it| main.is_none() && !is_function(*it)),
        _ => None,
    };
    if let Some(value) = value {
        edits.insert(value.start_byte(), "return (");
        edits.insert_behind(value.end_byte(), ")");
        return String::new();
    }
    match main.map(|main| (main, name_of_main(main, script))) {
        Some((main, name)) if !is_called(root, script, main, name) => {
            format!("return await {name}(args)")
        }
        _ => String::new(),
    }
}

/// Removes `export` from a function; a function without a name is given one.
fn remove_export(statement: Node<'_>, edits: &mut Edits<'_>) {
    let is_list = |it: Node<'_>| it.kind() == "export_clause";
    let mut cursor = statement.walk();
    if statement.named_children(&mut cursor).any(is_list) {
        edits.blank_statement(statement.byte_range());
        return;
    }
    for word in ["export", "default"] {
        blank_token(statement, word, edits);
    }
    if let Some(value) = statement.child_by_field_name("value")
        && is_function(value)
        && value.child_by_field_name("name").is_none()
    {
        edits.insert(value.start_byte(), "const main = ");
    }
}

fn is_function(node: Node<'_>) -> bool {
    matches!(node.kind(), "arrow_function" | "function_expression")
}

/// Returns the main function of a script: the one named `main`, or the default export.
pub(crate) fn main_of<'t>(statement: Node<'t>, script: &str) -> Option<Node<'t>> {
    let is_default =
        statement.kind() == "export_statement" && token(statement, "default").is_some();
    let declared = match statement.kind() {
        "export_statement" => statement
            .child_by_field_name("declaration")
            .or_else(|| statement.child_by_field_name("value"))?,
        _ => statement,
    };
    let declarator = match declared.kind() {
        "lexical_declaration" => declared.named_child(0)?,
        _ => declared,
    };
    let value = declarator.child_by_field_name("value");
    let is_declared = declared.kind() == "function_declaration" || value.is_some_and(is_function);
    let is_exported =
        is_default && (declared.kind() == "function_declaration" || is_function(declared));
    let is_main = is_exported || is_declared && name_of_main(declarator, script) == "main";
    is_main.then_some(declarator)
}

fn name_of_main<'s>(main: Node<'_>, script: &'s str) -> &'s str {
    let name = main.child_by_field_name("name");
    name.map_or("main", |name| &script[name.byte_range()])
}

fn is_called(root: Node<'_>, script: &str, main: Node<'_>, name: &str) -> bool {
    nodes(root).any(|node| {
        let callee = node.child_by_field_name("function");
        node.kind() == "call_expression"
            && !main.byte_range().contains(&node.start_byte())
            && callee.is_some_and(|callee| &script[callee.byte_range()] == name)
    })
}
