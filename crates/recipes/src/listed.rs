//! Servers as a registry of MCP lists them: a `server.json`, made into recipes. A way that needs more than a
//! package with its version, or an address, is left out with the reason.
//!
//! Anyone may have written these texts. They become words of a command line, each with its version, and
//! no text of theirs names a variable of the user's environment that is not shown as a variable.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use crate::recipe::{
    Auth, Distribution, Parameter, Recipe, RecipeScope, ServerFacts, StartMethod, Transport,
    Variable,
};

/// The longest text that is kept, in characters.
const TEXT_CHARS_MAX: usize = 400;

/// A server of a registry.
#[derive(Debug, Clone)]
pub struct ListedServer {
    /// Its name, `NAMESPACE/NAME`.
    pub name: String,
    /// Its version.
    pub version: String,
    /// A description by its publisher, on one line.
    pub description: String,
    /// `active`, `deprecated` or `deleted`.
    pub status: String,
    /// The address of its source.
    pub source: Option<String>,
    /// The ways to start or reach it, the best first.
    pub ways: Vec<Recipe>,
    /// Ways that cannot be used here, with the reason.
    pub left_out: Vec<String>,
}

#[derive(Deserialize)]
struct RawServer {
    name: String,
    #[serde(default)]
    description: String,
    #[serde(default)]
    version: String,
    #[serde(default)]
    repository: Value,
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
    version: String,
    transport: Value,
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

/// An argument, a variable, a header, or a part of one.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct RawInput {
    #[serde(rename = "type")]
    kind: Option<String>,
    name: Option<String>,
    value_hint: Option<String>,
    description: Option<String>,
    value: Option<String>,
    default: Option<Value>,
    format: Option<String>,
    is_required: bool,
    is_secret: bool,
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
    let metas = json.get("_meta").and_then(Value::as_object);
    let mut metas = metas.into_iter().flat_map(|metas| metas.values());
    let status = metas.find_map(|meta| meta.get("status")?.as_str());
    let mut server = ListedServer {
        name: raw.name.clone(),
        version: line(&raw.version),
        description: line(&raw.description),
        status: line(status.unwrap_or("active")),
        source: raw.repository["url"].as_str().map(line),
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
    server.ways.sort_by_key(|it| it.kind);
    Ok(server)
}

/// The addresses from which the programs that start packages load them.
const SOURCES: [(&str, &[&str]); 3] = [
    ("npm", &["https://registry.npmjs.org"]),
    ("pypi", &["https://pypi.org", "https://pypi.python.org"]),
    ("oci", &["https://docker.io"]),
];

/// Words that the programs that start packages get from us.
const RUNTIME_WORDS: [&str; 5] = ["-y", "--yes", "run", "-i", "--rm"];

fn read_package(server: &RawServer, package: &RawPackage) -> Result<Recipe, String> {
    let transport = package.transport["type"].as_str();
    if transport.is_some_and(|it| it != "stdio") {
        return Err(
            "it starts a server for HTTP; start it yourself and add its address".to_owned(),
        );
    }
    let identifier = checked("package", &package.identifier, "@/._-:+")?;
    let base = package.registry_base_url.as_deref();
    let base = base.map(|it| it.trim_end_matches('/'));
    let known = SOURCES
        .iter()
        .find(|(name, _)| *name == package.registry_type);
    let (_, known) = known.ok_or("packages of this kind are not supported")?;
    let is_in_name = |base: &str| {
        let host = base.strip_prefix("https://");
        host.is_some_and(|host| identifier.starts_with(&format!("{host}/")))
    };
    if let Some(base) = base.filter(|it| !known.contains(it) && !is_in_name(it)) {
        return Err(format!("its package is in another registry, {base}"));
    }
    let mut inputs = Inputs::new(server);
    inputs.read_environment(&package.environment_variables)?;
    let (kind, mut words) = start_of(package, identifier, &inputs)?;
    words.extend(inputs.read_words(&package.package_arguments));
    let mut recipe = recipe(server, kind, StartMethod::Command(words), inputs);
    let named = format!("{identifier} {}", line(&package.version));
    recipe.package = Some(named.trim().to_owned());
    Ok(recipe)
}

/// The kind of a package, and the words that start it.
fn start_of(
    package: &RawPackage,
    identifier: &str,
    inputs: &Inputs,
) -> Result<(Distribution, Vec<String>), String> {
    let is_ours = |it: &RawInput| {
        let word = it.name.as_deref().or(it.value.as_deref());
        word.is_some_and(|word| RUNTIME_WORDS.contains(&word))
    };
    if !package.runtime_arguments.iter().all(is_ours) {
        return Err("the program that starts it needs arguments; add its command line".to_owned());
    }
    let pinned = |sign: char| match package.version.as_str() {
        "" | "latest" => Err("it has no version".to_owned()),
        version => checked("version", version, "._-+!").map(|it| format!("{identifier}{sign}{it}")),
    };
    let own = |words: &[&str]| words.iter().map(ToString::to_string).collect::<Vec<_>>();
    Ok(match package.registry_type.as_str() {
        "npm" => (Distribution::Npm, own(&["npx", "-y", &pinned('@')?])),
        "pypi" => (Distribution::PyPi, own(&["uvx", &pinned('@')?])),
        _ => {
            let mut words = own(&["docker", "run", "-i", "--rm"]);
            // Without a value, so that no secret is in a command line.
            for name in inputs.names() {
                words.extend(["-e".to_owned(), name]);
            }
            let has_tag = own_name(identifier).contains([':', '@']);
            words.push(if has_tag {
                identifier.to_owned()
            } else {
                pinned(':')?
            });
            (Distribution::Docker, words)
        }
    })
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

fn read_remote(server: &RawServer, remote: &RawRemote) -> Result<Recipe, String> {
    let transport = match remote.kind.as_str() {
        "streamable-http" | "http" => Transport::Http,
        "sse" => Transport::Sse,
        other => return Err(format!("`{other}` is no known transport")),
    };
    let mut inputs = Inputs::new(server);
    if !remote.url.starts_with("https://") {
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
    Ok(recipe(server, Distribution::Remote, way, inputs))
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

/// A text of others on one line, shortened.
fn line(text: &str) -> String {
    let plain: String = text
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    let words = plain.split_whitespace().collect::<Vec<_>>().join(" ");
    words.chars().take(TEXT_CHARS_MAX).collect()
}

/// Escapes a text, so that the configuration fills nothing in.
fn literal(text: &str) -> String {
    text.replace('$', "$$")
}

/// The parameters and variables of a way, while its texts are read.
#[derive(Default)]
struct Inputs {
    /// The server's name in front of the names of secrets.
    prefix: String,
    parameters: Vec<Parameter>,
    variables: Vec<Variable>,
    env: BTreeMap<String, String>,
}

/// A name for a parameter or variable: `--log-level` is `LOG_LEVEL`.
fn upper(name: &str) -> String {
    let plain = |c: char| {
        if c.is_ascii_alphanumeric() {
            c.to_ascii_uppercase()
        } else {
            '_'
        }
    };
    let name: String = name.chars().map(plain).collect();
    let name = name.trim_matches('_');
    let starts_well = name.starts_with(|c: char| c.is_ascii_uppercase());
    if starts_well {
        name.to_owned()
    } else {
        format!("VALUE_{name}")
    }
}

impl RawInput {
    fn default(&self) -> Option<String> {
        match self.default.as_ref()? {
            Value::String(text) if text.is_empty() => None,
            Value::String(text) => Some(text.clone()),
            Value::Null => None,
            other => Some(other.to_string()),
        }
    }

    fn what(&self) -> String {
        line(self.description.as_deref().unwrap_or_default())
    }
}

impl Inputs {
    fn new(server: &RawServer) -> Self {
        Self {
            prefix: upper(own_name(&server.name)),
            ..Self::default()
        }
    }

    /// The names of the variables that the server gets.
    fn names(&self) -> Vec<String> {
        let required = self.variables.iter().map(|it| &it.name);
        self.env.keys().chain(required).cloned().collect()
    }

    /// The text of a value that the user gives: `{NAME}`, or `${NAME}` for a secret.
    fn given(&mut self, name: &str, input: &RawInput) -> String {
        if input.is_secret {
            let name = format!("{}_{}", self.prefix, upper(name));
            self.variable(&name, input, true);
            return format!("${{{name}}}");
        }
        let mut name = upper(name);
        let known = |it: &Parameter, name: &str| it.name == name && it.what != input.what();
        while self.parameters.iter().any(|it| known(it, &name)) {
            name.push_str("_2");
        }
        if !self.parameters.iter().any(|it| it.name == name) {
            self.parameters.push(Parameter {
                name: name.clone(),
                what: input.what(),
                default: input.default().map(|it| literal(&it)),
                args: Vec::new(),
            });
        }
        format!("{{{name}}}")
    }

    fn variable(&mut self, name: &str, input: &RawInput, is_required: bool) {
        if !self.variables.iter().any(|it| it.name == name) {
            self.variables.push(Variable {
                name: name.to_owned(),
                required: is_required,
                secret: input.is_secret,
                what: input.what(),
                origin: None,
            });
        }
    }

    /// A text with `{name}` in it for each of its variables; other braces stay.
    fn filled(&mut self, text: &str, variables: &BTreeMap<String, RawInput>) -> String {
        let mut made = String::new();
        let mut rest = text;
        while let Some((before, name, after)) = next_name(rest) {
            made.push_str(&literal(before));
            match variables.get(name) {
                Some(RawInput {
                    value: Some(value), ..
                }) => made.push_str(&literal(value)),
                Some(input) => made.push_str(&self.given(name, input)),
                None => made.push_str(&format!("{{{name}}}")),
            }
            rest = after;
        }
        made + &literal(rest)
    }

    /// The words of arguments that are always given; others are left out.
    fn read_words(&mut self, list: &[RawInput]) -> Vec<String> {
        let mut words = Vec::new();
        for input in list {
            let flag = input.name.as_ref();
            let flag = flag.filter(|_| input.kind.as_deref() == Some("named"));
            if flag.is_some() && input.format.as_deref() == Some("boolean") {
                let value = input.value.clone().or_else(|| input.default());
                words.extend(
                    flag.filter(|_| value.as_deref() == Some("true"))
                        .map(|it| literal(it)),
                );
                continue;
            }
            let name = input.value_hint.as_ref().or(input.name.as_ref());
            let name = name.map_or("value", String::as_str);
            let value = match &input.value {
                Some(value) => self.filled(value, &input.variables),
                None if input.is_required || input.default().is_some() && !input.is_secret => {
                    self.given(name, input)
                }
                None => continue,
            };
            words.extend(flag.map(|it| literal(it)));
            words.push(value);
        }
        words
    }

    fn read_environment(&mut self, list: &[RawInput]) -> Result<(), String> {
        for input in list {
            let name = input.name.as_deref().unwrap_or_default();
            let is_of_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
            if name.is_empty()
                || !name.chars().all(is_of_name)
                || name.starts_with(|c: char| c.is_ascii_digit())
            {
                return Err(format!("`{name}` is no name of a variable"));
            }
            if let Some(value) = &input.value {
                let value = self.filled(value, &input.variables);
                self.env.insert(name.to_owned(), value);
            } else if input.default().is_some() && !input.is_secret {
                let value = self.given(name, input);
                self.env.insert(name.to_owned(), value);
            } else {
                self.variable(name, input, input.is_required);
            }
        }
        Ok(())
    }
}

/// The text before the first name in braces, the name, and the text after it.
fn next_name(text: &str) -> Option<(&str, &str, &str)> {
    let open = text.find('{')?;
    let close = open + text[open..].find('}')?;
    Some((&text[..open], &text[open + 1..close], &text[close + 1..]))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

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
        let recipe = server.ways[0].clone();
        let values = recipe.parameters.iter();
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
                {"type": "named", "name": "--verbose", "format": "boolean", "default": "false"},
                {"type": "named", "name": "--all", "format": "boolean", "value": "true"},
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
             --log-level info --all {TARGET_DIR}"
        );
        assert_eq!(recipe.package.as_deref(), Some("@acme/notes-mcp 1.2.0"));

        let (line, _) = command(
            &json!({"packages": [{"registryType": "pypi", "identifier": "medium-ops",
            "version": "0.1.2", "runtimeHint": "bash", "packageArguments": [{"type": "positional", "value": "mcp"}]}]}),
        );
        assert_eq!(line, "uvx medium-ops@0.1.2 mcp");
    }

    #[test]
    fn an_image_gets_its_variables_and_no_secret_in_its_words() {
        let (line, recipe) = command(&json!({"packages": [{
            "registryType": "oci", "identifier": "ghcr.io/acme/notes:0.20.1", "registryBaseUrl": "https://ghcr.io",
            "transport": {"type": "stdio"},
            "runtimeArguments": [
                {"type": "positional", "value": "run", "isRequired": true},
                {"type": "named", "name": "-i", "value": "true", "format": "boolean", "isRequired": true},
            ],
            "environmentVariables": [{"name": "NOTES_TOKEN", "isRequired": true, "isSecret": true}],
        }]}));
        assert_eq!(
            line,
            "NOTES_TOKEN=${NOTES_TOKEN} docker run -i --rm -e NOTES_TOKEN ghcr.io/acme/notes:0.20.1"
        );
        assert!(recipe.variables[0].secret && recipe.variables[0].required);
        let (line, _) = command(&json!({"packages": [{
            "registryType": "oci", "registryBaseUrl": "https://docker.io", "identifier": "mcp/filesystem", "version": "1.0.2",
            "packageArguments": [{"type": "positional", "valueHint": "target_dir", "value": "/project"}],
            "environmentVariables": [{"name": "LOG_LEVEL", "default": "info"}],
        }]}));
        assert_eq!(
            line,
            "LOG_LEVEL=info docker run -i --rm -e LOG_LEVEL mcp/filesystem:1.0.2 /project"
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
        let StartMethod::Remote { url, headers, .. } = &listed.ways[1].way else {
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
        elsewhere["registryType"] = json!("oci");
        check(
            &elsewhere,
            "oci: its package is in another registry, https://npm.evil.example",
        );
        let mut runtime = npm("x", "1");
        runtime["runtimeArguments"] =
            json!([{"type": "named", "name": "--registry", "value": "https://evil.example"}]);
        check(
            &runtime,
            "npm: the program that starts it needs arguments; add its command line",
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
        let official = json!({"x/official": {"status": "deprecated\n!"}});
        assert_eq!(listed(official), "deprecated !");
    }
}
