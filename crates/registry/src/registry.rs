//! The registry folder and its public interface: a catalog, a generation, a commit.

use std::{
    io,
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use arc_swap::{ArcSwap, ArcSwapOption};
use parking_lot::Mutex;
use tool::{Digest, ServerName, ToolRef};

use crate::{
    Planned, RegistryError,
    catalog::{CATALOG, Records, ServerCatalog},
    commit::Commit,
    disk::{Disk, Stamp},
    embedding::{self, LazyEncoder, Work},
    entry::Entry,
    generation::Generation,
    history::{self, HistoryEntry},
    index,
    known_names::KnownNames,
    limits::{LOADS_MAX, NOTE_WAIT},
    loaded_servers::LoadedServers,
    loaded_tools::{BuiltIn, KnownServer, LoadedTools},
    pin_book::{PINS, PinBook},
    requests::{self, RequestBook, StoredRequests},
    seen::{AppliedRules, Seen, Stamps},
    server_rules::{Rules, ServerRules},
    snapshot::{News, Snapshot, SnapshotContent},
};

/// The options of [`Registry::open_with`].
#[derive(Debug, Default)]
pub struct Options {
    /// The tools of the built-in server `proxy`. They are found and searched like other tools, but
    /// are not stored in the catalog or any other file.
    pub built_in: Vec<BuiltIn>,
    /// True if tools are also found by their embeddings.
    pub embeds: bool,
    /// True if tools of known servers are also found by the example requests embedded in the
    /// program.
    pub has_requests: bool,
}

/// A registry folder. Handles are cheap to clone. Several processes may have the same folder open;
/// each sees the commits of the others at its next query.
#[derive(Debug, Clone)]
pub struct Registry(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    disk: Disk,
    applied: ArcSwap<AppliedRules>,
    built_in: Vec<BuiltIn>,
    encoder: LazyEncoder,
    has_requests: bool,
    seen: ArcSwapOption<Seen>,
    /// The time of the last check of the files, and the number of own writes before it.
    glance: Mutex<Option<(Instant, u64)>>,
    /// Held while a generation is loaded, so that concurrent calls load it once.
    generation: Mutex<Option<(Arc<Seen>, Arc<Generation>)>>,
    /// The tools of individual servers, until a generation is loaded.
    parts: LoadedServers,
}

/// The minimum interval at which consecutive calls check for commits of other processes.
const LOOK_EVERY: Duration = Duration::from_millis(1);

impl Registry {
    /// Opens or creates a folder. Reads only the small catalog file; a missing or damaged file
    /// reads as empty. Fails only if a glob is invalid.
    pub fn open(folder: &Path, rules: Rules) -> Result<Self, RegistryError> {
        Self::open_with(folder, rules, Options::default())
    }

    /// Like [`Registry::open`], with more options.
    pub fn open_with(folder: &Path, rules: Rules, options: Options) -> Result<Self, RegistryError> {
        let inner = Inner {
            disk: Disk::new(folder),
            applied: ArcSwap::from_pointee(AppliedRules::new(rules)?),
            built_in: options.built_in,
            encoder: LazyEncoder::new(options.embeds),
            has_requests: options.has_requests,
            seen: ArcSwapOption::empty(),
            glance: Mutex::default(),
            generation: Mutex::default(),
            parts: LoadedServers::default(),
        };
        inner.look();
        Ok(Self(Arc::new(inner)))
    }

    /// Applies another configuration from the next query on. Changes nothing if a glob is invalid.
    pub fn apply_rules(&self, new: Rules) -> Result<(), RegistryError> {
        self.0.applied.store(Arc::new(AppliedRules::new(new)?));
        Ok(())
    }

    /// Returns the catalog, and reads its file again if another process replaced it.
    pub fn catalog(&self) -> Arc<ServerCatalog> {
        Arc::clone(&self.0.look().catalog)
    }

    /// Returns the names that rules can match, as of the last survey of each server. Reads the snapshots
    /// of servers whose arguments the configuration sets.
    pub fn known_names(&self) -> KnownNames {
        let seen = self.0.look();
        KnownNames::read(&seen.applied.rules, &seen.records, &self.0.disk)
    }

    /// Returns the generation that a search uses. Blocks while snapshots and index are loaded: at
    /// the first call and after each commit. Rebuilds an index that does not match.
    pub fn generation(&self) -> Result<Arc<Generation>, RegistryError> {
        let seen = self.0.look();
        let mut held = self.0.generation.lock();
        if let Some((of, generation)) = &*held
            && of.is_same(&seen)
        {
            return Ok(Arc::clone(generation));
        }
        let (of, generation) = self.0.load_newest()?;
        *held = Some((of, Arc::clone(&generation)));
        self.0.parts.clear();
        Ok(generation)
    }

    /// Returns the generation if it is loaded and current. Blocks no longer than one check of file
    /// dates. Commits of other processes are visible after at most one millisecond.
    pub fn loaded(&self) -> Option<Arc<Generation>> {
        self.0.loaded_as(&self.0.look_lately())
    }

    /// Returns the tool with the canonical name `server/tool`, if it is loaded and current. Like
    /// [`Registry::loaded`], never blocks for long.
    pub fn named(&self, asked: &str) -> Option<Arc<Entry>> {
        let seen = self.0.look_lately();
        if let Some(generation) = self.0.loaded_as(&seen) {
            return generation.named(asked).cloned();
        }
        self.0.parts.find(asked, &seen)
    }

    /// Loads only the server of a canonical name, and returns the tool. Blocks while one snapshot
    /// is read. Returns `None` for every other name, and for tools that the configuration or a pin
    /// blocks.
    pub fn load_named(&self, asked: &str) -> Option<Arc<Entry>> {
        let seen = self.0.look();
        let (server, tool) = asked.split_once('/')?;
        let rules = seen.applied.rules.servers.iter();
        let mut rules = rules.zip(&seen.applied.filters);
        let (server_rules, filter) = rules.find(|(it, _)| it.name.as_str() == server)?;
        let record = seen.records.servers.get(server)?;
        if !record.tools.iter().any(|known| known == tool) {
            return None;
        }
        let pins = seen.book.of(server);
        let tools = LoadedTools::read_one(&self.0.disk, (server_rules, filter), record, pins);
        // Another process may have replaced the snapshot meanwhile.
        if !self.0.look().is_same(&seen) {
            return None;
        }
        let entry = tools.find(tool).cloned();
        self.0.parts.insert(server, seen, tools);
        entry
    }

    /// Returns a server according to its snapshot, if its tools are loaded. Does not wait for a
    /// generation that is being loaded.
    pub fn known_server(&self, name: &ServerName) -> Option<Arc<KnownServer>> {
        self.0.parts.server(name).or_else(|| {
            let held = self.0.generation.try_lock()?;
            let (_, generation) = held.as_ref()?;
            generation.server(name).cloned()
        })
    }

    /// Loads the encoder, if it is on and not loaded. A search runs this in parallel to loading the
    /// generation. Blocks for about 10 ms.
    pub fn load_encoder(&self) {
        let _ = self.0.encoder.get();
    }

    /// Returns true if this snapshot is already stored and not stale, so that a commit would change
    /// nothing.
    pub fn holds(&self, snapshot: &Snapshot) -> bool {
        let seen = self.0.look();
        let record = seen.records.servers.get(snapshot.server.as_str());
        let text = snapshot.clone().in_order().to_text();
        let file_name = Snapshot::file_name(&snapshot.server, &text);
        record.is_some_and(|it| it.stale.is_none() && it.snapshot.as_ref() == Some(&file_name))
    }

    /// Commits the results of surveys durably, and returns the changes: one entry per survey.
    ///
    /// Waits for other writers. The commit is atomic: the state on disk changes when the catalog is
    /// renamed, even if the process crashes. With `keep_others`, servers without a survey are kept;
    /// otherwise they are removed. `now` is in Unix seconds and is used for failed surveys only,
    /// since a snapshot contains its own time.
    pub fn commit(
        &self,
        news: Vec<News>,
        keep_others: bool,
        now: u64,
    ) -> Result<Vec<Planned>, RegistryError> {
        let inner = &*self.0;
        let turn = inner.disk.take_turn()?;
        let applied = inner.applied.load_full();
        let mut commit = Commit::new(&inner.disk, &applied.rules, keep_others);
        let planned = commit.run(news, now)?;
        if let Err(error) = inner.reindex(&commit.records, &commit.book) {
            tracing::warn!(%error, "index not updated, the next search rebuilds it");
        }
        commit.sweep();
        drop(turn);
        history::note(&inner.disk, &planned, now);
        Ok(planned)
    }

    /// Removes the marks of changed tools whose definition was read. Each is passed with the time
    /// of its [`Entry::changed`], so that a tool that changed again meanwhile keeps its mark. Waits
    /// at most `NOTE_WAIT` for other writers, because a description waits for this call.
    ///
    /// [`Entry::changed`]: crate::Entry::changed
    pub fn note_read(&self, tools: &[(ToolRef, u64)]) -> Result<(), RegistryError> {
        let disk = &self.0.disk;
        let _turn = disk.take_turn_within(NOTE_WAIT)?;
        let (mut records, mut book) = Records::read_with_pins(disk);
        let mut is_new = false;
        for (at, changed) in tools {
            let record = records.servers.get_mut(at.server.as_str());
            is_new |= record.is_some_and(|record| record.forget_change(&at.tool, *changed));
        }
        if is_new {
            book.write_with(disk, &records)?;
        }
        Ok(())
    }

    /// Computes a vector for every tool that has none, at about 4 ms of one core each. Uses
    /// `threads` threads. Calls `go_on` after some tools with the number done and the total, and
    /// stops if it returns false. Returns the number of vectors computed.
    ///
    /// Vectors are written every few seconds, and the next search uses them; a process that is
    /// killed loses the rest. Does nothing if embeddings are off, or if there are more than
    /// [`EMBEDDED_TOOLS_MAX`] tools.
    ///
    /// [`EMBEDDED_TOOLS_MAX`]: crate::EMBEDDED_TOOLS_MAX
    pub fn embed_tools(
        &self,
        threads: usize,
        go_on: &(dyn Fn(usize, usize) -> bool + Sync),
    ) -> Result<usize, RegistryError> {
        let generation = self.generation()?;
        if generation.unembedded() == 0 {
            return Ok(0);
        }
        let Some(encoder) = self.0.encoder.get() else {
            return Ok(0);
        };
        let work = Work::new(
            generation.visible(),
            generation.servers(),
            &generation.embeddings,
            threads,
            go_on,
        );
        work.run(&encoder, |made| {
            let _turn = self.0.disk.take_turn()?;
            let mut kept = embedding::StoredVectors::read(&self.0.disk);
            kept.join(made);
            kept.0.retain(|key, _| work.used.contains(key));
            Ok(self.0.disk.write(embedding::FILE, &kept.to_bytes())?)
        })
    }

    /// Stores example requests of tools, and removes those of definitions and servers that no
    /// longer exist. A search matches their words, and also their embeddings once
    /// [`Registry::embed_tools`] has run.
    pub fn store_requests(
        &self,
        made: &[(ToolRef, Digest, Vec<String>)],
    ) -> Result<(), RegistryError> {
        let generation = self.generation()?;
        let _turn = self.0.disk.take_turn()?;
        let mut stored = StoredRequests::read(&self.0.disk);
        for (at, digest, requests) in made {
            stored.set(at, digest, requests);
        }
        let is_current = |at: &str, digest: &str| {
            let server = at.split('/').next().unwrap_or_default();
            let is_configured = generation.is_configured(server);
            let entry = generation.named(at);
            is_configured && entry.is_none_or(|it| it.tool.digest().to_string() == digest)
        };
        stored.retain(is_current);
        Ok(self.0.disk.write(requests::FILE, &stored.to_bytes())?)
    }

    /// Returns the rules of a server; `None` if it is not configured or disabled.
    pub(crate) fn rules_of(&self, server: &str) -> Option<ServerRules> {
        self.0.applied.load().rules.find(server).cloned()
    }

    /// Returns the configured servers whose snapshot is missing or does not match its name, with
    /// the reason. Reads all snapshots.
    pub fn list_damaged(&self) -> Vec<(ServerName, String)> {
        let seen = self.0.look();
        let rules = seen.applied.rules.servers.iter();
        let damaged = rules.filter_map(|it| {
            let record = seen.records.servers.get(it.name.as_str())?;
            let why = SnapshotContent::prove(&self.0.disk, record.snapshot.as_deref()?).err()?;
            Some((it.name.clone(), why))
        });
        damaged.collect()
    }

    pub(crate) fn book(&self) -> Arc<PinBook> {
        Arc::clone(&self.0.look().book)
    }

    /// Returns the changes that surveys found, oldest first, of one server or of all: up to some
    /// megabytes.
    pub fn list_history(&self, server: Option<&str>) -> Vec<HistoryEntry> {
        history::list(&self.0.disk, server)
    }

    pub(crate) fn disk(&self) -> &Disk {
        &self.0.disk
    }
}

impl Inner {
    fn look(&self) -> Arc<Seen> {
        let mut stamp = self.stamps();
        let applied = self.applied.load_full();
        if let Some(seen) = self.seen.load_full()
            && seen.stamp == stamp
            && Arc::ptr_eq(&seen.applied, &applied)
        {
            return seen;
        }
        let (records, mut book) = Records::read_with_pins(&self.disk);
        if book.lacks_write() {
            match self.store_completed(stamp, &records, &mut book) {
                Ok(now) => stamp = now,
                Err(error) => tracing::debug!(%error, "completed pins are not stored"),
            }
        }
        let catalog = ServerCatalog::new(&applied.rules, &applied.filters, &records, |name| {
            book.of(name)
        });
        let seen = Arc::new(Seen {
            stamp,
            applied,
            records: Arc::new(records),
            book: Arc::new(book),
            catalog: Arc::new(catalog),
        });
        self.seen.store(Some(Arc::clone(&seen)));
        seen
    }

    /// Stores pins that were read at this stamp and completed from all snapshots, so that the next start
    /// reads no snapshot for them. A later reader does it if another process writes or has written. Returns
    /// the stamp of what was read or written.
    fn store_completed(
        &self,
        stamp: Stamps,
        records: &Records,
        book: &mut PinBook,
    ) -> io::Result<Stamps> {
        let turn = self.disk.try_turn()?;
        if turn.is_none() || self.stamps() != stamp {
            return Ok(stamp);
        }
        book.write(&self.disk, records)?;
        Ok(self.stamps())
    }

    /// Returns the state read within the last [`LOOK_EVERY`], or reads it again if this process or
    /// the configuration changed it since. So only a few of many consecutive calls check the disk.
    fn look_lately(&self) -> Arc<Seen> {
        let writes = self.disk.writes();
        let mut glance = self.glance.lock();
        let is_fresh = |(at, of): (Instant, u64)| of == writes && at.elapsed() < LOOK_EVERY;
        if glance.is_some_and(is_fresh)
            && let Some(seen) = self.seen.load_full()
            && Arc::ptr_eq(&seen.applied, &self.applied.load())
        {
            return seen;
        }
        *glance = Some((Instant::now(), writes));
        drop(glance);
        self.look()
    }

    /// Returns the generation if it is loaded, and of this state.
    fn loaded_as(&self, seen: &Seen) -> Option<Arc<Generation>> {
        let held = self.generation.try_lock()?;
        let (of, generation) = held.as_ref()?;
        of.is_same(seen).then(|| Arc::clone(generation))
    }

    fn stamps(&self) -> Stamps {
        let vectors = if self.encoder.is_on() {
            self.disk.stamp(embedding::FILE)
        } else {
            Stamp::Absent
        };
        let [catalog, pins, requests] =
            [CATALOG, PINS, requests::FILE].map(|file| self.disk.stamp(file));
        [catalog, pins, requests, vectors]
    }

    /// Loads again until no other process committed meanwhile, since a commit may have removed a
    /// snapshot before it was read. Stops retrying if another process commits continuously.
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
        let (tools, kept) = std::thread::scope(|scope| {
            let read = || embedding::StoredVectors::read(&self.disk);
            let kept = scope.spawn(move || self.encoder.is_on().then(read));
            let tools = self.tools(&seen.applied, &seen.records, &seen.book);
            (tools, kept.join().ok().flatten().unwrap_or_default())
        });
        let index = index::Index::for_readers(&self.disk, &tools)?;
        Ok(Generation::new(tools, index, &kept, self.encoder))
    }

    fn reindex(&self, records: &Records, book: &PinBook) -> Result<(), RegistryError> {
        let tools = self.tools(&self.applied.load(), records, book);
        self.disk.step()?;
        index::update(&self.disk, &tools)?;
        Ok(self.disk.step()?)
    }

    fn tools(&self, applied: &AppliedRules, records: &Records, book: &PinBook) -> LoadedTools {
        let requests = RequestBook {
            is_shipped_used: self.has_requests,
            stored: StoredRequests::read(&self.disk),
        };
        LoadedTools::read(
            &self.disk,
            &applied.rules,
            &applied.filters,
            (records, book, &requests),
            &self.built_in,
        )
    }
}
