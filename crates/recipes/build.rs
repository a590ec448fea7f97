//! Writes the recipes as JSON in the form of the types of this crate, which the program reads faster than
//! TOML (0025).

use std::{collections::BTreeMap, env, error::Error, fs, path::Path};

use serde_json::{Map, Value, json};

type Table = Map<String, Value>;

fn main() -> Result<(), Box<dyn Error>> {
    let source = "../../registry/recipes.toml";
    println!("cargo::rerun-if-changed={source}");
    let text = fs::read_to_string(source)?;
    let categories: BTreeMap<String, BTreeMap<String, Table>> = toml::from_str(&text)?;
    let (mut known, mut recipes) = (Vec::new(), Vec::new());
    for (category, servers) in categories {
        for (name, mut server) in servers {
            let mut facts = Table::new();
            for key in ["tags", "aliases", "names", "whole", "mixed"] {
                facts.extend(server.remove_entry(key));
            }
            let place = format!("{category}.{name}");
            facts.insert("name".to_owned(), name.into());
            facts.insert("category".to_owned(), category.as_str().into());
            if ["url", "command", "what"]
                .iter()
                .all(|it| !server.contains_key(*it))
            {
                known.push(facts);
                continue;
            }
            shape(&mut server).map_err(|why| format!("{place}: {why}"))?;
            server.insert("known".to_owned(), facts.into());
            recipes.push(server);
        }
    }
    let made = Path::new(&env::var("OUT_DIR")?).join("recipes.json");
    fs::write(
        made,
        json!({"known": known, "recipes": recipes}).to_string(),
    )?;
    Ok(())
}

/// Replaces the keys of packages and of starts by `kind`, `package` and `way`.
fn shape(server: &mut Table) -> Result<(), &'static str> {
    let packages = ["npm", "pypi", "docker"];
    let mut packages = packages
        .into_iter()
        .filter_map(|it| server.remove_entry(it));
    let (kind, package) = match (packages.next(), packages.next()) {
        (Some((kind, package)), None) => (kind, package),
        (None, None) => ("remote".to_owned(), Value::Null),
        _ => return Err("one of npm, pypi, docker and url is needed"),
    };
    if package.is_null() != server.contains_key("url") {
        return Err("one of npm, pypi, docker and url is needed");
    }
    server.insert("kind".to_owned(), kind.into());
    server.insert("package".to_owned(), package);
    add_way(server)?;
    let alternatives = server.get_mut("alternatives").and_then(Value::as_array_mut);
    let alternatives = alternatives.into_iter().flatten();
    alternatives
        .filter_map(Value::as_object_mut)
        .try_for_each(add_way)
}

fn add_way(table: &mut Table) -> Result<(), &'static str> {
    let [command, url, transport, headers] =
        ["command", "url", "transport", "headers"].map(|key| table.remove(key));
    let way = match (command, url) {
        (Some(command), None) if headers.is_none() => json!({ "command": command }),
        (None, Some(url)) => json!({"remote": {
            "url": url,
            "transport": transport.unwrap_or("http".into()),
            "headers": headers.unwrap_or_else(|| json!({})),
        }}),
        _ => return Err("either `command` or `url`, and `headers` with `url` only"),
    };
    table.insert("way".to_owned(), way);
    Ok(())
}
