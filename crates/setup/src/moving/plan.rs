//! The planned changes of the clients' files.

use std::path::{Path, PathBuf};

use clients::{Backup, Change, ClientFile, ClientProgram, EntryScope, Journal, Run};

use super::{Discovery, Own, Received, difference};

/// Our name in clients' files.
const NAME: &str = "proxy";

/// The planned changes of the files of one client.
#[derive(Debug)]
pub struct ClientPlan {
    /// The client.
    pub client: &'static ClientProgram,
    /// Its files that change, each with the program that changes it, if that is one of the client's own.
    changes: Vec<(Change, Option<&'static str>)>,
    /// Names of entries that are removed, as the client has them.
    pub removed: Vec<String>,
    /// Names of entries that are switched off there: they stay, for they cost the client nothing.
    pub kept_off: Vec<String>,
    /// Edits that its owner makes, because the file is YAML: a sentence each.
    pub by_hand: Vec<String>,
    /// The reason why the client cannot be given our entry.
    pub failed: Option<String>,
    /// True if our entry is added.
    pub is_given: bool,
}

/// Plans our entry for every client that was found, and the removal of those entries whose servers
/// `is_taken_out`.
pub fn plan_clients(
    discovery: &Discovery,
    own: &Own,
    received: &[Received],
    is_taken_out: impl Fn(&Received) -> bool,
    has_program: impl Fn(&str) -> bool,
) -> Vec<ClientPlan> {
    let mut plans = Vec::new();
    for installed in &discovery.installed {
        let mut plan = ClientPlan {
            client: installed.client,
            changes: Vec::new(),
            removed: Vec::new(),
            kept_off: Vec::new(),
            by_hand: Vec::new(),
            failed: None,
            is_given: false,
        };
        if let Some(main) = &installed.main {
            plan.add_entry(main, own, &has_program);
        }
        if plan.failed.is_none() {
            plan.remove_entries(received, &is_taken_out);
        }
        plan.changes.retain(|(change, _)| change.is_needed());
        plans.push(plan);
    }
    plans
}

impl ClientPlan {
    fn add_entry(&mut self, main: &ClientFile, own: &Own, has_program: impl Fn(&str) -> bool) {
        let entry = self.client.entry(&own.program.to_string_lossy(), &own.args);
        if main.is_edited_by_hand() {
            let file = main.path.display();
            match main.lines_to_paste(NAME, &entry) {
                Ok(Some(lines)) => self
                    .by_hand
                    .push(format!("merge into {file}:\n\n{lines}\n")),
                Ok(None) => {}
                Err(why) => self.failed = Some(why),
            }
            return;
        }
        let given = Change::begin(main).and_then(|mut change| {
            change.add(NAME, &entry)?;
            Ok(change)
        });
        match given {
            Ok(change) => {
                self.is_given = change.is_needed();
                let program = main.program().filter(|program| has_program(program));
                self.changes.push((change, program));
            }
            Err(error) => self.failed = Some(error.to_string()),
        }
    }

    fn remove_entries(&mut self, received: &[Received], is_taken_out: impl Fn(&Received) -> bool) {
        for server in received.iter().filter(|it| is_taken_out(it)) {
            for entry in &server.taken.entries {
                let Some(place) = &entry.place else { continue };
                if place.file.client.id != self.client.id || !place.is_removable {
                    continue;
                }
                if entry.is_off {
                    self.kept_off.push(entry.name.clone());
                    continue;
                }
                if place.file.is_edited_by_hand() {
                    let (name, file) = (&entry.name, place.file.path.display());
                    self.by_hand.push(format!("remove `{name}` from {file}"));
                    continue;
                }
                let mut changes = self.changes.iter_mut();
                let known = changes.find(|(change, _)| change.file.path == place.file.path);
                let removed = match known {
                    Some((change, _)) => change.remove(place, &entry.name),
                    None => Change::begin(&place.file).and_then(|mut change| {
                        let removed = change.remove(place, &entry.name)?;
                        self.changes.push((change, None));
                        Ok(removed)
                    }),
                };
                match removed {
                    Ok(true) => self.removed.push(entry.name.clone()),
                    Ok(false) => {}
                    Err(error) => self.failed = Some(error.to_string()),
                }
            }
        }
    }

    /// The files that are to change.
    pub fn files(&self) -> impl Iterator<Item = &Path> {
        let changes = self.changes.iter();
        changes.map(|(change, _)| change.file.path.as_path())
    }

    /// The differences that the changes make.
    pub fn differences(&self) -> impl Iterator<Item = String> {
        let changes = self.changes.iter().map(|(change, _)| change);
        changes.map(|it| difference(&it.file.path, it.before.as_deref(), &it.after))
    }

    /// Makes the changes, with the client's own program for its file if it has one. Returns the
    /// paths of the copies.
    pub fn apply(&self, journal: &mut Journal, run: &mut Run<'_>) -> Result<Vec<PathBuf>, String> {
        let aside = journal.backup_folder();
        let mut copies = Vec::new();
        for (change, program) in &self.changes {
            let backup = match change.file.scope() {
                EntryScope::Project => Backup::Into(&aside),
                _ => Backup::Beside,
            };
            let applied = match program {
                Some(program) => journal.apply_by(program, change, backup, run),
                None => journal.apply(change, backup),
            };
            let copy =
                applied.map_err(|error| format!("{}: {error}", change.file.path.display()))?;
            copies.extend(copy);
        }
        Ok(copies)
    }
}
