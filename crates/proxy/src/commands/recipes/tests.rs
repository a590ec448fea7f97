//! The printed recipes.

use insta::assert_snapshot;

use super::*;

fn whole(name: &str) -> String {
    render_whole(recipes::find(name).unwrap())
}

#[test]
fn a_list_says_what_each_gives_and_takes() {
    let some = [
        "time",
        "filesystem",
        "tavily",
        "notion",
        "puppeteer",
        "docker",
    ];
    let some = some.map(|name| recipes::find(name).unwrap());
    assert_snapshot!(render_list(&some), @"
    time        pypi    the time now, and between time zones
    filesystem  npm     reads and writes files below the folders you name  needs DIR
    tavily      npm     web search made for models                         needs TAVILY_API_KEY
    notion      remote  pages and databases of Notion                      needs a login
    puppeteer   npm     drives Chrome (archived)                           no longer maintained: use playwright
    docker      pypi    containers, images and volumes of Docker           needs a running Docker
    ");
}

#[test]
fn one_recipe_is_shown_whole() {
    assert_snapshot!(whole("sqlite"), @r#"
    sqlite: reads and writes one SQLite file
      about     databases: sql
      for       query, insert, create table, list tables
      package   mcp-server-sqlite (pypi)
      choose    FILE: the database, a file that may not exist yet
      needs     uv
      pinned    mcp<2: it asks for no version of mcp, and does not start with 2 (2026-11-22)
      notes     Reads and writes one SQLite file. SQL errors come as success with text: look at the answer. No longer maintained.
      example   read_query {"query":"SELECT name FROM sqlite_master"}
      checked   2026-11-22: 2025.4.25 has 6 tools

    [servers.sqlite]
    command = "uvx"
    args = ["--with", "mcp<2", "mcp-server-sqlite", "--db-path", "{FILE}"]
    "#);
    assert_snapshot!(whole("github"), @r#"
    github: repositories, issues, pull requests and actions of GitHub
      also      gh, githubcopilot
      about     source-control: code, issues, pull-requests
      for       create issue, open pull request, review, merge, search code, push file
      takes     a login in a browser (OAuth), or a token
      variable  optional GITHUB_PERSONAL_ACCESS_TOKEN: secret, fine-grained or classic token; from GitHub settings, Developer settings, Personal access tokens
      notes     Repositories, issues, pull requests, actions. Narrow it by URL: /mcp/readonly, /mcp/x/TOOLSET, /mcp/x/TOOLSET/readonly. No dynamic client registration: without a listed client use the token header.
      or        docker run -i --rm -e GITHUB_PERSONAL_ACCESS_TOKEN ghcr.io/github/github-mcp-server (official image, offline from the hosted service)
      checked   not by us; according to github/github-mcp-server:docs/remote-server.md (2026-11-22)

    [servers.github]
    url = "https://api.githubcopilot.com/mcp/"
    headers = { Authorization = "Bearer ${GITHUB_PERSONAL_ACCESS_TOKEN}" }
    "#);
}

#[test]
fn json_has_every_key_for_every_recipe() {
    let first = to_json(&recipes::all()[0]);
    let keys = |value: &Value| {
        value
            .as_object()
            .unwrap()
            .keys()
            .cloned()
            .collect::<Vec<_>>()
    };
    for recipe in recipes::all() {
        assert_eq!(keys(&to_json(recipe)), keys(&first), "{}", recipe.name());
        assert!(
            !render_whole(recipe).contains("\n  variable  :"),
            "{}",
            recipe.name()
        );
    }
}
