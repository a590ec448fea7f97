//! The registry folder as its users see it: a catalog, a generation, a commit.

use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::{ArcSwap, ArcSwapOption};
use tool::{ServerName, Tool};

use crate::catalog::{CATALOG, Catalog, Records};
use crate::commit::Commit;
use crate::disk::{Disk, Stamp};
use crate::generation::Generation;
use crate::limits::LOADS_MAX;
use crate::meaning::{self, LazyEncoder, Work};
use crate::shelf::{Gate, Shelf};
use crate::snapshot::{News, Snapshot};
use crate::{Planned, index};

#[derive(Debug, thiserror::Error)]
pub enum RegistryError {
    /// The configuration is at fault; nothing was read or written.
    #[error("server `{server}`: {message}")]
    Glob { server: ServerName, message: String },
    /// Nothing was committed: the state on disk is the one before.
    #[error("registry folder: {0}")]
    Write(#[from] io::Error),
    /// Neither an index on disk nor one in memory could be made.
    #[error("search index: {0}")]
    Index(#[from] index::IndexError),
}

/// How a registry is opened.
#[derive(Debug, Default)]
pub struct Options {
    /// The tools of the built-in server `proxy`. They are found and searched like any other, but
    /// stand in no catalog and no file of ours.
    pub built_in: Vec<Tool>,
    /// Whether requests are also understood by what they mean.
    pub meaning: bool,
}

/// A registry folder. Handles are cheap to copy, and several processes may have one folder open:
/// each sees what another committed at its next question.
#[derive(Debug, Clone)]
pub struct Registry(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    disk: Disk,
    shelving: ArcSwap<Shelving>,
    built_in: Vec<Tool>,
    encoder: LazyEncoder,
    seen: ArcSwapOption<Seen>,
    /// Held while a generation is loaded, so that it is loaded once.
    generation: Mutex<Option<(Arc<Seen>, Arc<Generation>)>>,
}

/// What the configuration says, ready for use.
#[derive(Debug)]
struct Shelving {
    shelf: Shelf,
    gates: Vec<Gate>,
}

/// Of the catalog and of the file of vectors.
type Stamps = (Stamp, Stamp);

/// The catalog file as of one stamp, under one configuration.
#[derive(Debug)]
struct Seen {
    stamp: Stamps,
    shelving: Arc<Shelving>,
    records: Arc<Records>,
    catalog: Arc<Catalog>,
}

impl Registry {
    /// Opens a folder, or makes it. Only the small catalog file is read; what is missing or
    /// damaged reads as empty, so the one error is a glob that does not parse.
    pub fn open(folder: &Path, shelf: Shelf) -> Result<Self, RegistryError> {
        Self::open_with(folder, shelf, Options::default())
    }

    /// Like [`Registry::open`], with more to say.
    pub fn open_with(folder: &Path, shelf: Shelf, options: Options) -> Result<Self, RegistryError> {
        let Options { built_in, meaning } = options;
        let inner = Inner {
            disk: Disk::new(folder),
            shelving: ArcSwap::from_pointee(Shelving::new(shelf)?),
            built_in,
            encoder: LazyEncoder::new(meaning),
            seen: ArcSwapOption::empty(),
            generation: Mutex::default(),
        };
        inner.look();
        Ok(Self(Arc::new(inner)))
    }

    /// Goes on with another configuration, from the next question on. A glob that does not parse
    /// leaves everything as it was.
    pub fn reshelve(&self, new: Shelf) -> Result<(), RegistryError> {
        self.0.shelving.store(Arc::new(Shelving::new(new)?));
        Ok(())
    }

    /// What is there by the catalog file alone, read again when another process replaced it.
    pub fn catalog(&self) -> Arc<Catalog> {
        Arc::clone(&self.0.look().catalog)
    }

    /// What a search sees. Blocks while snapshots and index are loaded: at the first call and
    /// after each commit. An index that does not fit is rebuilt without a word.
    pub fn generation(&self) -> Result<Arc<Generation>, RegistryError> {
        let seen = self.0.look();
        let mut held = self
            .0
            .generation
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some((of, generation)) = &*held
            && of.is_same(&seen)
        {
            return Ok(Arc::clone(generation));
        }
        let (of, generation) = self.0.load_newest()?;
        *held = Some((of, Arc::clone(&generation)));
        Ok(generation)
    }

    /// The generation, if it is loaded and still the newest: never blocks longer than one look at
    /// a file's dates.
    pub fn loaded(&self) -> Option<Arc<Generation>> {
        let seen = self.0.look();
        let held = self.0.generation.try_lock().ok()?;
        let (of, generation) = held.as_ref()?;
        of.is_same(&seen).then(|| Arc::clone(generation))
    }

    /// Whether this very list is what we have, fresh: then there is nothing to commit.
    pub fn holds(&self, snapshot: &Snapshot) -> bool {
        let seen = self.0.look();
        let record = seen.records.servers.get(snapshot.server.as_str());
        let file_name = snapshot.clone().in_order().own_file_name();
        record.is_some_and(|it| it.stale.is_none() && it.snapshot.as_ref() == Some(&file_name))
    }

    /// Takes in what is new, durably, and answers what it changed; one entry a piece of news.
    ///
    /// Waits for another writer's turn. The state on disk is the old one until the catalog is
    /// renamed and the new one from then on, whenever the process may die. `keep_others` keeps
    /// servers that are not in the news; else they are forgotten. `now` is in unix seconds and
    /// stands for failed surveys only: a snapshot knows its own time.
    pub fn commit(
        &self,
        news: Vec<News>,
        keep_others: bool,
        now: u64,
    ) -> Result<Vec<Planned>, RegistryError> {
        let inner = &*self.0;
        let turn = inner.disk.take_turn()?;
        let shelving = inner.shelving.load_full();
        let commit = Commit::new(&inner.disk, &shelving.shelf, keep_others);
        let done = commit.run(news, now)?;
        if let Err(error) = inner.reindex(&done.records) {
            tracing::warn!(%error, "index not updated, the next search rebuilds it");
        }
        done.sweep(&inner.disk);
        drop(turn);
        Ok(done.planned)
    }

    /// Gives a vector to every tool that has none: some 30 ms of a core each, once for as long as
    /// the tool stays as it is. `threads` work at one time; `go_on` hears after each tool how many
    /// of how many are done and may end it. Answers how many were made.
    ///
    /// They are written every few seconds' work, and found by the next search; a process that
    /// dies loses the rest. Does nothing where meaning is off, or over [`MEANINGS_MAX`] tools.
    ///
    /// [`MEANINGS_MAX`]: crate::MEANINGS_MAX
    pub fn give_meaning(
        &self,
        threads: usize,
        go_on: &(dyn Fn(usize, usize) -> bool + Sync),
    ) -> Result<usize, RegistryError> {
        let generation = self.generation()?;
        if !generation.wants_meaning() {
            return Ok(0);
        }
        let Some(encoder) = self.0.encoder.get() else {
            return Ok(0);
        };
        let work = Work::new(&generation, threads, go_on);
        work.run(encoder, |made| {
            let _turn = self.0.disk.take_turn()?;
            let mut kept = meaning::Kept::read(&self.0.disk);
            kept.join(made);
            kept.retain(|key| work.is_used(key));
            Ok(self.0.disk.write(meaning::FILE, &kept.to_bytes())?)
        })
    }

    #[cfg(test)]
    pub(crate) fn disk(&self) -> &Disk {
        &self.0.disk
    }
}

impl Shelving {
    fn new(shelf: Shelf) -> Result<Self, RegistryError> {
        let gates = shelf.servers.iter().map(Gate::new);
        let gates = gates.collect::<Result<_, _>>()?;
        Ok(Self { shelf, gates })
    }
}

impl Seen {
    /// Whether what was made from the one holds for the other.
    fn is_same(&self, other: &Self) -> bool {
        self.stamp == other.stamp && Arc::ptr_eq(&self.shelving, &other.shelving)
    }
}

impl Inner {
    fn look(&self) -> Arc<Seen> {
        let stamp = self.stamps();
        let shelving = self.shelving.load_full();
        if let Some(seen) = self.seen.load_full()
            && seen.stamp == stamp
            && Arc::ptr_eq(&seen.shelving, &shelving)
        {
            return seen;
        }
        let records = Arc::new(Records::read(&self.disk));
        let catalog = Arc::new(Catalog::new(&shelving.shelf, &shelving.gates, &records));
        let seen = Arc::new(Seen {
            stamp,
            shelving,
            records,
            catalog,
        });
        self.seen.store(Some(Arc::clone(&seen)));
        seen
    }

    fn stamps(&self) -> Stamps {
        let vectors = if self.encoder.is_on() {
            self.disk.stamp(meaning::FILE)
        } else {
            Stamp::Absent
        };
        (self.disk.stamp(CATALOG), vectors)
    }

    /// Loads until no other process committed meanwhile: it may have swept a snapshot that was
    /// about to be read. A process that commits without end is given up on.
    fn load_newest(&self) -> Result<(Arc<Seen>, Arc<Generation>), RegistryError> {
        let mut seen = self.look();
        let mut generation = self.load(&seen)?;
        for _ in 1..LOADS_MAX {
            let now = self.look();
            if now.is_same(&seen) {
                break;
            }
            generation = self.load(&now)?;
            seen = now;
        }
        Ok((seen, Arc::new(generation)))
    }

    fn load(&self, seen: &Seen) -> Result<Generation, RegistryError> {
        let stock = self.stock(&seen.shelving, &seen.records);
        let index = index::Index::for_readers(&self.disk, &stock)?;
        let kept = if self.encoder.is_on() {
            meaning::Kept::read(&self.disk)
        } else {
            meaning::Kept::default()
        };
        Ok(Generation::new(stock, index, &kept, self.encoder))
    }

    fn reindex(&self, records: &Records) -> Result<(), RegistryError> {
        let stock = self.stock(&self.shelving.load(), records);
        self.disk.step()?;
        index::update(&self.disk, &stock)?;
        self.disk.step()?;
        Ok(())
    }

    fn stock(&self, shelving: &Shelving, records: &Records) -> crate::generation::Stock {
        crate::generation::Stock::read(
            &self.disk,
            &shelving.shelf,
            &shelving.gates,
            records,
            &self.built_in,
        )
    }
}
