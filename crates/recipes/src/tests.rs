//! Checks of every recipe against its claims, and of lookups by names that users type.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tool::{Checker, ServerName};

use super::*;
use crate::template::{TemplatePart, pieces};

fn names_of_all() -> Vec<&'static str> {
    all().iter().map(Recipe::name).collect()
}

/// Returns every text of a recipe that becomes part of the configuration.
fn texts(recipe: &Recipe) -> Vec<&str> {
    let env = recipe.env.values().map(String::as_str);
    let way = match &recipe.way {
        StartMethod::Command(command) => command.iter().map(String::as_str).collect(),
        StartMethod::Remote { url, headers, .. } => {
            let headers = headers.values().map(String::as_str);
            headers.chain([url.as_str()]).collect::<Vec<_>>()
        }
    };
    let chosen = recipe.parameters.iter().flat_map(|it| &it.args);
    let chosen = chosen.map(String::as_str);
    way.into_iter().chain(env).chain(chosen).collect()
}

/// Returns the names of one kind in all texts of a recipe.
fn named(recipe: &Recipe, wanted: impl Fn(&TemplatePart) -> bool) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for text in texts(recipe) {
        for piece in pieces(text) {
            match piece {
                TemplatePart::Parameter(name) | TemplatePart::Variable(name) if wanted(&piece) => {
                    found.insert(name.to_owned());
                }
                _ => {}
            }
        }
    }
    found
}

#[test]
fn there_are_recipes_enough_and_each_name_is_one_of_ours() {
    assert!(all().len() >= 80, "{}", all().len());
    let mut seen = BTreeMap::new();
    for server in known() {
        assert!(server.name.parse::<ServerName>().is_ok(), "{}", server.name);
        let before = seen.insert(&server.name, &server.category);
        assert_eq!(before, None, "{} is listed twice", server.name);
        assert!(!server.tags.is_empty(), "{} has no tag", server.name);
    }
}

#[test]
fn the_sixteen_of_claudikins_are_there() {
    for name in [
        "serena",
        "godot",
        "notebooklm",
        "shadcn",
        "context7",
        "nano-banana",
        "github",
        "mermaid",
        "apify",
        "huggingface",
        "fetch",
        "memory",
        "sequential-thinking",
        "gemini",
        "stackoverflow",
        "sentry",
    ] {
        assert_eq!(find(name).map(Recipe::name), Some(name));
    }
}

#[test]
fn a_recipe_says_how_the_server_is_reached() {
    for recipe in all() {
        let name = recipe.name();
        match &recipe.way {
            StartMethod::Command(command) => {
                let program = ["npx", "uvx", "docker"];
                let program = program.iter().find(|program| **program == command[0]);
                let of_kind = match recipe.kind {
                    Distribution::Npm => "npx",
                    Distribution::PyPi => "uvx",
                    Distribution::Docker => "docker",
                    Distribution::Remote => panic!("{name} has no address"),
                };
                assert_eq!(program, Some(&of_kind), "{name}");
                let package = recipe.package.as_deref().unwrap();
                let is_named = command.iter().any(|text| text.starts_with(package));
                assert!(is_named, "{name} starts something else than {package}");
                assert!(
                    of_package(package).is_some(),
                    "{package} belongs to two recipes"
                );
            }
            StartMethod::Remote { url, .. } => {
                assert!(url.starts_with("https://"), "{name}: {url}");
                assert!(recipe.env.is_empty() && recipe.pins.is_empty(), "{name}");
                assert!(recipe.source.is_some(), "{name} has no source");
                assert!(
                    recipe.started.is_none(),
                    "{name} is remote, but marked as started"
                );
            }
        }
        for old in &recipe.replaces {
            let found = replacement(old).map(Recipe::name);
            assert_eq!(found, Some(name), "{old}");
            assert_ne!(of_package(old).map(Recipe::name), Some(name), "{old}");
        }
    }
}

#[test]
fn what_a_recipe_asks_for_stands_in_its_texts_and_the_reverse() {
    for recipe in all() {
        let name = recipe.name();
        let said: BTreeSet<_> = (recipe.parameters.iter())
            .map(|parameter| parameter.name.clone())
            .collect();
        let used = named(recipe, |piece| matches!(piece, TemplatePart::Parameter(_)));
        assert_eq!(said, used, "{name}: parameters");
        let said: BTreeSet<_> = (recipe.variables.iter())
            .map(|variable| variable.name.clone())
            .collect();
        assert_eq!(
            said.len(),
            recipe.variables.len(),
            "{name} has a duplicate variable"
        );
        for used in named(recipe, |piece| matches!(piece, TemplatePart::Variable(_))) {
            assert!(said.contains(&used), "{name}: {used}");
        }
        for variable in &recipe.variables {
            let text = &variable.name;
            let is_valid = text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
                && text.starts_with(|c: char| c.is_ascii_alphabetic());
            assert!(is_valid, "{name}: {text}");
            assert!(!recipe.env.contains_key(text), "{name}: {text} is set");
            assert!(!variable.what.is_empty(), "{name}: {text}");
            let sounds_secret = ["KEY", "TOKEN", "SECRET", "PASSWORD"];
            let sounds_secret = sounds_secret.iter().any(|word| text.ends_with(word));
            assert!(
                variable.secret || !sounds_secret,
                "{name}: {text} is not marked as a secret"
            );
        }
        assert!(
            recipe
                .variables
                .is_sorted_by_key(|variable| !variable.required),
            "{name}"
        );
        let asks = !recipe.variables.is_empty();
        assert!(
            asks || !matches!(recipe.auth, Auth::Env | Auth::Header),
            "{name}"
        );
    }
}

#[test]
fn pins_and_days_are_what_they_say() {
    for recipe in all() {
        let name = recipe.name();
        let days = recipe.pins.iter().map(|pin| &pin.checked);
        for day in days.chain([&recipe.checked]) {
            let parts: Vec<_> = day.split('-').map(str::len).collect();
            assert!(parts == [4, 2, 2] && day.as_str() > "2026", "{name}: {day}");
        }
        if let StartMethod::Command(command) = &recipe.way {
            let with = |text: &str| {
                let mut pairs = command.windows(2);
                pairs.any(|pair| pair[0] == "--with" && pair[1] == text)
            };
            assert!(recipe.pins.iter().all(|pin| with(&pin.with)), "{name}");
            let held_back = command.iter().filter(|text| *text == "--with").count();
            assert_eq!(held_back, recipe.pins.len(), "{name}");
        }
        for range in [&recipe.node, &recipe.python].into_iter().flatten() {
            assert!(fits("1.0.0", range).is_some(), "{name}: {range}");
        }
        assert_eq!(
            recipe.node.is_some(),
            recipe.kind == Distribution::Npm,
            "{name}"
        );
        let looked = recipe.started.is_some() || recipe.newest.is_none();
        assert!(looked, "{name} has `newest` without `started`");
        let said = recipe.started.is_none() || recipe.not_started.is_none();
        assert!(said, "{name} has both `started` and `not_started`");
        let said = [&recipe.what, &recipe.notes];
        assert!(said.iter().all(|text| !text.is_empty()), "{name}");
        assert!(!recipe.verbs.is_empty(), "{name}");
    }
}

#[test]
fn an_entry_is_a_table_of_the_configuration() {
    let given = |parameters: &[(&str, &str)], variables: &[&str]| RecipeValues {
        parameters: (parameters.iter())
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect(),
        variables: variables.iter().map(|name| (*name).to_owned()).collect(),
    };
    let entry = |name: &str, given: &RecipeValues| {
        let entry = find(name).unwrap().entry(given);
        let entry = entry.map_err(|missing| missing[0].name.clone())?;
        Ok::<_, String>(toml::to_string(&entry).unwrap())
    };
    let nothing = given(&[], &[]);
    assert_eq!(entry("filesystem", &nothing), Err("DIR".to_owned()));
    assert_eq!(
        entry("filesystem", &given(&[("DIR", "/home/ada")], &[])).unwrap(),
        "command = \"npx\"\nargs = [\"-y\", \"@modelcontextprotocol/server-filesystem\", \"/home/ada\"]\nscope = \"client\"\n"
    );
    assert_eq!(
        entry("memory", &nothing).unwrap(),
        "command = \"npx\"\nargs = [\"-y\", \"@modelcontextprotocol/server-memory\"]\n\n[env]\nMEMORY_FILE_PATH = \"${HOME}/.mcp-memory.jsonl\"\n"
    );
    assert_eq!(
        entry("tavily", &nothing).unwrap(),
        "command = \"npx\"\nargs = [\"-y\", \"tavily-mcp@latest\"]\n\n[env]\nTAVILY_API_KEY = \"${TAVILY_API_KEY}\"\n"
    );
    assert_eq!(
        entry("github", &nothing).unwrap(),
        "url = \"https://api.githubcopilot.com/mcp/\"\n"
    );
    assert_eq!(
        entry("github", &given(&[], &["GITHUB_PERSONAL_ACCESS_TOKEN"])).unwrap(),
        "url = \"https://api.githubcopilot.com/mcp/\"\n\n[headers]\nAuthorization = \"Bearer ${GITHUB_PERSONAL_ACCESS_TOKEN}\"\n"
    );
    let arguments = find("filesystem")
        .unwrap()
        .example_arguments(&given(&[("DIR", "/a")], &[]));
    assert_eq!(
        Value::Object(arguments.unwrap()),
        json!({"path": "/a/README.md"})
    );
}

#[test]
fn every_recipe_makes_an_entry() {
    for recipe in all() {
        let parameters = recipe.parameters.iter();
        let given = RecipeValues {
            parameters: parameters
                .map(|parameter| (parameter.name.clone(), "/there".to_owned()))
                .collect(),
            variables: (recipe.variables.iter())
                .map(|variable| variable.name.clone())
                .collect(),
        };
        let entry = recipe.entry(&given).unwrap();
        let is_one = entry.command.is_some() != entry.url.is_some();
        assert!(is_one, "{}", recipe.name());
        let text = toml::to_string(&entry).unwrap().replace("${", "");
        assert!(!text.contains('{'), "{}: {text}", recipe.name());
        let needs_nothing = recipe.needs_nothing();
        let by_itself = recipe.entry(&RecipeValues::default()).is_ok();
        assert!(by_itself || !needs_nothing, "{}", recipe.name());
    }
    assert!(find("time").unwrap().needs_nothing());
    assert!(!find("tavily").unwrap().needs_nothing());
    assert!(!find("sqlite").unwrap().needs_nothing());
    assert!(!find("notion").unwrap().needs_nothing());
}

#[track_caller]
fn check_find(name: &str, expected: Option<&str>) {
    assert_eq!(find(name).map(Recipe::name), expected, "{name}");
}

#[test]
fn a_recipe_goes_by_every_name_that_means_it() {
    check_find("github", Some("github"));
    check_find("GitHub", Some("github"));
    check_find("github-mcp-server", Some("github"));
    check_find("gh", Some("github"));
    check_find("jira", Some("atlassian"));
    check_find("k8s", Some("kubernetes"));
    check_find("hf", Some("huggingface"));
    check_find("sequentialthinking", Some("sequential-thinking"));
    check_find("@upstash/context7-mcp", Some("context7"));
    check_find("@upstash/context7-mcp@latest", Some("context7"));
    check_find("mcp-server-fetch", Some("fetch"));
    check_find("mcp-server-sqlite==2025.4.25", Some("sqlite"));
    check_find("awslabs.dynamodb-mcp-server", Some("dynamodb"));
    check_find("aws-dynamodb", Some("dynamodb"));
    check_find(
        "ghcr.io/github/github-mcp-server:latest",
        Some("github-local"),
    );
    check_find("https://mcp.linear.app/mcp/", Some("linear"));
    check_find("ms365", Some("ms-365"));
    check_find("shopify-dev", Some("shopify"));
    check_find("analytics", Some("google-analytics"));
    // These match several recipes.
    check_find("ci", None);
    check_find("mcp", None);
    check_find("", None);
    check_find("no-such-thing", None);
}

#[test]
fn what_is_no_longer_the_one_to_use_names_its_successor() {
    let check = |old: &str, expected: Option<&str>| {
        assert_eq!(replacement(old).map(Recipe::name), expected, "{old}");
    };
    check("@modelcontextprotocol/server-github", Some("github"));
    check(
        "@modelcontextprotocol/server-github@2025.4.8",
        Some("github"),
    );
    check("https://mcp.atlassian.com/v1/sse", Some("atlassian"));
    check("https://mcp.atlassian.com/v1/sse/", Some("atlassian"));
    check("https://mcp.atlassian.com/v2/mcp", None);
    check("@modelcontextprotocol/server-memory", None);
}

#[test]
fn a_recipe_is_named_find_instead_of_a_package_that_does_not_exist() {
    let check = |package: &str, expected: Option<&str>| {
        assert_eq!(
            find_instead_of(package).map(Recipe::name),
            expected,
            "{package}"
        );
    };
    check("@acme/mcp-server-github@*", Some("github"));
    check("@modelcontextprotocol/server-github", Some("github"));
    check("jira-mcp-plus==1.0", Some("atlassian"));
    check("nothing-here", None);
    check("@github/nothing", None);
    // Its recipe has the same package.
    check("@upstash/context7-mcp", None);
}

#[track_caller]
fn check_search(words: &str, expected: &[&str]) {
    let found: Vec<_> = search(words).into_iter().map(Recipe::name).collect();
    let first = &found[..expected.len().min(found.len())];
    assert_eq!(first, expected, "{words}: {found:?}");
}

#[test]
fn recipes_are_found_by_what_people_want_done() {
    check_search("github", &["github"]);
    check_search("postgres", &["postgres"]);
    check_search("send an email", &["gmail"]);
    check_search("browser screenshot", &["browsermcp", "chrome-devtools"]);
    check_search("docx", &["word"]);
    check_search("redis", &["redis"]);
    check_search("transcript", &["youtube-transcript"]);
    check_search("list pods", &["kubernetes"]);
    check_search("feature flags", &["launchdarkly"]);
    check_search("xyzzy", &[]);
    assert!(search("xyzzy").is_empty());
    assert_eq!(search("").len(), names_of_all().len());
}

/// Returns the snapshots of real servers: those in the repository, and a larger collection outside
/// it.
fn catalogues() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let folders = [
        "tests/catalogues",
        "../shared/servers/snapshots",
        "../../shared/servers/snapshots",
    ];
    let folders = folders.iter().map(|folder| root.join(folder));
    let files = folders.filter_map(|folder| fs::read_dir(folder).ok());
    let files = files.flatten().map(|entry| entry.unwrap().path());
    files
        .filter(|path| path.extension().is_some_and(|it| it == "json"))
        .collect()
}

#[test]
fn an_example_is_taken_by_the_schema_of_the_real_server() {
    let mut checked = BTreeSet::new();
    for file in catalogues() {
        let catalogue: Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
        let package = catalogue["package"].as_str().unwrap_or_default();
        let Some(recipe) = of_package(package) else {
            continue;
        };
        let Some(example) = &recipe.example else {
            continue;
        };
        let tools = catalogue["tools"].as_array().unwrap();
        let tool = tools
            .iter()
            .find(|tool| tool["name"] == example.tool.as_str());
        let name = recipe.name();
        let tool = tool.unwrap_or_else(|| panic!("{name} has no tool {}", example.tool));
        let schema = Checker::new(&tool["inputSchema"].to_string());
        assert!(!schema.is_blind(), "{name}");
        let verdict = schema.check(&example.arguments);
        assert!(verdict.is_ok(), "{name}: {verdict:?}");
        checked.insert(name);
    }
    assert!(checked.len() >= 8, "{checked:?}");
}
