//! The Tantivy index of the visible tools: derived from the snapshots, and rebuilt if it does not
//! match.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use tantivy::postings::Postings as _;
use tantivy::schema::{
    FAST, Field, INDEXED, IndexRecordOption, STRING, Schema, TextFieldIndexing, TextOptions,
};
use tantivy::{
    DocSet as _, IndexReader, IndexSettings, IndexWriter, InvertedIndexReader, ReloadPolicy,
    SegmentReader, TERMINATED, TantivyDocument, Term,
};
use tool::{Digest, ServerName};

use crate::disk::Disk;
use crate::entry::Entry;
use crate::error::IndexError;
use crate::index::folder::IndexFolder;
use crate::limits::INDEX_WRITER_BYTES;
use crate::loaded_tools::LoadedTools;

mod document;
mod folder;

/// The index of one generation, with its documents matched to the visible tools.
#[derive(Debug)]
pub(crate) struct Index {
    segments: Vec<Segment>,
    /// The number of words in each tool's text, with Tantivy's precision.
    pub(crate) lengths: Vec<f32>,
    pub(crate) length_mean: f32,
    /// The exact words in alphabetical order; read when the first misspelled word is searched.
    vocabulary: OnceLock<Vec<String>>,
}

/// One of the two fields of a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum IndexField {
    /// The stems of the combined text, repeated according to their weight.
    Stems,
    /// The words as written, and joined identifiers.
    Exact,
}

struct Segment {
    stems: Arc<InvertedIndexReader>,
    exact: Arc<InvertedIndexReader>,
    /// The tool of each document; `NOBODY` if the document was deleted.
    tools: Vec<u32>,
}

impl std::fmt::Debug for Segment {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Segment")
            .field("documents", &self.tools.len())
            .finish_non_exhaustive()
    }
}

impl Index {
    /// Opens the index on disk if it matches the tools. Otherwise updates it there if the writers'
    /// lock is free, or else builds an index in memory.
    pub(crate) fn for_readers(disk: &Disk, tools: &LoadedTools) -> Result<Self, IndexError> {
        let folder = disk.path(FOLDER);
        if let Ok(index) = Self::open(&folder, tools) {
            return Ok(index);
        }
        let updated = match disk.try_turn() {
            Ok(Some(_turn)) => update(disk, tools).and_then(|()| Self::open(&folder, tools)),
            Ok(None) => Err(IndexError::Misfit("another process is writing it")),
            Err(error) => Err(error.into()),
        };
        updated.or_else(|error| {
            tracing::debug!(%error, "searching from memory");
            Self::in_memory(tools)
        })
    }

    fn in_memory(tools: &LoadedTools) -> Result<Self, IndexError> {
        let index = tantivy::Index::create_in_ram(SchemaFields::schema());
        write(&index, tools, &Contents::default())?;
        Self::read(&index, tools)
    }

    fn open(folder: &Path, tools: &LoadedTools) -> Result<Self, IndexError> {
        let index = existing(folder)?;
        if Contents::of(&index)? != Contents::of_tools(tools) {
            return Err(IndexError::Misfit("it holds other tools"));
        }
        if !index.validate_checksum()?.is_empty() {
            return Err(IndexError::Misfit("its files are damaged"));
        }
        Self::read(&index, tools)
    }

    /// Matches documents to tools one to one, which detects foreign and missing documents.
    fn read(index: &tantivy::Index, tools: &LoadedTools) -> Result<Self, IndexError> {
        let reader: IndexReader = index
            .reader_builder()
            .reload_policy(ReloadPolicy::Manual)
            .try_into()?;
        let fields = SchemaFields::of(&index.schema())?;
        let mut places = places(tools);
        let mut lengths = vec![0.0; tools.visible.len()];
        let mut segments = Vec::new();
        for segment in reader.searcher().segment_readers() {
            segments.push(Segment::read(segment, fields, &mut places, &mut lengths)?);
        }
        if !places.is_empty() {
            return Err(IndexError::Misfit("tools are missing"));
        }
        Ok(Self {
            segments,
            length_mean: mean(&lengths),
            lengths,
            vocabulary: OnceLock::new(),
        })
    }

    /// Returns the tools whose text contains a word, with the word's frequency. Deleted documents
    /// do not count, so the result does not depend on the history of the index.
    pub(crate) fn postings(&self, field: IndexField, word: &str) -> Vec<(u32, u32)> {
        let mut found = Vec::new();
        for segment in &self.segments {
            if let Err(error) = segment.postings(field, word, &mut found) {
                tracing::warn!(%error, word, "postings not read");
            }
        }
        found
    }

    pub(crate) fn vocabulary(&self) -> &[String] {
        self.vocabulary.get_or_init(|| {
            let mut words: Vec<String> = self.segments.iter().flat_map(Segment::words).collect();
            words.sort_unstable();
            words.dedup();
            words
        })
    }
}

impl Segment {
    fn read(
        segment: &SegmentReader,
        fields: SchemaFields,
        places: &mut HashMap<u64, u32>,
        lengths: &mut [f32],
    ) -> Result<Self, IndexError> {
        let keys = segment.fast_fields().u64(KEY)?;
        let norms = segment.get_fieldnorms_reader(fields.stems)?;
        let mut tools = vec![NOBODY; segment.max_doc() as usize];
        for document in segment.doc_ids_alive() {
            let key = keys
                .first(document)
                .ok_or(IndexError::Misfit("a document without key"))?;
            let place = places
                .remove(&key)
                .ok_or(IndexError::Misfit("a foreign document"))?;
            tools[document as usize] = place;
            lengths[place as usize] = to_f32(norms.fieldnorm(document));
        }
        Ok(Self {
            stems: segment.inverted_index(fields.stems)?,
            exact: segment.inverted_index(fields.exact)?,
            tools,
        })
    }

    fn postings(
        &self,
        field: IndexField,
        word: &str,
        found: &mut Vec<(u32, u32)>,
    ) -> io::Result<()> {
        let (inverted, field) = match field {
            IndexField::Stems => (&self.stems, Field::from_field_id(STEMS_ID)),
            IndexField::Exact => (&self.exact, Field::from_field_id(EXACT_ID)),
        };
        let term = Term::from_field_text(field, word);
        let Some(mut postings) = inverted.read_postings(&term, IndexRecordOption::WithFreqs)?
        else {
            return Ok(());
        };
        let mut document = postings.doc();
        while document != TERMINATED {
            let tool = self.tools[document as usize];
            if tool != NOBODY {
                found.push((tool, postings.term_freq()));
            }
            document = postings.advance();
        }
        Ok(())
    }

    fn words(&self) -> Vec<String> {
        let mut words = Vec::new();
        let Ok(mut stream) = self.exact.terms().stream() else {
            return words;
        };
        while stream.advance() {
            if let Ok(word) = std::str::from_utf8(stream.key()) {
                words.push(word.to_owned());
            }
        }
        words
    }
}

/// Updates the index on disk in one commit, or rebuilds it if it cannot be updated. The caller must
/// hold the writers' lock.
pub(crate) fn update(disk: &Disk, tools: &LoadedTools) -> Result<(), IndexError> {
    let folder = disk.path(FOLDER);
    folder::make_all_private(&folder);
    let attempt = existing(&folder).and_then(|index| {
        let before = Contents::of(&index)?;
        if before != Contents::of_tools(tools) {
            write(&index, tools, &before)?;
        }
        Index::open(&folder, tools).map(drop)
    });
    attempt.or_else(|_| {
        let index = fresh(&folder)?;
        write(&index, tools, &Contents::default())
    })
}

fn existing(folder: &Path) -> Result<tantivy::Index, IndexError> {
    if !folder.join("meta.json").exists() {
        return Err(IndexError::Misfit("there is none"));
    }
    let index = tantivy::Index::open(IndexFolder::open(folder)?)?;
    if index.schema() != SchemaFields::schema() {
        return Err(IndexError::Misfit("another schema"));
    }
    Ok(index)
}

fn fresh(folder: &Path) -> Result<tantivy::Index, IndexError> {
    match std::fs::symlink_metadata(folder) {
        Ok(found) if found.is_dir() => std::fs::remove_dir_all(folder)?,
        Ok(_) => std::fs::remove_file(folder)?,
        Err(_) => {}
    }
    files::own_folder(folder).map_err(io::Error::from)?;
    let folder = IndexFolder::open(folder)?;
    let settings = IndexSettings::default();
    Ok(tantivy::Index::create(
        folder,
        SchemaFields::schema(),
        settings,
    )?)
}

/// Replaces the documents of servers whose contents differ, in one commit.
fn write(index: &tantivy::Index, tools: &LoadedTools, before: &Contents) -> Result<(), IndexError> {
    let fields = SchemaFields::of(&index.schema())?;
    let wanted = Contents::of_tools(tools);
    let mut writer: IndexWriter = index.writer_with_num_threads(1, INDEX_WRITER_BYTES)?;
    let altered = |server: &str| before.0.get(server) != wanted.0.get(server);
    let servers = before.0.keys().chain(wanted.0.keys());
    for server in servers.filter(|server| altered(server)) {
        writer.delete_term(Term::from_field_text(fields.server, server));
    }
    for entry in tools
        .visible
        .iter()
        .filter(|entry| altered(entry.at.server.as_str()))
    {
        let digest = wanted
            .0
            .get(entry.at.server.as_str())
            .map_or("", String::as_str);
        writer.add_document(fields.document(entry, key(entry, digest)))?;
    }
    let mut commit = writer.prepare_commit()?;
    commit.set_payload(&wanted.to_text());
    commit.commit()?;
    writer.wait_merging_threads()?;
    Ok(())
}

/// The contents of an index: one digest per server. They are stored as the payload of its single
/// commit.
#[derive(Debug, Default, PartialEq, Eq)]
struct Contents(BTreeMap<String, String>);

impl Contents {
    fn of_tools(tools: &LoadedTools) -> Self {
        let digests = tools.digests.iter();
        Self(
            digests
                .map(|(server, digest)| (server.to_string(), digest.clone()))
                .collect(),
        )
    }

    fn of(index: &tantivy::Index) -> Result<Self, IndexError> {
        let payload = index.load_metas()?.payload;
        let payload = payload.ok_or(IndexError::Misfit("it was never committed"))?;
        let contents = serde_json::from_str(&payload);
        Ok(Self(
            contents.map_err(|_| IndexError::Misfit("another payload"))?,
        ))
    }

    fn to_text(&self) -> String {
        serde_json::to_string(&self.0).expect("a map of texts is always JSON")
    }
}

#[derive(Debug, Clone, Copy)]
struct SchemaFields {
    server: Field,
    key: Field,
    stems: Field,
    exact: Field,
}

impl SchemaFields {
    fn schema() -> Schema {
        let words = |record| {
            let indexing = TextFieldIndexing::default()
                .set_tokenizer("raw")
                .set_index_option(record);
            TextOptions::default().set_indexing_options(indexing)
        };
        let mut schema = Schema::builder();
        schema.add_text_field("server", STRING);
        schema.add_u64_field(KEY, FAST | INDEXED);
        schema.add_text_field("stems", words(IndexRecordOption::WithFreqs));
        schema.add_text_field("exact", words(IndexRecordOption::WithFreqs));
        schema.build()
    }

    fn of(schema: &Schema) -> Result<Self, IndexError> {
        let fields = Self {
            server: schema.get_field("server")?,
            key: schema.get_field(KEY)?,
            stems: schema.get_field("stems")?,
            exact: schema.get_field("exact")?,
        };
        debug_assert_eq!(
            (fields.stems.field_id(), fields.exact.field_id()),
            (STEMS_ID, EXACT_ID)
        );
        Ok(fields)
    }

    fn document(self, entry: &Entry, key: u64) -> TantivyDocument {
        let text = document::text(entry);
        let mut document = TantivyDocument::new();
        document.add_text(self.server, entry.at.server.as_str());
        document.add_u64(self.key, key);
        document.add_pre_tokenized_text(self.stems, document::tokens(text.stems));
        document.add_pre_tokenized_text(self.exact, document::tokens(text.exact));
        document
    }
}

/// Returns the position of each visible tool by the key of its document.
fn places(tools: &LoadedTools) -> HashMap<u64, u32> {
    let digests: HashMap<&ServerName, &str> = tools
        .digests
        .iter()
        .map(|(server, digest)| (server, digest.as_str()))
        .collect();
    let entries = (0..).zip(&tools.visible);
    entries
        .map(|(place, entry)| {
            let digest = digests.get(&entry.at.server).copied().unwrap_or_default();
            (key(entry, digest), place)
        })
        .collect()
}

/// Returns a key of a tool *and* of its document's text, so that a document of another generation
/// never matches.
fn key(entry: &Entry, digest: &str) -> u64 {
    let name = format!("{digest}\0{}", entry.at);
    let hex = Digest::of_bytes(name.as_bytes()).short(16);
    u64::from_str_radix(&hex, 16).expect("sixteen hexadecimal digits are a u64")
}

#[expect(clippy::cast_precision_loss, reason = "lengths are thousands at most")]
fn to_f32(length: u32) -> f32 {
    length as f32
}

#[expect(
    clippy::cast_precision_loss,
    reason = "catalogues hold thousands of tools"
)]
fn mean(lengths: &[f32]) -> f32 {
    (lengths.iter().sum::<f32>() / lengths.len().max(1) as f32).max(1.0)
}

const FOLDER: &str = "index";
const KEY: &str = "key";
const NOBODY: u32 = u32::MAX;
const STEMS_ID: u32 = 2;
const EXACT_ID: u32 = 3;
