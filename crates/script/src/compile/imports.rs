//! `import` of a server: the objects exist already, so an import only declares names.

use tree_sitter::Node;

use super::{
    edits::Edits,
    nodes::{Unreadable, token},
};
use crate::{advice::instead_of, names::ServerNames};

/// Replaces each import of a server, or of `fs`, by declarations; any other import is refused with its
/// replacement.
pub(super) fn replace(
    root: Node<'_>,
    script: &str,
    servers: &[String],
    names: &ServerNames,
    edits: &mut Edits<'_>,
) -> Result<(), Unreadable> {
    let mut cursor = root.walk();
    for statement in root.named_children(&mut cursor) {
        if statement.kind() != "import_statement" || token(statement, "type").is_some() {
            continue;
        }
        let text = |node: Node<'_>| &script[node.byte_range()];
        let source = statement.child_by_field_name("source").map(text);
        let source = source.unwrap_or_default().trim_matches(['"', '\'']);
        let object = match object_of(source, names) {
            Some(Ok(object)) => object,
            Some(Err(why)) => return Err(Unreadable::at(statement, script, why)),
            None => return Err(unknown(statement, script, source, servers)),
        };
        let mut inner = statement.walk();
        let mut children = statement.named_children(&mut inner);
        let clause = children.find(|child| child.kind() == "import_clause");
        let taken = clause.map(|clause| declarations(clause, script, &object));
        edits.insert(statement.start_byte(), &taken.unwrap_or_default());
        edits.blank_statement(statement.byte_range());
    }
    Ok(())
}

/// Returns the object that a module stands for, or why it cannot be told.
fn object_of<'a>(source: &str, names: &'a ServerNames) -> Option<Result<String, &'a str>> {
    let name = source.rsplit(['/', ':']).next()?;
    let of_server = |server: Result<&str, _>| Ok(format!("globalThis.tools[{:?}]", server?));
    let module = source.trim_start_matches("node:");
    let is_fs = matches!(module, "fs" | "fs/promises");
    let found = names.find(name).map(of_server);
    found.or_else(|| is_fs.then(|| Ok("globalThis.fs".to_owned())))
}

/// Returns `import a, { b as c } from "x"` as declarations.
fn declarations(clause: Node<'_>, script: &str, object: &str) -> String {
    let mut cursor = clause.walk();
    let mut out = String::new();
    for part in clause.named_children(&mut cursor) {
        let text = &script[part.byte_range()];
        match part.kind() {
            "named_imports" => {
                let names = names_of(part, script);
                out.push_str(&format!("const {{ {names} }} = {object};"));
            }
            _ => {
                let name = text.rsplit(' ').next().unwrap_or(text);
                out.push_str(&format!("const {name} = {object};"));
            }
        }
    }
    out
}

/// Returns `a, type T, b as c` as `a, b: c`, without types.
fn names_of(imports: Node<'_>, script: &str) -> String {
    let mut cursor = imports.walk();
    let names = imports.named_children(&mut cursor);
    let names = names.filter(|it| it.kind() == "import_specifier" && token(*it, "type").is_none());
    let text = |node: Node<'_>| &script[node.byte_range()];
    let names = names.map(|it| {
        let name = it.child_by_field_name("name").map(text).unwrap_or_default();
        match it.child_by_field_name("alias").map(text) {
            Some(alias) => format!("{name}: {alias}"),
            None => name.to_owned(),
        }
    });
    names.collect::<Vec<_>>().join(", ")
}

fn unknown(statement: Node<'_>, script: &str, source: &str, servers: &[String]) -> Unreadable {
    let module = source.trim_start_matches("node:");
    let module = module.split('/').next().unwrap_or(module);
    let advice = instead_of(module).map_or_else(
        || {
            let mut known: Vec<&str> = servers.iter().map(String::as_str).take(12).collect();
            if servers.len() > known.len() {
                known.push("…");
            }
            format!("every server is a global already: {}", known.join(", "))
        },
        str::to_owned,
    );
    let text = format!("there is no module {source:?}; {advice}");
    Unreadable::at(statement, script, &text)
}
