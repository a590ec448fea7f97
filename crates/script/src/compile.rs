//! From TypeScript to the JavaScript that the engine runs, and the calls that stand in it.
//!
//! Types are blanked out in place, so lines stay what they were. What only TypeScript can turn
//! into code (`enum`, `namespace`) is refused with what to write.

mod calls;
mod edits;
mod imports;
mod nodes;

use tree_sitter::{Node, Parser};

pub(crate) use self::nodes::Unreadable;
use self::{
    edits::Edits,
    nodes::{line_of, nodes, token},
};
use crate::{
    advice::{JAVASCRIPT_INSTEAD, is_python},
    message::CallSite,
};

/// A script that can be run.
#[derive(Debug)]
pub(crate) struct Compiled {
    /// An expression whose value is an async function.
    pub(crate) javascript: String,
    /// The calls of tools in it.
    pub(crate) calls: Vec<CallSite>,
}

/// Nodes that are types and nothing else.
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

/// Statements and members that are types and nothing else.
const DECLARATIONS: [&str; 6] = [
    "interface_declaration",
    "type_alias_declaration",
    "ambient_declaration",
    "function_signature",
    "index_signature",
    "abstract_method_signature",
];

/// What makes code of its own, and what to write.
const UNSUPPORTED: [(&str, &str); 3] = [
    (
        "enum_declaration",
        "write `const X = { A: \"a\" } as const` instead of an enum",
    ),
    ("internal_module", "write an object instead of a namespace"),
    ("decorator", "there are no decorators: call the function"),
];

pub(crate) fn compile(script: &str, servers: &[String]) -> Result<Compiled, Unreadable> {
    let tree = parse(script)?;
    let root = tree.root_node();
    if root.has_error() && is_python(script) {
        return Err(Unreadable {
            text: JAVASCRIPT_INSTEAD.to_owned(),
            line: first_error(root).map(line_of),
        });
    }
    let mut edits = Edits::new(script);
    for node in nodes(root) {
        take_off_types(node, &mut edits)?;
    }
    imports::replace(root, script, servers, &mut edits)?;
    let tail = return_last(root, script, &mut edits);
    let body = edits.apply();
    Ok(Compiled {
        javascript: format!("(async () => {{{body}\n{tail}}})"),
        calls: calls::find(root, script, servers),
    })
}

fn parse(script: &str) -> Result<tree_sitter::Tree, Unreadable> {
    let mut parser = Parser::new();
    let language = tree_sitter_typescript::LANGUAGE_TYPESCRIPT.into();
    let parsed = parser.set_language(&language).ok();
    let tree = parsed.and_then(|()| parser.parse(script, None));
    tree.ok_or_else(|| Unreadable {
        text: "the script cannot be read".to_owned(),
        line: None,
    })
}

fn first_error(root: Node<'_>) -> Option<Node<'_>> {
    nodes(root).find(|node| node.is_error() || node.is_missing())
}

fn take_off_types(node: Node<'_>, edits: &mut Edits<'_>) -> Result<(), Unreadable> {
    let kind = node.kind();
    if let Some((_, instead)) = UNSUPPORTED.iter().find(|(known, _)| *known == kind) {
        return Err(Unreadable {
            text: (*instead).to_owned(),
            line: Some(line_of(node)),
        });
    }
    if DECLARATIONS.contains(&kind) {
        edits.blank_statement(node.byte_range());
    } else if TYPES.contains(&kind) {
        take_off_annotation(node, edits);
    } else {
        take_off_part(node, edits);
    }
    Ok(())
}

/// Between the parameters of an arrow function and its arrow no line may end.
fn take_off_annotation(node: Node<'_>, edits: &mut Edits<'_>) {
    let arrow = node.parent().filter(|it| it.kind() == "arrow_function");
    match arrow.and_then(|function| token(function, "=>")) {
        Some(arrow) if arrow.start_byte() >= node.end_byte() => {
            edits.blank_and_move_lines(node.byte_range(), arrow.end_byte());
        }
        _ => edits.blank(node.byte_range()),
    }
}

fn take_off_part(node: Node<'_>, edits: &mut Edits<'_>) {
    match node.kind() {
        "as_expression" | "satisfies_expression" => {
            if let Some(value) = node.named_child(0) {
                edits.blank(value.end_byte()..node.end_byte());
            }
        }
        "non_null_expression" | "variable_declarator" => blank_token(node, "!", edits),
        "optional_parameter" | "method_definition" => blank_token(node, "?", edits),
        "public_field_definition" => {
            for word in ["?", "!", "readonly", "declare", "abstract"] {
                blank_token(node, word, edits);
            }
        }
        "abstract_class_declaration" => blank_token(node, "abstract", edits),
        "required_parameter" => blank_token(node, "readonly", edits),
        "import_statement" | "export_statement" if token(node, "type").is_some() => {
            edits.blank_statement(node.byte_range());
        }
        _ => {}
    }
}

fn blank_token(node: Node<'_>, word: &str, edits: &mut Edits<'_>) {
    if let Some(token) = token(node, word) {
        edits.blank(token.byte_range());
    }
}

/// The value of a script is that of its last expression, or what its `main` returns; the text that
/// stands behind it all.
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
            take_off_export(*statement, edits);
        }
    }
    let Some(last) = statements.iter().rfind(is_code) else {
        return String::new();
    };
    if last.kind() == "expression_statement"
        && let Some(value) = last.named_child(0)
    {
        edits.insert(value.start_byte(), "return (");
        edits.insert_behind(value.end_byte(), ")");
        return String::new();
    }
    match main {
        Some(main) if !calls_main(root, script, main) => "return await main(args)".to_owned(),
        _ => String::new(),
    }
}

/// `export default main` has no value of its own; of `export function` the function stays.
fn take_off_export(statement: Node<'_>, edits: &mut Edits<'_>) {
    for word in ["export", "default"] {
        blank_token(statement, word, edits);
    }
}

/// The declaration of a function named `main`.
fn main_of<'t>(statement: Node<'t>, script: &str) -> Option<Node<'t>> {
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
    let name = declarator.child_by_field_name("name")?;
    let is_function = declared.kind() == "function_declaration"
        || declarator
            .child_by_field_name("value")
            .is_some_and(|value| matches!(value.kind(), "arrow_function" | "function_expression"));
    (is_function && &script[name.byte_range()] == "main").then_some(declarator)
}

fn calls_main(root: Node<'_>, script: &str, main: Node<'_>) -> bool {
    nodes(root).any(|node| {
        let callee = node.child_by_field_name("function");
        node.kind() == "call_expression"
            && !main.byte_range().contains(&node.start_byte())
            && callee.is_some_and(|callee| &script[callee.byte_range()] == "main")
    })
}
