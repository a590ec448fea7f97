//! `proxy add`: a server comes into the configuration and is asked for its tools.

use std::sync::Arc;

use config::Environment;
use gateway::{Gateway, policy::ClientPolicy};
use registry::Query;
use setup::add::{Given, read};
use tool::ServerName;

use super::{edit, event_loop::run_async, logging::log, reindex};
use crate::{
    cli::{Add, Global},
    exit::Exit,
    report::{self, print_reindex},
};

pub(super) fn add(global: &Global, add: Add) -> anyhow::Result<Exit> {
    let given = Given {
        name: add.name,
        url: add.url,
        command: add.command,
        env: add.env,
        headers: add.header,
        cwd: add.cwd,
    };
    let (name, mut server) = match read(&given) {
        Ok(read) => read,
        Err(error) => {
            report::say(&format!("error: {error}"));
            return Ok(Exit::Usage);
        }
    };
    server.category = add.category.or(server.category);
    server.tags.extend(add.tags);
    server.is_per_client |= add.per_client;
    server.is_disabled = add.disabled;
    let Some(mut document) = edit::open(global) else {
        return Ok(Exit::Usage);
    };
    if let Err(error) = document.add_server(&name, &server) {
        report::say(&format!(
            "error: {error}\nhint: choose another name, or take that one out: proxy remove {name}"
        ));
        return Ok(Exit::Usage);
    }
    if !edit::write(global, &document)? {
        return Ok(Exit::Usage);
    }
    report::say(&format!("added `{name}` to {}", document.path().display()));
    if add.disabled {
        report::say(&format!("it is switched off; on: proxy enable {name}"));
        return Ok(Exit::Success);
    }
    run_async(ask(global, &name))?
}

/// Asks the new server for its tools and shows what a search finds of them.
async fn ask(global: &Global, name: &ServerName) -> anyhow::Result<Exit> {
    log("error");
    let config = config::load(&global.overrides(), &Environment::of_process())?;
    let gateway = Gateway::new(config.gateway)?;
    let asked = ask_and_show(&gateway, global, name).await;
    gateway.stop().await;
    asked
}

async fn ask_and_show(
    gateway: &Arc<Gateway>,
    global: &Global,
    name: &ServerName,
) -> anyhow::Result<Exit> {
    let began = std::time::Instant::now();
    let lines = reindex::survey(gateway, vec![name.clone()], global, true).await?;
    let exit = print_reindex(&lines, began.elapsed().as_secs_f64(), global.json);
    if exit != Exit::Success {
        report::say(&format!(
            "hint: `proxy log {name}` has what it wrote; mend its table in the configuration, or: \
             proxy remove {name}"
        ));
        return Ok(exit);
    }
    if global.json {
        return Ok(exit);
    }
    let query = Query {
        category: Some(name.to_string()),
        ..Query::words("*")
    };
    let answer = gateway.search(query, None).await?;
    let text = gateway
        .search_text(&answer, &ClientPolicy::default())
        .await?;
    report::print_data(&format!("\nproxy search --category {name} '*'\n{text}"));
    Ok(exit)
}
