//! The changes of a run. Each change is recorded before the next one is made, so that an
//! interrupted run can be undone too.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};

use crate::{
    Change,
    change::ChangedEntry,
    command::{Run, commands},
    disk::{delete, digest, read, write},
};

/// The changes of one run.
#[derive(Debug, Serialize, Deserialize)]
pub struct Journal {
    /// The time of the run, which is part of the names of its backups.
    pub stamp: String,
    /// Its changes, the oldest first.
    pub(crate) changes: Vec<Record>,
    /// Secrets that the run stored.
    #[serde(default)]
    secrets: Vec<KeptSecret>,
    #[serde(skip)]
    path: PathBuf,
}

/// A secret that a run stored: it is removed when the run is undone.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct KeptSecret {
    /// The name of the secret.
    pub name: String,
    /// The digest of the value: a secret that has changed since is not removed.
    digest: String,
}

/// One file that was changed.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Record {
    pub(crate) file: PathBuf,
    /// The digest of the file; `None` if there was no file.
    pub(crate) before: Option<String>,
    pub(crate) after: String,
    /// A copy of the original file.
    pub(crate) backup: Option<PathBuf>,
    /// True for our own configuration, which one command at a time changes.
    #[serde(default)]
    pub(crate) is_ours: bool,
    pub(crate) added: Vec<ChangedEntry>,
    pub(crate) removed: Vec<ChangedEntry>,
    /// The client's own program, if that changed the file.
    #[serde(default)]
    pub(crate) program: Option<String>,
    /// Folders that were created for it, the outermost first.
    #[serde(default)]
    pub(crate) folders: Vec<PathBuf>,
}

impl From<&Change> for Record {
    fn from(change: &Change) -> Self {
        Self {
            file: change.file.path.clone(),
            added: change.added.clone(),
            removed: change.removed.clone(),
            ..Self::default()
        }
    }
}

/// The place for the copy of a file before it is changed.
#[derive(Debug, Clone, Copy)]
pub enum Backup<'a> {
    /// Next to the file, under its name and the stamp of the run.
    Beside,
    /// Into a folder of ours: a copy next to a file that a team shares could be committed to the
    /// team's repository.
    Into(&'a Path),
}

const ENDING: &str = ".init.json";

impl Journal {
    /// Begins the journal of a run in a folder of ours. Stamps sort by time.
    pub fn begin(folder: &Path, stamp: &str) -> io::Result<Self> {
        let path = folder.join(format!("{stamp}{ENDING}"));
        let journal = Self {
            stamp: stamp.to_owned(),
            changes: Vec::new(),
            secrets: Vec::new(),
            path,
        };
        files::own_folder(folder)?;
        files::write_new_durable(&journal.path, &journal.to_bytes()?)?;
        Ok(journal)
    }

    /// Reads the journals of all runs that were not completely undone, the newest first.
    pub fn read_all(folder: &Path) -> io::Result<Vec<Self>> {
        let files = match fs::read_dir(folder) {
            Ok(files) => files,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let paths = files.flatten().map(|file| file.path());
        let is_journal = |path: &PathBuf| path.to_string_lossy().ends_with(ENDING);
        let mut paths: Vec<PathBuf> = paths.filter(is_journal).collect();
        paths.sort_unstable_by(|a, b| b.cmp(a));
        let read = |path: PathBuf| {
            let journal = serde_json::from_slice(&fs::read(&path)?).map_err(io::Error::other)?;
            Ok(Self { path, ..journal })
        };
        paths.into_iter().map(read).collect()
    }

    /// Ends the run. An empty journal is removed.
    pub fn finish(self) -> io::Result<()> {
        if self.is_empty() {
            delete(&self.path)
        } else {
            Ok(())
        }
    }

    /// Records the names of secrets before they are stored, each with the digest of its value.
    pub fn note_secrets<'a>(
        &mut self,
        secrets: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> io::Result<()> {
        for (name, value) in secrets {
            let digest = self.digest_secret(name, value);
            let name = name.to_owned();
            self.secrets.push(KeptSecret { name, digest });
        }
        self.save()
    }

    /// Returns the recorded secrets.
    pub fn secrets(&self) -> &[KeptSecret] {
        &self.secrets
    }

    /// Returns true if a secret still has the value that the run stored.
    pub fn is_unchanged(&self, secret: &KeptSecret, value: &str) -> bool {
        self.digest_secret(&secret.name, value) == secret.digest
    }

    /// Removes these secrets from the journal; the journal is removed with its last record.
    pub fn forget_secrets(&mut self, is_forgotten: impl Fn(&KeptSecret) -> bool) -> io::Result<()> {
        self.secrets.retain(|secret| !is_forgotten(secret));
        self.save_rest()
    }

    fn digest_secret(&self, name: &str, value: &str) -> String {
        digest(format!("{}\n{name}\n{value}", self.stamp).as_bytes())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.changes.is_empty() && self.secrets.is_empty()
    }

    /// Returns the path of the journal.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the recorded files, the oldest change first.
    pub fn files(&self) -> impl Iterator<Item = &Path> {
        self.changes.iter().map(|change| change.file.as_path())
    }

    /// Writes a client's file, after copying it and recording the change. A file that changed since it
    /// was read is not written. Returns the path of the copy.
    pub fn apply(&mut self, change: &Change, backup: Backup<'_>) -> io::Result<Option<PathBuf>> {
        let record = Record::from(change);
        let before = change.before.as_deref();
        let (path, after) = (&change.file.path, change.after.as_bytes());
        let mut write = || write(path, before.map(str::as_bytes), after);
        self.write(record, before, &change.after, backup, &mut write)
    }

    /// Does the same for our own configuration. `write` replaces it.
    pub fn replace(
        &mut self,
        path: &Path,
        before: Option<&str>,
        after: &str,
        backup: Backup<'_>,
        write: &mut dyn FnMut() -> io::Result<()>,
    ) -> io::Result<Option<PathBuf>> {
        let record = Record {
            file: path.to_owned(),
            is_ours: true,
            ..Record::default()
        };
        self.write(record, before, after, backup, write)
    }

    fn write(
        &mut self,
        mut record: Record,
        before: Option<&str>,
        after: &str,
        backup: Backup<'_>,
        write: &mut dyn FnMut() -> io::Result<()>,
    ) -> io::Result<Option<PathBuf>> {
        let backup = self.note(&mut record, before, after, backup)?;
        self.changes.push(record);
        self.save()?;
        match write() {
            Ok(()) => Ok(backup),
            Err(error) => {
                self.changes.pop();
                if let Some(backup) = backup {
                    delete(&backup)?;
                }
                self.save()?;
                Err(error)
            }
        }
    }

    /// Makes the change with the client's own program, after copying the file and recording the change.
    /// Fails if the file does not have the intended content afterwards.
    pub fn apply_by(
        &mut self,
        program: &str,
        change: &Change,
        backup: Backup<'_>,
        run: &mut Run<'_>,
    ) -> io::Result<Option<PathBuf>> {
        let mut record = Record {
            program: Some(program.to_owned()),
            ..Record::from(change)
        };
        let backup = self.note(&mut record, change.before.as_deref(), &change.after, backup)?;
        self.changes.push(record);
        self.save()?;
        let calls = commands(program, &change.removed, &change.added);
        let run = calls.iter().try_for_each(run).map_err(io::Error::other);
        let found = read(&change.file.path)?.unwrap_or_default();
        if let Some(record) = self.changes.last_mut() {
            record.after = digest(&found);
        }
        self.save()?;
        run?;
        if change.is_done_in(&String::from_utf8_lossy(&found)) {
            return Ok(backup);
        }
        Err(io::Error::other(format!(
            "`{program}` succeeded, but did not change its file as expected"
        )))
    }

    /// Records the state of the file before the change, and copies the file.
    fn note(
        &self,
        record: &mut Record,
        before: Option<&str>,
        after: &str,
        backup: Backup<'_>,
    ) -> io::Result<Option<PathBuf>> {
        let found = read(&record.file)?;
        if found.as_deref() != before.map(str::as_bytes) {
            return Err(io::Error::other("another program changed it; try again"));
        }
        if let Some(bytes) = &found {
            let place = self.backup_place(&record.file, backup)?;
            files::write_new_durable(&place, bytes)?;
            record.before = Some(digest(bytes));
            record.backup = Some(place);
        }
        let folders = record
            .file
            .ancestors()
            .skip(1)
            .take_while(|folder| !folder.exists());
        record.folders = folders.map(Path::to_owned).collect();
        record.folders.reverse();
        record.after = digest(after.as_bytes());
        Ok(record.backup.clone())
    }

    fn backup_place(&self, file: &Path, backup: Backup<'_>) -> io::Result<PathBuf> {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        let (folder, name) = match backup {
            Backup::Beside => (file.parent().unwrap_or(Path::new("")), name.into_owned()),
            Backup::Into(folder) => {
                files::own_folder(folder)?;
                let count = self.changes.len();
                (folder, format!("{count}-{}", name.trim_start_matches('.')))
            }
        };
        Ok(folder.join(format!("{name}.proxy-backup-{}", self.stamp)))
    }

    /// Returns the folder for copies that must not be next to their files.
    pub fn backup_folder(&self) -> PathBuf {
        self.path.with_file_name("backups")
    }

    pub(crate) fn save(&self) -> io::Result<()> {
        files::write_durable(&self.path, &self.to_bytes()?)
    }

    /// Removes a change that was undone from the journal.
    pub(crate) fn forget(&mut self, index: usize) -> io::Result<()> {
        self.changes.remove(index);
        self.save_rest()
    }

    fn save_rest(&self) -> io::Result<()> {
        if self.is_empty() {
            delete(&self.path)
        } else {
            self.save()
        }
    }

    fn to_bytes(&self) -> io::Result<Vec<u8>> {
        serde_json::to_vec_pretty(self).map_err(io::Error::other)
    }
}
