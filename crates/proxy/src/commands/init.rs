//! `proxy init`: moves the servers of clients into the configuration, and undoes it.

use std::{io, path::PathBuf};

use anyhow::bail;
use clap::Args;
use config::{Environment, SCHEMA, SCHEMA_FILE, edit::Document};
use serde_json::{Value, json};
use setup::moving::{
    Backup, ClientPlan, Discovery, Home, ImportOptions, ImportedServer, Journal, Own, Received,
    Receiving, UndoOutcome, Undone, difference, discover, get, plan_clients, receive,
};

use super::{
    client_program::{is_on_path, run_program},
    edit, import,
    moving::{
        ask_servers, doubt_program, find_home, find_own, journal_folder, list_remarks, names_of,
        render_servers, say_all, to_json,
    },
    secret::{self, Forgotten},
};
use crate::{
    cli::global::Global,
    exit::{Exit, refuse},
    report,
    table::render_table,
};

/// Instructions for a model whose client does not show it the other tools.
const CLAUDE_MD: &str = "Lines for CLAUDE.md or AGENTS.md, if your model does not search by itself:

    Other tools are behind `proxy`. Find one with `search_tools` (say what you want to do), look at it with
    `describe_tool`, and call it with `execute_dynamic_tool`.";

const EXAMPLES: &str = "\
Examples:
  proxy init --dry-run                 show every change, and make none
  proxy init --yes                     ask nothing
  proxy init --client cursor --keep    only Cursor, whose entries stay
  proxy init --undo                    restore the files

Exit codes: 0 done, 3 something was left unchanged, with the reason,
            2 nothing was done";

/// Import your clients' servers; give each client one entry
///
/// Finds MCP clients, adds their servers to the configuration, asks these servers for their tools,
/// adds the entry of proxy to each client's file, and removes the entries that it replaces. A server
/// that does not answer keeps its entries. Every file is copied first. On a terminal it shows the
/// changes and asks first.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is an option of the command line"
)]
pub(crate) struct InitArgs {
    /// Change only this client; may be repeated
    #[arg(long = "client", value_name = "CLIENT")]
    clients: Vec<String>,
    /// Keep the clients' own entries beside the new one
    #[arg(long)]
    keep: bool,
    /// Also import servers from the files of this project, and remove them there: other people may
    /// share these files. The new entry is never added to them
    #[arg(long)]
    project: bool,
    /// Import the servers of a project for all folders [default: for clients that work in its folder]
    #[arg(long)]
    everywhere: bool,
    /// Show every change, and make none
    #[arg(long)]
    dry_run: bool,
    /// Ask nothing
    #[arg(long, short)]
    yes: bool,
    /// Undo the last run: restore the files it changed
    #[arg(long, conflicts_with_all = ["clients", "keep", "project", "everywhere", "dry_run"])]
    undo: bool,
}

impl InitArgs {
    pub(crate) fn run(self, global: &Global) -> anyhow::Result<Exit> {
        let env = Environment::of_process();
        if self.undo {
            undo(global, &env)
        } else {
            init(global, &env, &self)
        }
    }
}

fn init(global: &Global, env: &Environment, init: &InitArgs) -> anyhow::Result<Exit> {
    let ids = init.clients.iter().map(|name| match get(name) {
        Some(client) => Ok(client.id.clone()),
        None => Err(refuse(import::describe_unknown(name))),
    });
    let ids: Vec<String> = ids.collect::<Result<_, _>>()?;
    let (home, own) = (find_home(env)?, find_own(global, env)?);
    let mut document = edit::read(global)?;
    document.name_schema();
    let mut discovery = discover(&home, &ids, &own, init.project);
    if discovery.installed.is_empty() {
        return Err(refuse(
            "no MCP client is installed here\nhint: `proxy add` adds a server; docs/guide.md has the entry for a client",
        ));
    }
    let asks = !init.yes && !init.dry_run && !global.json && report::can_ask();
    if asks && ids.is_empty() && discovery.installed.len() > 1 {
        let chosen = choose_clients(&discovery)?;
        if chosen.is_empty() {
            return Err(Exit::Nothing.with("nothing was changed"));
        }
        if chosen.len() < discovery.installed.len() {
            discovery = discover(&home, &chosen, &own, init.project);
        }
    }
    let taken = std::mem::take(&mut discovery.taken);
    let stored = secret::list_values(global);
    let options = ImportOptions {
        is_everywhere: init.everywhere,
        stored: Some(&stored),
    };
    let overrides = global.overrides();
    let receiving = receive(
        &mut document,
        taken.clone(),
        &home,
        &overrides,
        env,
        options,
    );
    let mut moving = Moving {
        global,
        init,
        home,
        own,
        document,
        taken,
        discovery,
        receiving,
    };
    moving.go(env)
}

/// The ids of the clients that the person wants to move; none: no change is wanted.
fn choose_clients(discovery: &Discovery) -> anyhow::Result<Vec<String>> {
    let installed = &discovery.installed;
    let names = installed.iter().map(|it| (it.client.name.as_str(), true));
    let chosen = dialoguer::MultiSelect::new()
        .with_prompt("Clients to change (space toggles, enter continues)")
        .items_checked(names)
        .interact_opt()?;
    let chosen = chosen.unwrap_or_default().into_iter();
    Ok(chosen.map(|at| installed[at].client.id.clone()).collect())
}

struct Moving<'a> {
    global: &'a Global,
    init: &'a InitArgs,
    home: Home,
    own: Own,
    /// The configuration as it is shown to the person, with the servers of `taken`.
    document: Document,
    taken: Vec<ImportedServer>,
    discovery: Discovery,
    receiving: Receiving,
}

impl Moving<'_> {
    fn go(&mut self, env: &Environment) -> anyhow::Result<Exit> {
        if !self.global.json {
            self.show();
        }
        if self.init.dry_run {
            report::print_data(&self.render_differences());
            if let Some(schema) = self.new_schema() {
                let schema = schema.display();
                report::say(&format!(
                    "{schema}: new file, the schema of the configuration for editors"
                ));
            }
            self.plan(|_| true).iter().for_each(say_by_hand);
            return Ok(Exit::Success);
        }
        if !self.init.yes && !self.global.json && report::can_ask() && !self.ask() {
            return Err(Exit::Nothing.with("nothing was changed"));
        }
        let stamp = jiff::Timestamp::now().strftime("%Y%m%d-%H%M%S%3f");
        let mut journal = Journal::begin(&journal_folder(self.global, env)?, &stamp.to_string())?;
        self.receiving = match self.write(env, &mut journal) {
            Ok(receiving) => receiving,
            Err(error) => {
                journal.finish()?;
                return Err(error);
            }
        };
        let asked = ask_servers(self.global, names_of(&self.receiving.received, |_| true))?;
        let failed = asked.lines.iter();
        let failed = failed.filter(|it| it.failure.is_some() && it.tools == 0);
        let failed: Vec<&str> = failed.map(|it| it.server.as_str()).collect();
        if !self.global.json {
            asked.print();
        }
        let plans = self.plan(|it| !failed.contains(&it.name.as_str()));
        let outcomes = plans.iter().map(|plan| match &plan.failed {
            Some(why) => Err(why.clone()),
            None => plan.apply(&mut journal, &mut run_program),
        });
        let outcomes: Vec<_> = outcomes.collect();
        journal.finish()?;
        Ok(self.report(&plans, &outcomes, &failed))
    }

    /// Adds the servers to the configuration as it is now.
    fn write(&self, env: &Environment, journal: &mut Journal) -> anyhow::Result<Receiving> {
        let overrides = self.global.overrides();
        let receive = |document: &mut Document| {
            document.name_schema();
            let stored = secret::list_values(self.global);
            let options = ImportOptions {
                is_everywhere: self.init.everywhere,
                stored: Some(&stored),
            };
            let taken = self.taken.clone();
            Ok(receive(
                document, taken, &self.home, &overrides, env, options,
            ))
        };
        let changed = edit::change_with(self.global, receive, |receiving, document, write| {
            let secrets = receiving.secrets.iter();
            journal.note_secrets(secrets.map(|(name, value)| (name.as_str(), value.expose())))?;
            let (path, before) = (document.path(), document.before());
            let replaced = secret::keep_with(self.global, &receiving.secrets, || {
                let text = document.text();
                let copied = journal.replace(path, before, &text, Backup::Beside, write);
                copied.map(drop)
            });
            // Nothing was written, so none of the secrets was stored.
            replaced.or_else(|error| journal.forget_secrets(|_| true).and(Err(error)))
        })?;
        self.write_schema(journal)?;
        Ok(changed.value)
    }

    /// Returns the path of the schema if it belongs beside a new configuration and is not there.
    fn new_schema(&self) -> Option<PathBuf> {
        let is_new = self.document.before().is_none() && self.document.is_changed();
        let schema = self.document.path().with_file_name(SCHEMA_FILE);
        (is_new && !schema.exists()).then_some(schema)
    }

    /// Writes the schema beside a new configuration.
    fn write_schema(&self, journal: &mut Journal) -> io::Result<()> {
        let Some(schema) = self.new_schema().filter(|_| self.document.path().exists()) else {
            return Ok(());
        };
        let mut write = || files::write_whole(&schema, SCHEMA.as_bytes());
        let written = journal.replace(&schema, None, SCHEMA, Backup::Beside, &mut write);
        written.map(drop)
    }

    fn plan(&self, is_taken_out: impl Fn(&Received) -> bool) -> Vec<ClientPlan> {
        let keep = self.init.keep;
        plan_clients(
            &self.discovery,
            &self.own,
            &self.receiving.received,
            |it| !keep && is_taken_out(it),
            is_on_path,
        )
    }

    fn show(&self) {
        let row = |installed: &setup::moving::Installed| {
            let of = &installed.client.id;
            let has_it = |received: &&Received| {
                let mut places = received.taken.entries.iter().flat_map(|it| &it.place);
                places.any(|place| &place.file.client.id == of)
            };
            let servers = self.receiving.received.iter().filter(has_it).count();
            let file = installed.main.as_ref();
            let file = file.map(|main| main.path.display().to_string());
            [
                installed.client.name.clone(),
                servers.to_string(),
                file.unwrap_or_default(),
            ]
        };
        let rows = self.discovery.installed.iter().map(row).collect();
        report::print_data(&render_table(["client", "servers", "file"], rows));
        if !self.receiving.received.is_empty() {
            report::print_data(&format!("\n{}\n", render_servers(&self.receiving.received)));
        }
        let left = [&self.discovery.left[..], &self.receiving.left[..]].concat();
        say_all(&list_remarks(&self.receiving.received, &left));
        say_all(&self.discovery.mistakes);
        if !self.discovery.of_projects.is_empty() {
            let count = self.discovery.of_projects.len();
            let (entries, stay) = match count {
                1 => ("entry", "stays"),
                _ => ("entries", "stay"),
            };
            report::say(&format!(
                "{count} {entries} in files of this project {stay}, because other people may share them; `--project` imports them"
            ));
        }
        if let Some(doubt) = doubt_program(&self.own.program) {
            report::say(&doubt);
        }
    }

    fn render_differences(&self) -> String {
        let document = &self.document;
        let ours = difference(document.path(), document.before(), &document.text());
        let plans = self.plan(|_| true);
        let theirs = plans.iter().flat_map(ClientPlan::differences);
        std::iter::once(ours).chain(theirs).collect()
    }

    fn ask(&self) -> bool {
        loop {
            let answer = report::ask("Change these files? [y]es, [n]o, [d]ifferences:");
            match answer.as_str() {
                "y" | "yes" => return true,
                "d" | "differences" => report::print_data(&self.render_differences()),
                _ => return false,
            }
        }
    }

    fn report(
        &self,
        plans: &[ClientPlan],
        outcomes: &[Result<Vec<PathBuf>, String>],
        failed: &[&str],
    ) -> Exit {
        let is_whole = failed.is_empty() && outcomes.iter().all(Result::is_ok);
        let exit = Exit::of_change(is_whole);
        if self.global.json {
            self.print_json(plans, outcomes, failed);
            return exit;
        }
        for (plan, outcome) in plans.iter().zip(outcomes) {
            let name = &plan.client.name;
            if !plan.kept_off.is_empty() {
                let off = plan.kept_off.join(", ");
                report::say(&format!("{name}: keeps its disabled entries: {off}"));
            }
            say_by_hand(plan);
            match outcome {
                Err(why) => report::say(&format!("{name}: not changed: {why}")),
                Ok(_) if plan.files().next().is_none() => {
                    if plan.by_hand.is_empty() {
                        report::say(&format!("{name}: nothing to change"));
                    }
                }
                Ok(_) => {
                    let given = if plan.is_given { "added" } else { "was there" };
                    let out = match plan.removed.as_slice() {
                        [] => String::new(),
                        names => format!(", {} removed", names.join(", ")),
                    };
                    report::say(&format!(
                        "{name}: entry {given}{out}; it takes effect {}",
                        plan.client.effect
                    ));
                }
            }
        }
        if !failed.is_empty() {
            let names = failed.join(", ");
            report::say(&format!(
                "{names}: no answer, so the clients keep their entries; run `proxy doctor` for the reason, then `proxy init` again"
            ));
        }
        let copies = match outcomes.iter().flatten().flatten().count() {
            1 => "1 file was copied beside itself".to_owned(),
            copies => format!("{copies} files were copied beside themselves"),
        };
        report::say(&format!("{copies}; to undo: proxy init --undo"));
        if plans.iter().any(|plan| plan.client.id == "claude-code") {
            report::say(&format!("\n{CLAUDE_MD}"));
        }
        exit
    }

    fn print_json(
        &self,
        plans: &[ClientPlan],
        outcomes: &[Result<Vec<PathBuf>, String>],
        failed: &[&str],
    ) {
        let left = [&self.discovery.left[..], &self.receiving.left[..]].concat();
        let (servers, left) = to_json(&self.receiving.received, &left);
        let client = |(plan, outcome): (&ClientPlan, &Result<Vec<PathBuf>, String>)| {
            json!({
                "client": plan.client.id,
                "files": plan.files().collect::<Vec<_>>(),
                "removed": plan.removed,
                "kept_off": plan.kept_off,
                "by_hand": plan.by_hand,
                "copies": outcome.as_ref().ok(),
                "error": outcome.as_ref().err(),
                "effect": plan.client.effect,
            })
        };
        let clients: Value = plans.iter().zip(outcomes).map(client).collect();
        report::print_json(&json!({
            "configuration": self.document.path(),
            "servers": servers,
            "left_out": left,
            "failed": failed,
            "clients": clients,
            "mistakes": self.discovery.mistakes,
        }));
    }
}

/// Prints the edits that the owner of a YAML file has to make.
fn say_by_hand(plan: &ClientPlan) {
    if !plan.by_hand.is_empty() {
        let name = &plan.client.name;
        report::say(&format!("{name}: edit its YAML file yourself:"));
        say_all(&plan.by_hand);
    }
}

/// Undoes the last run. If nothing of it can be restored, because everything in it was changed since,
/// the run before it is undone too.
fn undo(global: &Global, env: &Environment) -> anyhow::Result<Exit> {
    let is_left = |it: &Undone| matches!(it.outcome, UndoOutcome::Left(..));
    let mut undone = Vec::new();
    let mut forgotten = Forgotten::default();
    let mut is_back = false;
    for mut journal in Journal::read_all(&journal_folder(global, env)?)? {
        let files = journal.undo(&mut run_program)?;
        let secrets = secret::forget_kept(global, &mut journal)?;
        is_back = !files.iter().all(is_left) || !secrets.gone.is_empty();
        undone.extend(files);
        forgotten.gone.extend(secrets.gone);
        forgotten.left.extend(secrets.left);
        if is_back {
            break;
        }
    }
    if undone.is_empty() && forgotten.left.is_empty() && !is_back {
        bail!("there is no run to undo\nhint: runs for another configuration need `--config FILE`");
    }
    if global.json {
        print_undone_json(&undone, &forgotten);
    } else {
        print_undone(&undone, &forgotten);
    }
    Ok(Exit::of_change(!undone.iter().any(is_left)))
}

fn print_undone(undone: &[Undone], forgotten: &Forgotten) {
    for it in undone {
        let file = it.file.display();
        report::say(&match &it.outcome {
            UndoOutcome::Whole => format!("{file}: restored"),
            UndoOutcome::Gone => format!("{file}: deleted"),
            UndoOutcome::Entries => {
                format!(
                    "{file}: changed since; our entry was removed and the former entries were added"
                )
            }
            UndoOutcome::Left(why, copy) => {
                let copy = copy
                    .as_ref()
                    .map(|copy| format!("; its former content: {}", copy.display()));
                format!("{file}: not restored: {why}{}", copy.unwrap_or_default())
            }
        });
    }
    if !forgotten.gone.is_empty() {
        report::say(&format!("secrets removed: {}", forgotten.gone.join(", ")));
    }
    for (name, why) in &forgotten.left {
        report::say(&format!(
            "secret `{name}` stays: {why}; remove it with: proxy secret rm {name}"
        ));
    }
}

fn print_undone_json(undone: &[Undone], forgotten: &Forgotten) {
    let one = |it: &Undone| json!({"file": it.file, "is_whole": matches!(it.outcome, UndoOutcome::Whole | UndoOutcome::Gone)});
    let files: Value = undone.iter().map(one).collect();
    let left = forgotten.left.iter().map(|(name, _)| name);
    report::print_json(&json!({
        "undone": files,
        "secrets_removed": forgotten.gone,
        "secrets_left": left.collect::<Vec<_>>(),
    }));
}
