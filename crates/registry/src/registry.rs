//! The registry folder as its users see it: a catalog, a generation, a commit.

use std::{
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use arc_swap::{ArcSwap, ArcSwapOption};
use parking_lot::Mutex;
use tool::{Digest, ServerName, ToolRef};

use crate::{
    Planned, RegistryError,
    allow_deny::AllowDeny,
    catalog::{CATALOG, Records, ServerCatalog},
    commit::Commit,
    disk::{Disk, Stamp},
    embedding::{self, LazyEncoder, Work},
    entry::Entry,
    generation::Generation,
    history::{self, HistoryEntry},
    idle_rules::KnownNames,
    index,
    limits::{LOADS_MAX, NOTE_WAIT},
    loaded_servers::{LoadedServer, LoadedServers},
    loaded_tools::{BuiltIn, KnownServer, LoadedTools},
    pin_book::{PINS, PinBook},
    pins::Pin,
    requests::{self, RequestBook, StoredRequests},
    server_rules::{Rules, ServerRules},
    snapshot::{News, Snapshot, SnapshotContent},
};

/// The choices with which a registry is opened.
#[derive(Debug, Default)]
pub struct Options {
    /// The tools of the built-in server `proxy`. They are found and searched like any other, but
    /// stand in no catalog and no file of ours.
    pub built_in: Vec<BuiltIn>,
    /// Tools are also found by their embeddings.
    pub embeds: bool,
    /// Tools of known servers are also found by the example requests that are part of the program.
    pub has_requests: bool,
}

/// A registry folder. Handles are cheap to copy, and several processes may have one folder open:
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
    /// The last look at the files, and how often we had written before it.
    glance: Mutex<Option<(Instant, u64)>>,
    /// Held while a generation is loaded, so that it is loaded once.
    generation: Mutex<Option<(Arc<Seen>, Arc<Generation>)>>,
    /// The tools of single servers, until a generation is loaded.
    parts: LoadedServers<Seen>,
}

/// The configuration's rules, ready for use.
#[derive(Debug)]
struct AppliedRules {
    rules: Rules,
    filters: Vec<AllowDeny>,
}

/// The shortest interval at which consecutive calls check for commits of other processes.
const LOOK_EVERY: Duration = Duration::from_millis(1);

/// The stamps of the catalog, the pins, the requests and the file of vectors.
type Stamps = [Stamp; 4];

/// The catalog file as of one stamp, under one configuration.
#[derive(Debug)]
struct Seen {
    stamp: Stamps,
    applied: Arc<AppliedRules>,
    records: Arc<Records>,
    book: Arc<PinBook>,
    catalog: Arc<ServerCatalog>,
}

impl Registry {
    /// Opens a folder, or creates it. Only the small catalog file is read; a missing or damaged file
    /// reads as empty, so the only error is a glob that does not parse.
    pub fn open(folder: &Path, rules: Rules) -> Result<Self, RegistryError> {
        Self::open_with(folder, rules, Options::default())
    }

    /// Like [`Registry::open`], with more options.
    pub fn open_with(folder: &Path, rules: Rules, options: Options) -> Result<Self, RegistryError> {
        let Options {
            built_in,
            embeds,
            has_requests,
        } = options;
        let inner = Inner {
            disk: Disk::new(folder),
            applied: ArcSwap::from_pointee(AppliedRules::new(rules)?),
            built_in,
            encoder: LazyEncoder::new(embeds),
            has_requests,
            seen: ArcSwapOption::empty(),
            glance: Mutex::default(),
            generation: Mutex::default(),
            parts: LoadedServers::default(),
        };
        inner.look();
        Ok(Self(Arc::new(inner)))
    }

    /// Applies another configuration, from the next query on. If a glob does not parse, nothing is
    /// changed.
    pub fn apply_rules(&self, new: Rules) -> Result<(), RegistryError> {
        self.0.applied.store(Arc::new(AppliedRules::new(new)?));
        Ok(())
    }

    /// The catalog, by its file alone, read again when another process replaced it.
    pub fn catalog(&self) -> Arc<ServerCatalog> {
        Arc::clone(&self.0.look().catalog)
    }

    /// The names that rules can mean, as of the last survey of each server.
    pub fn known_names(&self) -> KnownNames {
        let seen = self.0.look();
        KnownNames::new(&seen.applied.rules, &seen.records)
    }

    /// Returns every configured server with its prompts; none if they were not listed yet. Reads the
    /// snapshots of servers that have any.
    pub fn known_prompts(&self) -> Vec<(ServerName, Option<Vec<String>>)> {
        let seen = self.0.look();
        let list = |server: &ServerName| {
            let record = seen.records.servers.get(server.as_str())?;
            if record.offer.as_ref()?.prompts.count == 0 {
                return Some(Vec::new());
            }
            let kept = record.read_snapshot(&self.0.disk)?;
            let prompts = kept.offer.prompts.iter();
            Some(prompts.map(|prompt| prompt.id().to_owned()).collect())
        };
        let rules = &seen.applied.rules;
        let enabled = rules
            .servers
            .iter()
            .map(|it| (it.name.clone(), list(&it.name)));
        let disabled = rules.disabled.iter().map(|name| (name.clone(), None));
        enabled.chain(disabled).collect()
    }

    /// The generation that a search sees. Blocks while snapshots and index are loaded: at the first
    /// call and after each commit. An index that does not fit is rebuilt without a word.
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

    /// Returns the generation, if it is loaded and still the newest. Blocks no longer than one check
    /// of file dates. Commits of other processes are visible after at most one millisecond.
    pub fn loaded(&self) -> Option<Arc<Generation>> {
        let seen = self.0.look_lately();
        let held = self.0.generation.try_lock()?;
        let (of, generation) = held.as_ref()?;
        of.is_same(&seen).then(|| Arc::clone(generation))
    }

    /// The tool whose name is written as we write it, `server/tool`, if it is loaded and still the
    /// newest. Like [`Registry::loaded`] it never blocks for long.
    pub fn named(&self, asked: &str) -> Option<Arc<Entry>> {
        if let Some(generation) = self.loaded() {
            return generation.named(asked).cloned();
        }
        let seen = self.0.look_lately();
        self.0.parts.find(asked, |of| of.is_same(&seen))
    }

    /// Loads only the server of a canonical name, and finds the tool. Blocks while one snapshot is
    /// read. `None` for every other name, and for tools that the configuration or a pin blocks.
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
        let part = LoadedServer::new(tools)?;
        let entry = part.find(tool);
        self.0.parts.insert(seen, part);
        entry
    }

    /// A server as its snapshot shows it, where its tools are loaded. Does not wait for a generation that is
    /// being loaded.
    pub fn known_server(&self, name: &ServerName) -> Option<Arc<KnownServer>> {
        self.0.parts.server(name).or_else(|| {
            let held = self.0.generation.try_lock()?;
            let (_, generation) = held.as_ref()?;
            generation.server(name).cloned()
        })
    }

    /// Loads the encoder, if it is enabled and not loaded: a search that finds no generation loaded does
    /// this in parallel. Blocks some 10 ms.
    pub fn load_encoder(&self) {
        let _ = self.0.encoder.get();
    }

    /// This very list is the one we have, fresh: then there is nothing to commit.
    pub fn holds(&self, snapshot: &Snapshot) -> bool {
        let seen = self.0.look();
        let record = seen.records.servers.get(snapshot.server.as_str());
        let file_name = snapshot.clone().in_order().own_file_name();
        record.is_some_and(|it| it.stale.is_none() && it.snapshot.as_ref() == Some(&file_name))
    }

    /// Commits news durably, and returns the changes; one entry for each piece of news.
    ///
    /// Waits for other writers. The state on disk is the old one until the catalog is renamed and the
    /// new one from then on, whenever the process may die. `keep_others` keeps servers that are not in
    /// the news; otherwise they are removed. `now` is in unix seconds and is used for failed surveys
    /// only: a snapshot has its own time.
    pub fn commit(
        &self,
        news: Vec<News>,
        keep_others: bool,
        now: u64,
    ) -> Result<Vec<Planned>, RegistryError> {
        let inner = &*self.0;
        let turn = inner.disk.take_turn()?;
        let applied = inner.applied.load_full();
        let commit = Commit::new(&inner.disk, &applied.rules, keep_others);
        let done = commit.run(news, now)?;
        if let Err(error) = inner.reindex(&done.records, &done.book) {
            tracing::warn!(%error, "index not updated, the next search rebuilds it");
        }
        done.sweep(&inner.disk);
        drop(turn);
        history::note(&inner.disk, &done.planned, now);
        Ok(done.planned)
    }

    /// Removes the marks of changed tools whose definition was read: each with the time of its
    /// [`Entry::changed`], so that a tool which changed again meanwhile keeps its mark. Waits for other
    /// writers, but for `NOTE_WAIT` at most: a description waits for it.
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

    /// Computes a vector for every tool that has none: some 4 ms of a core each, once until the tool
    /// changes. Uses `threads` threads; `go_on` is called after some tools with the number done and the
    /// total, and may stop the work. Returns the number of vectors computed.
    ///
    /// They are written every few seconds of work, and used by the next search; a process that dies
    /// loses the rest. Does nothing if embeddings are off, or over [`EMBEDDED_TOOLS_MAX`] tools.
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
            generation.embeddings(),
            threads,
            go_on,
        );
        work.run(&encoder, |made| {
            let _turn = self.0.disk.take_turn()?;
            let mut kept = embedding::StoredVectors::read(&self.0.disk);
            kept.join(made);
            kept.retain(|key| work.is_used(key));
            Ok(self.0.disk.write(embedding::FILE, &kept.to_bytes())?)
        })
    }

    /// Stores example requests of tools, and removes those of definitions and servers that no
    /// longer exist. A search
    /// matches them, once [`Registry::embed_tools`] has run also by their meaning.
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

    /// The treatment of the unaccepted definitions of a server; `None` for one that is not configured.
    pub(crate) fn pin_of(&self, server: &str) -> Option<Pin> {
        let applied = self.0.applied.load();
        let mut rules = applied.rules.servers.iter();
        rules.find(|it| it.name.as_str() == server).map(|it| it.pin)
    }

    /// Returns the configured servers whose snapshot is missing or does not match its name, with the
    /// reason. Reads all snapshots.
    pub fn list_damaged(&self) -> Vec<(ServerName, String)> {
        let seen = self.0.look();
        let rules = seen.applied.rules.servers.iter();
        let damaged = rules.filter_map(|it| {
            let file_name = seen
                .records
                .servers
                .get(it.name.as_str())?
                .snapshot
                .as_deref()?;
            let why = SnapshotContent::prove(&self.0.disk, file_name).err()?;
            Some((it.name.clone(), why))
        });
        damaged.collect()
    }

    pub(crate) fn book(&self) -> Arc<PinBook> {
        Arc::clone(&self.0.look().book)
    }

    /// The changes that surveys found, the oldest first, of one server or of all; of some megabytes.
    pub fn list_history(&self, server: Option<&str>) -> Vec<HistoryEntry> {
        history::list(&self.0.disk, server)
    }

    pub(crate) fn disk(&self) -> &Disk {
        &self.0.disk
    }
}

impl AppliedRules {
    fn new(rules: Rules) -> Result<Self, RegistryError> {
        let filters = rules.servers.iter().map(ServerRules::compile);
        let filters = filters.collect::<Result<_, _>>()?;
        Ok(Self { rules, filters })
    }
}

impl Seen {
    /// A thing made from the one holds for the other.
    fn is_same(&self, other: &Self) -> bool {
        self.stamp == other.stamp && Arc::ptr_eq(&self.applied, &other.applied)
    }
}

impl Inner {
    fn look(&self) -> Arc<Seen> {
        let stamp = self.stamps();
        let applied = self.applied.load_full();
        if let Some(seen) = self.seen.load_full()
            && seen.stamp == stamp
            && Arc::ptr_eq(&seen.applied, &applied)
        {
            return seen;
        }
        let (records, book) = Records::read_with_pins(&self.disk);
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

    /// Returns the state read a moment ago, or reads it again if this process or the configuration
    /// changed it since: of many calls in a row, few check the disk.
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

    /// Loads until no other process committed meanwhile: it may have removed a snapshot that was about
    /// to be read. Stops retrying if another process commits continuously.
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
            let kept = scope.spawn(|| {
                if self.encoder.is_on() {
                    embedding::StoredVectors::read(&self.disk)
                } else {
                    embedding::StoredVectors::default()
                }
            });
            let tools = self.tools(&seen.applied, &seen.records, &seen.book);
            (tools, kept.join().unwrap_or_default())
        });
        let index = index::Index::for_readers(&self.disk, &tools)?;
        Ok(Generation::new(tools, index, &kept, self.encoder))
    }

    fn reindex(&self, records: &Records, book: &PinBook) -> Result<(), RegistryError> {
        let tools = self.tools(&self.applied.load(), records, book);
        self.disk.step()?;
        index::update(&self.disk, &tools)?;
        self.disk.step()?;
        Ok(())
    }

    fn tools(&self, applied: &AppliedRules, records: &Records, book: &PinBook) -> LoadedTools {
        let requests = RequestBook::new(self.has_requests, StoredRequests::read(&self.disk));
        LoadedTools::read(
            &self.disk,
            &applied.rules,
            &applied.filters,
            (records, book, &requests),
            &self.built_in,
        )
    }
}
