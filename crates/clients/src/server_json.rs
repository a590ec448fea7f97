//! `server.json` of the MCP registry: a publisher's description of a server, converted to an entry as a
//! client would list it.

use serde_json::{Map, Value, json};

use crate::entry::ServerEntry;

/// Returns true if the value is a `server.json`. Keys were in snake case before September 2025.
pub(crate) fn is_one(whole: &Value) -> bool {
    let has = |key: &str| whole.get(key).is_some_and(Value::is_array);
    whole.get("name").is_some_and(Value::is_string) && (has("packages") || has("remotes"))
}

/// Returns the described server: the first package that can be started, else the first remote.
pub(crate) fn read(whole: &Value) -> Vec<ServerEntry> {
    let name = whole["name"].as_str().unwrap_or_default();
    let name = name.rsplit('/').next().unwrap_or(name);
    let list = |key: &str| {
        whole
            .get(key)
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
    };
    let package = list("packages").find_map(of_package);
    let value = package.or_else(|| list("remotes").find_map(of_remote));
    value
        .map(|value| ServerEntry::pasted(name, value))
        .into_iter()
        .collect()
}

/// Returns a member under its current or its earlier name.
fn get<'a>(value: &'a Value, name: &str) -> Option<&'a Value> {
    let mut snake = String::new();
    for c in name.chars() {
        if c.is_ascii_uppercase() {
            snake.push('_');
        }
        snake.push(c.to_ascii_lowercase());
    }
    value.get(name).or_else(|| value.get(&snake))
}

fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    get(value, name).and_then(Value::as_str).unwrap_or_default()
}

fn of_package(package: &Value) -> Option<Value> {
    let id = get(package, "identifier")
        .or_else(|| package.get("name"))?
        .as_str()?;
    let version = text(package, "version");
    let transport = package
        .get("transport")
        .map_or("stdio", |it| text(it, "type"));
    if transport != "stdio" && !transport.is_empty() {
        return None;
    }
    let mut runtime = arguments(get(package, "runtimeArguments"));
    let kind = get(package, "registryType").or_else(|| package.get("registry_name"))?;
    let hint = match kind.as_str()? {
        "npm" => "npx",
        "pypi" => "uvx",
        "oci" | "docker" => "docker",
        "nuget" => "dnx",
        _ => return None,
    };
    let start = match (hint, version) {
        ("docker", _) | ("npx" | "uvx", "") => id.to_owned(),
        _ => format!("{id}@{version}"),
    };
    let variables = get(package, "environmentVariables").and_then(Value::as_array);
    let mut env = Map::new();
    for variable in variables.into_iter().flatten() {
        let name = text(variable, "name");
        if let Some(value) = value_of(variable, name) {
            env.insert(name.to_owned(), value.into());
        }
    }
    if hint == "npx" && !runtime.iter().any(|arg| arg == "-y" || arg == "--yes") {
        runtime.insert(0, "-y".to_owned());
    }
    if hint == "docker" {
        if runtime.first().map(String::as_str) != Some("run") {
            runtime.splice(0..0, ["run", "-i", "--rm"].map(str::to_owned));
        }
        // A variable that is given by name alone is passed on from docker's own environment: no secret
        // in argv.
        runtime.extend(env.keys().flat_map(|name| ["-e".to_owned(), name.clone()]));
    }
    let command = match text(package, "runtimeHint") {
        "" => hint,
        given => given,
    };
    runtime.push(start);
    runtime.extend(arguments(get(package, "packageArguments")));
    Some(json!({"command": command, "args": runtime, "env": env}))
}

/// Returns the text for a value: the value itself, its default, or a variable to be set. `None` if it
/// is not required.
fn value_of(input: &Value, name: &str) -> Option<String> {
    let given = ["value", "default"]
        .into_iter()
        .find_map(|key| match input.get(key)? {
            Value::String(text) => Some(text.clone()),
            Value::Null => None,
            other => Some(other.to_string()),
        });
    let is_required = get(input, "isRequired") == Some(&Value::Bool(true));
    match given {
        Some(text) => Some(fill_in(&text, input)),
        None if is_required => Some(format!("${{input:{}}}", name.replace(['{', '}'], ""))),
        None => None,
    }
}

/// Replaces `{name}` in a text by the input's variable of that name.
fn fill_in(text: &str, input: &Value) -> String {
    let variables = input.get("variables").and_then(Value::as_object);
    let mut text = text.to_owned();
    for (name, variable) in variables.into_iter().flatten() {
        let value = value_of(variable, name).unwrap_or_else(|| format!("${{input:{name}}}"));
        text = text.replace(&format!("{{{name}}}"), &value);
    }
    text
}

fn arguments(list: Option<&Value>) -> Vec<String> {
    let list = list.and_then(Value::as_array).into_iter().flatten();
    list.flat_map(argument).collect()
}

fn argument(input: &Value) -> Vec<String> {
    let name = text(input, "name");
    let hint = text(input, "valueHint");
    let asked = if hint.is_empty() {
        name.trim_start_matches('-')
    } else {
        hint
    };
    let value = value_of(input, asked);
    match (text(input, "type"), value) {
        ("named", Some(value)) => vec![name.to_owned(), value],
        ("named", None) if get(input, "isRequired") == Some(&Value::Bool(true)) => {
            vec![name.to_owned()]
        }
        (_, value) => value.into_iter().collect(),
    }
}

fn of_remote(remote: &Value) -> Option<Value> {
    let url = fill_in(remote.get("url")?.as_str()?, remote);
    let headers = remote["headers"].as_array().into_iter().flatten();
    let headers = headers.filter_map(|header| {
        let name = text(header, "name");
        let value = value_of(header, name)?;
        Some((name.to_owned(), Value::from(value)))
    });
    let headers: Map<String, Value> = headers.collect();
    let kind = get(remote, "type").or_else(|| get(remote, "transportType"));
    Some(json!({"type": kind, "url": url, "headers": headers}))
}
