//! Recipes that need only Node.js and uv, checked against the servers themselves: six of them in
//! every run, all of them by `just recipes`.

use std::{io::Write as _, path::Path};

use journeys::{
    house::Fake,
    real_recipes::{Starters, startable},
};

use recipes::Recipe;

use crate::house;

/// The recipes of every run: from npm and from `PyPI`, including some that install a browser by
/// default.
const ALWAYS: &str = "chrome-devtools,duckduckgo,fetch,playwright,puppeteer,selenium";
/// The number of servers that are configured at a time.
const AT_ONCE: usize = 3;

#[tokio::test]
#[cfg_attr(offline, ignore = "calls real programs")]
async fn servers_start_as_their_recipes_say() {
    let starters = Starters::ready(Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap());
    let all = startable();
    let names = std::env::var("PROXY_TESTS_RECIPES");
    let names = names.as_deref().unwrap_or(ALWAYS);
    let is_meant = |name: &str| names == "all" || names.split(',').any(|it| it == name);
    let chosen: Vec<&Recipe> = all.into_iter().filter(|it| is_meant(it.name())).collect();
    assert!(!chosen.is_empty(), "no recipe can be started here");
    let mut failed = Vec::new();
    for some in chosen.chunks(AT_ONCE) {
        let house = house::<Fake>([]);
        for (name, answer) in starters.ask(&house, some).await {
            let told = match answer {
                Ok(0) => Err("no tools".to_owned()),
                Ok(tools) => Ok(format!("{tools} tools")),
                Err(why) => Err(why),
            };
            // `eprintln!` is not shown while the test passes.
            let line = told.as_ref().unwrap_or_else(|why| why);
            writeln!(std::io::stderr(), "recipe {name}: {line}").unwrap();
            failed.extend(told.err().map(|why| format!("{name}: {why}")));
        }
        let list = house.cli(["search", "*", "--json"]).await.stdout;
        for recipe in some {
            let name = recipe.name();
            let example = recipe.example.as_ref();
            let example = example.filter(|_| !failed.iter().any(|it| it.starts_with(name)));
            let tool = example.map(|example| format!("\"{name}/{}\"", example.tool));
            let is_gone = tool.filter(|tool| !list.contains(tool.as_str()));
            failed.extend(is_gone.map(|tool| format!("{name}: its example calls {tool}")));
        }
        house.stops_clean().await;
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}
