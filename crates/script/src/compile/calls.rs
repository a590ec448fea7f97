//! The tool calls that appear in the text of a script.

use std::collections::HashSet;

use tree_sitter::Node;

use super::nodes::{Unreadable, line_of, nodes};
use crate::{
    message::CallSite,
    names::{GLOBALS, ServerNames},
};

/// The most calls that are checked before a script runs; the others are checked when they are made.
const SITES_MAX: usize = 200;

/// Finds `server.tool({...})`, `tools.server.tool({...})` and the same with `["names"]`, unless the
/// script declares the name itself. Fails at a name that several servers have.
pub(super) fn find(
    root: Node<'_>,
    script: &str,
    servers: &ServerNames,
) -> Result<Vec<CallSite>, Unreadable> {
    let own = declared(root, script);
    let mut sites = Vec::new();
    for node in nodes(root).filter(|node| node.kind() == "call_expression") {
        let path = node
            .child_by_field_name("function")
            .and_then(|callee| path_of(callee, script));
        let Some(path) = path else { continue };
        if own.contains(path[0]) {
            continue;
        }
        let (server, tool) = match path.as_slice() {
            ["tools", server, tool] => (*server, *tool),
            [server, tool] if !GLOBALS.contains(server) => (*server, *tool),
            _ => continue,
        };
        let named = servers.find(server);
        let is_of_tools = path.len() == 3;
        if named.is_none() && !is_of_tools || is_member_of_function(tool) {
            continue;
        }
        let named = named.unwrap_or(Ok(server));
        sites.push(CallSite {
            server: named
                .map_err(|why| Unreadable::at(node, script, why))?
                .to_owned(),
            tool: tool.to_owned(),
            arguments: arguments_of(node, script),
            line: line_of(node),
        });
        if sites.len() == SITES_MAX {
            break;
        }
    }
    Ok(sites)
}

fn is_member_of_function(name: &str) -> bool {
    matches!(name, "then" | "toString" | "valueOf" | "hasOwnProperty")
}

/// Returns the parts of `a.b["c"]`.
fn path_of<'s>(callee: Node<'_>, script: &'s str) -> Option<Vec<&'s str>> {
    let mut parts = Vec::new();
    let mut node = callee;
    // At most `tools`, a server and a tool.
    while parts.len() < 3 {
        let text = |node: Node<'_>| &script[node.byte_range()];
        match node.kind() {
            "identifier" => {
                parts.push(text(node));
                parts.reverse();
                return (parts.len() > 1).then_some(parts);
            }
            "member_expression" => parts.push(text(node.child_by_field_name("property")?)),
            "subscript_expression" => {
                parts.push(string_of(node.child_by_field_name("index")?, script)?);
            }
            _ => return None,
        }
        node = node.child_by_field_name("object")?;
    }
    None
}

fn string_of<'s>(node: Node<'_>, script: &'s str) -> Option<&'s str> {
    let text = &script[node.byte_range()];
    let plain = node.kind() == "string" && !text.contains('\\');
    plain.then(|| text.trim_matches(['"', '\'']))
}

/// Returns the names in the object that is the only argument, if all of them are written there.
fn arguments_of(call: Node<'_>, script: &str) -> Option<Vec<String>> {
    let arguments = call.child_by_field_name("arguments")?;
    let Some(object) = arguments.named_child(0) else {
        return Some(Vec::new());
    };
    if object.kind() != "object" || arguments.named_child_count() != 1 {
        return None;
    }
    let mut cursor = object.walk();
    let members = object.named_children(&mut cursor);
    let name_of = |member: Node<'_>| match member.kind() {
        "pair" => {
            let key = member.child_by_field_name("key")?;
            match key.kind() {
                "property_identifier" => Some(&script[key.byte_range()]),
                _ => string_of(key, script),
            }
        }
        "shorthand_property_identifier" => Some(&script[member.byte_range()]),
        _ => None,
    };
    let members = members.filter(|member| member.kind() != "comment");
    members.map(|it| name_of(it).map(str::to_owned)).collect()
}

/// Returns the names that the script itself declares.
fn declared<'s>(root: Node<'_>, script: &'s str) -> HashSet<&'s str> {
    let is_binding = |node: &Node<'_>| {
        let parent = node.parent();
        match node.kind() {
            "shorthand_property_identifier_pattern" => true,
            "identifier" => parent.is_some_and(|parent| {
                let is = |field: &str| parent.child_by_field_name(field) == Some(*node);
                match parent.kind() {
                    "variable_declarator" | "function_declaration" | "import_specifier" => {
                        is("name")
                    }
                    "required_parameter" | "optional_parameter" => is("pattern"),
                    "arrow_function" | "catch_clause" => is("parameter"),
                    "for_in_statement" => is("left"),
                    "array_pattern" | "rest_pattern" => true,
                    "pair_pattern" => is("value"),
                    _ => false,
                }
            }),
            _ => false,
        }
    };
    let bound = nodes(root).filter(is_binding);
    bound.map(|node| &script[node.byte_range()]).collect()
}
