//! Names that several types of the workspace share.

use std::collections::BTreeMap;

use syn::Item;

use crate::source::Crate;

/// The maximum number of types of one name; a name with more meanings is ambiguous.
const TYPES_MAX: usize = 3;

/// Returns the names of more than [`TYPES_MAX`] types, with the files that define them.
pub(crate) fn overused(crates: &[Crate]) -> Vec<String> {
    let mut definitions: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for file in crates.iter().flat_map(|it| &it.files) {
        find_definitions(&file.syntax.items, &mut |name| {
            definitions.entry(name).or_default().push(&file.path);
        });
    }
    let overused = definitions.iter().filter(|(_, at)| at.len() > TYPES_MAX);
    overused
        .map(|(name, at)| {
            format!(
                "{} types have the name `{name}`, at most {TYPES_MAX} may: {}",
                at.len(),
                at.join(", ")
            )
        })
        .collect()
}

/// Passes the name of every type that these items define. An associated type has the name that its
/// trait gives it, so it does not count.
fn find_definitions(items: &[Item], found: &mut impl FnMut(String)) {
    for item in items {
        match item {
            Item::Struct(it) => found(it.ident.to_string()),
            Item::Enum(it) => found(it.ident.to_string()),
            Item::Union(it) => found(it.ident.to_string()),
            Item::Trait(it) => found(it.ident.to_string()),
            Item::Type(it) => found(it.ident.to_string()),
            Item::Mod(it) => {
                let items = it.content.iter().flat_map(|(_, items)| items);
                for item in items {
                    find_definitions(std::slice::from_ref(item), found);
                }
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_name_of_four_types_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let read = |text: &str| {
            let path = folder.path().join("lib.rs");
            fs::write(&path, text).unwrap();
            overused(&[Crate::read(folder.path(), "planted", &path).unwrap()])
        };
        let three = "struct Kind; mod a { enum Kind {} mod b { type Kind = u8; } }";
        assert_eq!(read(three), Vec::<String>::new());
        assert_eq!(
            read(&format!("{three} mod c {{ trait Kind {{}} }}")),
            ["4 types have the name `Kind`, at most 3 may: lib.rs, lib.rs, lib.rs, lib.rs"]
        );
        let associated = "impl Iterator for super::T { type Kind = u8; }";
        assert_eq!(
            read(&format!("{three} mod c {{ {associated} }}")),
            Vec::<String>::new()
        );
    }
}
