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
    /// The whole is kept, and this is a part.
    pub is_cut: bool,
    /// The handle under which the whole is kept, if it could be kept.
    pub handle: Option<String>,
}

impl Fitted {
    /// A result that is not cut.
    pub(crate) fn whole(result: Json, is_error: bool) -> Self {
        Self {
            result,
            is_error,
            is_cut: false,
            handle: None,
        }
    }

    /// A successful result with these blocks, each as JSON.
    pub(crate) fn of_blocks(blocks: &[String]) -> Self {
        let content = blocks.join(",");
        let result = Json::of_built(format!(r#"{{"content":[{content}]}}"#));
        Self::whole(result, false)
    }
}

/// The call of a result, which the store needs to know.
#[derive(Debug, Clone)]
pub struct Origin {
    /// The client; none for a person at the command line.
    pub client: Option<ClientId>,
    /// The tool as it can be called again.
    pub tool: String,
    /// True if the client may call `proxy/read_result`; otherwise nothing is kept.
    pub reads_on: bool,
}
