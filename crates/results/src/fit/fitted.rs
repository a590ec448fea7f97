//! A result that was cut to fit, and its call.

use jsonrpc::Json;
use tool::ClientId;

/// A result in the form for a client.
#[derive(Debug, Clone)]
pub struct Fitted {
    /// The `result` of a `tools/call`.
    pub result: Json,
    /// It says that it is an error.
    pub is_error: bool,
    /// The whole of which this is a part; none if this is everything.
    pub part: Option<Box<PartOfWhole>>,
}

/// A part of a result, and the whole that is kept.
#[derive(Debug, Clone, Default)]
pub struct PartOfWhole {
    /// The handle under which the whole is kept, if it could be kept.
    pub handle: Option<String>,
    /// The tokens of the whole.
    pub total_tokens: usize,
    /// The items in the part: of its JSON array, lines or texts.
    pub items: Option<usize>,
    /// The items of the whole.
    pub total_items: Option<usize>,
    /// The number of the part; none for a range, for matches, and if nothing is shown.
    pub part: Option<usize>,
    /// The number of parts.
    pub parts: usize,
    /// The media type of the first text.
    pub content_type: Option<&'static str>,
    /// True if it was read on in a result that an earlier call cut.
    pub is_read_on: bool,
}

impl Fitted {
    /// A result that is not cut.
    pub(crate) fn whole(result: Json, is_error: bool) -> Self {
        Self {
            result,
            is_error,
            part: None,
        }
    }

    /// A successful result with these blocks, each as JSON.
    pub(crate) fn of_blocks(blocks: &[String]) -> Self {
        let content = blocks.join(",");
        let result = Json::of_built(format!(r#"{{"content":[{content}]}}"#));
        Self::whole(result, false)
    }
}

/// The client of a result, which the store needs to know.
#[derive(Debug, Clone)]
pub struct Origin {
    /// The client; none for a person at the command line.
    pub client: Option<ClientId>,
    /// True if the client may call `proxy/read_result`; otherwise nothing is kept.
    pub reads_on: bool,
}
