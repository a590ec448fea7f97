//! The Tantivy index of the visible tools: derived from the snapshots, and rebuilt if it does not
//! match.

use std::collections::HashMap;
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
use tool::Digest;

use crate::disk::Disk;
use crate::entry::Entry;
use crate::error::IndexError;
use crate::index::folder::IndexFolder;
use crate::limits::INDEX_WRITER_BYTES;
use crate::loaded_tools::{DocumentDigests, LoadedTools};

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
        let index = tantivy::Index::create_in_ram(schema());
        write(&index, tools, &DocumentDigests::new())?;
        Self::read(&index, tools)
    }

    fn open(folder: &Path, tools: &LoadedTools) -> Result<Self, IndexError> {
        let index = existing(folder)?;
        if read_digests(&index)? != tools.digests {
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
        let entries = (0..).zip(&tools.visible);
        let places = entries.map(|(place, entry)| (key(entry, &tools.digests), place));
        let mut places: HashMap<u64, u32> = places.collect();
        let mut lengths = vec![0.0; tools.visible.len()];
        let mut segments = Vec::new();
        for segment in reader.searcher().segment_readers() {
            segments.push(Segment::read(segment, &mut places, &mut lengths)?);
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
        places: &mut HashMap<u64, u32>,
        lengths: &mut [f32],
    ) -> Result<Self, IndexError> {
        let keys = segment.fast_fields().u64(KEY_NAME)?;
        let norms = segment.get_fieldnorms_reader(STEMS)?;
        let mut tools = vec![NOBODY; segment.max_doc() as usize];
        for document in segment.doc_ids_alive() {
            let key = keys.first(document);
            let key = key.ok_or(IndexError::Misfit("a document without key"))?;
            let place = places.remove(&key);
            let place = place.ok_or(IndexError::Misfit("a foreign document"))?;
            tools[document as usize] = place;
            lengths[place as usize] = to_f32(norms.fieldnorm(document));
        }
        Ok(Self {
            stems: segment.inverted_index(STEMS)?,
            exact: segment.inverted_index(EXACT)?,
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
            IndexField::Stems => (&self.stems, STEMS),
            IndexField::Exact => (&self.exact, EXACT),
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
        let before = read_digests(&index)?;
        if before != tools.digests {
            write(&index, tools, &before)?;
        }
        Index::open(&folder, tools).map(drop)
    });
    attempt.or_else(|_| write(&fresh(&folder)?, tools, &DocumentDigests::new()))
}

fn existing(folder: &Path) -> Result<tantivy::Index, IndexError> {
    if !folder.join("meta.json").exists() {
        return Err(IndexError::Misfit("there is none"));
    }
    let index = tantivy::Index::open(IndexFolder::open(folder)?)?;
    if index.schema() != schema() {
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
    let index = tantivy::Index::create(folder, schema(), IndexSettings::default());
    Ok(index?)
}

/// Replaces the documents of servers whose digests differ from those before, in one commit.
fn write(
    index: &tantivy::Index,
    tools: &LoadedTools,
    before: &DocumentDigests,
) -> Result<(), IndexError> {
    let wanted = &tools.digests;
    let mut writer: IndexWriter = index.writer_with_num_threads(1, INDEX_WRITER_BYTES)?;
    let altered = |server: &str| before.get(server) != wanted.get(server);
    let servers = before.keys().chain(wanted.keys());
    for server in servers.filter(|server| altered(server)) {
        writer.delete_term(Term::from_field_text(SERVER, server));
    }
    let entries = tools.visible.iter();
    for entry in entries.filter(|entry| altered(entry.at.server.as_str())) {
        writer.add_document(document(entry, key(entry, wanted)))?;
    }
    let mut commit = writer.prepare_commit()?;
    commit.set_payload(&serde_json::to_string(wanted).expect("a map of texts is always JSON"));
    commit.commit()?;
    writer.wait_merging_threads()?;
    Ok(())
}

/// Returns the digests of an index, which are the payload of its single commit.
fn read_digests(index: &tantivy::Index) -> Result<DocumentDigests, IndexError> {
    let payload = index.load_metas()?.payload;
    let payload = payload.ok_or(IndexError::Misfit("it was never committed"))?;
    serde_json::from_str(&payload).map_err(|_| IndexError::Misfit("another payload"))
}

fn schema() -> Schema {
    let indexing = TextFieldIndexing::default()
        .set_tokenizer("raw")
        .set_index_option(IndexRecordOption::WithFreqs);
    let words = TextOptions::default().set_indexing_options(indexing);
    let mut schema = Schema::builder();
    let fields = [
        schema.add_text_field("server", STRING),
        schema.add_u64_field(KEY_NAME, FAST | INDEXED),
        schema.add_text_field("stems", words.clone()),
        schema.add_text_field("exact", words),
    ];
    debug_assert_eq!(fields, [SERVER, KEY, STEMS, EXACT]);
    schema.build()
}

fn document(entry: &Entry, key: u64) -> TantivyDocument {
    let text = document::text(entry);
    let mut document = TantivyDocument::new();
    document.add_text(SERVER, entry.at.server.as_str());
    document.add_u64(KEY, key);
    document.add_pre_tokenized_text(STEMS, document::tokens(text.stems));
    document.add_pre_tokenized_text(EXACT, document::tokens(text.exact));
    document
}

/// Returns a key of a tool *and* of its document's text, so that a document of another generation
/// never matches.
fn key(entry: &Entry, digests: &DocumentDigests) -> u64 {
    let digest = digests.get(entry.at.server.as_str());
    let name = format!("{}\0{}", digest.map_or("", String::as_str), entry.at);
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
const NOBODY: u32 = u32::MAX;

/// The fields of a document, in the order of the schema.
const SERVER: Field = Field::from_field_id(0);
const KEY: Field = Field::from_field_id(1);
const STEMS: Field = Field::from_field_id(2);
const EXACT: Field = Field::from_field_id(3);
const KEY_NAME: &str = "key";
