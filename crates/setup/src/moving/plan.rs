//! What is to become of the clients' files.

use std::path::{Path, PathBuf};

use clients::{Backup, Change, Client, Found, Journal, Run, Scope};

use super::{Difference, Discovery, Own, Received, difference};

/// Our name in clients' files.
const NAME: &str = "proxy";

/// What is to become of the files of one client.
#[derive(Debug)]
pub struct ClientPlan {
    /// Which client.
    pub client: &'static Client,
    /// Its files, those of which something changes.
    changes: Vec<(Change, Scope, Option<&'static str>)>,
    /// Names of entries that go out, as the client has them.
    pub removed: Vec<String>,
    /// Names of entries that are switched off there: they stay, for they cost the client nothing.
    pub kept_off: Vec<String>,
    /// Why the client cannot be given our entry.
    pub failed: Option<String>,
    /// Its entry is there, and new.
    pub is_given: bool,
}

/// Plans our entry for every client that was found, and takes out those entries whose servers
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
            failed: None,
            is_given: false,
        };
        if let Some(main) = &installed.main {
            plan.give(main, own, &has_program);
        }
        if plan.failed.is_none() {
            plan.take_out(received, &is_taken_out);
        }
        plan.changes.retain(|(change, ..)| change.is_needed());
        plans.push(plan);
    }
    plans
}

impl ClientPlan {
    fn give(&mut self, main: &Found, own: &Own, has_program: impl Fn(&str) -> bool) {
        let entry = self.client.entry(&own.program.to_string_lossy(), &own.args);
        let given = Change::of_file(main).and_then(|mut change| {
            change.add(main, NAME, &entry)?;
            Ok(change)
        });
        match given {
            Ok(change) => {
                self.is_given = change.is_needed();
                let program = main.program().filter(|program| has_program(program));
                self.changes.push((change, main.scope(), program));
            }
            Err(error) => self.failed = Some(error.to_string()),
        }
    }

    fn take_out(&mut self, received: &[Received], is_taken_out: impl Fn(&Received) -> bool) {
        for server in received.iter().filter(|it| is_taken_out(it)) {
            for entry in &server.taken.entries {
                let Some(place) = &entry.place else { continue };
                if place.client.id != self.client.id || !place.is_removable {
                    continue;
                }
                if entry.is_off {
                    self.kept_off.push(entry.name.clone());
                    continue;
                }
                let known = self
                    .changes
                    .iter_mut()
                    .find(|(change, ..)| change.path == place.file);
                let removed = match known {
                    Some((change, ..)) => change.remove(place, &entry.name),
                    None => Change::of_place(place).and_then(|mut change| {
                        let removed = change.remove(place, &entry.name)?;
                        self.changes.push((change, place.scope, None));
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
        self.changes
            .iter()
            .map(|(change, ..)| change.path.as_path())
    }

    /// What is to change in them.
    pub fn differences(&self) -> Vec<Difference> {
        let one = |change: &Change| {
            difference(change.path.clone(), change.before.as_deref(), &change.after)
        };
        self.changes
            .iter()
            .map(|(change, ..)| one(change))
            .collect()
    }

    /// Makes the changes. Where the client has a program of its own for its file, that makes
    /// them. Answers where the copies lie.
    pub fn apply(&self, journal: &mut Journal, run: &mut Run<'_>) -> Result<Vec<PathBuf>, String> {
        let aside = journal.backup_folder();
        let mut copies = Vec::new();
        for (change, scope, program) in &self.changes {
            let backup = match scope {
                Scope::Project => Backup::Into(&aside),
                _ => Backup::Beside,
            };
            let applied = match program {
                Some(program) => journal.apply_by(program, change, backup, run),
                None => journal.apply(change, backup),
            };
            let copy = applied.map_err(|error| format!("{}: {error}", change.path.display()))?;
            copies.extend(copy);
        }
        Ok(copies)
    }
}
