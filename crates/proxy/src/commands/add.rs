//! `proxy add`: adds servers to the configuration and asks them for their tools.

use std::{sync::Arc, time::Instant};

use config::edit::describe_stored;
use gateway::{Gateway, policy::ClientPolicy};
use registry::Query;
use setup::{
    add::{self, AddArguments},
    advise_typed,
};
use tool::ServerName;

mod answers;
mod args;
mod listed;

use self::answers::{Prepared, by_answers};
pub(crate) use self::args::AddArgs;
use super::{edit, import, recipes, reindex, secret};
use crate::{
    cli::global::Global,
    event_loop::run_async,
    exit::{Exit, refuse},
    logging::start_log,
    report::{self, print_reindex},
};

impl AddArgs {
    pub(crate) fn run(self, global: &Global) -> anyhow::Result<Exit> {
        if self.list {
            let words = self.words();
            return if self.registry {
                recipes::listed::search(global, &words.join(" "), self.from.as_deref())
            } else {
                Ok(recipes::print_recipes(global, &words))
            };
        }
        if self.import || self.name.as_deref().is_some_and(import::holds_servers) {
            return self.import(global);
        }
        if self.dry_run || self.everywhere {
            return Err(refuse(
                "`--dry-run` and `--everywhere` are for servers of files and clients",
            ));
        }
        let is_disabled = self.disabled;
        let (name, server, remarks) = prepare(self)?;
        let added = edit::change_with(
            global,
            |document| {
                let rules = document.list_rules_of(name.as_str());
                let secrets = document.add_server(&name, &server, || secret::names(global))?;
                Ok((rules, secrets))
            },
            |(_, secrets), _, write| secret::keep_with(global, secrets, write),
        )?;
        let (rules, secrets) = added.value;
        report::say(&format!("added `{name}` to {}", added.path.display()));
        if let Some(stored) = describe_stored(&secrets) {
            report::say(&stored);
        }
        for rule in rules {
            report::say(&format!("note: {rule} already names `{name}`"));
        }
        for remark in remarks {
            report::say(&format!("note: {remark}"));
        }
        if is_disabled {
            report::say(&format!(
                "it is disabled; to enable it: proxy servers enable {name}"
            ));
            return Ok(Exit::Success);
        }
        run_async(ask(global, &name))?
    }

    /// The address of a server that is added by its address.
    fn url(&self) -> anyhow::Result<Option<String>> {
        match self.values.as_slice() {
            [] => Ok(None),
            [url] => Ok(Some(url.clone())),
            [_, other, ..] => Err(refuse(format!(
                "`{other}` is too much\nhint: write the command of a server after `--`: proxy add NAME -- npx -y PACKAGE"
            ))),
        }
    }

    fn words(&self) -> Vec<String> {
        self.name.iter().chain(&self.values).cloned().collect()
    }

    /// Adds the servers of files and clients, as they are there.
    fn import(self, global: &Global) -> anyhow::Result<Exit> {
        let (sources, dry_run, everywhere) = (self.words(), self.dry_run, self.everywhere);
        let of_one_server = Self {
            name: None,
            values: Vec::new(),
            import: false,
            dry_run: false,
            everywhere: false,
            ..self
        };
        if of_one_server != Self::default() {
            return Err(refuse(
                "with files and clients, only `--dry-run` and `--everywhere` have an effect",
            ));
        }
        import::run(global, &sources, (dry_run, everywhere))
    }
}

/// Returns the server as it is to be written, with remarks for the user.
fn prepare(given: AddArgs) -> anyhow::Result<Prepared> {
    let wanted = AddArguments {
        name: given.name.clone(),
        url: given.url()?,
        command: given.command.clone(),
        env: given.env.clone(),
        headers: given.header.clone(),
        cwd: given.cwd.clone(),
    };
    let listed = given
        .name
        .as_deref()
        .and_then(|it| it.strip_prefix("registry:"));
    let (name, mut server, remarks) = match (listed, wanted.name_alone()) {
        (Some(name), _) => listed::prepare(name, &given)?,
        (None, Some(name)) => by_recipe(name, &given)?,
        (None, None) => read(&wanted, &given)?,
    };
    server.category = given.category.or(server.category);
    server.tags.extend(given.tags);
    server.is_per_client |= given.per_client;
    server.is_disabled = given.disabled;
    Ok((name, server, remarks))
}

fn read(wanted: &AddArguments, given: &AddArgs) -> anyhow::Result<Prepared> {
    if let Some(set) = given.set.first() {
        return Err(refuse(format!(
            "`{set}` is not a value for a recipe, and this server has none\nhint: write `--env NAME=VALUE`"
        )));
    }
    let (name, mut server) = add::read(wanted).map_err(refuse)?;
    let alias = given.alias.as_ref().map(|alias| add::read_name(alias));
    let remarks = advise_typed(&mut server);
    let name = alias.transpose().map_err(refuse)?.unwrap_or(name);
    Ok((name, server, remarks))
}

fn by_recipe(name: &str, given: &AddArgs) -> anyhow::Result<Prepared> {
    let recipe = ::recipes::find(name);
    let recipe = recipe.ok_or_else(|| {
        refuse(add::no_start(
            name,
            given.values.first().map(String::as_str),
        ))
    })?;
    let values = given.set.iter().chain(&given.values);
    by_answers(name, (recipe, recipe.name()), values, given)
}

/// Asks the new server for its tools and shows what a search finds of them.
async fn ask(global: &Global, name: &ServerName) -> anyhow::Result<Exit> {
    start_log("error");
    let gateway = Gateway::new(global.load()?.gateway)?;
    let asked = ask_and_show(&gateway, global, name).await;
    gateway.stop().await;
    asked
}

async fn ask_and_show(
    gateway: &Arc<Gateway>,
    global: &Global,
    name: &ServerName,
) -> anyhow::Result<Exit> {
    let began = Instant::now();
    let lines = reindex::survey(gateway, vec![name.clone()], global, true).await?;
    let exit = print_reindex(&lines, began.elapsed().as_secs_f64(), global.json);
    if exit != Exit::Success {
        report::say(&format!(
            "hint: `proxy logs {name}` prints its stderr; correct its table in the configuration, or: \
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
    let answer = gateway.catalog.search(query, None).await?;
    let text = gateway::search_text(&gateway.catalog, &answer, &ClientPolicy::default()).await?;
    report::print_data(&format!("\nproxy search --server {name} -n 5 '*'\n{text}"));
    Ok(exit)
}
