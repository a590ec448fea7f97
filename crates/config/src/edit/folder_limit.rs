//! Profiles that limit a server to clients that work in some folders.

use files::toml::insert_table;
use toml_edit::{Array, DocumentMut, Item, Table, TableLike, Value};

const FOLDERS: &str = "outside_folders";

/// Limits a server to these folders and those below. Returns the name of the profile.
pub(super) fn limit(toml: &mut DocumentMut, server: &str, folders: &[String]) -> String {
    let names = (1..).map(|number| match number {
        1 => format!("{server}-elsewhere"),
        number => format!("{server}-elsewhere-{number}"),
    });
    let is_free = |name: &String| profile(toml, name).is_none();
    let mut names = names.filter(is_free);
    let name = names.next().expect("there are more numbers than profiles");
    let mut table = Table::new();
    table.insert(FOLDERS, Item::Value(folders.iter().collect()));
    table.insert("deny", Item::Value(Array::from_iter([server]).into()));
    insert_table(toml, "profiles", &name, table, &[]);
    name
}

/// Admits these folders too, or all if there are none. Returns the name of the profile; `None` if the
/// server is not limited, or to these folders already.
pub(super) fn widen(toml: &mut DocumentMut, server: &str, folders: &[String]) -> Option<String> {
    let profiles = toml.get_mut("profiles")?.as_table_like_mut()?;
    let name = find_limit(profiles, server)?;
    if folders.is_empty() {
        profiles.remove(&name);
        if profiles.is_empty() {
            toml.remove("profiles");
        }
        return Some(name);
    }
    let limit = profiles.get_mut(&name)?.as_table_like_mut()?;
    let known = limit.get_mut(FOLDERS)?.as_array_mut()?;
    let has = |folder: &String, known: &Array| known.iter().any(|it| it.as_str() == Some(folder));
    let new: Vec<&String> = folders.iter().filter(|it| !has(it, known)).collect();
    let is_wider = !new.is_empty();
    known.extend(new.into_iter().map(Value::from));
    is_wider.then_some(name)
}

/// Returns the name of the profile that does nothing but limit this server.
fn find_limit(profiles: &dyn TableLike, server: &str) -> Option<String> {
    let is_limit = |table: &dyn TableLike| {
        let denied = table.get("deny").and_then(Item::as_array);
        let denied = denied.map(|it| it.iter().map(Value::as_str).collect::<Vec<_>>());
        // A person may have added other keys.
        table.len() == 2
            && denied.as_deref() == Some(&[Some(server)])
            && table.get(FOLDERS).is_some_and(Item::is_array)
    };
    let is_named = |item: &Item| item.as_table_like().is_some_and(is_limit);
    let mut found = profiles.iter().filter(|(_, item)| is_named(item));
    found.next().map(|(name, _)| name.to_owned())
}

fn profile<'t>(toml: &'t DocumentMut, name: &str) -> Option<&'t Item> {
    toml.get("profiles")?.as_table_like()?.get(name)
}
