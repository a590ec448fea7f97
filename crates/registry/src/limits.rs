//! The limits of this crate, with their reasons.

use std::time::Duration;

/// The version of the index schema: raise it if words are split, weighted or stored differently, so
/// that indexes of other versions are rebuilt.
pub(crate) const SCHEMA_VERSION: u32 = 1;

/// The format version of `catalog.json` and of snapshot files.
pub(crate) const FORMAT: u32 = 1;

/// The format version of `pins.json`.
pub(crate) const PINS_FORMAT: u32 = 1;

/// The number of removed servers whose pins are kept, at about 100 bytes per tool: more than a user
/// removes and adds again.
pub(crate) const REMOVED_SERVERS_PINNED_MAX: usize = 100;

/// The maximum number of refused definitions that are stored per tool.
pub(crate) const REFUSALS_MAX: usize = 16;

/// The number of accepted resources stored per server, at about 200 bytes each. Beyond it,
/// resources that the server no longer lists are removed, since lists of files change often.
pub(crate) const ACCEPTED_RESOURCES_MAX: usize = 10_000;

/// The maximum number of resources per server in one review.
pub(crate) const RESOURCES_REVIEWED_MAX: usize = 100;

/// The memory of the index writer: Tantivy's minimum for one thread, which suffices for a catalogue
/// of tools.
pub(crate) const INDEX_WRITER_BYTES: usize = 15_000_000;

/// The maximum number of content words of a query that are searched; a pasted document begins with
/// its subject.
pub(crate) const QUERY_WORDS_MAX: usize = 48;

/// The maximum number of characters of a query that are read.
pub(crate) const QUERY_CHARS_MAX: usize = 4_000;

/// The maximum number of characters of a description that are indexed; some have a million.
pub(crate) const DESCRIPTION_CHARS_INDEXED: usize = 3_000;

/// The maximum number of indexed parameters per tool, and of characters of each parameter's
/// description.
pub(crate) const PARAMETERS_INDEXED: usize = 60;
pub(crate) const PARAMETER_CHARS_INDEXED: usize = 200;

/// The maximum number of indexed values per enumeration.
pub(crate) const ENUM_VALUES_INDEXED: usize = 20;

/// The maximum number of letters of a word; a longer sequence is data (base64, keys).
pub(crate) const WORD_CHARS_MAX: usize = 40;

/// The maximum number of times that a generation is loaded because another process committed
/// meanwhile.
pub(crate) const LOADS_MAX: usize = 3;

/// The maximum number of hits per request.
pub(crate) const HITS_MAX: usize = 1_000;

/// The number of best candidates whose names are compared with the query in a second pass.
pub(crate) const SECOND_LOOK: usize = 60;

/// The maximum number of spellings that are tried for a word without a match.
pub(crate) const SPELLINGS_MAX: usize = 4;

/// The maximum wait for the writers' lock to remove the mark of a changed tool. After a timeout,
/// the next description of the tool removes it.
pub(crate) const NOTE_WAIT: Duration = Duration::from_millis(200);

/// The number of tools that are offered if none matches.
pub(crate) const NEAREST_MAX: usize = 3;

/// The number of tools from which a catalogue counts as large. In a smaller one the most similar
/// tools are always shown if none matches, because most requests are meant for one of them.
pub(crate) const LARGE_CATALOGUE: usize = 100;

/// The maximum number of steps of a task in one query.
pub(crate) const STEPS_MAX: usize = 10;

/// The maximum number of characters of a description that the encoder reads; later details obscure
/// the purpose.
pub(crate) const DESCRIPTION_CHARS_ENCODED: usize = 240;

/// The maximum number of word pieces of a tool's text that the encoder reads: its time is
/// proportional to them, and more pieces do not improve the search.
pub(crate) const PIECES_ENCODED: usize = 64;

/// The maximum number of example requests per tool, and of characters of each. Two sentences give
/// most of the benefit, and each needs a vector.
pub(crate) const REQUESTS_MAX: usize = 4;
pub(crate) const REQUEST_CHARS_MAX: usize = 300;

/// The maximum number of parameters whose names the encoder reads.
pub(crate) const PARAMETERS_ENCODED: usize = 8;

/// The maximum number of tools for which vectors are computed, at about 4 ms per tool on one core:
/// seven minutes. A larger catalogue is searched by words alone.
pub const EMBEDDED_TOOLS_MAX: usize = 100_000;

/// The minimum number of vectors between two writes; a process that is killed loses these. The
/// second limit is the approximate maximum number of writes.
pub(crate) const EMBEDDINGS_A_WRITE: usize = 256;
pub(crate) const WRITES_MAX: usize = 16;

/// The number of vectors computed in one batch, about 100 ms; a process can be stopped only between
/// two batches.
pub(crate) const EMBEDDINGS_AT_ONCE: usize = 32;

/// The maximum number of parts of a request that are searched; each needs its own search.
pub(crate) const PARTS_MAX: usize = 5;

/// The maximum number of requests learned from use, of all clients and projects: a file of 1.5 MB. Beyond
/// it the oldest are removed.
pub(crate) const LEARNED_MAX: usize = 1_000;

/// The same for one tool. Ten wordings of a need have most that its other wordings say.
pub(crate) const LEARNED_A_TOOL_MAX: usize = 10;

/// The time for which a changed tool stays marked if it is not read: a week. By then its users have
/// called the new version.
pub(crate) const CHANGE_KEPT_S: u64 = 7 * 24 * 60 * 60;
