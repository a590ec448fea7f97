//! Every limit of this room, with its reason.

use std::time::Duration;

/// Raised whenever words are split, weighted or stored differently: an index written by another
/// version no longer answers for us and is rebuilt.
pub(crate) const SCHEMA_VERSION: u32 = 1;

/// The layout of `catalog.json` and of snapshot files.
pub(crate) const FORMAT: u32 = 1;

/// The layout of `pins.json`.
pub(crate) const PINS_FORMAT: u32 = 1;

/// The number of removed servers whose pins are kept, some 100 bytes per tool each: more than a person
/// removes and adds again.
pub(crate) const REMOVED_SERVERS_PINNED_MAX: usize = 100;

/// Refused definitions that are remembered of one tool.
pub(crate) const REFUSALS_MAX: usize = 16;

/// Accepted resources of one server, some 200 bytes each. Beyond, those that the server no longer lists
/// are forgotten: lists of files change every minute.
pub(crate) const ACCEPTED_RESOURCES_MAX: usize = 10_000;

/// Resources of one server that a review shows at once.
pub(crate) const RESOURCES_REVIEWED_MAX: usize = 100;

/// Tantivy's smallest arena for one writer thread; a catalogue of tools needs no more.
pub(crate) const INDEX_WRITER_BYTES: usize = 15_000_000;

/// Content words of a query that are looked at; a pasted document has its subject up front.
pub(crate) const QUERY_WORDS_MAX: usize = 48;

/// Characters of a query that are read at all.
pub(crate) const QUERY_CHARS_MAX: usize = 4_000;

/// Characters of a description that are indexed; manuals of a million characters exist.
pub(crate) const DESCRIPTION_CHARS_INDEXED: usize = 3_000;

/// Parameters of a tool that are indexed, and the characters of each one's description.
pub(crate) const PARAMETERS_INDEXED: usize = 60;
pub(crate) const PARAMETER_CHARS_INDEXED: usize = 200;

/// Values of one enumeration that are indexed.
pub(crate) const ENUM_VALUES_INDEXED: usize = 20;

/// Letters of one word; longer runs are data (base64, keys), not language.
pub(crate) const WORD_CHARS_MAX: usize = 40;

/// Times a generation is loaded again because another process committed meanwhile.
pub(crate) const LOADS_MAX: usize = 3;

/// Hits a caller may ask for at once.
pub(crate) const HITS_MAX: usize = 1_000;

/// Best candidates of the first look that are looked at again, name by name.
pub(crate) const SECOND_LOOK: usize = 60;

/// Spellings tried for one word that matches nothing.
pub(crate) const SPELLINGS_MAX: usize = 4;

/// The wait for another writer before a mark of a changed tool is left as it is: the next
/// description of the tool takes it away.
pub(crate) const NOTE_WAIT: Duration = Duration::from_millis(200);

/// Tools offered when nothing fits.
pub(crate) const NEAREST_MAX: usize = 3;

/// The number of tools of servers from which on a catalogue is large. In a smaller one the most similar
/// tools are always shown if nothing fits, because most requests are meant for one of them.
pub(crate) const LARGE_CATALOGUE: usize = 100;

/// Steps of a task that are searched in one query.
pub(crate) const STEPS_MAX: usize = 10;

/// The length of a description that the encoder gets; later details make the purpose less clear.
pub(crate) const DESCRIPTION_CHARS_ENCODED: usize = 240;

/// Pieces of words of a tool's text that the encoder is given: it takes as long as they are many, and
/// more find nothing more.
pub(crate) const PIECES_ENCODED: usize = 64;

/// Example requests of one tool that are used, and the characters of each that are kept: two sentences find
/// most of what more would, and each costs a vector.
pub(crate) const REQUESTS_MAX: usize = 4;
pub(crate) const REQUEST_CHARS_MAX: usize = 300;

/// Parameters whose names the encoder is given.
pub(crate) const PARAMETERS_ENCODED: usize = 8;

/// Tools up to which vectors are made, at some 4 ms of one core each: seven minutes. Beyond,
/// words alone decide.
pub const EMBEDDED_TOOLS_MAX: usize = 100_000;

/// The least number of vectors computed between two writes: a process that dies loses these. The second
/// limit is the approximate maximum number of writes.
pub(crate) const EMBEDDINGS_A_WRITE: usize = 256;
pub(crate) const WRITES_MAX: usize = 16;

/// The number of vectors computed in one batch, some 100 milliseconds: a process that is asked to end
/// does so between two batches.
pub(crate) const EMBEDDINGS_AT_ONCE: usize = 32;

/// The maximum number of parts of a request that are searched: each needs a search of its own.
pub(crate) const PARTS_MAX: usize = 5;

/// Pairs of a word and a tool that feedback remembers: a file of a few hundred kilobytes.
pub(crate) const FEEDBACK_MAX: usize = 5_000;

/// Seconds until an outcome counts half: two weeks, for tools and projects change.
pub(crate) const FEEDBACK_HALF_LIFE_S: f32 = 14.0 * 86_400.0;

/// The seconds for which a changed tool that is not read stays marked: a week. By then its users have
/// called it in its new form.
pub(crate) const CHANGE_KEPT_S: u64 = 7 * 24 * 60 * 60;
