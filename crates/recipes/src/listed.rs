//! Servers as a registry of MCP lists them: a `server.json`, made into recipes.
//!
//! Anyone may have written these texts. They become words of a command line, each with its version, and
//! no text of theirs names a variable of the user's environment that is not shown as a variable.

mod inputs;

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use self::inputs::{Inputs, RawInput, line, upper};
use crate::recipe::{Auth, Distribution, Recipe, RecipeScope, ServerFacts, StartMethod, Transport};

/// A server of a registry.
#[derive(Debug, Clone)]
pub struct ListedServer {
    /// Its name, `NAMESPACE/NAME`.
    pub name: String,
    /// Its version.
    pub version: String,
    /// A description by its publisher, on one line.
    pub description: String,
    /// `active`, `deprecated` or `deleted`, with the message of the registry.
    pub status: String,
    /// The address of its source, or of its page.
    pub website: Option<String>,
    /// The ways to start or reach it, the best first.
    pub ways: Vec<ListedWay>,
    /// Ways that cannot be used here, with the reason.
    pub left_out: Vec<String>,
}

/// One way to start or reach a listed server.
#[derive(Debug, Clone)]
pub struct ListedWay {
    /// The command or address, its parameters and variables.
    pub recipe: Recipe,
    /// The digest of the package, if it is listed.
    pub digest: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawServer {
    name: String,
    #[serde(default)]
    description: String,
    #[serde(default)]
    version: String,
    status: Option<String>,
    website_url: Option<String>,
    repository: Option<Value>,
    #[serde(default)]
    packages: Vec<RawPackage>,
    #[serde(default)]
    remotes: Vec<RawRemote>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct RawPackage {
    registry_type: String,
    registry_base_url: Option<String>,
    identifier: String,
    version: Option<String>,
    file_sha256: Option<String>,
    transport: Option<Value>,
    runtime_arguments: Vec<RawInput>,
    package_arguments: Vec<RawInput>,
    environment_variables: Vec<RawInput>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct RawRemote {
    #[serde(rename = "type")]
    kind: String,
    url: String,
    headers: Vec<RawInput>,
    variables: BTreeMap<String, RawInput>,
}

/// Reads a `server.json`, or an element of a registry's list that has one.
pub fn read_listed(json: &Value) -> Result<ListedServer, String> {
    let within = json.get("server").unwrap_or(json);
    let raw = RawServer::deserialize(within).map_err(|error| error.to_string())?;
    let is_of_name = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    let (space, own) = raw.name.split_once('/').unwrap_or_default();
    if own.is_empty() || !space.chars().chain(own.chars()).all(is_of_name) {
        return Err(format!("`{}` is no name of a server", line(&raw.name)));
    }
    let source = raw.repository.as_ref().and_then(|it| it["url"].as_str());
    let mut server = ListedServer {
        name: raw.name.clone(),
        version: line(&raw.version),
        description: line(&raw.description),
        status: status(json, &raw),
        website: source.or(raw.website_url.as_deref()).map(line),
        ways: Vec::new(),
        left_out: Vec::new(),
    };
    let packages = raw.packages.iter();
    let packages = packages.map(|it| (read_package(&raw, it), &it.registry_type));
    let remotes = raw.remotes.iter();
    let remotes = remotes.map(|it| (read_remote(&raw, it), &it.url));
    for (way, place) in packages.chain(remotes) {
        match way {
            Ok(way) => server.ways.push(way),
            Err(why) => server.left_out.push(line(&format!("{place}: {why}"))),
        }
    }
    server.ways.sort_by_key(|it| it.recipe.kind);
    Ok(server)
}

fn status(json: &Value, raw: &RawServer) -> String {
    let of_registry = |key: &str| {
        let metas = json.get("_meta").and_then(Value::as_object)?;
        metas.values().find_map(|meta| meta.get(key)?.as_str())
    };
    let said = of_registry("status").or(raw.status.as_deref());
    let said = said.unwrap_or("active");
    let message = of_registry("statusMessage");
    line(&message.map_or_else(|| said.to_owned(), |message| format!("{said}: {message}")))
}

/// The addresses from which the programs that start packages load them.
const SOURCES: [(&str, &[&str]); 2] = [
    ("npm", &["https://registry.npmjs.org"]),
    ("pypi", &["https://pypi.org", "https://pypi.python.org"]),
];

fn read_package(server: &RawServer, package: &RawPackage) -> Result<ListedWay, String> {
    let transport = package.transport.as_ref();
    let transport = transport.and_then(|it| it["type"].as_str());
    if transport.is_some_and(|it| it != "stdio") {
        return Err(
            "it starts a server for HTTP; start it yourself and add its address".to_owned(),
        );
    }
    let base = package.registry_base_url.as_deref();
    let base = base.map(|it| it.trim_end_matches('/'));
    let known = SOURCES
        .iter()
        .find(|(name, _)| *name == package.registry_type);
    if let (Some((_, known)), Some(base)) = (known, base)
        && !known.contains(&base)
    {
        return Err(format!("its package is in another registry, {base}"));
    }
    let mut inputs = Inputs {
        prefix: upper(own_name(&server.name)),
        ..Inputs::default()
    };
    inputs.environment(&package.environment_variables)?;
    let (kind, named, start) = start_of(package, base, &mut inputs)?;
    let arguments = inputs.words(&package.package_arguments);
    let command = start.into_iter().chain(arguments).collect();
    let mut recipe = recipe(server, kind, StartMethod::Command(command), inputs);
    recipe.package = Some(named);
    let image_digest = package.identifier.split_once('@').map(|(_, it)| it);
    let image_digest = image_digest.filter(|it| it.starts_with("sha256:"));
    let file_digest = package.file_sha256.as_deref();
    let file_digest = file_digest.map(|it| format!("sha256:{}", line(it)));
    Ok(ListedWay {
        recipe,
        digest: file_digest.or(image_digest.map(str::to_owned)),
    })
}

/// The kind of a package, its name with the version, and the words that start it.
fn start_of(
    package: &RawPackage,
    base: Option<&str>,
    inputs: &mut Inputs,
) -> Result<(Distribution, String, Vec<String>), String> {
    let identifier = checked("package", &package.identifier, "@/._-:+")?;
    let version = package.version.as_deref().filter(|it| !it.is_empty());
    let version = version.map(|it| checked("version", it, "._-+!"));
    let version = version.transpose()?;
    let pinned = || {
        let version = version.filter(|it| *it != "latest");
        version.ok_or("it has no version".to_owned())
    };
    let named = version.map_or(identifier.to_owned(), |it| format!("{identifier} {it}"));
    let (kind, words) = match package.registry_type.as_str() {
        "npm" => {
            let own = inputs.words(&package.runtime_arguments).into_iter();
            let own = own.filter(|it| !["-y", "--yes"].contains(&it.as_str()));
            let word = format!("{identifier}@{}", pinned()?);
            let all = ["npx", "-y"].map(str::to_owned).into_iter();
            let all = all.chain(own).chain([word]);
            (Distribution::Npm, all.collect())
        }
        "pypi" => {
            let mut all = inputs.words(&package.runtime_arguments);
            all.insert(0, "uvx".to_owned());
            all.push(format!("{identifier}@{}", pinned()?));
            (Distribution::PyPi, all)
        }
        "oci" => {
            let mut image = in_host(identifier, base)?;
            if !own_name(&image).contains([':', '@']) {
                image = format!("{image}:{}", pinned()?);
            }
            let own = inputs.docker_words(&package.runtime_arguments, &image);
            let all = ["docker", "run", "-i", "--rm"]
                .map(str::to_owned)
                .into_iter();
            (
                Distribution::Docker,
                all.chain(own).chain([image]).collect(),
            )
        }
        "" => return Err("it has no kind".to_owned()),
        _ => return Err("packages of this kind are not supported".to_owned()),
    };
    Ok((kind, named, words))
}

/// The image with the host of its registry, if that is another than Docker's.
fn in_host(image: &str, base: Option<&str>) -> Result<String, String> {
    let host = base.and_then(|it| it.strip_prefix("https://"));
    match host.filter(|it| *it != "docker.io" && !image.starts_with(&format!("{it}/"))) {
        Some(host) => Ok(format!("{}/{image}", checked("host", host, ".:-")?)),
        None => Ok(image.to_owned()),
    }
}

/// Refuses a text that is no plain word: an option, or a place outside of a registry.
fn checked<'t>(what: &str, text: &'t str, others: &str) -> Result<&'t str, String> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || others.contains(c);
    let is_path = text.starts_with(['.', '/', '-']) || text.contains("..") || text.contains("://");
    if text.is_empty() || is_path || !text.chars().all(is_plain) {
        return Err(format!("`{text}` is no {what}"));
    }
    Ok(text)
}

fn read_remote(server: &RawServer, remote: &RawRemote) -> Result<ListedWay, String> {
    let transport = match remote.kind.as_str() {
        "streamable-http" | "http" => Transport::Http,
        "sse" => Transport::Sse,
        other => return Err(format!("`{other}` is no known transport")),
    };
    let mut inputs = Inputs {
        prefix: upper(own_name(&server.name)),
        ..Inputs::default()
    };
    let is_here = ["http://localhost", "http://127.0.0.1"].iter().any(|it| {
        let rest = remote.url.strip_prefix(it);
        rest.is_some_and(|rest| rest.starts_with([':', '/']))
    });
    if !remote.url.starts_with("https://") && !is_here {
        return Err("its address has no https".to_owned());
    }
    let url = inputs.filled(&remote.url, &remote.variables);
    let mut headers = BTreeMap::new();
    for input in &remote.headers {
        let name = input.name.as_deref().unwrap_or_default();
        let is_of_name = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        if name.is_empty() || !name.chars().all(is_of_name) {
            return Err(format!("`{name}` is no name of a header"));
        }
        let value = match &input.value {
            Some(value) => inputs.filled(value, &input.variables),
            None if input.is_required || input.default().is_some() => inputs.given(name, input),
            None => continue,
        };
        headers.insert(name.to_owned(), value);
    }
    let way = StartMethod::Remote {
        url,
        transport,
        headers,
    };
    Ok(ListedWay {
        recipe: recipe(server, Distribution::Remote, way, inputs),
        digest: None,
    })
}

fn own_name(name: &str) -> &str {
    name.rsplit('/').next().unwrap_or(name)
}

fn recipe(server: &RawServer, kind: Distribution, way: StartMethod, inputs: Inputs) -> Recipe {
    let mut variables = inputs.variables;
    variables.sort_by_key(|it| !it.required);
    let auth = match (kind, variables.is_empty()) {
        (_, true) => Auth::None,
        (Distribution::Remote, _) => Auth::Header,
        _ => Auth::Env,
    };
    Recipe {
        known: ServerFacts {
            name: own_name(&server.name).to_owned(),
            ..ServerFacts::default()
        },
        what: line(&format!(
            "{} {}: {}",
            server.name, server.version, server.description
        )),
        verbs: Vec::new(),
        kind,
        package: None,
        way,
        env: inputs.env,
        auth,
        scope: RecipeScope::Shared,
        start_timeout_s: None,
        variables,
        parameters: inputs.parameters,
        pins: Vec::new(),
        node: None,
        python: None,
        needs: Vec::new(),
        notes: String::new(),
        example: None,
        alternatives: Vec::new(),
        deprecated: None,
        replaces: Vec::new(),
        source: None,
        started: None,
        newest: None,
        not_started: Some("it comes from a registry".to_owned()),
        checked: String::new(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::recipe::Parameter;

    use super::*;
    use crate::RecipeValues;

    fn server(rest: &Value) -> ListedServer {
        let mut all =
            json!({"name": "io.github.acme/notes", "version": "1.2.0", "description": "Notes."});
        for (key, value) in rest.as_object().unwrap() {
            all[key] = value.clone();
        }
        read_listed(&json!({ "server": all })).unwrap()
    }

    /// The command line of the only way, with `{NAME}` for each parameter that is not given.
    #[track_caller]
    fn command(rest: &Value) -> (String, Recipe) {
        let server = server(rest);
        assert!(server.left_out.is_empty(), "{:?}", server.left_out);
        let recipe = server.ways[0].recipe.clone();
        let values = recipe.parameters.iter().filter(|it| it.args.is_empty());
        let open = |it: &Parameter| it.default.clone().unwrap_or(format!("{{{}}}", it.name));
        let given = RecipeValues {
            parameters: values.map(|it| (it.name.clone(), open(it))).collect(),
            variables: recipe.variables.iter().map(|it| it.name.clone()).collect(),
        };
        let entry = recipe.entry(&given).unwrap();
        let words = entry.command.into_iter().chain(entry.args);
        let env = entry
            .env
            .iter()
            .map(|(name, value)| format!("{name}={value}"));
        let line = env.chain(words).collect::<Vec<_>>().join(" ");
        (line, recipe)
    }

    #[test]
    fn each_package_is_a_command_with_its_version() {
        let (line, recipe) = command(&json!({"packages": [{
            "registryType": "npm", "registryBaseUrl": "https://registry.npmjs.org", "identifier": "@acme/notes-mcp",
            "version": "1.2.0", "transport": {"type": "stdio"},
            "packageArguments": [
                {"type": "positional", "value": "serve"},
                {"type": "named", "name": "--log-level", "default": "info", "description": "Level"},
                {"type": "named", "name": "--verbose", "format": "boolean"},
                {"type": "named", "name": "--tag", "description": "Tag"},
                {"type": "positional", "valueHint": "target_dir", "isRequired": true},
            ],
            "environmentVariables": [
                {"name": "NOTES_KEY", "isRequired": true, "isSecret": true},
                {"name": "NOTES_UNITS", "default": "metric"},
                {"name": "NOTES_MODE", "value": "a ${HOME}"},
            ],
        }]}));
        assert_eq!(
            line,
            "NOTES_KEY=${NOTES_KEY} NOTES_MODE=a $${HOME} NOTES_UNITS=metric npx -y @acme/notes-mcp@1.2.0 serve \
             --log-level info {TARGET_DIR}"
        );
        let tag = recipe
            .parameters
            .iter()
            .find(|it| it.name == "TAG")
            .unwrap();
        assert_eq!(tag.args, ["--tag", "{TAG}"]);
        assert_eq!(recipe.package.as_deref(), Some("@acme/notes-mcp 1.2.0"));

        let (line, _) = command(
            &json!({"packages": [{"registryType": "pypi", "identifier": "medium-ops",
            "version": "0.1.2", "runtimeHint": "bash", "packageArguments": [{"type": "positional", "value": "mcp"}]}]}),
        );
        assert_eq!(line, "uvx medium-ops@0.1.2 mcp");
    }

    #[test]
    fn an_image_gets_its_variables_and_no_secret_in_its_words() {
        // As the registry lists GitHub's server.
        let (line, recipe) = command(&json!({"packages": [{
            "registryType": "oci", "identifier": "ghcr.io/github/github-mcp-server:0.20.1",
            "transport": {"type": "stdio"},
            "runtimeArguments": [
                {"type": "positional", "value": "run", "isRequired": true},
                {"type": "named", "name": "-i", "value": "true", "format": "boolean", "isRequired": true},
                {"type": "named", "name": "--rm", "value": "true", "format": "boolean"},
                {"type": "named", "name": "-e", "value": "GITHUB_PERSONAL_ACCESS_TOKEN={token}", "isRequired": true,
                 "variables": {"token": {"isRequired": true, "isSecret": true, "format": "string"}}},
                {"type": "positional", "valueHint": "image_name", "value": "ghcr.io/github/github-mcp-server"},
            ],
        }]}));
        assert_eq!(
            line,
            "GITHUB_PERSONAL_ACCESS_TOKEN=${GITHUB_PERSONAL_ACCESS_TOKEN} docker run -i --rm -e \
             GITHUB_PERSONAL_ACCESS_TOKEN ghcr.io/github/github-mcp-server:0.20.1"
        );
        assert!(recipe.variables[0].secret && recipe.variables[0].required);
        let (line, _) = command(&json!({"packages": [{
            "registryType": "oci", "registryBaseUrl": "https://docker.io", "identifier": "mcp/filesystem", "version": "1.0.2",
            "runtimeArguments": [{"type": "named", "name": "--mount", "value": "type=bind,src={source_path},dst={target_path}",
                "variables": {"source_path": {"isRequired": true}, "target_path": {"default": "/project"}}}],
            "packageArguments": [{"type": "positional", "valueHint": "target_dir", "value": "/project"}],
            "environmentVariables": [{"name": "LOG_LEVEL", "default": "info"}],
        }]}));
        assert_eq!(
            line,
            "LOG_LEVEL=info docker run -i --rm --mount type=bind,src={SOURCE_PATH},dst=/project -e LOG_LEVEL \
             mcp/filesystem:1.0.2 /project"
        );
    }

    #[test]
    fn a_remote_server_has_headers_with_secrets_as_variables() {
        let listed = server(&json!({"remotes": [
            {"type": "sse", "url": "https://a.example.com/sse"},
            {"type": "streamable-http", "url": "https://{region}.example.com/mcp",
             "variables": {"region": {"default": "eu", "description": "Region"}},
             "headers": [
                {"name": "Authorization", "value": "Bearer {api_key}", "isRequired": true,
                 "variables": {"api_key": {"isSecret": true}}},
                {"name": "X-Other", "isSecret": true},
             ]},
            {"type": "streamable-http", "url": "http://plain.example.com/mcp"},
        ]}));
        assert_eq!(
            listed.left_out,
            ["http://plain.example.com/mcp: its address has no https"]
        );
        let StartMethod::Remote { url, headers, .. } = &listed.ways[1].recipe.way else {
            panic!("{listed:?}");
        };
        assert_eq!(url, "https://{REGION}.example.com/mcp");
        let expected = [("Authorization", "Bearer ${NOTES_API_KEY}")];
        assert_eq!(
            *headers,
            expected.map(|(a, b)| (a.to_owned(), b.to_owned())).into()
        );
    }

    #[test]
    fn a_package_that_is_odd_or_from_elsewhere_is_left_out() {
        let check = |package: &Value, expected: &str| {
            let listed = server(&json!({ "packages": [package] }));
            assert!(listed.ways.is_empty());
            assert_eq!(listed.left_out, [expected]);
        };
        let npm = |identifier: &str, version: &str| json!({"registryType": "npm", "identifier": identifier, "version": version});
        check(&npm("--eval=x", "1"), "npm: `--eval=x` is no package");
        check(
            &npm("https://evil.example/x.tgz", "1"),
            "npm: `https://evil.example/x.tgz` is no package",
        );
        check(&npm("../x", "1"), "npm: `../x` is no package");
        check(&npm("x", "latest"), "npm: it has no version");
        check(&npm("x", ">=1"), "npm: `>=1` is no version");
        check(
            &npm("x", "1\n[servers.evil]"),
            "npm: `1 [servers.evil]` is no version",
        );
        let mut elsewhere = npm("x", "1");
        elsewhere["registryBaseUrl"] = json!("https://npm.evil.example");
        check(
            &elsewhere,
            "npm: its package is in another registry, https://npm.evil.example",
        );
        let mut http = npm("x", "1");
        http["transport"] = json!({"type": "streamable-http"});
        check(
            &http,
            "npm: it starts a server for HTTP; start it yourself and add its address",
        );
        let mut variable = npm("x", "1");
        variable["environmentVariables"] = json!([{"name": "A=b"}]);
        check(&variable, "npm: `A=b` is no name of a variable");
        check(
            &json!({"registryType": "mcpb", "identifier": "x"}),
            "mcpb: packages of this kind are not supported",
        );
        let error = read_listed(&json!({"name": "x\n[y]/z"})).unwrap_err();
        assert_eq!(error, "`x [y]/z` is no name of a server");
    }

    #[test]
    fn a_status_comes_from_the_registry() {
        let listed = |meta: Value| {
            let server = json!({"name": "a/b", "version": "1"});
            read_listed(&json!({"server": server, "_meta": meta}))
                .unwrap()
                .status
        };
        assert_eq!(listed(json!({})), "active");
        let official = json!({"x/official": {"status": "deprecated", "statusMessage": "Use\nb."}});
        assert_eq!(listed(official), "deprecated: Use b.");
    }
}
