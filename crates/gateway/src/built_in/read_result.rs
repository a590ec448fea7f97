//! `proxy/read_result`: the built-in tool that reads further parts of a result that was cut.

use fleet::Ran;
use futures::{FutureExt as _, future::BoxFuture};
use results::{LIMIT_DEFAULT, ReadError, ReadRequest, ResultStore, Terms};
use tool::{ServerName, ToolRef};

use crate::{
    built_in::{BuiltInTool, OwnCall, READ_RESULT, Tools},
    error::ToolError,
    reply::ToolReply,
};

const SIGNATURE: &str = "(handle: string, part?: integer, offset?: integer, limit?: integer, \
    unit?: \"lines\"|\"bytes\", grep?: string, select?: string)";

/// The longest handle that an error repeats, in characters.
const HANDLE_CHARS_MAX: usize = 60;

/// `proxy/read_result`.
#[derive(Debug)]
pub(crate) struct ReadResult {
    pub(crate) results: ResultStore,
}

impl BuiltInTool for ReadResult {
    fn call<'a>(
        &'a self,
        call: OwnCall<'a>,
        _tools: &'a dyn Tools,
    ) -> BoxFuture<'a, Result<ToolReply, ToolError>> {
        read_result(&self.results, call).boxed()
    }
}

async fn read_result(store: &ResultStore, call: OwnCall<'_>) -> Result<ToolReply, ToolError> {
    let request = ReadRequest::read(call.arguments)?;
    let terms = Terms {
        max_tokens: call.options.max_tokens,
        raw: call.options.raw,
        limit: call.options.timeout().unwrap_or(LIMIT_DEFAULT),
    };
    let answered = results::answer(request, terms, call.context.client.as_ref(), store).await;
    Ok(ToolReply::from(answered?))
}

impl From<ReadError> for ToolError {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::Argument(path, why) => {
                Self::own_input("proxy/read_result", path, &why, SIGNATURE)
            }
            ReadError::Handle(handle, error) => Self::HandleExpired {
                handle: printable::first_chars(&handle, HANDLE_CHARS_MAX).to_owned(),
                why: error.to_string(),
            },
            ReadError::TimedOut(limit) => Self::Timeout {
                tool: ToolRef::new(ServerName::built_in(), READ_RESULT),
                limit,
                ran: Ran::Maybe,
                held_up: None,
            },
            ReadError::Disk(error) => Self::Internal(format!("the kept result: {error}")),
        }
    }
}
