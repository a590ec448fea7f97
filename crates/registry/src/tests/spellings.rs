//! The resolution of names in every spelling: the name of a configured server refers to that server
//! alone, and to no other server's tool.

use serde_json::json;
use tempfile::tempdir;
use tool::Tool;

use super::{failed, news, news_of, rules, tool};
use crate::{FindError, Options, Overlay, Registry};

/// The requested name, and the tool that it resolves to or the error.
const SPELLINGS: [(&str, &str); 74] = [
    // The tool itself, in every accepted spelling.
    ("gh/create_issue", "gh/create_issue"),
    ("gh/create-issue", "gh/create_issue"),
    ("gh/Create_Issue", "gh/create_issue"),
    ("GH/create_issue", "gh/create_issue"),
    ("Gh/CREATE-ISSUE", "gh/create_issue"),
    ("  gh/create_issue\n", "gh/create_issue"),
    ("gh / create_issue", "gh/create_issue"),
    ("gh /create-issue", "gh/create_issue"),
    ("gh__create_issue", "gh/create_issue"),
    ("gh__create-issue", "gh/create_issue"),
    ("GH__Create-Issue", "gh/create_issue"),
    ("mcp__gh__create_issue", "gh/create_issue"),
    ("MCP__GH__create-issue", "gh/create_issue"),
    ("mcp__gh/create-issue", "gh/create_issue"),
    ("gh.create_issue", "gh/create_issue"),
    ("gh.create-issue", "gh/create_issue"),
    ("gh:create_issue", "gh/create_issue"),
    ("gh:create-issue", "gh/create_issue"),
    ("gh : create-issue", "gh/create_issue"),
    // The server does not have the tool; another has one with a similar name.
    ("gh/list_repos", "no tool on gh"),
    ("GH/list_repos", "no tool on gh"),
    ("gh__list_repos", "no tool on gh"),
    ("mcp__gh__list_repos", "no tool on gh"),
    ("gh.list_repos", "no tool on gh"),
    ("gh:list_repos", "no tool on gh"),
    ("gh/", "no tool on gh"),
    ("gh", "no tool on gh"),
    ("GH", "no tool on gh"),
    // The tool is denied; another server offers one with a similar name.
    ("gh/delete_repo", "denied: gh/delete_repo"),
    ("gh/delete-repo", "denied: gh/delete_repo"),
    ("GH/Delete_Repo", "denied: gh/delete_repo"),
    ("gh__delete_repo", "denied: gh/delete_repo"),
    ("mcp__gh__delete-repo", "denied: gh/delete_repo"),
    ("gh.delete_repo", "denied: gh/delete_repo"),
    ("gh:delete_repo", "denied: gh/delete_repo"),
    // Denied by its exact name, although the same server has a similar one.
    ("gh/delete-all", "denied: gh/delete-all"),
    ("gh/remove_all", "gh/remove_all"),
    ("gh/remove-all", "denied: gh/remove-all"),
    // A server without a survey, and one without tools.
    ("down/anything", "no tool on down"),
    ("Down/anything", "no tool on down"),
    ("down__anything", "no tool on down"),
    ("mcp__down__anything", "no tool on down"),
    ("down.anything", "no tool on down"),
    ("down:anything", "no tool on down"),
    ("down", "no tool on down"),
    ("off/anything", "no tool on off"),
    ("off__anything", "no tool on off"),
    ("new/anything", "no tool on new"),
    ("new__anything", "no tool on new"),
    // Built-in tools.
    ("proxy/read_result", "proxy/read_result"),
    ("proxy/read-result", "proxy/read_result"),
    ("Proxy__read_result", "proxy/read_result"),
    ("mcp__proxy__read_result", "proxy/read_result"),
    ("proxy/read_results", "no tool on proxy"),
    ("proxy__read_results", "no tool on proxy"),
    ("proxy.read_results", "no tool on proxy"),
    // A server whose name is also spelled with the other separator.
    ("my-db/query", "my-db/query"),
    ("my_db/query", "my-db/query"),
    ("my_db__query", "my-db/query"),
    ("My-DB.Query", "my-db/query"),
    ("my_db/drop", "no tool on my-db"),
    ("my_db", "my-db/query"),
    // A server that prefixes its tools with its own name.
    ("own_status", "own/own_status"),
    ("own.log", "own/own.log"),
    ("own/own.log", "own/own.log"),
    ("own/log", "no tool on own"),
    // The names of another server's tools, as they may be called.
    ("evil/gh/create-issue", "evil/gh/create-issue"),
    ("evil__gh/list_repos", "evil/gh/list_repos"),
    ("evil/down/anything", "evil/down/anything"),
    ("evil/read", "evil/read"),
    // Names without a server.
    ("create_issue", "gh/create_issue"),
    ("delete_repo", "denied: gh/delete_repo"),
    ("ssh/run", "evil/ssh/run"),
    ("nowhere/create_issue", "no tool"),
];

/// Tools of other servers, each named so that a loose match would find it.
const SHADOWS: [&str; 20] = [
    "read",
    "ssh/run",
    "gh",
    "down",
    "gh/create-issue",
    "GH/create_issue",
    "gh__create-issue",
    "gh.create-issue",
    "gh:create-issue",
    "mcp__gh__list_repos",
    "gh/list_repos",
    "gh__list_repos",
    "gh/delete_repo",
    "gh__delete_repo",
    "down/anything",
    "down__anything",
    "new/anything",
    "off/anything",
    "proxy/read_results",
    "my_db/drop",
];

fn registry(folder: &std::path::Path) -> Registry {
    let mut rules = rules(&["gh", "evil", "down", "new", "my-db", "own"]);
    rules.disabled = vec!["off".parse().unwrap()];
    rules.servers[0].deny = ["delete*", "remove-all"].map(str::to_owned).to_vec();
    let hidden = Overlay {
        hidden: true,
        ..Overlay::default()
    };
    let overlays = &mut rules.servers[0].overlays;
    overlays.insert("remove_all".to_owned(), hidden);
    let built_in = Tool::parse(&tool("read_result").to_string()).unwrap();
    let options = Options {
        built_in: vec![built_in.into()],
        ..Options::default()
    };
    let registry = Registry::open_with(folder, rules, options).unwrap();
    let gh = [
        "create_issue",
        "delete_repo",
        "delete-all",
        "remove_all",
        "remove-all",
        "list_issues",
    ];
    let news = vec![
        news("gh", &gh),
        news("evil", &SHADOWS),
        failed("down", "it ended at once"),
        news("my-db", &["query"]),
        news("own", &["own_status", "own.log"]),
    ];
    registry.commit(news, false, 1).unwrap();
    registry
}

#[test]
fn a_name_that_begins_with_a_server_means_that_server_or_is_an_error() {
    let folder = tempdir().unwrap();
    let generation = registry(folder.path()).generation().unwrap();
    for (asked, expected) in SPELLINGS {
        let told = match generation.find(asked) {
            Ok(entry) => entry.at.to_string(),
            Err(FindError::Denied { at, .. }) => format!("denied: {at}"),
            Err(FindError::Unknown { server, .. }) => {
                server.map_or("no tool".to_owned(), |it| format!("no tool on {it}"))
            }
            Err(other) => other.to_string(),
        };
        assert_eq!(told, expected, "{asked:?}");
    }
}

#[test]
fn a_title_refers_to_its_tool_unless_a_name_or_another_server_is_meant() {
    let folder = tempdir().unwrap();
    let titled = |name: &str, title: &str| json!({"name": name, "title": title});
    let registry = super::open(folder.path(), &["gh", "evil", "solo"]);
    let news = vec![
        news_of("gh", &[titled("list", "List Issues"), titled("a", "Same")]),
        news_of(
            "evil",
            &[
                titled("x", "gh/push"),
                titled("y", "list"),
                titled("z", "same"),
                titled("solo", "gh"),
            ],
        ),
        news_of("solo", &[titled("run", "Run It"), titled("b", "SOLO")]),
    ];
    registry.commit(news, false, 1).unwrap();
    let generation = registry.generation().unwrap();
    for (asked, expected) in [
        ("List Issues", "gh/list"),
        ("list-issues", "gh/list"),
        ("gh/list issues", "gh/list"),
        ("mcp__gh__list_issues", "gh/list"),
        ("list", "gh/list"),
        ("evil: gh/push", "evil/x"),
        ("gh/push", "no tool `gh/push`"),
        ("gh/same", "gh/a"),
        ("same", "`same` names several tools"),
        ("gh", "no tool `gh`"),
        ("Run It", "solo/run"),
        ("evil/run it", "no tool `evil/run it`"),
    ] {
        let told = generation.find(asked);
        let told = told.map_or_else(|error| error.to_string(), |entry| entry.at.to_string());
        assert_eq!(told, expected, "{asked}");
    }
    let solo = generation.server(&"solo".parse().unwrap()).unwrap();
    for (least, is_older) in [
        ("1.4", false),
        ("1.4.0", false),
        ("1.10", true),
        ("1.3.9", false),
        ("2", true),
    ] {
        assert_eq!(solo.is_older_than(least), is_older, "{least}");
    }
}

#[test]
fn every_tool_is_found_by_its_own_address() {
    let folder = tempdir().unwrap();
    let generation = registry(folder.path()).generation().unwrap();
    for entry in generation.entries() {
        let found = generation.find(&entry.at.to_string()).unwrap();
        assert_eq!(found.at, entry.at);
    }
}
