//! The control API: typed requests of commands and of the web page to a gateway, and its replies.
//!
//! [`handle`] answers them: for the daemon's socket, and for a command in its own process. The routes of the page
//! call the functions that it calls. A reply holds values; its reader writes the text for a person.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;
use tool::ClientId;

use self::blocking::run_blocking;
use crate::{clients::Connection, gateway::Gateway};

mod blocking;
mod caller;
mod calls;
mod cluster;
mod error;
mod figures;
mod json_object;
mod policy;
mod questions;
mod reviews;
mod servers;
mod tools;

pub use caller::ApiCaller;
pub use calls::{Calls, CallsQuery, LoggedCall, list_calls};
pub use cluster::{ClusterReply, ClusterRequest};
pub use error::ApiError;
pub use figures::{DAYS_DEFAULT, FiguresAnswer, FiguresQuery, read_figures};
pub use json_object::JsonObject;
pub use policy::{TestedCall, Verdict, test_call};
pub use questions::{
    AnswerAction, QuestionAnswer, QuestionRow, Questions, answer_question, list_questions,
};
pub use reviews::{
    DecidedDefinition, ReviewDecision, ReviewList, ReviewRow, ReviewsQuery, decide, list_reviews,
};
pub use servers::{
    ProcessRow, RestartError, Restarted, ServerFigures, ServerRow, SurveyFailure, SurveyReply,
    list_servers,
};
pub use tools::{
    CallReply, CallRequest, DescribedTool, Description, ListedTool, SearchReply, SearchRequest,
    ToolArguments, call, describe_tool, explain, search,
};

/// A request to a gateway.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ApiRequest {
    /// Asks servers that never listed their tools for them.
    Survey,
    /// Searches tools.
    Search(SearchRequest),
    /// Lists the tools of a server or category, or all.
    ListTools(Option<String>),
    /// Describes the tools with these names; the name of a server lists its tools.
    Describe(Vec<String>),
    /// Calls a tool.
    Call(CallRequest),
    /// Declares the tools of one server, or of all, for scripts.
    Types(Option<String>),
    /// Restarts servers at once.
    Restart {
        /// Their names.
        servers: Vec<String>,
        /// True: running calls may finish.
        waits: bool,
    },
    /// A request about the cluster.
    Cluster(ClusterRequest),
    /// Lists the servers.
    Servers,
    /// Lists logged calls.
    Calls(CallsQuery),
    /// Reads figures of the last days.
    Figures(FiguresQuery),
    /// Lists the questions that people can answer in place of clients.
    Questions,
    /// Answers the question with this number.
    Answer(u64, QuestionAnswer),
    /// Lists definitions to review.
    Reviews(ReviewsQuery),
    /// Accepts or refuses definitions.
    Decide(ReviewDecision),
    /// Tests a call against the rules.
    TestCall(TestedCall),
}

/// The reply to a request.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ApiReply {
    /// The servers that were asked for their tools.
    Survey(SurveyReply),
    /// The hits of a search.
    Search(SearchReply),
    /// A list of tools.
    Tools(Vec<ListedTool>),
    /// The described tools.
    Description(Description),
    /// The result of a call.
    Call(CallReply),
    /// The name and the declarations of each server.
    Types(Vec<(String, String)>),
    /// The outcome of each restart.
    Restarted(Vec<Restarted>),
    /// The reply about the cluster.
    Cluster(ClusterReply),
    /// The servers, by name.
    Servers(Vec<ServerRow>),
    /// Logged calls.
    Calls(Calls),
    /// Figures.
    Figures(FiguresAnswer),
    /// The questions.
    Questions(Questions),
    /// The definitions to review.
    Reviews(ReviewList),
    /// The decision about a call.
    Verdict(Verdict),
    /// The request was fulfilled: one sentence.
    Done(String),
}

/// Answers a request of a command, which is a client until it has its reply.
pub async fn handle_for_command(
    gateway: &Arc<Gateway>,
    connection: Connection,
    request: ApiRequest,
    gone: CancellationToken,
) -> Result<ApiReply, ApiError> {
    let client = gateway.admit(connection);
    let caller = ApiCaller {
        client: Some(ClientId {
            connection: Some(client.number),
            folder: client.connection.cwd.clone(),
            name: "".into(),
            caller: None,
        }),
        transport: "shell",
        gone,
    };
    let handled = handle(gateway, request, &caller).await;
    gateway.clients.remove(&client);
    gateway.servers.forget_client(client.number);
    handled
}

/// Answers a request.
pub async fn handle(
    gateway: &Arc<Gateway>,
    request: ApiRequest,
    caller: &ApiCaller,
) -> Result<ApiReply, ApiError> {
    Ok(match request {
        ApiRequest::Survey => ApiReply::Survey(servers::survey(gateway).await),
        ApiRequest::Search(asked) => ApiReply::Search(search(gateway, &asked).await?),
        ApiRequest::ListTools(of) => {
            ApiReply::Tools(tools::list_tools(gateway, of.as_deref()).await?)
        }
        ApiRequest::Describe(names) => {
            ApiReply::Description(tools::describe(gateway, &names).await?)
        }
        ApiRequest::Call(asked) => ApiReply::Call(call(gateway, &asked, caller).await),
        ApiRequest::Types(of) => ApiReply::Types(tools::declare(gateway, of.as_deref()).await?),
        ApiRequest::Restart { servers, waits } => {
            ApiReply::Restarted(servers::restart_all(gateway, servers, waits).await)
        }
        ApiRequest::Cluster(asked) => ApiReply::Cluster(cluster::answer(gateway, asked).await?),
        ApiRequest::Servers => {
            ApiReply::Servers(run_blocking(gateway, |it| Ok(list_servers(it))).await?)
        }
        ApiRequest::Calls(asked) => {
            ApiReply::Calls(run_blocking(gateway, move |it| list_calls(it, asked)).await?)
        }
        ApiRequest::Figures(asked) => ApiReply::Figures(read_figures(gateway, asked).await?),
        ApiRequest::Questions => ApiReply::Questions(list_questions(gateway)),
        ApiRequest::Answer(id, answer) => ApiReply::Done(answer_question(gateway, id, answer)?),
        ApiRequest::Reviews(asked) => {
            ApiReply::Reviews(run_blocking(gateway, move |it| list_reviews(it, &asked)).await?)
        }
        ApiRequest::Decide(decision) => {
            ApiReply::Done(run_blocking(gateway, move |it| decide(it, decision)).await?)
        }
        ApiRequest::TestCall(asked) => ApiReply::Verdict(test_call(gateway, asked).await?),
    })
}
